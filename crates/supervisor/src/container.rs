//! Starts servers in containers, by Podman, and keeps what belongs to containers but to no
//! run of one: the sweep at the daemon's start, images on their way, volumes.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cofer_model::{Exit, Failure, FailureKind, Network, ServerId, ServerSpec, Usage};
use cofer_runtime::podman::{
    Container, ContainerPlan, EndCause, Endpoint, Podman, PodmanError, ProviderReport, Volume,
};
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OnceCell, Semaphore};

use crate::launch::{Door, Explanation, Facts, Launched, Launcher, Running, Tell};

/// How many images are fetched at once.
const PULLS_AT_ONCE: usize = 4;

/// See the module.
#[derive(Debug)]
pub struct ContainerLauncher {
    podman: Podman,
    /// The servers that were registered when the daemon started.
    known: BTreeSet<ServerId>,
    /// Set once what an earlier daemon left is gone. Nothing is started before.
    swept: OnceCell<()>,
    pulls: Semaphore,
    /// One for each image on its way, so that servers that share one share its way too.
    on_their_way: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl ContainerLauncher {
    /// `known` are the servers that are registered now; `is_clean` is whether no daemon before
    /// this one can have left anything.
    pub fn new(podman: Podman, known: BTreeSet<ServerId>, is_clean: bool) -> Self {
        Self {
            podman,
            known,
            swept: OnceCell::new_with(is_clean.then_some(())),
            pulls: Semaphore::new(PULLS_AT_ONCE),
            on_their_way: Mutex::default(),
        }
    }

    /// Removes what an earlier daemon left, and tells of volumes that nobody has. Done once;
    /// where Podman is away, before the first container is started after it is back.
    pub async fn sweep(&self) -> Result<(), Failure> {
        let sweep = async {
            let swept = self.podman.sweep(&self.known).await.map_err(|error| failure(&error))?;
            if !swept.containers.is_empty() {
                let containers = swept.containers.join(", ");
                tracing::warn!(target: "START", containers, "containers of an earlier daemon were removed");
            }
            if !swept.volumes.is_empty() {
                let names: Vec<&str> = swept.volumes.iter().map(|one| one.name.as_str()).collect();
                let volumes = names.join(", ");
                tracing::info!(target: "START", volumes, "volumes of servers that are not registered were left alone");
            }
            Ok(())
        };
        self.swept.get_or_try_init(|| sweep).await.copied()
    }

    /// What isolates servers here, in the order of preference, and why not.
    pub async fn providers(&self) -> Vec<ProviderReport> {
        self.podman.providers().await
    }

    /// Whether Podman is there and works.
    pub async fn engine(&self) -> Result<(), Failure> {
        self.podman.info().await.map(drop).map_err(|error| failure(&error))
    }

    /// What servers keep, also those that are gone.
    pub async fn volumes(&self) -> Result<Vec<Volume>, Failure> {
        self.podman.volumes().await.map_err(|error| failure(&error))
    }

    /// Removes what a server keeps; returns the names of its volumes.
    pub async fn remove_volumes(&self, id: ServerId) -> Result<Vec<String>, Failure> {
        let removed = self.podman.remove_volumes(id).await.map_err(|error| failure(&error))?;
        if !removed.is_empty() {
            tracing::info!(target: "MCP", %id, volumes = removed.join(", "), "volumes were removed");
        }
        Ok(removed)
    }

    /// Ends what stands beside the containers; they are gone by now.
    pub async fn close(&self) {
        self.podman.close().await;
    }

    /// The one way of an image.
    fn way_of(&self, image: &str) -> Arc<AsyncMutex<()>> {
        let mut ways = self.on_their_way.lock().unwrap_or_else(PoisonError::into_inner);
        ways.retain(|_, way| Arc::strong_count(way) > 1);
        Arc::clone(ways.entry(image.to_owned()).or_default())
    }
}

#[async_trait]
impl Launcher for ContainerLauncher {
    async fn available(&self, _spec: &ServerSpec) -> Result<(), Failure> {
        self.engine().await
    }

