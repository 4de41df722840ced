//! `cofer server enable`, `disable` and `restart`.

use clap::Args;

use super::{ServerArg, outcome};
use crate::client::Switch;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::text;

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    #[command(flatten)]
    pub(super) server: ServerArg,
    /// Do not wait until it is done
    #[arg(long)]
    no_wait: bool,
}

pub(super) async fn run(
    args: SwitchArgs,
    switch: Switch,
    context: &mut Context,
) -> Result<(), Failure> {
    let name = args.server.name.as_str();
    let wait = (!args.no_wait).then_some(outcome::PATIENT);
    let verb = match switch {
        Switch::Enable => "Starting",
        Switch::Disable => "Stopping",
        Switch::Restart => "Restarting",
    };
    let work = context.client.switch(name, switch, wait);
    let answer = match wait {
        Some(limit) => {
            let what = format!("{verb} `{}`…", text::line(name));
            outcome::settled(&what, name, &context.client, limit, work).await?
        }
        None => work.await?,
    };
    outcome::show(&answer, context).await
}
