//! Whether the CLI is installed and somebody logged in, for `cofer doctor`. Costs no request to
//! a model: a CLI that speaks ACP tells by refusing a new session.

use std::path::PathBuf;
use std::time::Duration;

use cofer_runtime::Streams;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;

use crate::chat::{Place, find};
use crate::config::Config;
use crate::detect::{DetectError, Detector};
use crate::diagnose;
use crate::failure::{Failure, Kind};
use crate::launcher::{Cli, Launcher, RunError, end};
use crate::limit::Limit;

/// The answers to two questions are far shorter.
const LONGEST_TALK: u64 = 4 * 1024 * 1024;

/// ACP's "authentication required".
const AUTHENTICATION_REQUIRED: i64 = -32000;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// The CLI.
    pub program: PathBuf,
    /// Its version, where it tells one.
    pub version: Option<String>,
    /// Whether somebody is logged in.
    pub login: Login,
}

/// Whether somebody is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Somebody is.
    LoggedIn,
    /// Nobody is.
    LoggedOut,
    /// It cannot be told without asking a model.
    Unknown,
}

/// Looks at the installed CLI, for at most `patience`.
pub async fn examine(config: &Config, patience: Duration) -> Result<Examination, Failure> {
    let limit = Limit::new(patience, CancellationToken::new());
    let launcher = Launcher::new(config.shim.clone());
    let program = find(&config.program)?;
    let place = Place::make(config.cwd.as_deref())?;
    let cli = Cli { program, cwd: place.path() };
    let detected = Detector::default().capabilities(&cli, &launcher, &limit).await;
    let capabilities = detected.map_err(|error| match error {
        DetectError::Failed(failure) => failure,
        DetectError::Run(RunError::Start(error)) => diagnose::of_start(&error, &config.program),
        DetectError::Run(RunError::Stopped(_)) => Failure::new(
            Kind::Timeout,
            format!("{} does not tell its version", cli.program.display()),
            "run it in a terminal to see more.",
        ),
    })?;
    let login = if capabilities.has("--acp") {
        login(&cli, &launcher, &limit).await.unwrap_or(Login::Unknown)
    } else {
        Login::Unknown
    };
    launcher.drained().await;
    Ok(Examination { program: cli.program, version: capabilities.version.clone(), login })
}

/// Asks for a session of the Agent Client Protocol, and ends it before anything is said.
async fn login(cli: &Cli, launcher: &Launcher, limit: &Limit) -> Result<Login, RunError> {
    let (workload, streams) = launcher.start(cli, vec!["--acp".to_owned()], limit).await?;
    let Streams { mut stdin, stdout, stderr: _unread } = streams;
    let asked = limit.within(async {
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        let session = json!({"cwd": cli.cwd, "mcpServers": []});
        let words =
            [request(1, "initialize", &hello), request(2, "session/new", &session)].concat();
        stdin.write_all(words.as_bytes()).await.ok()?;
        let mut lines = BufReader::new(stdout.take(LONGEST_TALK)).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(login) = read_answer(&line) {
                return Some(login);
            }
        }
        None
    });
    let login = asked.await;
    end(&workload).await;
    Ok(login?.unwrap_or(Login::Unknown))
}

fn request(id: u32, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// What a line says about the session, where it is the answer to that.
fn read_answer(line: &str) -> Option<Login> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["id"] != 2 {
        return None;
    }
    match message["error"]["code"].as_i64() {
        Some(AUTHENTICATION_REQUIRED) => Some(Login::LoggedOut),
        Some(_) => Some(Login::Unknown),
        None => Some(Login::LoggedIn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_given_or_refused_tells_of_the_login() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None),
            (r#"{"jsonrpc":"2.0","method":"session/update"}"#, None),
            ("not JSON", None),
            (r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"x"}}"#, Some(Login::LoggedIn)),
            (
                r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Authentication required"}}"#,
                Some(Login::LoggedOut),
            ),
            (r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603}}"#, Some(Login::Unknown)),
        ] {
            assert_eq!(read_answer(line), expected, "{line}");
        }
    }
}
