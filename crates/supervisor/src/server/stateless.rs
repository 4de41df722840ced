//! A server's connection in the stateless protocol (2026-07-28), beside the first one, which
//! `initialize` opened.
//!
//! The SDKs fix the protocol of a stdio connection by its first request, refuse requests of the
//! other one, and ask for input in ways that cannot be translated both ways. So clients of
//! 2026-07-28 share a connection of their own: over stdio a second process of the same spec, by
//! URL a second HTTP client. It is opened when the first of these clients uses the server, and
//! closed with the server's run. A server that does not answer `server/discover` is used over its
//! first connection only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use cofer_mcp::{Bridge, HandshakeError, MODERN, Opening, handshake_stateless};
use cofer_model::{PeerInfo, ServerSpec, Usage};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::door::{HttpTalk, Speaking};
use super::driver::LAUNCH;
use super::failure::{NotReady, launched_too_slowly, not_ready};
use super::handle::{Asking, CallFailure, Live, ServerHandle};
use super::notices::Notice;
use super::private::spec_of_further_process;
use super::run::{Outlets, Run};
use crate::launch::Running;

/// How long a server may be silent about `server/discover` before it counts as one that ignores
/// requests which it does not know. A server that needs longer to start has its start timeout.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a process that is not used after all has to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// The place of the connection in one run of a server. Dropping it ends the connection at once.
pub(crate) struct StatelessSlot {
    shared: Arc<Shared>,
    /// The URL of a server whose process listens on a port: a second process is not needed.
    mcp_url: Option<String>,
    _closing: DropGuard,
}

struct Shared {
    /// Read by each call, hence without a lock.
    open: ArcSwapOption<Connection>,
    phase: watch::Sender<Phase>,
    closing: CancellationToken,
    /// Milliseconds that the process may take to end once `closing` is cancelled.
    grace: AtomicU64,
    tasks: TaskTracker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It was not opened yet, or has ended.
    Closed,
    Opening,
    Open,
    /// The server has no such connection in this run.
    Refused,
}

struct Connection {
    bridge: Bridge,
    peer: Arc<PeerInfo>,
    /// The second process, if there is one.
    process: Option<Arc<dyn Running>>,
}

/// A server, used over its connection in the stateless protocol. A cheap clone.
#[derive(Clone)]
pub struct StatelessServer {
    handle: ServerHandle,
    connection: Arc<Connection>,
}

impl StatelessServer {
    /// Its answer to `server/discover`.
    pub fn peer(&self) -> &Arc<PeerInfo> {
        &self.connection.peer
    }

    /// Sends a request, like [`ServerHandle::call_by`].
    pub async fn call_by(&self, asking: Asking<'_>) -> Result<Bytes, CallFailure> {
        let version = || Some(self.connection.peer.protocol_version.clone());
        self.handle.call_over(&self.connection.bridge, asking, version).await
    }

    /// Subscribes to the notifications that `params` name, like [`ServerHandle::listen`].
    pub async fn listen(&self, params: Bytes) -> Result<Bytes, CallFailure> {
        Ok(self.connection.bridge.listen(params).await?)
    }
}

impl StatelessSlot {
    pub(super) fn new(mcp_url: Option<String>) -> Self {
        let closing = CancellationToken::new();
        let shared = Shared {
            open: ArcSwapOption::empty(),
            phase: watch::Sender::new(Phase::Closed),
            closing: closing.clone(),
            grace: AtomicU64::new(0),
            tasks: TaskTracker::new(),
        };
        Self { shared: Arc::new(shared), mcp_url, _closing: closing.drop_guard() }
    }

    /// The connection, if it is open.
    pub(super) fn now(&self, handle: &ServerHandle) -> Option<StatelessServer> {
        let connection = self.shared.open.load_full()?;
        Some(StatelessServer { handle: handle.clone(), connection })
    }

    /// The bridge of the connection, if it is open.
    pub(super) fn bridge(&self) -> Option<Bridge> {
        Some(self.shared.open.load_full()?.bridge.clone())
    }

    /// The connection; opens it if that was not tried yet. All that wait share one attempt, which
    /// goes on if they leave.
    pub(super) async fn get(&self, handle: &ServerHandle) -> Option<StatelessServer> {
        // Twice: a connection that ended in the same moment is opened again.
        for _ in 0..2 {
            if let Some(server) = self.now(handle) {
                return Some(server);
            }
            if is_known_to_refuse(handle) || self.decided(handle).await == Phase::Refused {
                return None;
            }
        }
        self.now(handle)
    }

