//! From a configuration to a daemon that serves, and back to nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofer_chat::Environment;
use cofer_mcp::http::Identity;
use cofer_model::{Failure, MaxInFlight};
use cofer_runtime::podman::Podman;
use cofer_runtime::{become_subreaper, host_memory, raise_open_files, sweep};
use cofer_store::{Store, StoreError};
use cofer_supervisor::{
    ContainerLauncher, EventBus, LauncherByKind, Memory, ProcessLauncher, RemoteLauncher,
    Supervisor, SupervisorConfig,
};
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::app::{App, Parts};
use crate::chat::{Chat, ToolSource};
use crate::connections::{ConnectionLimits, Connections};
use crate::data_dir::DataDir;
use crate::failure::DaemonError;
use crate::front::Front;
use crate::gateway::Gateway;
use crate::guard::Guard;
use crate::heap::keep_trimmed;
use crate::listen;
use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::own_endpoint::OwnEndpoint;
use crate::ownership::{self, Fenced};
use crate::public_url::PublicUrl;
use crate::recorder::{CallCounter, StoreRecorder};
use crate::registry::Registry;
use crate::telemetry::Telemetry;
use crate::traces::Traces;
use crate::validate::Surroundings;

/// How long open requests may take to end once all servers have.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
/// Which part of the machine's memory messages may use, unless that is configured.
const MEMORY_PART: u64 = 4;

/// What a person decides about the daemon.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The address by which clients reach the daemon behind a reverse proxy.
    pub public_url: Option<PublicUrl>,
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// The database, where it is not the embedded one.
    pub database_url: Option<String>,
    /// The longest message, in either direction.
    pub max_message_bytes: usize,
    /// How many bytes of messages may be kept; a quarter of the machine's memory if not given.
    pub max_memory: Option<u64>,
    /// How many servers start at once when the daemon does, and by import, enable and restart.
    pub start_parallelism: usize,
    /// How many requests a server is given at once whose registration does not say.
    pub max_in_flight: MaxInFlight,
    /// The program that contains each server.
    pub shim: PathBuf,
    /// Who signs requests to remote servers that want it.
    pub identity: Option<Arc<dyn Identity>>,
    /// Podman's program, found on `PATH` where it is a plain name.
    pub podman: PathBuf,
    /// Environments and programs, of which the daemon itself knows nothing.
    pub machine: Arc<dyn Machine>,
}

/// What is known once the daemon can be reached.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Where it listens.
    pub address: SocketAddr,
    /// For links: `--public-url`, else the address for a client on this machine.
    pub url: String,
    /// The console, with the token that opens it. Not for logs.
    pub console_url: String,
}

