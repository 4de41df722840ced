//! What can be typed: the root of the command line. Each command keeps its flags beside its code.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use cofer_model::{BadMaxInFlight, MaxInFlight};

use crate::commands::{chat, client, completions, connect, env, init, mcp, proxy, serve, server};

/// Runs, guards, joins and shows MCP servers.
#[derive(Debug, Parser)]
#[command(name = "cofer", version, propagate_version = false, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the help lists what every command has.
pub(crate) const GLOBAL: &str = "Global options";

/// What holds for every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Where the daemon keeps its data [default: $XDG_DATA_HOME/cofer, else ~/.local/share/cofer]
    #[arg(long, global = true, env = "COFER_DATA_DIR", value_name = "DIR", hide_env_values = true, help_heading = GLOBAL)]
    pub(crate) data_dir: Option<PathBuf>,
    /// The daemon's address [default: the running daemon's, else http://127.0.0.1:8787]
    #[arg(long, global = true, env = "COFER_URL", value_name = "URL", hide_env_values = true, help_heading = GLOBAL)]
    pub(crate) url: Option<String>,
    /// Print JSON instead of words
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::ServeArgs),
    /// Register servers, look after them and use them
    #[command(subcommand)]
    Server(server::ServerCommand),
    /// MCP servers of Cofer's own, on stdin and stdout
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    Connect(connect::ConnectArgs),
    /// Put Cofer into MCP clients
    #[command(subcommand)]
    Client(client::ClientCommand),
    Proxy(proxy::ProxyArgs),
    Init(init::InitArgs),
    /// Look at what agents did in environments, and take it over
    #[command(subcommand)]
    Env(env::EnvCommand),
    Chat(chat::ChatArgs),
    /// Print the link that opens the console
    Console,
    /// Look for what is wrong or missing on this machine
    Doctor,
    Completions(completions::CompletionsArgs),
}

/// A server's name or id, as far as it can stand in a URL.
pub(crate) fn server_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a server's name is not empty".to_owned()),
        "." | ".." => Err("a server's name is not `.` or `..`".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// A time span typed in seconds, such as `30` or `0.5`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let span = Duration::try_from_secs_f64(number).map_err(|error| error.to_string())?;
    if span < Duration::from_millis(1) {
        return Err("less than a millisecond".to_owned());
    }
    Ok(span)
}

/// A number of requests, or `auto`.
pub(crate) fn max_in_flight(text: &str) -> Result<MaxInFlight, String> {
    text.parse().map_err(|error: BadMaxInFlight| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    /// The help of `command` and of all below it, as it is shown 100 columns wide.
    fn reference(command: &mut clap::Command, path: &str, out: &mut String) {
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        out.push_str(&format!("## {path}\n\n{}\n\n", lines.join("\n").trim_end()));
        for below in command.get_subcommands_mut().filter(|below| below.get_name() != "help") {
            let path = format!("{path} {}", below.get_name());
            reference(below, &path, out);
        }
    }

    #[test]
    fn the_whole_command_line_reads_like_this() {
        let mut command = Cli::command().term_width(100);
        command.build();
        let mut out = String::new();
        reference(&mut command, "cofer", &mut out);
        insta::assert_snapshot!("cli-reference", out);
    }

    #[test]
    fn a_secret_in_the_environment_is_not_in_the_help() {
        let help = Cli::command().find_subcommand_mut("serve").unwrap().render_long_help();
        let help = help.to_string();
        assert!(help.contains("[env: COFER_DATABASE_URL]"), "{help}");
    }

    #[test]
    fn spans_are_seconds_above_nothing() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("30"), Ok(Duration::from_secs(30)));
        for text in ["0", "-1", "1e400", "NaN", "soon", "0.0001"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_that_would_be_another_route_is_mistyped() {
        assert_eq!(server_name(" fs "), Ok("fs".to_owned()));
        for text in ["", " ", ".", ".."] {
            assert!(server_name(text).is_err(), "{text:?}");
        }
    }
}
