//! `cofer server`: everything about registered servers.

mod add;
mod call;
mod container;
mod environment;
mod import;
mod input;
mod items;
mod list;
mod logs;
mod outcome;
mod remote;
mod remove;
mod set;
mod show;
mod spec;
mod switch;
mod switch_many;
mod volumes;

use clap::{Args, Subcommand};
use cofer_model::{ErrorKind, ServerList};

use super::Context;
use crate::cli::server_name;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::text;

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    Add(Box<add::AddArgs>),
    Import(import::ImportArgs),
    /// List all servers
    #[command(visible_alias = "ls")]
    List,
    Show(show::ShowArgs),
    Set(Box<set::SetArgs>),
    /// Switch servers on and wait until they are connected
    Enable(switch::SwitchArgs),
    /// Switch servers off and stop them
    Disable(switch::SwitchArgs),
    /// Stop servers and start them again from the same configuration
    Restart(switch::SwitchArgs),
    Remove(remove::RemoveArgs),
    Call(call::CallArgs),
    /// List the tools a server offers
    Tools(ServerArg),
    /// List the resources a server offers
    Resources(ServerArg),
    /// List the prompts a server offers
    Prompts(ServerArg),
    Logs(logs::LogsArgs),
    Volumes(volumes::VolumesArgs),
}

/// The server that is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArg {
    /// The server's name or id
    #[arg(value_name = "NAME", value_parser = server_name)]
    name: String,
}

impl ServerCommand {
    /// The server that has to be there already.
    fn server(&self) -> Option<&str> {
        let server = match self {
            Self::Add(_) | Self::Import(_) | Self::List | Self::Volumes(_) => return None,
            Self::Show(args) => &args.server,
            Self::Set(args) => &args.server,
            Self::Enable(args) | Self::Disable(args) | Self::Restart(args) => {
                return args.only_name();
            }
            Self::Remove(args) => &args.server,
            Self::Call(args) => &args.server,
            Self::Tools(server) | Self::Resources(server) | Self::Prompts(server) => server,
            Self::Logs(args) => &args.server,
        };
        Some(&server.name)
    }
}

pub(crate) async fn run(command: ServerCommand, context: &mut Context) -> Result<(), Failure> {
    let meant = command.server().map(str::to_owned);
    match (dispatch(command, context).await, meant) {
        (Err(failure), Some(name)) if failure.kind() == Some(ErrorKind::NotFound) => {
            Err(suggest(failure, &name, &context.client).await)
        }
        (result, _) => result,
    }
}

async fn dispatch(command: ServerCommand, context: &mut Context) -> Result<(), Failure> {
    use crate::client::Switch;
    match command {
        ServerCommand::Add(args) => add::run(*args, context).await,
        ServerCommand::Import(args) => import::run(args, context).await,
        ServerCommand::List => list::run(context).await,
        ServerCommand::Show(args) => show::run(args, context).await,
        ServerCommand::Set(args) => set::run(*args, context).await,
        ServerCommand::Enable(args) => switch::run(args, Switch::Enable, context).await,
        ServerCommand::Disable(args) => switch::run(args, Switch::Disable, context).await,
        ServerCommand::Restart(args) => switch::run(args, Switch::Restart, context).await,
        ServerCommand::Remove(args) => remove::run(args, context).await,
        ServerCommand::Call(args) => call::run(args, context).await,
        ServerCommand::Tools(server) => items::run(server, items::TOOLS, context).await,
        ServerCommand::Resources(server) => items::run(server, items::RESOURCES, context).await,
        ServerCommand::Prompts(server) => items::run(server, items::PROMPTS, context).await,
        ServerCommand::Logs(args) => logs::run(args, context).await,
        ServerCommand::Volumes(args) => volumes::run(args, context).await,
    }
}

/// Names what was probably meant. Where the list cannot be had, the failure is told as it is.
async fn suggest(failure: Failure, typed: &str, client: &Client) -> Failure {
    let list = client.servers().await.and_then(|answer| answer.read::<ServerList>());
    let Ok(ServerList { servers }) = list else {
        return failure;
    };
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    failure.hint(what_was_meant(typed, &names))
}

fn what_was_meant(typed: &str, names: &[&str]) -> String {
    match (text::closest(typed, names), names) {
        (Some(name), _) => format!("did you mean `{name}`?"),
        (None, []) => "no server is registered; `cofer server add` registers one.".to_owned(),
        (None, _) => "`cofer server list` shows all servers.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_there_gets_a_way_on() {
        let hints = [
            what_was_meant("gihtub", &["github", "fs"]),
            what_was_meant("postgres", &["github", "fs"]),
            what_was_meant("postgres", &[]),
        ];
        insta::assert_snapshot!(hints.join("\n"), @"
        did you mean `github`?
        `cofer server list` shows all servers.
        no server is registered; `cofer server add` registers one.
        ");
    }
}