    /// Opens the connection unless that is under way or done; returns how it ended.
    async fn decided(&self, handle: &ServerHandle) -> Phase {
        let mut phase = self.shared.phase.subscribe();
        let begins = self.shared.phase.send_if_modified(|phase| {
            let begins = *phase == Phase::Closed;
            if begins {
                *phase = Phase::Opening;
            }
            begins
        });
        if begins {
            let serving = serve(handle.clone(), Arc::clone(&self.shared), self.mcp_url.clone());
            self.shared.tasks.spawn(serving);
        }
        tokio::select! {
            decided = phase.wait_for(|phase| *phase != Phase::Opening) => {
                decided.map_or(Phase::Refused, |phase| *phase)
            }
            () = self.shared.closing.cancelled() => Phase::Refused,
        }
    }

    /// The usage of the second process.
    pub(super) async fn usage(&self) -> Option<Usage> {
        let connection = self.shared.open.load_full()?;
        connection.process.as_ref()?.usage().await
    }
}

/// Ends the connection of a run that is over; returns when nothing of it is left.
pub(super) async fn close_stateless(live: Option<Arc<Live>>, grace: Duration) {
    let Some(shared) = live.map(|live| Arc::clone(&live.stateless.shared)) else {
        return;
    };
    let millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    shared.grace.store(millis, Ordering::Relaxed);
    shared.closing.cancel();
    shared.tasks.close();
    shared.tasks.wait().await;
}

fn is_known_to_refuse(handle: &ServerHandle) -> bool {
    let refused = handle.parts.not_stateless.load();
    refused.as_ref().is_some_and(|spec| spec.runs_like(&handle.parts.spec.load()))
}

/// The connection while it lasts.
enum Serving {
    Process { run: Box<Run>, bridge: Bridge },
    Http(HttpTalk),
}

/// Opens the connection, and owns it until it ends.
async fn serve(handle: ServerHandle, shared: Arc<Shared>, mcp_url: Option<String>) {
    let spec = handle.spec();
    let opened = shared.closing.run_until_cancelled(open(&handle, &spec, mcp_url)).await;
    let (serving, peer) = match opened {
        Some(Ok(opened)) => opened,
        Some(Err(refusal)) => {
            refused(&handle, spec, &refusal);
            shared.phase.send_replace(Phase::Refused);
            return;
        }
        None => return,
    };
    let (bridge, process) = match &serving {
        Serving::Process { run, bridge } => (bridge.clone(), Some(run.live().running)),
        Serving::Http(talk) => (talk.bridge.clone(), None),
    };
    let connection = Connection { bridge, peer: Arc::new(peer), process };
    shared.open.store(Some(Arc::new(connection)));
    shared.phase.send_replace(Phase::Open);
    handle.parts.stateless_notices.tell(Notice::Up);
    let by_itself = tokio::select! {
        () = shared.closing.cancelled() => false,
        () = serving.ended() => true,
    };
    shared.open.store(None);
    shared.phase.send_replace(Phase::Closed);
    handle.parts.stateless_notices.tell(Notice::Down);
    if by_itself {
        handle.parts.log.lifecycle(format!(
            "the connection for clients of {MODERN} ended; the next of their requests opens it again"
        ));
    }
    let grace = Duration::from_millis(shared.grace.load(Ordering::Relaxed));
    serving.stop(&handle, grace).await;
}

impl Serving {
    async fn ended(&self) {
        match self {
            Self::Process { run, .. } => drop(run.ended().await),
            Self::Http(talk) => talk.bridge.closed().await,
        }
    }

    async fn stop(self, handle: &ServerHandle, grace: Duration) {
        match self {
            Self::Process { run, .. } => {
                run.stop(grace, handle.parts.means.fence.out_of_time()).await;
            }
            Self::Http(talk) => drop(talk),
        }
    }
}

/// Why there is no such connection.
struct Refusal {
    message: String,
    /// Whether the server itself said so, and will say it again.
    lasting: bool,
}

