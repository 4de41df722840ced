//! Servers in containers, by Podman's command line.
//!
//! ```text
//!  daemon ── socket ── cofer-shim --guard   (one for all; ends the containers of a killed daemon)
//!    │
//!    ├── podman run, inspect, kill, wait, rm: short commands, each with a time limit
//!    └── stdin, stdout, stderr: pipes straight to the container's first process: conmon starts
//!        it with them (`--log-driver=passthrough`) and is not in between
//! ```
//!
//! A container has the same three ends as a process tree: its own task in this daemon; the
//! guard, when the daemon was killed; and the next daemon's sweep, when both were. Each knows
//! what is ours by labels. There is at most one container for a server, because its name is
//! made of the server's id.

mod arguments;
mod bundle;
mod cgroup;
mod choice;
mod client;
mod complaint;
mod container;
mod disk;
mod effective;
mod error;
mod files;
pub(crate) mod guard;
mod hardening;
mod image;
mod info;
mod inspect;
mod isolation;
mod label;
mod launch;
mod life;
mod oom;
mod plan;
mod probe;
mod providers;
mod shortfall;
mod sweep;
mod trial;
mod volumes;
mod witness;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cofer_model::ServerId;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, oneshot, watch};
use tokio_util::task::TaskTracker;

use client::{Client, PATIENCE};
pub use container::{Container, EndCause};
pub use disk::size as disk_usage;
pub use effective::{RunningContainer, effective_isolation, limit_warnings, writable_layer};
pub use error::PodmanError;
pub use hardening::{isolation_arguments, layer_size_argument, limit_arguments};
pub use image::Image;
pub use info::Info;
pub use inspect::Endpoint;
pub use plan::ContainerPlan;
pub use providers::ProviderReport;
pub use sweep::Swept;
pub use volumes::Volume;

use crate::workload::Streams;
use container::{Control, Progress};
use guard::Guard;
use life::Life;
use providers::Providers;

/// How many containers are started at once. Podman's commands wait for each other's locks, and
/// more of them only make each wait longer.
const STARTS_AT_ONCE: usize = 8;

/// How containers are started. Cheap to clone; clones share their books.
#[derive(Debug, Clone)]
pub struct Podman {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    owner: String,
    /// This daemon among all that ever ran.
    daemon: String,
    state_dir: PathBuf,
    shim: PathBuf,
    info: AsyncMutex<Option<Arc<Info>>>,
    /// Set when something failed that a new look at Podman may explain.
    is_doubted: AtomicBool,
    providers: Providers,
    /// Whether Podman has a first process to put into containers.
    has_init: AtomicBool,
    runs: AtomicU64,
    starts: Arc<Semaphore>,
    /// One for each server: held from its container's start until the container is gone.
    places: Mutex<HashMap<ServerId, Arc<AsyncMutex<()>>>>,
    guard: Guard,
    /// The lives of containers, and clients that were given up.
    tasks: TaskTracker,
}

impl Podman {
    /// `program` is Podman's, found on `PATH` where it is a plain name; `owner` marks what is
    /// ours; `state_dir` is for short-lived files and made when needed; `shim` is the program
    /// that has the guard in it. Does nothing yet.
    pub fn new(program: PathBuf, owner: String, state_dir: PathBuf, shim: PathBuf) -> Self {
        Self::with_environment(program, owner, state_dir, shim, std::env::vars_os().collect())
    }

    /// The same with another environment to pass parts of to Podman than this process's.
    pub fn with_environment(
        program: PathBuf,
        owner: String,
        state_dir: PathBuf,
        shim: PathBuf,
        base: BTreeMap<OsString, OsString>,
    ) -> Self {
        let daemon = daemon_name();
        let tasks = TaskTracker::new();
        let client = Client::new(program, base, &daemon, tasks.clone());
        let inner = Inner {
            client,
            owner,
            daemon,
            state_dir,
            shim,
            info: AsyncMutex::new(None),
            is_doubted: AtomicBool::new(false),
            providers: Providers::default(),
            has_init: AtomicBool::new(true),
            runs: AtomicU64::new(0),
            starts: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
            places: Mutex::new(HashMap::new()),
            guard: Guard::default(),
            tasks,
        };
        Self { inner: Arc::new(inner) }
    }

    /// What Podman is, asked once, and again after something failed.
    pub async fn info(&self) -> Result<Arc<Info>, PodmanError> {
        let mut known = self.inner.info.lock().await;
        if let Some(info) = known.as_ref()
            && !self.inner.is_doubted.load(Ordering::Relaxed)
        {
            return Ok(Arc::clone(info));
        }
        *known = None;
        let answer = self.inner.client.run(&["info", "--format=json"], PATIENCE).await?;
        if !answer.status.success() {
            let message = complaint::message(&answer.stderr);
            return Err(PodmanError::NotWorking { message });
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let info = Arc::new(Info::parse(&answer.stdout, &mounts)?);
        self.inner.is_doubted.store(false, Ordering::Relaxed);
        *known = Some(Arc::clone(&info));
        Ok(info)
    }

    /// Starts a container; returns when its first process runs. Never pulls: the image must be
    /// here. Dropped midway, it leaves nothing.
    pub async fn start(&self, plan: &ContainerPlan) -> Result<(Container, Streams), PodmanError> {
        plan.check()?;
        let info = self.info().await?;
        let runtime = self.choose(plan).await?;
        let place = self.place(plan.server).lock_owned().await;
        self.guard().await?;
        self.make_volumes(plan, &info).await?;
        let (started, hearing) = oneshot::channel();
        let (sender, progress) = watch::channel(Progress::default());
        // Dropped with this future, it tells the container's task to end what it has begun.
        let (control, orders) = Control::new();
        let life = Life {
            podman: self.clone(),
            plan: plan.clone(),
            info,
            runtime,
            progress: sender,
            orders,
            _place: place,
        };
        self.inner.tasks.spawn(life.run(started));
        let started = hearing.await.map_err(|_| PodmanError::Internal {
            action: "start the container",
            source: std::io::ErrorKind::UnexpectedEof.into(),
        });
        let started = self.watched(started.and_then(|result| result))?;
        let container = Container::new(started.shared, control, progress, started.wide_pipes);
        Ok((container, started.streams))
    }

    /// Waits until all containers dropped so far, or ended, are removed.
    pub async fn drained(&self) {
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.tasks.reopen();
    }

    /// The same, and ends the guard. For the end of a daemon.
    pub async fn close(&self) {
        self.drained().await;
        self.inner.guard.dismiss().await;
    }

    /// Makes the next look at Podman a new one, where it is the trouble.
    fn watched<T>(&self, result: Result<T, PodmanError>) -> Result<T, PodmanError> {
        if result.as_ref().is_err_and(PodmanError::is_of_the_engine) {
            self.inner.is_doubted.store(true, Ordering::Relaxed);
        }
        result
    }

    fn place(&self, server: ServerId) -> Arc<AsyncMutex<()>> {
        let mut places = self.inner.places.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody holds or waits for are forgotten.
        places.retain(|_, place| Arc::strong_count(place) > 1);
        Arc::clone(places.entry(server).or_default())
    }

    fn next_run(&self) -> String {
        let run = self.inner.runs.fetch_add(1, Ordering::Relaxed);
        format!("{}-{run}", self.inner.daemon)
    }
}

/// A name that no other daemon has or had, on this machine.
fn daemon_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{:x}-{count}", std::process::id(), now.as_nanos())
}
