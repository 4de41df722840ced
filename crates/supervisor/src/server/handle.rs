//! The way in to one server, for everybody but its driver. A cheap clone.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use cofer_mcp::{
    Bridge, BridgeConfig, CallError, Called, Caller, Era, Listing, QueueStatus, Request,
    collect_pages,
};
use cofer_model::{
    Budget, CallSource, DaemonIds, Failure, MaxInFlight, PeerInfo, ServerId, ServerSpec, Status,
    Usage,
};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::inbox::Order;
use super::log::ServerLog;
use super::notices::{Notice, Notices};
use super::private::PrivateServer;
use super::reach::Reach;
use super::snapshot::Snapshot;
use super::stateless::{StatelessServer, StatelessSlot};
use crate::calls::{Beginning, CallRecorder, Start};
use crate::fence::Fence;
use crate::launch::{Facts, Launcher, Running};
use crate::trace::{CallTrace, Origin};

/// See the module.
#[derive(Clone)]
pub struct ServerHandle {
    pub(crate) parts: Arc<HandleParts>,
}

/// What a handle shares with its driver.
pub(crate) struct HandleParts {
    pub(crate) id: ServerId,
    /// The configuration as the driver last took it; read by each call.
    pub(crate) spec: ArcSwap<ServerSpec>,
    /// The running server, while it is ready; read by each call, hence without a lock.
    pub(crate) live: ArcSwapOption<Live>,
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    pub(crate) orders: mpsc::Sender<Order>,
    pub(crate) log: Arc<ServerLog>,
    pub(crate) noise: Arc<AtomicU64>,
    pub(crate) calls: CallRecorder,
    pub(crate) notices: Notices,
    /// Notifications of its connection in the stateless protocol, beside the first one.
    pub(crate) stateless_notices: Notices,
    /// The spec whose server refused such a connection; it is not probed again.
    pub(crate) not_stateless: ArcSwapOption<ServerSpec>,
    pub(crate) reach: Reach,
    /// The memory that its messages may use, also those of its private processes.
    pub(crate) memory: Arc<Budget>,
    pub(crate) means: Means,
}

/// What a further process of the server is started with.
pub(crate) struct Means {
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) tasks: TaskTracker,
    pub(crate) max_message: usize,
    /// Of servers whose registration does not say.
    pub(crate) max_in_flight: MaxInFlight,
    pub(crate) fence: Fence,
}

impl HandleParts {
    /// How many requests the server is given at once with `spec`.
    pub(crate) fn max_in_flight(&self, spec: &ServerSpec) -> MaxInFlight {
        spec.max_in_flight.unwrap_or(self.means.max_in_flight)
    }

    /// How its bridges are configured with `spec`.
    pub(crate) fn bridge_config(&self, spec: &ServerSpec) -> BridgeConfig {
        let max_in_flight = self.max_in_flight(spec);
        BridgeConfig {
            max_in_flight: max_in_flight.initial(),
            raise_to: max_in_flight.raise_to(),
            max_message: self.means.max_message,
            memory: Arc::clone(&self.memory),
            ..BridgeConfig::default()
        }
    }

    /// Takes a changed configuration over.
    pub(crate) fn configure(&self, spec: Arc<ServerSpec>) {
        let max_in_flight = self.max_in_flight(&spec);
        self.spec.store(spec);
        for bridge in self.live.load().iter().flat_map(|live| live.bridges()) {
            bridge.set_max_in_flight(max_in_flight.initial(), max_in_flight.raise_to());
        }
    }

    /// Lets calls through to what runs now, or to nothing.
    /// Returns what ran before.
    pub(crate) fn set_live(&self, live: Option<Live>) -> Option<Arc<Live>> {
        let is_up = live.is_some();
        let before = self.live.swap(live.map(Arc::new));
        if is_up || before.is_some() {
            self.notices.tell(if is_up { Notice::Up } else { Notice::Down });
        }
        before
    }
}

