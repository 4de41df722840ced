//! `cofer server remove`: stops a server and forgets it.

use clap::Args;
use cofer_model::ServerView;

use super::ServerArg;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{confirm, is_interactive, text, with_progress};

/// Stop a server and forget it
///
/// Asks before it does where a person can answer.
#[derive(Debug, Args)]
#[command(visible_alias = "rm")]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    pub(super) server: ServerArg,
    /// Remove the server's volumes too
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) async fn run(args: RemoveArgs, context: &mut Context) -> Result<(), Failure> {
    let server: ServerView = context.client.server(&args.server.name, false).await?.read()?;
    let name = text::line(&server.name);
    if !args.yes && is_interactive() {
        let question = format!("Stop `{name}` and forget its configuration?");
        if !confirm(&question)
            .map_err(|error| Failure::new("could not read the answer").caused_by(error))?
        {
            return Err(Failure::new(format!("`{name}` was not removed")));
        }
    }
    let id = server.id.to_string();
    let work = context.client.remove(&id, args.purge);
    with_progress(&format!("Stopping `{name}`…"), work).await?;
    if context.out.wants_json() {
        let json = serde_json::json!({ "removed": server.id, "name": server.name });
        return Ok(context.out.print_json(&json.to_string())?);
    }
    Ok(context.out.print(&format!("Removed `{name}`"))?)
}
