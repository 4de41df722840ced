//! `cofer mcp`: MCP servers of our own, for a client that starts them. stdout is the protocol
//! and nothing else; what is to be said goes to stderr.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use cofer_copilot::Config;
use tracing_subscriber::EnvFilter;

use super::serve::Signals;
use crate::cli::seconds;
use crate::failure::Failure;
use crate::output::say;

/// What is logged without being asked; the protocol library is told to be brief.
const DEFAULT_FILTER: &str = "warn,cofer_copilot=info,cofer_environments=info";

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    Copilot(CopilotArgs),
    Environments(EnvironmentsArgs),
}

/// Offer GitHub Copilot as the tool `copilot.chat`
///
/// Speaks MCP on stdin and stdout. Each request runs your own Copilot CLI once, with your login,
/// without tools and in an empty directory, and gives back what it said. For a client's
/// configuration: {"command": "cofer", "args": ["mcp", "copilot"]}
#[derive(Debug, Args)]
pub(crate) struct CopilotArgs {
    /// The models that may be asked for [default: config/models.json, else a built-in list]
    #[arg(long, env = "COFER_COPILOT_MODELS", value_name = "FILE", hide_env_values = true)]
    models: Option<PathBuf>,
    /// List the tool as copilot_chat, for clients that refuse a dot in a name
    #[arg(long)]
    safe_names: bool,
    /// The Copilot CLI, a name on PATH or a path [default: copilot]
    #[arg(long, env = "COFER_COPILOT", value_name = "PROGRAM", hide_env_values = true)]
    cli: Option<String>,
    /// The directory the CLI runs in [default: an empty one for each request]
    #[arg(long, env = "COFER_COPILOT_CWD", value_name = "DIR", hide_env_values = true)]
    cwd: Option<PathBuf>,
    /// How long a request may take, at most 30
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = limit)]
    timeout: Duration,
}

/// Offer environments: a git worktree and a container of its own for each task
///
/// Speaks MCP on stdin and stdout, with the tools environment_create, environment_run_cmd and
/// environment_destroy. Needs git and Podman, and `cofer init` once in each repository. Settings:
/// COHERRA_TIMEOUT_RUN (ms, default 600000), COFER_MAX_ENVIRONMENTS (50), COFER_DEFAULT_IMAGE
/// (ubuntu:24.04), COFER_PODMAN (podman). For a client's configuration:
/// {"command": "cofer", "args": ["mcp", "environments"]}
#[derive(Debug, Args)]
pub(crate) struct EnvironmentsArgs {}

/// Not longer than what clients are promised.
fn limit(text: &str) -> Result<Duration, String> {
    let span = seconds(text)?;
    if span > cofer_copilot::LONGEST {
        return Err(format!("more than {} seconds", cofer_copilot::LONGEST.as_secs()));
    }
    Ok(span)
}

/// What the environment says of the CLI, for `cofer doctor`.
pub(super) fn copilot_config() -> Config {
    config(CopilotArgs {
        models: None,
        safe_names: false,
        cli: std::env::var("COFER_COPILOT").ok(),
        cwd: None,
        timeout: cofer_copilot::LONGEST,
    })
}

fn config(args: CopilotArgs) -> Config {
    let given = |path: &PathBuf| !path.as_os_str().is_empty();
    Config {
        program: args.cli.filter(|cli| !cli.is_empty()).unwrap_or_else(|| "copilot".to_owned()),
        models: args.models.filter(given),
        cwd: args.cwd.filter(given),
        limit: args.timeout,
        safe_names: args.safe_names,
        // Not the path of the binary: an upgrade may have put another one there.
        shim: PathBuf::from("/proc/self/exe"),
    }
}

pub(crate) fn run(command: McpCommand) -> Result<(), Failure> {
    log_to_stderr()?;
    match command {
        McpCommand::Copilot(args) => run_copilot(args),
        McpCommand::Environments(EnvironmentsArgs {}) => {
            let settings = super::env::settings()?;
            serve_by(async |shutdown| {
                Ok(Box::pin(cofer_environments::serve(settings, shutdown)).await?)
            })
        }
    }
}

fn run_copilot(args: CopilotArgs) -> Result<(), Failure> {
    // What a killed shim leaves comes to this process, which ends it.
    cofer_runtime::become_subreaper()
        .map_err(|error| Failure::new("could not become a subreaper").caused_by(error))?;
    let config = config(args);
    serve_by(async |shutdown| Ok(cofer_copilot::serve(config, shutdown).await?))
}

/// Serves until the client or a signal ends it.
fn serve_by(serve: impl AsyncFnOnce(Shutdown) -> Result<(), Failure>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("could not start the runtime").caused_by(error))?;
    let served = runtime.block_on(async {
        let mut signals = Signals::new()
            .map_err(|error| Failure::new("could not listen for signals").caused_by(error))?;
        let shutdown: Shutdown = Box::pin(async move {
            let name = signals.next().await;
            say(&format!("cofer: {name}, ending what runs"));
        });
        serve(shutdown).await
    });
    // A thread may be reading stdin, which has no end while the client holds it.
    runtime.shutdown_background();
    served
}

/// Ready when a signal has come.
type Shutdown = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn log_to_stderr() -> Result<(), Failure> {
    let asked = std::env::var("COFER_LOG").ok().filter(|filter| !filter.trim().is_empty());
    let filter = asked.as_deref().unwrap_or(DEFAULT_FILTER);
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::new(format!("could not read the log filter `{filter}` in COFER_LOG"))
            .caused_by(error)
            .hint("write it like `info` or `warn,cofer_copilot=debug`.")
    })?;
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    log.with_env_filter(filter)
        .try_init()
        .map_err(|error| Failure::new("could not set up the log").caused_by(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_be_given_less_time_and_not_more() {
        // covers: COP-009
        assert_eq!(limit("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(limit("30"), Ok(Duration::from_secs(30)));
        assert!(limit("30.1").is_err());
    }
}
