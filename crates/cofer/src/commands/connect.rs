//! `cofer connect`: the daemon's gateway on stdin and stdout, for clients that start a command.
//! stdout is the protocol and nothing else; what is to be said goes to stderr.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use cofer_proxy::{Parent, Place, Whereabouts};
use http::HeaderValue;
use reqwest::Url;

use super::proxy::log_to_stderr;
use super::serve::Signals;
use super::start;
use crate::cli::{Global, server_name};
use crate::client::{Client, ClientError};
use crate::config::{self, Target};
use crate::failure::Failure;

/// What is logged without being asked.
const USUAL: &str = "warn";

/// Offer the daemon's servers to an MCP client that starts a command
///
/// Speaks MCP on stdin and stdout, and is the daemon's gateway: all servers joined, or one. It
/// holds no token of its own: that is read from the daemon's data directory. For a client's
/// configuration, which `cofer client install` writes:
/// {"command": "cofer", "args": ["connect"]}
#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// One server alone, whole, instead of all of them joined
    #[arg(value_name = "NAME", value_parser = server_name)]
    name: Option<String>,
    /// Start the daemon where none runs; it goes on when the client leaves
    #[arg(long)]
    start: bool,
    /// Say on stderr what is done; never a token
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: ConnectArgs, global: &Global) -> Result<(), Failure> {
    log_to_stderr(args.verbose, USUAL)?;
    // One thread carries it all: another would cost each message a change of threads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("could not start the runtime").caused_by(error))?;
    let outcome = runtime.block_on(connect(args, global));
    // A thread may be reading stdin, which has no end while the client holds it.
    runtime.shutdown_background();
    outcome
}

async fn connect(args: ConnectArgs, global: &Global) -> Result<(), Failure> {
    // Before anything that takes time, in which it may go.
    let parent = Parent::now();
    let mut signals = Signals::new()
        .map_err(|error| Failure::new("could not listen for signals").caused_by(error))?;
    let shutdown = async move {
        let name = signals.next().await;
        tracing::debug!("{name}: ending");
    };
    tokio::pin!(shutdown);
    let daemon = Daemon {
        data_dir: config::data_dir(global.data_dir.as_deref())?,
        url: global.url.clone(),
        name: args.name,
    };
    let found = tokio::select! {
        found = daemon.find(args.start) => found,
        () = &mut shutdown => return Ok(()),
    };
    match found {
        Ok(place) => cofer_proxy::connect(place, Arc::new(daemon), parent, shutdown)
            .await
            .map_err(|error| Failure::from_chain(&error)),
        Err(failure) => {
            if !std::io::stdin().is_terminal() {
                let refusal = cofer_proxy::refuse(failure.message(), failure.advice());
                tokio::select! {
                    () = refusal => {}
                    () = &mut shutdown => {}
                }
            }
            Err(failure)
        }
    }
}

/// The daemon that is meant, wherever it listens now.
#[derive(Debug)]
struct Daemon {
    data_dir: PathBuf,
    url: Option<String>,
    /// One server of it.
    name: Option<String>,
}

impl Daemon {
    fn target(&self) -> Result<Target, Failure> {
        Target::find(&self.data_dir, self.url.as_deref())
    }

    /// Finds it, started where that was asked for, and what is wanted of it.
    async fn find(&self, start: bool) -> Result<Place, Failure> {
        let mut client = Client::new(self.target()?)?;
        if let Err(error) = client.health().await {
            match error {
                ClientError::NotRunning { .. } | ClientError::Unreachable { .. } if start => {
                    start::daemon(&self.data_dir).await?;
                }
                error => return Err(away(error)),
            }
            client = Client::new(self.target()?)?;
            client.health().await.map_err(away)?;
        }
        if let Some(name) = &self.name {
            client.server(name, false).await?;
        } else if client.target().token.is_none() {
            client.servers().await?;
        }
        self.place(client.target())
            .ok_or_else(|| Failure::new("the daemon's address or token cannot be used"))
    }

    /// The gateway's endpoint at a daemon.
    fn place(&self, target: &Target) -> Option<Place> {
        if target.absent.is_some() {
            return None;
        }
        let mut url = Url::parse(&target.url).ok()?;
        url.path_segments_mut().ok()?.pop_if_empty().push("mcp").extend(&self.name);
        let authorization = target.token.as_ref().map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        let authorization = match authorization {
            Some(value) => Some(value?),
            None => None,
        };
        Some(Place { url: url.as_str().parse().ok()?, authorization })
    }
}

fn away(error: ClientError) -> Failure {
    match error {
        ClientError::NotRunning { .. } | ClientError::Unreachable { .. } => Failure::from(error)
            .hint("start the daemon with `cofer serve`, or let `cofer connect --start` do so."),
        error => Failure::from(error),
    }
}

impl Whereabouts for Daemon {
    fn look(&self) -> Option<Place> {
        self.place(&self.target().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str, name: Option<&str>, token: Option<&str>) -> Option<Place> {
        let daemon = Daemon { data_dir: PathBuf::new(), url: None, name: name.map(str::to_owned) };
        daemon.place(&Target {
            url: url.to_owned(),
            public_url: None,
            token: token.map(str::to_owned),
            token_file: PathBuf::new(),
            absent: None,
        })
    }

    #[test]
    fn the_gateway_is_one_place_and_each_server_another() {
        let all = place("http://127.0.0.1:8787", None, Some("t0ken")).unwrap();
        assert_eq!(all.url, "http://127.0.0.1:8787/mcp");
        assert_eq!(all.authorization.as_ref().unwrap(), "Bearer t0ken");
        assert!(!format!("{all:?}").contains("t0ken"));
        let one = place("http://127.0.0.1:8787/", Some("my server/ü"), None).unwrap();
        assert_eq!(one.url, "http://127.0.0.1:8787/mcp/my%20server%2F%C3%BC");
        assert!(one.authorization.is_none());
        assert!(place("http://127.0.0.1:8787", None, Some("a\nb")).is_none());
    }
}
