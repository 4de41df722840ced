//! The registry of all servers: who is there, under which name, and how to end them all.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use cofer_model::{Failure, MaxInFlight, Redactor, ServerId, ServerSpec, Status};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::calls::{ActivityLog, CallObserver, CallRecorder};
use crate::events::EventBus;
use crate::fence::Fence;
use crate::flight::FlightRecorder;
use crate::launch::Launcher;
use crate::memory::Memory;
use crate::server::{
    Beginning, Driver, DriverParts, HandleParts, Means, Notices, Order, Publisher, Reach, Recorder,
    Reporter, ServerHandle, ServerLog, Snapshot,
};

/// How long servers are given to end by themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graces {
    pub(crate) stop: Duration,
    pub(crate) restart: Duration,
    pub(crate) shutdown: Duration,
}

impl Default for Graces {
    fn default() -> Self {
        Self {
            stop: Duration::from_secs(10),
            restart: Duration::from_secs(10),
            shutdown: Duration::from_secs(30),
        }
    }
}

/// What all servers share.
#[derive(Debug, Clone)]
pub struct SupervisorConfig {
    /// Where the servers' logs are.
    pub log_dir: PathBuf,
    /// The longest message, in either direction.
    pub max_message: usize,
    /// How many servers start at once when the daemon does, and how many by order (import, enable,
    /// restart).
    pub start_parallelism: usize,
    /// How many requests a server is given at once whose registration does not say.
    pub max_in_flight: MaxInFlight,
    /// By which other daemons recognise this one.
    pub daemon_id: uuid::Uuid,
    /// The memory that messages may use.
    pub memory: Arc<Memory>,
}

/// See the module. Clones share the registry.
#[derive(Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

struct Inner {
    config: SupervisorConfig,
    launcher: Arc<dyn Launcher>,
    recorder: Arc<dyn Recorder>,
    calls: CallRecorder,
    boot_slots: Arc<Semaphore>,
    /// For starts by order. Apart from those of the boot: a server that a person adds or switches on
    /// does not wait for all others.
    order_slots: Arc<Semaphore>,
    servers: RwLock<Servers>,
    /// The drivers.
    drivers: TaskTracker,
    /// What the drivers let run: readers, writers, log pumps.
    tasks: TaskTracker,
    fence: Fence,
}

#[derive(Default)]
struct Servers {
    by_id: HashMap<ServerId, ServerHandle>,
    /// Whether who comes now comes too late.
    ending: bool,
}