/// One request to a server.
#[derive(Clone)]
pub struct Asking<'a> {
    /// The JSON-RPC method.
    pub method: &'a str,
    /// Valid JSON, or nothing.
    pub params: Option<Bytes>,
    /// How long the server may be silent about it; what it is configured with where not given.
    pub timeout: Option<Duration>,
    /// Who asks, where they can be reached while it runs.
    pub caller: Option<Arc<dyn Caller>>,
    /// What the activity calls whoever asks.
    pub client: Option<Arc<str>>,
    /// By which way the request came.
    pub source: CallSource,
    /// The id under which the call is recorded, where whoever asks wants to know it before.
    pub call_id: Option<Uuid>,
    /// Where it stands in the caller's own trace.
    pub origin: Origin,
}

impl<'a> Asking<'a> {
    /// A request of nobody in particular.
    pub fn new(method: &'a str, params: Option<Bytes>) -> Self {
        Self {
            method,
            params,
            timeout: None,
            caller: None,
            client: None,
            source: CallSource::default(),
            call_id: None,
            origin: Origin::default(),
        }
    }
}

/// A server that answers.
pub(crate) struct Live {
    /// None where it does not speak MCP.
    pub(crate) bridge: Option<Bridge>,
    pub(crate) running: Arc<dyn Running>,
    /// Its connection in the stateless protocol, where the first one is not.
    pub(crate) stateless: StatelessSlot,
}

impl Live {
    /// The bridges of its connections that are open.
    fn bridges(&self) -> impl Iterator<Item = Bridge> {
        self.bridge.clone().into_iter().chain(self.stateless.bridge())
    }
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// The server does not run.
    #[error("the server is {status}")]
    NotConnected {
        /// What it is instead.
        status: Status,
    },
    /// It runs, and only its port is known: MCP is not spoken there.
    #[error("the server speaks no MCP over HTTP where it was looked for")]
    NoMcp,
    /// It runs, and the call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl ServerHandle {
    /// The server.
    pub fn id(&self) -> ServerId {
        self.parts.id
    }

    /// The configuration it has now.
    pub fn spec(&self) -> Arc<ServerSpec> {
        self.parts.spec.load_full()
    }

