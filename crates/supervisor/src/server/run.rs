//! One run of a server, from its launch to its end: the process, the bridge to it and what
//! it writes to stderr, which begin and end together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{Bridge, BridgeConfig, HandshakeError, Listener, handshake};
use cofer_model::{Exit, LogStream, PeerInfo};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::handle::Live;
use super::log::{ServerLog, pump_stderr, text_of};
use super::stop::{Stopped, ask_to_end};
use crate::launch::{Launched, Running};

/// How long the end of a process may lag behind the end of its stdout, and its last words
/// behind its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// See the module. Dropping it ends the process.
pub(super) struct Run {
    running: Arc<dyn Running>,
    bridge: Bridge,
    log: Arc<ServerLog>,
    /// Where the log stood when it was launched.
    log_position: u64,
    /// Ends when stderr has.
    stderr: JoinHandle<()>,
}

/// Where a run's streams go.
pub(super) struct Outlets<'a> {
    pub(super) config: BridgeConfig,
    pub(super) log: &'a Arc<ServerLog>,
    pub(super) log_position: u64,
    /// Counts the lines on stdout that are not MCP.
    pub(super) noise: &'a Arc<AtomicU64>,
    pub(super) tasks: &'a TaskTracker,
}

impl Run {
    pub(super) fn begin(launched: Launched, outlets: Outlets<'_>) -> Self {
        let Launched { running, streams } = launched;
        let Outlets { config, log, log_position, noise, tasks } = outlets;
        let stderr = tasks.spawn(pump_stderr(streams.stderr, Arc::clone(log)));
        let ear = Ear { log: Arc::clone(log), noise: Arc::clone(noise) };
        noise.store(0, Ordering::Relaxed);
        let bridge = Bridge::start(streams.stdout, streams.stdin, config, Arc::new(ear), tasks);
        Self { running: Arc::from(running), bridge, log: Arc::clone(log), log_position, stderr }
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub(super) fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    /// What callers need of it.
    pub(super) fn live(&self) -> Live {
        Live { bridge: self.bridge.clone(), running: Arc::clone(&self.running) }
    }

    /// Opens the conversation.
    pub(super) async fn shake_hands(&self, limit: Duration) -> Result<PeerInfo, HandshakeError> {
        tokio::select! {
            biased;
            shaken = handshake(&self.bridge, limit) => shaken,
            _ = self.running.exited() => Err(HandshakeError::Ended),
        }
    }

    /// Ends when it has ended by itself, or has closed its stdout and can be asked nothing
    /// any more: then it gets a moment to exit, and none is returned where it runs on.
    pub(super) async fn ended(&self) -> Option<Exit> {
        tokio::select! {
            biased;
            exit = self.running.exited() => Some(exit),
            () = self.bridge.closed() => self.exit().await,
        }
    }

    /// How it exited, where it did, or does so in a moment.
    pub(super) async fn exit(&self) -> Option<Exit> {
        timeout(LAST_WORDS, self.running.exited()).await.ok()
    }

    /// Ends it, gently first.
    pub(super) async fn stop(self, grace: Duration) -> Stopped {
        let how = ask_to_end(&*self.running, &self.bridge, grace).await;
        self.clear().await;
        how
    }

    /// Ends what is left of it and returns the end of what it wrote to stderr.
    pub(super) async fn clear(self) -> Option<String> {
        self.running.kill();
        self.running.gone().await;
        // Whoever else holds the pipe is not waited for.
        timeout(LAST_WORDS, self.stderr).await.ok();
        self.log.stderr_since(self.log_position)
    }
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