impl Supervisor {
    /// A supervisor without servers.
    pub fn new(
        config: SupervisorConfig,
        launcher: Arc<dyn Launcher>,
        recorder: Arc<dyn Recorder>,
        observer: Arc<dyn CallObserver>,
        events: EventBus,
    ) -> Self {
        let flights = Arc::new(FlightRecorder::new(config.memory.recorder_bytes()));
        let calls = CallRecorder { events, activity: Arc::default(), flights, observer };
        let boot_slots = Arc::new(Semaphore::new(config.start_parallelism.max(1)));
        let order_slots = Arc::new(Semaphore::new(config.start_parallelism.max(1)));
        let inner = Inner {
            config,
            launcher,
            recorder,
            calls,
            boot_slots,
            order_slots,
            servers: RwLock::default(),
            drivers: TaskTracker::new(),
            tasks: TaskTracker::new(),
            fence: Fence::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes a new server on, and starts it where it is enabled.
    pub fn add(&self, id: ServerId, spec: ServerSpec) -> ServerHandle {
        let spec = Arc::new(spec);
        let first = Snapshot::new(id, Arc::clone(&spec));
        let slots = Some(Arc::clone(&self.inner.order_slots));
        self.adopt(first, Beginning { spec, proven: false, slots })
    }

    /// Takes a server on that an earlier daemon knew, with the `failure` in which it was left.
    /// `proven` is whether it had been ready: then a failed start counts as a crash.
    pub fn restore(
        &self,
        id: ServerId,
        spec: ServerSpec,
        failure: Option<Failure>,
        proven: bool,
    ) -> ServerHandle {
        let spec = Arc::new(spec);
        let mut first = Snapshot::new(id, Arc::clone(&spec));
        if let Some(failure) = failure.filter(|_| !spec.enabled) {
            first.status = Status::Error;
            first.failure = Some(failure);
        }
        let slots = Some(Arc::clone(&self.inner.boot_slots));
        self.adopt(first, Beginning { spec, proven, slots })
    }

    /// The server with this id.
    pub fn get(&self, id: ServerId) -> Option<ServerHandle> {
        self.servers().by_id.get(&id).cloned()
    }

    /// The server with this id or name.
    pub fn find(&self, id_or_name: &str) -> Option<ServerHandle> {
        if let Ok(id) = id_or_name.parse() {
            return self.get(id);
        }
        let servers = self.servers();
        servers
            .by_id
            .values()
            .find(|handle| handle.parts.spec.load().name.as_str() == id_or_name)
            .cloned()
    }

    /// All servers, in no order.
    pub fn list(&self) -> Vec<ServerHandle> {
        self.servers().by_id.values().cloned().collect()
    }

    /// Makes a server be what `spec` says; ends when it is on its way. `forgive` takes the
    /// error off one that stays off.
    pub async fn configure(&self, id: ServerId, spec: ServerSpec, forgive: bool) {
        if let Some(handle) = self.get(id) {
            handle.order(|ack| Order::Configure { spec: Arc::new(spec), forgive, ack }).await;
        }
    }

    /// Stops a server and forgets it; ends when nothing of it is left.
    pub async fn remove(&self, id: ServerId) {
        let Some(handle) = self.get(id) else {
            return;
        };
        // Ordered before it is forgotten: whoever stops waiting here leaves no server behind
        // that nobody knows.
        handle.parts.orders.send(Order::Remove).await.ok();
        self.servers_mut().by_id.remove(&id);
        self.inner.config.memory.remove(id);
        handle.parts.orders.closed().await;
    }

    /// What happens.
    pub fn events(&self) -> &EventBus {
        &self.inner.calls.events
    }

    /// The most recent calls.
    pub fn activity(&self) -> &ActivityLog {
        &self.inner.calls.activity
    }

    /// The same calls down to the wire, as far as they are kept.
    pub fn flights(&self) -> &FlightRecorder {
        &self.inner.calls.flights
    }

    /// Stops every server, all at once; ends when nothing of them is left.
    pub async fn shut_down(&self) {
        self.inner.drivers.close();
        self.servers_mut().ending = true;
        for handle in self.list() {
            // A driver with much to do does not keep the others from hearing of it.
            let orders = handle.parts.orders.clone();
            self.inner.tasks.spawn(async move { orders.send(Order::ShutDown).await.ok() });
        }
        self.inner.drivers.wait().await;
        self.inner.launcher.close().await;
    }

    /// Stops every server, those of single sessions included, and lets none start until `resume`;
    /// ends when nothing of them runs. Nothing of that is stored.
    pub async fn suspend(&self, reason: Failure) {
        self.inner.fence.raise(reason);
        let suspended = self.list().into_iter().map(|handle| {
            let (done, gone) = oneshot::channel::<()>();
            let orders = handle.parts.orders.clone();
            // A driver with many orders does not delay those of the others.
            self.inner.tasks.spawn(async move { orders.send(Order::Suspend { done }).await.ok() });
            gone
        });
        for gone in suspended.collect::<Vec<_>>() {
            gone.await.ok();
        }
        self.inner.fence.sessions_gone().await;
    }

    /// Lets servers start again. Each one begins with `resume_server`.
    pub fn resume(&self) {
        self.inner.fence.lower();
    }

    /// Begins a server that was suspended as the store has it now; takes on one that is new.
    pub async fn resume_server(
        &self,
        id: ServerId,
        spec: ServerSpec,
        failure: Option<Failure>,
        proven: bool,
    ) {
        let Some(handle) = self.get(id) else {
            self.restore(id, spec, failure, proven);
            return;
        };
        let slots = Some(Arc::clone(&self.inner.boot_slots));
        let beginning = Beginning { spec: Arc::new(spec), proven, slots };
        handle.parts.orders.send(Order::Resume { beginning, failure }).await.ok();
    }

    fn adopt(&self, first: Snapshot, beginning: Beginning) -> ServerHandle {
        let inner = &self.inner;
        let (id, spec) = (first.id, Arc::clone(&beginning.spec));
        let log_path = inner.config.log_dir.join(format!("{id}.log"));
        let log = Arc::new(ServerLog::open(log_path, Redactor::of_specs([&*spec])));
        let publisher = Publisher::new(first, inner.calls.events.clone());
        let (orders, inbox) = mpsc::channel(16);
        let parts = Arc::new(HandleParts {
            id,
            spec: ArcSwap::new(Arc::clone(&spec)),
            live: ArcSwapOption::empty(),
            snapshot: publisher.subscribe(),
            orders,
            log: Arc::clone(&log),
            noise: Arc::new(AtomicU64::new(0)),
            calls: inner.calls.clone(),
            notices: Notices::default(),
            stateless_notices: Notices::default(),
            not_stateless: ArcSwapOption::empty(),
            reach: Reach::new(inner.config.daemon_id),
            memory: inner.config.memory.server(id),
            means: Means {
                launcher: Arc::clone(&inner.launcher),
                tasks: inner.tasks.clone(),
                max_message: inner.config.max_message,
                max_in_flight: inner.config.max_in_flight,
                fence: inner.fence.clone(),
            },
        });
        let handle = ServerHandle { parts: Arc::clone(&parts) };
        self.enter(&handle);
        if spec.enabled {
            publisher.status(Status::Starting, |_| {});
        }
        let driver = DriverParts {
            reporter: Reporter { id, publisher, log, recorder: Arc::clone(&inner.recorder) },
            handle: parts,
            launcher: Arc::clone(&inner.launcher),
            tasks: inner.tasks.clone(),
            graces: Graces::default(),
            order_slots: Arc::clone(&inner.order_slots),
        };
        let span = tracing::info_span!("server", %id);
        inner.drivers.spawn(Driver::run(driver, beginning, inbox).instrument(span));
        handle
    }

    /// Puts a server in the books, so that whoever hears of it finds it.
    fn enter(&self, handle: &ServerHandle) {
        let mut servers = self.servers_mut();
        servers.by_id.insert(handle.id(), handle.clone());
        if servers.ending {
            // The first order of all, so that there is room for it.
            handle.parts.orders.try_send(Order::ShutDown).ok();
        }
    }

    fn servers(&self) -> RwLockReadGuard<'_, Servers> {
        self.inner.servers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn servers_mut(&self) -> RwLockWriteGuard<'_, Servers> {
        self.inner.servers.write().unwrap_or_else(PoisonError::into_inner)
    }
}
