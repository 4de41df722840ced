//! `cofer client`: puts Cofer into the configuration of MCP clients, and takes it out again.

mod change;
mod install;
mod list;
mod remove;

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::cli::{Global, server_name};
use crate::config;
use crate::failure::Failure;
use crate::mcp_clients::edit::EditError;
use crate::mcp_clients::file::{Config, FileError};
use crate::mcp_clients::{CLIENTS, McpClient, Places, find};
use crate::output::Output;

/// What Cofer is called in a client's configuration.
const ENTRY: &str = "cofer";

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    Install(install::InstallArgs),
    Remove(remove::RemoveArgs),
    /// Show the clients that Cofer can be put into, and where it is
    #[command(visible_alias = "ls")]
    List,
}

/// Which entry of which configuration is meant.
#[derive(Debug, Clone, Args)]
struct Whose {
    /// The client
    #[arg(value_parser = PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name)))]
    client: String,
    /// The configuration of the project in this directory, which others may share
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Your own configuration, for all projects [default]
    #[arg(long)]
    user: bool,
    /// One server alone, whole, instead of all of them joined
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    server: Option<String>,
    /// Write without asking
    #[arg(long, short)]
    yes: bool,
    /// Show the change and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The same, looked up.
struct Place {
    client: &'static McpClient,
    entry: String,
    config: Config,
}

impl Whose {
    fn place(&self) -> Result<Place, Failure> {
        let client = find(&self.client)
            .ok_or_else(|| Failure::mistyped(format!("there is no client `{}`", self.client)))?;
        let path = path(client, self.project)?;
        let config = Config::read(&path)?;
        Ok(Place { client, entry: entry_name(self.server.as_deref()), config })
    }
}

fn path(client: &McpClient, project: bool) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new("could not tell the current directory").caused_by(error))?;
    let root = project.then_some(here.as_path());
    let places = places()?;
    client.path(&places, root).ok_or_else(|| {
        Failure::mistyped(format!("{} has no configuration for a project", client.title))
            .hint("leave `--project` out to change your own.")
    })
}

fn places() -> Result<Places, Failure> {
    Places::of_this_process().ok_or_else(|| {
        Failure::new("your home directory is not known")
            .caused_by("HOME is not set")
            .hint("set HOME to an absolute path.")
    })
}

/// Clients join this name with those of tools, so that it has only what all of them take.
fn entry_name(server: Option<&str>) -> String {
    let Some(server) = server else {
        return ENTRY.to_owned();
    };
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    format!("{ENTRY}-{}", server.chars().map(safe).collect::<String>())
}

pub(crate) fn run(command: ClientCommand, global: &Global) -> Result<(), Failure> {
    let data_dir = config::data_dir(global.data_dir.as_deref())?;
    let mut out = Output::new(global.json);
    match command {
        ClientCommand::Install(args) => install::run(args, global, &data_dir, &mut out),
        ClientCommand::Remove(args) => remove::run(&args, &data_dir, &mut out),
        ClientCommand::List => list::run(&mut out),
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let hint = match &error {
            FileError::Changed(_) => "look at it, and ask again.",
            FileError::NotOurs(_) => "ask as the user that it belongs to.",
            FileError::Io { .. } => "check the permissions of the file and its directory.",
            FileError::NotAFile(_) | FileError::TooLarge(_) | FileError::NotText(_) => {
                "move it away, or change it by hand."
            }
        };
        Self::from_chain(&error).hint(hint)
    }
}

/// A configuration that its own client could not read is not touched.
fn not_edited(path: &Path, error: &EditError) -> Failure {
    let failure = Failure::new(format!("could not change `{}`", path.display()));
    let mut causes: Vec<String> = vec![error.to_string()];
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    causes.dedup();
    let failure = causes.into_iter().fold(failure, Failure::caused_by);
    failure.hint("correct the file first; nothing was written.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_name_that_every_client_takes() {
        assert_eq!(entry_name(None), "cofer");
        assert_eq!(entry_name(Some("my server/ü")), "cofer-my-server--");
    }
}
