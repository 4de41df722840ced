//! One attempt to bring a server from nothing to ready, and the words for why it failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use cofer_mcp::{Bridge, BridgeConfig, HandshakeError, Listener, handshake};
use cofer_model::{Exit, Failure, FailureKind, LogStream, PeerInfo, ServerId, ServerSpec};
use cofer_runtime::StartError;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::driver::LAST_WORDS;
use super::log::{ServerLog, pump_stderr, text_of};
use crate::launch::{Launched, Launcher, Running};

/// What an attempt needs.
pub(super) struct Attempt<'a> {
    pub(super) id: ServerId,
    pub(super) spec: &'a ServerSpec,
    pub(super) launcher: &'a dyn Launcher,
    pub(super) log: &'a Arc<ServerLog>,
    pub(super) max_message: usize,
    pub(super) noise: &'a Arc<AtomicU64>,
    pub(super) tasks: &'a TaskTracker,
    /// Ends the attempt and everything it started.
    pub(super) cancel: CancellationToken,
}

/// Why an attempt made nothing that is ready.
pub(super) enum NotReady {
    /// It was not wanted any more.
    Cancelled,
    /// It failed.
    Failed(Failure),
}

/// A server that is ready.
pub(super) struct Ready {
    pub(super) running: Box<dyn Running>,
    pub(super) bridge: Bridge,
    pub(super) peer: PeerInfo,
    /// Where the log stood when it started.
    pub(super) log_position: u64,
    /// Ends when stderr has.
    pub(super) stderr: JoinHandle<()>,
}

impl Attempt<'_> {
    /// Starts the server and shakes hands. `spawned` is told the pid as soon as there is one.
    pub(super) async fn run(self, spawned: impl FnOnce(u32)) -> Result<Ready, NotReady> {
        let log_position = self.log.position();
        let launched =
            self.cancel.run_until_cancelled(self.launcher.launch(self.id, self.spec)).await;
        let Launched { running, streams } = match launched {
            Some(Ok(launched)) => launched,
            Some(Err(error)) => return Err(NotReady::Failed(not_started(&error))),
            None => return Err(NotReady::Cancelled),
        };
        spawned(running.pid());
        let stderr = self.tasks.spawn(pump_stderr(streams.stderr, Arc::clone(self.log)));
        let config = BridgeConfig {
            max_in_flight: self.spec.max_in_flight as usize,
            max_message: self.max_message,
            ..BridgeConfig::default()
        };
        let ear = Ear { log: Arc::clone(self.log), noise: Arc::clone(self.noise) };
        self.noise.store(0, Ordering::Relaxed);
        let bridge =
            Bridge::start(streams.stdout, streams.stdin, config, Arc::new(ear), self.tasks);

        let shaken = tokio::select! {
            biased;
            shaken = handshake(&bridge, self.spec.start_timeout()) => shaken,
            _ = running.exited() => Err(HandshakeError::Ended),
            () = self.cancel.cancelled() => {
                running.kill();
                running.gone().await;
                return Err(NotReady::Cancelled);
            }
        };
        match shaken {
            Ok(peer) => Ok(Ready { running, bridge, peer, log_position, stderr }),
            Err(error) => {
                Err(NotReady::Failed(self.not_ready(&error, running, stderr, log_position).await))
            }
        }
    }

    async fn not_ready(
        &self,
        error: &HandshakeError,
        running: Box<dyn Running>,
        stderr: JoinHandle<()>,
        log_position: u64,
    ) -> Failure {
        // A server that went away by itself has an exit to tell of.
        let exit = match error {
            HandshakeError::Ended => timeout(LAST_WORDS, running.exited()).await.ok(),
            _ => None,
        };
        running.kill();
        running.gone().await;
        timeout(LAST_WORDS, stderr).await.ok();
        let stderr = self.log.stderr_since(log_position);
        match exit {
            Some(exit) => exited(FailureKind::ExitedEarly, exit, "before it was ready", stderr),
            None => refused(error, stderr),
        }
    }
}

fn not_started(error: &StartError) -> Failure {
    let kind = match error {
        StartError::CommandNotFound(_) => FailureKind::CommandNotFound,
        _ => FailureKind::SpawnFailed,
    };
    let message = chain(error);
    let hint = match kind {
        FailureKind::CommandNotFound => {
            "install it, or give its full path in `command`; the daemon searches its own PATH, \
             or the PATH in the server's `environment`"
        }
        _ => "check `command`, `cwd` and the permissions of both",
    };
    Failure { kind, message, hint: hint.to_owned(), exit_code: None, signal: None, stderr: None }
}

/// The failure of a server that ended by itself.
pub(super) fn exited(kind: FailureKind, exit: Exit, when: &str, stderr: Option<String>) -> Failure {
    let hint = match &stderr {
        Some(_) => "what it wrote to stderr tells why",
        None => "it wrote nothing to stderr; run its command in a terminal to see what it does",
    };
    Failure {
        kind,
        message: format!("the server {exit} {when}"),
        hint: hint.to_owned(),
        exit_code: exit.code,
        signal: exit.signal,
        stderr,
    }
}

fn refused(error: &HandshakeError, stderr: Option<String>) -> Failure {
    let (kind, hint) = match error {
        HandshakeError::Silent { .. } => (
            FailureKind::StartTimeout,
            "if it needs longer to start (a first `npx` or `uvx` downloads packages), raise `start_timeout_ms`; \
             if it is no MCP server on stdio, it will never answer",
        ),
        HandshakeError::Ended => (
            FailureKind::HandshakeFailed,
            "it closed its stdout and ran on; an MCP server speaks on stdout",
        ),
        HandshakeError::Refused { .. }
        | HandshakeError::NoCommonRevision(_)
        | HandshakeError::Nonsense { .. } => (
            FailureKind::HandshakeFailed,
            "check that the command starts an MCP server in its stdio mode",
        ),
    };
    let message = format!("the server runs but is not ready: {error}");
    Failure { kind, message, hint: hint.to_owned(), exit_code: None, signal: None, stderr }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// Puts what a server says unasked where a person finds it.
struct Ear {
    log: Arc<ServerLog>,
    noise: Arc<AtomicU64>,
}

impl Listener for Ear {
    fn notified(&self, method: &str, _params: Option<&Bytes>) {
        tracing::debug!(target: "MCP", method, "notification from a server");
    }

    fn noise(&self, line: &[u8]) {
        self.noise.fetch_add(1, Ordering::Relaxed);
        self.log.append(LogStream::Stdout, [text_of(line)]);
    }

    fn oversized(&self, bytes: u64) {
        self.log.lifecycle(format!(
            "a message of {bytes} bytes on stdout is over the size cap and was dropped"
        ));
    }
}
