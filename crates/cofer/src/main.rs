//! The `cofer` binary: becomes the shim where it is started as one, else reads the command line,
//! runs one command and ends with its exit code.

mod cli;
mod client;
mod commands;
mod config;
mod failure;
mod machine;
mod mcp_clients;
mod output;
mod programs;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;

fn main() -> ExitCode {
    // Before anything opens a descriptor or starts a thread: the shim takes over those it got.
    if cofer_runtime::shim::is_shim_invocation() {
        return cofer_runtime::shim::run();
    }
    if cofer_environments::forward::is_invocation() {
        return cofer_environments::forward::run();
    }
    failure::install_panic_hook();
    std::panic::catch_unwind(run).unwrap_or_else(|_| ExitCode::from(failure::OUR_BUG))
}

fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            // Help that nobody reads to its end is still help.
            message.print().unwrap_or_default();
            return ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(failure::OUR_BUG));
        }
    };
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