    async fn prepare(&self, spec: &ServerSpec, tell: Tell<'_>) -> Result<(), Failure> {
        let image = spec.image.as_deref().unwrap_or_default();
        tell(&format!("pulling {image}"));
        let way = self.way_of(image);
        let _one_at_a_time = way.lock().await;
        // Another server that needs it may have brought it meanwhile.
        let here = self.podman.image(image).await.map_err(|error| failure(&error))?;
        if here.is_some() {
            return Ok(());
        }
        let _turn = self.pulls.acquire().await;
        let pulled =
            self.podman.pull(image, |line| tell(&format!("pulling {image}: {line}"))).await;
        pulled.map(drop).map_err(|error| failure(&error))
    }

    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, Failure> {
        self.sweep().await?;
        let plan = ContainerPlan::of(id, spec);
        let started = self.podman.start(&plan).await;
        let (container, streams) = started.map_err(|error| failure(&error))?;
        let container = RunningContainer { container, ports: Ports::of(spec) };
        let door = match spec.stdio_bridge {
            true => None,
            false => Some(container.door(spec)?),
        };
        Ok(Launched { running: Box::new(container), streams, door })
    }
}

/// Where the ports of a server are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ports {
    /// `http` where the server is expected there, `tcp` where nothing is known of them.
    scheme: &'static str,
    /// The ports themselves, where the machine's network is the server's own.
    of_the_host: Vec<u16>,
}

impl Ports {
    fn of(spec: &ServerSpec) -> Self {
        let own = spec.ports.iter().map(|port| port.container);
        Self {
            scheme: if spec.stdio_bridge { "tcp" } else { "http" },
            of_the_host: own.filter(|_| spec.network == Network::Host).collect(),
        }
    }

    /// Each port with the address at which this machine reaches it.
    fn reached(&self, published: Vec<Endpoint>) -> Vec<(u16, SocketAddr)> {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if !self.of_the_host.is_empty() {
            let own = self.of_the_host.iter();
            return own.map(|port| (*port, SocketAddr::new(loopback, *port))).collect();
        }
        let reached = published.into_iter().map(|Endpoint { container, host }| {
            let ip = if host.ip().is_unspecified() { loopback } else { host.ip() };
            (container, SocketAddr::new(ip, host.port()))
        });
        reached.collect()
    }
}

/// A container as the driver knows a workload.
struct RunningContainer {
    container: Container,
    ports: Ports,
}

impl RunningContainer {
    /// The first of its ports.
    fn door(&self, spec: &ServerSpec) -> Result<Door, Failure> {
        let wanted = spec.ports.first().map(|port| port.container);
        let reached = self.ports.reached(self.container.endpoints());
        let found = reached.into_iter().find(|(port, _)| Some(*port) == wanted);
        match found {
            Some((port, address)) => Ok(Door { port, address, path: spec.http_path.clone() }),
            None => Err(told(
                FailureKind::ContainerFailed,
                "the engine did not say where the container's port is published".to_owned(),
                "look at `podman port` for the container's name".to_owned(),
            )),
        }
    }
}

#[async_trait]
impl Running for RunningContainer {
    fn pid(&self) -> Option<u32> {
        Some(self.container.pid())
    }

    fn facts(&self) -> Facts {
        let scheme = self.ports.scheme;
        let reached = self.ports.reached(self.container.endpoints());
        Facts {
            container_id: Some(self.container.id().to_owned()),
            image_digest: self.container.image_digest(),
            endpoints: reached.iter().map(|(_, at)| format!("{scheme}://{at}")).collect(),
            warnings: self.container.warnings().to_vec(),
        }
    }

    async fn exited(&self) -> Exit {
        self.container.exited().await
    }

    fn has_ended(&self) -> bool {
        self.container.has_ended()
    }

    async fn gone(&self) {
        self.container.gone().await;
    }

    fn terminate(&self) {
        self.container.terminate();
    }

    fn kill(&self) {
        self.container.kill();
    }

    async fn explain(&self) -> Option<Explanation> {
        self.container.cause().map(|cause| explanation(&cause))
    }

    async fn usage(&self) -> Option<Usage> {
        self.container.usage()
    }

    async fn isolation(&self) -> Value {
        self.container.isolation()
    }
}

fn explanation(cause: &EndCause) -> Explanation {
    let (kind, hint) = match cause {
        EndCause::OutOfMemory { .. } => (
            FailureKind::OutOfMemory,
            "raise `resource_limits.memory` if it needs more; what it writes to `/tmp` counts as memory too",
        ),
        EndCause::DiskFull { .. } => (
            FailureKind::DiskFull,
            "raise `resource_limits.disk` if it needs more, and clear away what is on its volumes",
        ),
        EndCause::WrongRuntime { .. } => (
            FailureKind::IsolationUnavailable,
            "check the `runtimes` in containers.conf; the server is not run with less isolation than was asked for",
        ),
    };
    Explanation { kind, message: format!("the server was ended: {cause}"), hint: hint.to_owned() }
}

