//! `cofer completions`: what a shell needs to complete our commands.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::Output;

/// Print the completions for a shell
///
/// For bash: `cofer completions bash > ~/.local/share/bash-completion/completions/cofer`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cofer", &mut script);
    Output::new(false).print_raw(&String::from_utf8_lossy(&script))?;
    Ok(())
}
