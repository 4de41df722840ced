//! The registry of all servers: who is there, under which name, and how to end them all.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use cofer_model::{Failure, Redactor, ServerId, ServerSpec, Status};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::calls::{ActivityLog, CallObserver, CallRecorder};
use crate::events::EventBus;
use crate::launch::Launcher;
use crate::server::{
    Driver, DriverParts, HandleParts, Order, Publisher, Recorder, ServerHandle, ServerLog, Snapshot,
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
    /// How many servers start at once when the daemon does.
    pub boot_parallelism: usize,
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
    servers: RwLock<HashMap<ServerId, ServerHandle>>,
    /// The drivers.
    drivers: TaskTracker,
    /// What the drivers let run: readers, writers, log pumps.
    tasks: TaskTracker,
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
        let calls = CallRecorder { events, activity: Arc::default(), observer };
        let boot_slots = Arc::new(Semaphore::new(config.boot_parallelism.max(1)));
        let inner = Inner {
            config,
            launcher,
            recorder,
            calls,
            boot_slots,
            servers: RwLock::default(),
            drivers: TaskTracker::new(),
            tasks: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes a new server on, and starts it where it is enabled.
    pub fn add(&self, id: ServerId, spec: ServerSpec) -> ServerHandle {
        self.adopt(id, spec, None, false)
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
        self.adopt(id, spec, failure, proven)
    }

    /// The server with this id.
    pub fn get(&self, id: ServerId) -> Option<ServerHandle> {
        self.servers().get(&id).cloned()
    }

    /// The server with this id or name.
    pub fn find(&self, id_or_name: &str) -> Option<ServerHandle> {
        if let Ok(id) = id_or_name.parse() {
            return self.get(id);
        }
        let servers = self.servers();
        servers
            .values()
            .find(|handle| handle.parts.spec.load().name.as_str() == id_or_name)
            .cloned()
    }

    /// All servers, in no order.
    pub fn list(&self) -> Vec<ServerHandle> {
        self.servers().values().cloned().collect()
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
        let removed =
            self.inner.servers.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(handle) = removed {
            handle.parts.orders.send(Order::Remove).await.ok();
            handle.parts.orders.closed().await;
        }
    }

    /// What happens.
    pub fn events(&self) -> &EventBus {
        &self.inner.calls.events
    }

    /// The most recent calls.
    pub fn activity(&self) -> &ActivityLog {
        &self.inner.calls.activity
    }

    /// Stops every server, all at once; ends when nothing of them is left.
    pub async fn shut_down(&self) {
        self.inner.drivers.close();
        for handle in self.list() {
            handle.parts.orders.send(Order::ShutDown).await.ok();
        }
        self.inner.drivers.wait().await;
    }

    fn adopt(
        &self,
        id: ServerId,
        spec: ServerSpec,
        failure: Option<Failure>,
        proven: bool,
    ) -> ServerHandle {
        let inner = &self.inner;
        let spec = Arc::new(spec);
        let log_path = inner.config.log_dir.join(format!("{id}.log"));
        let log = Arc::new(ServerLog::open(log_path, Redactor::new(&spec.environment)));
        let noise = Arc::new(AtomicU64::new(0));
        let mut first = Snapshot::new(id, Arc::clone(&spec));
        if let Some(failure) = failure.filter(|_| !spec.enabled) {
            first.status = Status::Error;
            first.failure = Some(failure);
        }
        let publisher = Publisher::new(first, inner.calls.events.clone());
        if spec.enabled {
            publisher.status(Status::Starting, |_| {});
        }
        let (orders, inbox) = mpsc::channel(16);
        let parts = Arc::new(HandleParts {
            id,
            spec: ArcSwap::new(Arc::clone(&spec)),
            live: ArcSwapOption::empty(),
            snapshot: publisher.subscribe(),
            orders,
            log: Arc::clone(&log),
            noise: Arc::clone(&noise),
            calls: inner.calls.clone(),
        });
        let handle = ServerHandle { parts: Arc::clone(&parts) };
        let driver = DriverParts {
            id,
            publisher,
            handle: parts,
            log,
            noise,
            launcher: Arc::clone(&inner.launcher),
            recorder: Arc::clone(&inner.recorder),
            tasks: inner.tasks.clone(),
            boot_slots: Arc::clone(&inner.boot_slots),
            max_message: inner.config.max_message,
            graces: Graces::default(),
        };
        inner.servers.write().unwrap_or_else(PoisonError::into_inner).insert(id, handle.clone());
        let span = tracing::info_span!("server", %id);
        inner.drivers.spawn(Driver::new(driver, spec, inbox).run(proven).instrument(span));
        handle
    }

    fn servers(&self) -> std::sync::RwLockReadGuard<'_, HashMap<ServerId, ServerHandle>> {
        self.inner.servers.read().unwrap_or_else(PoisonError::into_inner)
    }
}
