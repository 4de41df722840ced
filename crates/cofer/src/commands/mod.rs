//! One file per command: its flags, and what it does.

pub(crate) mod chat;
pub(crate) mod client;
pub(crate) mod completions;
pub(crate) mod connect;
mod console;
mod doctor;
pub(crate) mod env;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod proxy;
pub(crate) mod serve;
pub(crate) mod server;
mod start;

use std::path::PathBuf;

use crate::cli::{Cli, Command, Global};
use crate::client::Client;
use crate::config::{self, Target};
use crate::failure::Failure;
use crate::output::Output;

/// What a command that talks to the daemon has in hand.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) out: Output,
    pub(crate) data_dir: PathBuf,
}

impl Context {
    fn new(global: &Global) -> Result<Self, Failure> {
        let data_dir = config::data_dir(global.data_dir.as_deref())?;
        let target = Target::find(&data_dir, global.url.as_deref())?;
        Ok(Self { client: Client::new(target)?, out: Output::new(global.json), data_dir })
    }
}

/// Runs what was typed.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    let global = cli.global;
    match cli.command {
        Command::Serve(args) => serve::run(args, &global),
        Command::Completions(args) => completions::run(args),
        Command::Mcp(command) => mcp::run(command),
        Command::Init(args) => init::run(args),
        Command::Env(command) => env::run(command, global.json),
        Command::Proxy(args) => proxy::run(args, &global),
        Command::Connect(args) => connect::run(args, &global),
        Command::Client(command) => client::run(command, &global),
        Command::Server(command) => {
            let mut context = Context::new(&global)?;
            block_on(server::run(command, &mut context))
        }
        Command::Chat(args) => {
            let mut context = Context::new(&global)?;
            block_on(chat::run(args, &mut context))
        }
        Command::Console => {
            let mut context = Context::new(&global)?;
            block_on(console::run(&mut context))
        }
        Command::Doctor => {
            let mut context = Context::new(&global)?;
            block_on(doctor::run(&mut context))
        }
    }
}

/// One thread is enough for a command that asks one daemon.
fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("could not start the runtime").caused_by(error))?;
    runtime.block_on(command)
}
