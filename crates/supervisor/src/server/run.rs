//! One run of a server, from its launch to its end: the process, the way it is spoken to and
//! what it writes to stderr, which begin and end together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{
    Bridge, BridgeConfig, HandshakeError, Listener, Opening, handshake, handshake_as,
    handshake_stateless,
};
use cofer_model::{
    Budget, DAEMONS_NOTIFICATION, DaemonIds, Exit, HeartbeatSpec, LogStream, PeerInfo,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use super::door::{self, Found, HttpTalk, Speaking};
use super::failure::NotReady;
use super::handle::Live;
use super::health::{change_of_health, change_of_http_health, change_of_port};
use super::log::{ServerLog, pump_log, text_of};
use super::notices::{Notice, Notices};
use super::reach::Reach;
use super::stateless::StatelessSlot;
use super::stop::{Stopped, ask_to_end};
use crate::launch::{Door, Explanation, Facts, Launched, Running};

/// How long the end of a process may lag behind the end of its stdout, and its last words
/// behind its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// See the module. Dropping it ends the process.
pub(super) struct Run {
    running: Arc<dyn Running>,
    /// The conversation with it: from the beginning over stdio; over a door, once it is open
    /// and MCP was found behind it.
    bridge: Option<Bridge>,
    door: Option<Door>,
    /// Whether something behind the door speaks HTTP, and not MCP.
    answers_http: bool,
    speaking: Speaking,
    /// Ends the conversation over HTTP, which nobody on the other side ends.
    hang_up: Option<DropGuard>,
    /// Where it speaks MCP over HTTP.
    mcp_url: Option<String>,
    log: Arc<ServerLog>,
    /// Where the log stood when it was launched.
    log_position: u64,
    /// Ends when stderr has.
    stderr: JoinHandle<()>,
    reach: Reach,
}

/// Where a run's streams go.
pub(super) struct Outlets<'a> {
    pub(super) config: BridgeConfig,
    pub(super) log: &'a Arc<ServerLog>,
    pub(super) log_position: u64,
    /// Counts the lines on stdout that are not MCP.
    pub(super) noise: &'a Arc<AtomicU64>,
    /// Hears what the server says unasked.
    pub(super) notices: Notices,
    pub(super) reach: Reach,
    pub(super) tasks: &'a TaskTracker,
}

/// A server that is ready, and how it is spoken to.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// Who it said it is; none where it does not speak MCP.
    pub(super) peer: Option<PeerInfo>,
    /// What it answered when the conversation was opened for one client, as it came.
    pub(super) answer: Option<Bytes>,
    /// Where it speaks MCP over HTTP.
    pub(super) mcp_endpoint: Option<String>,
}