    /// What is true of it now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.parts.snapshot.borrow())
    }

    /// The Cofer daemons that are reached through it.
    pub fn daemons(&self) -> DaemonIds {
        self.parts.reach.daemons()
    }

    /// What it said.
    pub fn log(&self) -> &ServerLog {
        &self.parts.log
    }

    /// Lines on its stdout that were not MCP, since it last started.
    pub fn noise_lines(&self) -> u64 {
        self.parts.noise.load(Ordering::Relaxed)
    }

    /// The memory that its messages may use.
    pub fn memory(&self) -> &Arc<Budget> {
        &self.parts.memory
    }

    /// How many requests it is given at once, as configured.
    pub fn max_in_flight(&self) -> MaxInFlight {
        self.parts.max_in_flight(&self.parts.spec.load())
    }

    /// The calls that wait for it, while it is ready.
    pub fn queue(&self) -> Option<QueueStatus> {
        let live = self.parts.live.load();
        let queues = live.as_ref()?.bridges().map(|bridge| bridge.queue());
        queues.reduce(|first, second| QueueStatus {
            limit: first.limit.max(second.limit),
            waiting: first.waiting + second.waiting,
            waited: first.waited + second.waited,
            longest_wait: first.longest_wait.max(second.longest_wait),
        })
    }

    /// What its runtime knows of it now, while it has a process.
    pub fn facts(&self) -> Option<Facts> {
        match &*self.parts.live.load() {
            Some(live) => Some(live.running.facts()),
            None => self.snapshot().facts.as_deref().cloned(),
        }
    }

    /// What it uses, while it is ready. May block the thread for a moment.
    pub async fn usage(&self) -> Option<Usage> {
        let live = self.parts.live.load_full()?;
        let usage = live.running.usage().await?;
        Some(match live.stateless.usage().await {
            Some(second) => sum(usage, second),
            None => usage,
        })
    }

    /// What isolation is in force, while it is ready. May block the thread for a moment.
    pub async fn isolation(&self) -> Option<Value> {
        let live = self.parts.live.load_full()?;
        Some(live.running.isolation().await)
    }

    /// Sends a request and gives back the result as the bytes it came in. Dropping the future
    /// cancels the request.
    pub async fn call(
        &self,
        method: &str,
        params: Option<Bytes>,
        timeout: Option<Duration>,
    ) -> Result<Bytes, CallFailure> {
        self.call_by(Asking { timeout, ..Asking::new(method, params) }).await
    }

    /// The same for a caller whom the server can reach while it works. A server that is being
    /// started is waited for, within the timeout of the call.
    pub async fn call_by(&self, asking: Asking<'_>) -> Result<Bytes, CallFailure> {
        let bridge = match self.bridge() {
            Ok(bridge) => bridge,
            Err(failure) => return Box::pin(self.call_when_ready(asking, failure)).await,
        };
        self.call_over(&bridge, asking, || self.revision()).await
    }

    async fn call_when_ready(
        &self,
        mut asking: Asking<'_>,
        failure: CallFailure,
    ) -> Result<Bytes, CallFailure> {
        if !self.is_starting() {
            return Err(failure);
        }
        let limit =
            asking.timeout.unwrap_or_else(|| self.parts.spec.load().call_timeout(asking.source));
        let begun = Instant::now();
        self.ready(limit).await?;
        let bridge = self.bridge()?;
        asking.timeout = Some(limit.saturating_sub(begun.elapsed()));
        self.call_over(&bridge, asking, || self.revision()).await
    }

    /// Whether it becomes ready without a pause before: not while it waits after a crash.
    fn is_starting(&self) -> bool {
        let snapshot = self.snapshot();
        match snapshot.status {
            Status::Starting => true,
            Status::Restarting => snapshot.next_restart_at.is_none(),
            Status::Ready
            | Status::Unresponsive
            | Status::Stopping
            | Status::Stopped
            | Status::Error => false,
        }
    }

    /// The protocol revision that is spoken with it, while it is ready.
    fn revision(&self) -> Option<String> {
        Some(self.peer()?.protocol_version.clone())
    }

    /// Sends a request over one of the server's bridges, and leaves its traces. `version` is
    /// the revision that is spoken there.
    pub(super) async fn call_over(
        &self,
        bridge: &Bridge,
        asking: Asking<'_>,
        version: impl FnOnce() -> Option<String>,
    ) -> Result<Bytes, CallFailure> {
        let Asking { method, params, timeout, caller, client, source, call_id, origin } = asking;
        let spec = self.parts.spec.load_full();
        let timeout = timeout.unwrap_or_else(|| spec.call_timeout(source));
        let start = Start::now(&self.parts.log);
        let request = Request::new(method, params.clone(), timeout).by(caller);
        let mut call = pin!(bridge.call(request));
        // The server has the request before anybody takes note of it.
        let sent = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        let trace =
            self.parts.calls.observer.wants_traces().then(|| {
                Box::new(CallTrace::begin(&spec, method, params.as_ref(), origin, version()))
            });
        let record = self.parts.calls.begin(Beginning {
            start,
            log: &self.parts.log,
            id: self.parts.id,
            server: spec.name.shared(),
            method,
            params: params.as_ref(),
            client,
            source,
            call_id,
            trace,
        });
        drop(params);
        let called: Called = match sent {
            Poll::Ready(called) => called,
            Poll::Pending => call.await,
        };
        record.finish(&called);
        Ok(called.result?)
    }

    /// Lets a server of the 2026-07-28 era tell, as notices, what `params` name, for as long as
    /// the future lives; ends where the server ends it.
    pub async fn listen(&self, params: Bytes) -> Result<Bytes, CallFailure> {
        Ok(self.bridge()?.listen(params).await?)
    }

    /// Tells the server something, where it runs.
    pub fn notify(&self, method: &str, params: Option<&Bytes>) {
        if let Ok(bridge) = self.bridge() {
            bridge.notify(method, params);
        }
    }

    /// What the server says of its own accord and what becomes of it, from now on. A reader
    /// that is too slow loses the oldest and is told so.
    pub fn notices(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.parts.notices.subscribe()
    }

    /// Who the server said it is, while it is ready.
    pub fn peer(&self) -> Option<Arc<PeerInfo>> {
        self.snapshot().peer.clone()
    }

    /// In which era it is spoken to, while it is ready.
    pub fn era(&self) -> Option<Era> {
        self.bridge().ok().map(|bridge| bridge.era())
    }

    /// Waits, at most for `limit`, until calls get through. An error where they do not by then,
    /// or will not without somebody's doing.
    pub async fn ready(&self, limit: Duration) -> Result<(), CallFailure> {
        if self.parts.live.load().is_some() {
            return Ok(());
        }
        self.settled(limit).await;
        self.bridge().map(drop)
    }

    /// Its connection in the stateless protocol, if the first one was opened by `initialize` and
    /// the server speaks both. It is opened here, once for all that wait; none if the server refuses.
    pub async fn stateless(&self) -> Option<StatelessServer> {
        let live = self.parts.live.load_full()?;
        if live.bridge.as_ref()?.era() == Era::Discover {
            return None;
        }
        live.stateless.get(self).await
    }

    /// The same connection, if it is open now.
    pub fn open_stateless(&self) -> Option<StatelessServer> {
        self.parts.live.load().as_ref()?.stateless.now(self)
    }

    /// The notifications of the connections that [`Self::stateless`] opens, from now on.
    pub fn stateless_notices(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.parts.stateless_notices.subscribe()
    }

    /// Starts a process of its own for one client, given its params of `initialize`. What the
    /// process asks while it works on no call goes to `caller`, where there is one.
    pub async fn open_private(
        &self,
        initialize: Bytes,
        caller: Option<Arc<dyn Caller>>,
    ) -> Result<PrivateServer, Failure> {
        PrivateServer::open(self, initialize, caller).await
    }

    /// Follows a list over its pages.
    pub async fn list(&self, method: &str, key: &str) -> Result<Listing, CallFailure> {
        let bridge = self.bridge()?;
        let timeout = self.parts.spec.load().call_timeout(CallSource::Api);
        Ok(collect_pages(&bridge, method, key, timeout).await?)
    }

    /// Waits, at most for `limit`, until nothing more is to come by itself.
    pub async fn settled(&self, limit: Duration) -> Arc<Snapshot> {
        let mut snapshot = self.parts.snapshot.clone();
        let settled = snapshot.wait_for(|snapshot| snapshot.status.is_settled());
        // Neither the end of the wait nor that of the driver changes what is true.
        drop(tokio::time::timeout(limit, settled).await);
        self.snapshot()
    }

    /// Restarts it by a person's wish; false where it is not switched on.
    pub async fn restart(&self) -> bool {
        let (ack, taken) = oneshot::channel();
        if self.parts.orders.send(Order::Restart { ack }).await.is_err() {
            return false;
        }
        taken.await.unwrap_or(false)
    }

    pub(crate) async fn order(&self, order: impl FnOnce(oneshot::Sender<()>) -> Order) {
        let (ack, taken) = oneshot::channel();
        if self.parts.orders.send(order(ack)).await.is_ok() {
            // A driver that ends meanwhile has no more to say.
            taken.await.ok();
        }
    }

    fn bridge(&self) -> Result<Bridge, CallFailure> {
        match &*self.parts.live.load() {
            Some(live) => live.bridge.clone().ok_or(CallFailure::NoMcp),
            None => Err(CallFailure::NotConnected { status: self.snapshot().status }),
        }
    }
}

/// The usage of two processes of one server together.
fn sum(first: Usage, second: Usage) -> Usage {
    let disk = [first.disk_bytes, second.disk_bytes].into_iter().flatten();
    Usage {
        cpu_percent: first.cpu_percent + second.cpu_percent,
        memory_bytes: first.memory_bytes + second.memory_bytes,
        pids: first.pids + second.pids,
        disk_bytes: disk.reduce(|a, b| a + b),
    }
}