/// Runs the daemon until `shutdown` ends; then stops every server and returns.
pub async fn run(
    config: Config,
    on_ready: impl FnOnce(Ready),
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DaemonError> {
    let data_dir = DataDir::open(&config.data_dir)?;
    let telemetry = Telemetry::init(&data_dir.logs())?;
    clear_leftovers(&data_dir)?;
    let listener = bind(config.listen).await?;
    let address = local_address(&listener)?;
    tokio::pin!(shutdown);
    // It may wait for the lease of another daemon.
    let store = tokio::select! {
        store = open_store(&config, &data_dir) => store?,
        () = &mut shutdown => return Ok(()),
    };
    let acquired = Instant::now();

    let closing = CancellationToken::new();
    let connections = Connections::new(connection_limits()?, closing.clone());
    let containers = Arc::new(containers(&config, &data_dir, &*store).await?);
    let parts = (Arc::clone(&store), Arc::clone(&containers));
    let own = OwnEndpoint::new(address).with_public_url(config.public_url.clone());
    let app = assemble(&config, &data_dir, own, parts, closing.clone())?;
    let background = TaskTracker::new();
    let mut owner = JoinSet::new();
    owner.spawn(ownership::keep(Arc::clone(&store) as _, app.clone(), acquired));
    background.spawn(
        closing.clone().run_until_cancelled_owned(clear_containers(Arc::clone(&containers))),
    );
    background.spawn(connections.clone().sweep_until_closing());
    let trimming = keep_trimmed(Arc::clone(app.memory.daemon()));
    background.spawn(closing.clone().run_until_cancelled_owned(trimming));
    let count = app.registry.boot().await?;
    app.gateway.restore().await;
    background.spawn(app.gateway.clone().run(app.registry.changes()));
    let url = format!("http://{}", reachable(address));
    let public_url = config.public_url.as_ref().map(|url| url.origin().to_owned());
    let local = data_dir.bind_socket()?.serve(url.clone(), public_url.clone());
    background.spawn(closing.clone().run_until_cancelled_owned(local));
    data_dir.write_address(&url)?;
    tracing::info!(target: "START", %address, data_dir = %data_dir.path().display(), servers = count, "the daemon is ready");
    let url = public_url.unwrap_or(url);
    let console_url = format!("{url}/#token={}", data_dir.token().reveal());
    on_ready(Ready { address, url, console_url });

    let guard =
        Guard::new(address, data_dir.token().clone()).with_public_url(config.public_url.clone());
    let front = Front::new(guard, app.clone());
    let serving = listen::serve(listener, front, connections, closing.clone());
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => {}
        () = &mut shutdown => tracing::info!(target: "MCP", "the daemon stops all servers"),
    }
    closing.cancel();
    app.gateway.say_goodbye();
    app.gateway.close().await;
    let stopped = async {
        app.supervisor().shut_down().await;
        tokio::time::sleep(LAST_REQUESTS).await;
    };
    // Requests end with the servers they wait for; those that do not are cut off.
    tokio::select! {
        _ = async { tokio::join!(app.supervisor().shut_down(), &mut serving) } => {}
        () = stopped => tracing::warn!("some requests were cut off"),
    }
    // Not before: servers that take their time to stop are within the lease.
    owner.shutdown().await;
    app.chat.shut_down().await;
    app.traces.close().await;
    background.close();
    background.wait().await;
    config.machine.close().await;
    containers.close().await;
    store.close().await;
    tracing::info!(target: "MCP", lost_log_lines = telemetry.lost_lines(), "the daemon has stopped");
    Ok(())
}

async fn open_store(config: &Config, data_dir: &DataDir) -> Result<Arc<dyn Store>, DaemonError> {
    let url = config.database_url.as_deref();
    Ok(cofer_store::open(url, data_dir.path(), data_dir.identity()?).await?)
}

#[async_trait]
impl Fenced for App {
    async fn suspend(&self, reason: Failure) {
        self.supervisor().suspend(reason).await;
    }

    async fn resume(&self) -> Result<(), StoreError> {
        self.registry.resume().await
    }
}

/// What an earlier daemon could not end any more is ended before anything is started.
fn clear_leftovers(data_dir: &DataDir) -> Result<(), DaemonError> {
    become_subreaper().map_err(|source| DaemonError::System {
        attempt: "take care of orphaned processes",
        source,
    })?;
    let leftovers = sweep(&data_dir.owner_id().to_string());
    if !leftovers.is_empty() {
        tracing::warn!(target: "START", pids = ?leftovers, "processes of an earlier daemon were ended");
    }
    Ok(())
}

/// Takes all open files that the system allows, a share of them for connections.
fn connection_limits() -> Result<ConnectionLimits, DaemonError> {
    let files = raise_open_files().map_err(|source| DaemonError::System {
        attempt: "raise the limit of open files",
        source,
    })?;
    tracing::debug!(target: "START", limit = files.soft, "limit of open files");
    Ok(ConnectionLimits::for_open_files(files.soft))
}