impl Run {
    pub(super) fn begin(launched: Launched, outlets: Outlets<'_>) -> Self {
        let Launched { running, streams, door } = launched;
        let Outlets { config, log, log_position, noise, notices, reach, tasks } = outlets;
        reach.clear();
        let stderr = pump_log(streams.stderr, Arc::clone(log), LogStream::Stderr);
        let stderr = tasks.spawn(stderr);
        noise.store(0, Ordering::Relaxed);
        let speaking = Speaking::new(config, log, noise, notices, reach.clone(), tasks);
        let bridge = match door {
            None => Some(speaking.over(streams.stdout, streams.stdin)),
            Some(_) => {
                tasks.spawn(pump_log(streams.stdout, Arc::clone(log), LogStream::Stdout));
                None
            }
        };
        Self {
            running: Arc::from(running),
            bridge,
            door,
            answers_http: false,
            speaking,
            hang_up: None,
            mcp_url: None,
            log: Arc::clone(log),
            log_position,
            stderr,
            reach,
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.running.pid()
    }

    pub(super) fn running(&self) -> Arc<dyn Running> {
        Arc::clone(&self.running)
    }

    /// What its runtime knows of it now.
    pub(super) fn facts(&self) -> Facts {
        self.running.facts()
    }

    /// What callers need of it.
    pub(super) fn live(&self) -> Live {
        Live {
            bridge: self.bridge.clone(),
            running: Arc::clone(&self.running),
            stateless: StatelessSlot::new(self.mcp_url.clone()),
        }
    }

    /// The way to speak to it, where it speaks MCP.
    pub(super) fn bridge(&self) -> Option<&Bridge> {
        self.bridge.as_ref()
    }

    /// Opens the conversation, at most until `deadline`; for one client, where its params of
    /// `initialize` are given.
    pub(super) async fn open(
        &mut self,
        client: Option<Bytes>,
        deadline: Instant,
    ) -> Result<Opened, NotReady> {
        let running = Arc::clone(&self.running);
        let opened = tokio::select! {
            biased;
            opened = self.talk(client, deadline) => opened,
            _ = running.exited() => Err(NotReady::Handshake(HandshakeError::Ended)),
        };
        // Also where it refused: our own gateway refuses its own requests.
        match self.reach.cycle() {
            Some(daemons) => Err(NotReady::Cycle(daemons)),
            None => opened,
        }
    }

    /// Opens the connection in the stateless protocol, at most until `deadline`.
    pub(super) async fn open_stateless(&self, deadline: Instant) -> Result<Opening, NotReady> {
        let bridge = self.bridge.as_ref().ok_or(NotReady::Handshake(HandshakeError::Ended))?;
        let limit = deadline.saturating_duration_since(Instant::now());
        tokio::select! {
            biased;
            opened = handshake_stateless(bridge, limit) => opened.map_err(NotReady::Handshake),
            _ = self.running.exited() => Err(NotReady::Handshake(HandshakeError::Ended)),
        }
    }

    /// Ends when the server turns out to lead back to this daemon.
    pub(super) async fn until_cycle(&self) -> DaemonIds {
        self.reach.until_cycle().await
    }

    async fn talk(&mut self, client: Option<Bytes>, deadline: Instant) -> Result<Opened, NotReady> {
        if let Some(bridge) = &self.bridge {
            let limit = deadline.saturating_duration_since(Instant::now());
            let (peer, answer) = match client {
                None => (handshake(bridge, limit).await.map_err(NotReady::Handshake)?, None),
                Some(client) => {
                    let opening = handshake_as(bridge, client, limit).await;
                    let Opening { peer, answer } = opening.map_err(NotReady::Handshake)?;
                    (peer, Some(answer))
                }
            };
            return Ok(Opened { peer: Some(peer), answer, mcp_endpoint: None });
        }
        let Some(door) = &self.door else {
            return Ok(Opened::default());
        };
        match door::open(door, &self.speaking, deadline).await? {
            Found::Mcp { talk, peer, url } => {
                let HttpTalk { bridge, hang_up } = talk;
                self.bridge = Some(bridge);
                self.hang_up = Some(hang_up);
                self.mcp_url = Some(url.clone());
                Ok(Opened { peer: Some(*peer), answer: None, mcp_endpoint: Some(url) })
            }
            Found::OpenPort { http } => {
                self.answers_http = http;
                Ok(Opened::default())
            }
        }
    }

    /// Ends with the new state when it falls silent or speaks again.
    pub(super) async fn change_of_health(
        &self,
        heartbeat: HeartbeatSpec,
        responsive: bool,
    ) -> bool {
        match (&self.bridge, &self.door) {
            (Some(bridge), None) if self.running.is_remote() => {
                change_of_http_health(bridge, heartbeat, responsive).await
            }
            (Some(bridge), None) => change_of_health(bridge, heartbeat, responsive).await,
            (Some(bridge), Some(_)) => change_of_http_health(bridge, heartbeat, responsive).await,
            (None, Some(door)) => {
                change_of_port(door.address, self.answers_http, heartbeat, responsive).await
            }
            (None, None) => std::future::pending().await,
        }
    }

    /// Ends when it has ended by itself, or has closed its stdout and can be asked nothing
    /// any more: then it gets a moment to exit, and none is returned where it runs on.
    pub(super) async fn ended(&self) -> Option<Exit> {
        let hung_up = async {
            match &self.bridge {
                Some(bridge) => bridge.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            exit = self.running.exited() => Some(exit),
            () = hung_up => self.exit().await,
        }
    }

    /// How it exited, where it did, or does so in a moment.
    pub(super) async fn exit(&self) -> Option<Exit> {
        match timeout(LAST_WORDS, self.running.exited()).await {
            Ok(exit) => Some(exit),
            Err(_) if self.running.has_ended() => Some(self.running.exited().await),
            Err(_) => None,
        }
    }

    /// Ends it, gently first, for as long as `grace` lasts and `out_of_time` has not ended.
    pub(super) async fn stop(
        self,
        grace: Duration,
        out_of_time: impl Future<Output = ()>,
    ) -> Stopped {
        let reads_stdin = self.door.is_none();
        if let Some(bridge) = &self.bridge {
            bridge.close();
        }
        let how = tokio::select! {
            how = ask_to_end(&*self.running, reads_stdin, grace) => how,
            () = out_of_time => Stopped::ByForce,
        };
        self.clear().await;
        how
    }

    /// Asks a server that was not ready in time to end, before what is left of it is cleared
    /// away: a package manager that is killed leaves its lock behind.
    pub(super) async fn ask_to_end(&self, grace: Duration, out_of_time: impl Future<Output = ()>) {
        if let Some(bridge) = &self.bridge {
            bridge.close();
        }
        self.log.start_step(format!(
            "not ready in time: SIGTERM is sent, and SIGKILL after {} s",
            grace.as_secs()
        ));
        tokio::select! {
            _ = ask_to_end(&*self.running, false, grace) => {}
            () = out_of_time => {}
        }
    }

    /// What its runtime knows of its refusal to open a conversation.
    pub(super) fn explain_refusal(&self, error: &HandshakeError) -> Option<Explanation> {
        self.running.explain_refusal(error)
    }

    /// What its runtime knows of its end. Asked before what is left of it is cleared away.
    pub(super) async fn explanation(&self) -> Option<Explanation> {
        timeout(LAST_WORDS, self.running.explain()).await.ok().flatten()
    }

    /// Ends what is left of it and returns the end of what it wrote to stderr.
    pub(super) async fn clear(self) -> Option<String> {
        self.running.kill();
        self.reach.clear();
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
    notices: Notices,
    reach: Reach,
    memory: Arc<Budget>,
}

impl Speaking {
    pub(super) fn new(
        config: BridgeConfig,
        log: &Arc<ServerLog>,
        noise: &Arc<AtomicU64>,
        notices: Notices,
        reach: Reach,
        tasks: &TaskTracker,
    ) -> Self {
        let listener = Arc::new(Ear {
            log: Arc::clone(log),
            noise: Arc::clone(noise),
            notices,
            reach,
            memory: Arc::clone(&config.memory),
        });
        Self { config, listener, tasks: tasks.clone() }
    }
}

impl Listener for Ear {
    fn notified(&self, method: &str, params: Option<&Bytes>) {
        tracing::debug!(target: "MCP", method, "notification from a server");
        if method == DAEMONS_NOTIFICATION {
            // Between our HTTP client and us; no client of the gateway has a use for it.
            return self.reach.report(params);
        }
        self.notices.tell(Notice::Said { method: method.to_owned(), params: params.cloned() });
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

    fn unaffordable(&self, bytes: u64) {
        // A server that floods the daemon must not flood its log too.
        let losses = self.memory.losses();
        if losses.is_power_of_two() {
            let limit = self.memory.limit();
            self.log.lifecycle(format!(
                "a message of {bytes} bytes was discarded: the server's memory limit of {limit} \
                 bytes is reached ({losses} messages so far)"
            ));
        }
    }
}
