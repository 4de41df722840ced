//! `cofer server enable`, `disable` and `restart`.

use clap::Args;

use super::{outcome, switch_many};
use crate::cli::server_name;
use crate::client::Switch;
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::text;

#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// Names or ids of servers, or patterns in which `*` stands for anything (quote them)
    #[arg(value_name = "NAME", value_parser = server_name, required_unless_present = "all")]
    pub(super) names: Vec<String>,
    /// All servers; for `restart`, those that are switched on
    #[arg(long, conflicts_with = "names")]
    pub(super) all: bool,
    /// Do not wait until it is done
    #[arg(long)]
    pub(super) no_wait: bool,
}

impl SwitchArgs {
    /// The name of the server, if one is meant and not a pattern.
    pub(super) fn only_name(&self) -> Option<&str> {
        match self.names.as_slice() {
            [name] if !switch_many::is_pattern(name) => Some(name),
            _ => None,
        }
    }
}

pub(super) async fn run(
    args: SwitchArgs,
    switch: Switch,
    context: &mut Context,
) -> Result<(), Failure> {
    let Some(name) = args.only_name() else {
        return switch_many::run(args, switch, context).await;
    };
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