/// A failure of Podman in words for people.
fn failure(error: &PodmanError) -> Failure {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    told(kind(error), message, error.hint())
}

fn kind(error: &PodmanError) -> FailureKind {
    match error {
        error if error.is_of_the_engine() => FailureKind::EngineUnavailable,
        PodmanError::ImageMissing { .. } => FailureKind::ImageMissing,
        PodmanError::ImageNotFound { .. } => FailureKind::ImageNotFound,
        PodmanError::LoginNeeded { .. } => FailureKind::LoginRequired,
        PodmanError::Unreachable { .. }
        | PodmanError::Insecure { .. }
        | PodmanError::WrongPlatform { .. } => FailureKind::ImagePullFailed,
        PodmanError::ProviderUnavailable { .. } => FailureKind::ProviderUnavailable,
        PodmanError::RequirementUnmet { .. } | PodmanError::WrongRuntime { .. } => {
            FailureKind::IsolationUnavailable
        }
        PodmanError::PortTaken { .. } => FailureKind::PortInUse,
        _ => FailureKind::ContainerFailed,
    }
}

fn told(kind: FailureKind, message: String, hint: String) -> Failure {
    Failure { kind, message, hint, exit_code: None, signal: None, stderr: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::parse_registration;
    use serde_json::json;

    fn spec(more: Value) -> ServerSpec {
        let mut body = json!({"name": "x", "image": "localhost/x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse_registration(body).unwrap()
    }

    fn endpoint(container: u16, host: &str) -> Endpoint {
        Endpoint { container, host: host.parse().unwrap() }
    }

    #[test]
    fn ports_are_told_as_this_machine_reaches_them() {
        // covers: HST-1.2
        let http = Ports::of(&spec(json!({"stdio_bridge": false, "ports": [{"container": 80}]})));
        assert_eq!(http.scheme, "http");
        let published = vec![endpoint(80, "0.0.0.0:4000"), endpoint(81, "127.0.0.1:4001")];
        let reached: Vec<String> =
            http.reached(published).iter().map(|(_, at)| at.to_string()).collect();
        assert_eq!(reached, ["127.0.0.1:4000", "127.0.0.1:4001"]);
        let host = Ports::of(&spec(json!({"network": "host", "ports": [{"container": 80}]})));
        assert_eq!(host.scheme, "tcp");
        assert_eq!(host.reached(Vec::new()), [(80, "127.0.0.1:80".parse().unwrap())]);
    }

    #[test]
    fn failures_of_podman_are_told_apart() {
        let text = || "x".to_owned();
        for (error, expected) in [
            (PodmanError::NotInstalled { program: text() }, FailureKind::EngineUnavailable),
            (PodmanError::NotWorking { message: text() }, FailureKind::EngineUnavailable),
            (PodmanError::ImageMissing { image: text() }, FailureKind::ImageMissing),
            (
                PodmanError::LoginNeeded { image: text(), message: text() },
                FailureKind::LoginRequired,
            ),
            (
                PodmanError::ProviderUnavailable { provider: "krun", reason: text() },
                FailureKind::ProviderUnavailable,
            ),
            (PodmanError::RequirementUnmet { reason: text() }, FailureKind::IsolationUnavailable),
            (PodmanError::PortTaken { message: text() }, FailureKind::PortInUse),
            (PodmanError::Storage { message: text() }, FailureKind::ContainerFailed),
        ] {
            let told = failure(&error);
            assert_eq!(told.kind, expected, "{error}");
            assert!(!told.hint.is_empty());
        }
        let source = std::io::Error::other("the reason");
        let spawn = PodmanError::Spawn { program: "podman".to_owned(), source };
        assert_eq!(failure(&spawn).message, "could not run `podman`: the reason");
    }

    #[test]
    fn the_limit_that_fired_is_named() {
        // covers: HST-5.2
        let told = explanation(&EndCause::OutOfMemory { limit: Some(512 << 20) });
        assert_eq!(told.kind, FailureKind::OutOfMemory);
        assert!(told.message.contains("512M"), "{}", told.message);
    }
}