/// The way to containers. Podman is not asked anything yet: a machine without it, or without
/// servers in containers, is not slowed down.
async fn containers(
    config: &Config,
    data_dir: &DataDir,
    store: &dyn Store,
) -> Result<ContainerLauncher, DaemonError> {
    let known = store.list().await?.into_iter().flatten().map(|record| record.id).collect();
    let state_dir = data_dir.path().join("containers");
    // Made with the first container ever started.
    let is_clean = !state_dir.exists();
    let owner = data_dir.owner_id().to_string();
    let podman = Podman::new(config.podman.clone(), owner, state_dir, config.shim.clone());
    Ok(ContainerLauncher::new(podman, known, is_clean))
}

/// What an earlier daemon left is removed at once, or, where Podman is away, before the first
/// container is started after it is back.
async fn clear_containers(containers: Arc<ContainerLauncher>) {
    if let Err(failure) = containers.sweep().await {
        tracing::info!(target: "START", reason = failure.message, "containers of an earlier daemon were not looked for yet");
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, DaemonError> {
    TcpListener::bind(address).await.map_err(|source| DaemonError::Listen { address, source })
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, DaemonError> {
    listener
        .local_addr()
        .map_err(|source| DaemonError::System { attempt: "learn where the daemon listens", source })
}

/// An address for a client on this machine: `0.0.0.0` is none.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
    }
    address
}

fn assemble(
    config: &Config,
    data_dir: &DataDir,
    own: OwnEndpoint,
    (store, containers): (Arc<dyn Store>, Arc<ContainerLauncher>),
    closing: CancellationToken,
) -> Result<App, DaemonError> {
    let log_dir = data_dir.logs().join("servers");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&log_dir).map_err(|source| {
        DaemonError::System { attempt: "make the directory for the servers' logs", source }
    })?;
    let metrics = Arc::new(Metrics::default());
    let traces = Traces::start(&metrics, |variable| std::env::var(variable).ok());
    let counter = Arc::new(CallCounter::new(Arc::clone(&metrics), traces.queue()));
    // New at each start: it is sent to every remote server, which should learn nothing lasting by it.
    let daemon_id = Uuid::new_v4();
    let owner = data_dir.owner_id().to_string();
    let processes = ProcessLauncher::new(config.shim.clone(), owner, daemon_id);
    let identity = config.identity.clone();
    let limit = config.max_memory.unwrap_or_else(|| host_memory() / MEMORY_PART);
    let memory = Memory::new(limit, config.max_message_bytes);
    tracing::info!(target: "START", bytes = limit, "memory for messages");
    let remotes =
        RemoteLauncher::new(config.max_message_bytes, Arc::clone(&memory), identity, daemon_id);
    let supervisor = Supervisor::new(
        SupervisorConfig {
            log_dir,
            max_message: config.max_message_bytes,
            start_parallelism: config.start_parallelism,
            max_in_flight: config.max_in_flight,
            daemon_id,
            memory: Arc::clone(&memory),
        },
        Arc::new(LauncherByKind::new(processes, Arc::clone(&containers) as _, remotes)),
        Arc::new(StoreRecorder::new(Arc::clone(&store))),
        Arc::clone(&counter) as _,
        EventBus::new(data_dir.first_generation(OffsetDateTime::now_utc())?),
    );
    let gateway = Gateway::new(
        (supervisor.clone(), Arc::clone(&store)),
        daemon_id,
        Arc::clone(&memory),
        closing.clone(),
    );
    let environment = Environment::read(|variable| std::env::var(variable).ok());
    let tools = ToolSource::new(supervisor.clone(), gateway.clone());
    let chat = Chat::new(Arc::clone(&store), tools, environment, closing.clone());
    Ok(App::new(Parts {
        gateway,
        registry: Registry::new(Arc::clone(&store), supervisor, counter, own.clone()),
        chat: Arc::new(chat),
        store,
        containers,
        metrics,
        traces,
        surroundings: Surroundings::of_this_process(own),
        machine: Arc::clone(&config.machine),
        max_message: config.max_message_bytes,
        memory,
        closing,
    }))
}