fn refused(handle: &ServerHandle, spec: Arc<ServerSpec>, refusal: &Refusal) {
    let Refusal { message, lasting } = refusal;
    handle.parts.log.lifecycle(format!(
        "no connection of its own for clients of {MODERN}: {message}; they use the first one"
    ));
    tracing::debug!(target: "MCP", server = %spec.name, lasting, "no stateless connection: {message}");
    if *lasting {
        handle.parts.not_stateless.store(Some(spec));
    }
}

async fn open(
    handle: &ServerHandle,
    spec: &ServerSpec,
    mcp_url: Option<String>,
) -> Result<(Serving, PeerInfo), Refusal> {
    match mcp_url {
        Some(url) => open_http(handle, spec, &url).await,
        None => open_process(handle, spec).await,
    }
}

async fn open_http(
    handle: &ServerHandle,
    spec: &ServerSpec,
    url: &str,
) -> Result<(Serving, PeerInfo), Refusal> {
    let parts = &handle.parts;
    let speaking = Speaking::new(
        handle.parts.bridge_config(spec),
        &parts.log,
        &Arc::default(),
        parts.stateless_notices.clone(),
        parts.reach.fresh(),
        &parts.means.tasks,
    );
    let talk = speaking.over_http(url).map_err(|error| of_handshake(&error, spec))?;
    let opened = handshake_stateless(&talk.bridge, SILENCE).await;
    let Opening { peer, .. } = opened.map_err(|error| of_handshake(&error, spec))?;
    Ok((Serving::Http(talk), peer))
}

/// A second process, or for a server by URL a second HTTP client.
async fn open_process(
    handle: &ServerHandle,
    spec: &ServerSpec,
) -> Result<(Serving, PeerInfo), Refusal> {
    let parts = &handle.parts;
    let passing = |message: String| Refusal { message, lasting: false };
    let spec = spec_of_further_process(spec, "stateless");
    let log_position = parts.log.position();
    if spec.url.is_none() {
        parts.log.lifecycle(format!("starting a second process for clients of {MODERN}"));
    }
    let launched = timeout(LAUNCH, parts.means.launcher.launch(parts.id, &spec)).await;
    let launched = launched.unwrap_or_else(|_| Err(launched_too_slowly(LAUNCH)));
    let launched = launched.map_err(|failure| passing(failure.message))?;
    let outlets = Outlets {
        config: handle.parts.bridge_config(&spec),
        log: &parts.log,
        log_position,
        noise: &Arc::default(),
        notices: parts.stateless_notices.clone(),
        reach: parts.reach.fresh(),
        tasks: &parts.means.tasks,
    };
    let run = Run::begin(launched, outlets);
    let limit = spec.start_timeout().min(SILENCE);
    match (run.open_stateless(Instant::now() + limit).await, run.bridge().cloned()) {
        (Ok(Opening { peer, .. }), Some(bridge)) => {
            let pid = run.pid();
            parts.log.lifecycle(format!("ready for clients of {MODERN}{}", with_pid(pid)));
            Ok((Serving::Process { run: Box::new(run), bridge }, peer))
        }
        (Ok(_), None) => Err(passing("it has no stdin and stdout".to_owned())),
        (Err(NotReady::Handshake(error)), _) if !matches!(error, HandshakeError::Ended) => {
            let refusal = of_handshake(&error, &spec);
            run.stop(GRACE, parts.means.fence.out_of_time()).await;
            Err(refusal)
        }
        (Err(error), _) => {
            let failure = not_ready(run, &error, GRACE, parts.means.fence.out_of_time()).await;
            Err(passing(failure.message))
        }
    }
}

fn with_pid(pid: Option<u32>) -> String {
    pid.map(|pid| format!(", pid {pid}")).unwrap_or_default()
}

fn of_handshake(error: &HandshakeError, spec: &ServerSpec) -> Refusal {
    let answered = match error {
        HandshakeError::NotStateless(_)
        | HandshakeError::NoCommonRevision(_)
        | HandshakeError::Nonsense { .. } => true,
        // A process that only starts slowly may answer in its next run.
        HandshakeError::Silent { .. } | HandshakeError::Refused { .. } | HandshakeError::Ended => {
            false
        }
    };
    // By URL it may be a proxy's answer, and the next probe is one request only.
    Refusal { message: error.to_string(), lasting: answered && spec.url.is_none() }
}
