//! `cofer server show`: all about one server.

use clap::Args;

use super::ServerArg;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::table;

/// Show everything about a server
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(super) server: ServerArg,
    /// Show the values of its variables
    #[arg(long)]
    reveal: bool,
}

pub(super) async fn run(args: ShowArgs, context: &mut Context) -> Result<(), Failure> {
    let answer = context.client.server(&args.server.name, args.reveal).await?;
    if context.out.wants_json() {
        return Ok(context.out.print_json(answer.json())?);
    }
    Ok(context.out.print(&table::server(&answer.read()?))?)
}
