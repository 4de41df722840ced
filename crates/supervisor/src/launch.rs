//! What the supervisor asks of a runtime: to start a workload, and to be told of it.
//! A seam of two small traits, so that containers stand beside processes, and so that the
//! driver can be tested on paused time with servers that live in the test.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cofer_mcp::HandshakeError;
use cofer_model::{Exit, Failure, FailureKind, HOPS_VARIABLE, Kind, ServerId, ServerSpec, Usage};
use cofer_runtime::{Fetching, Launch, Runner, Streams, Workload};
use serde_json::Value;
use uuid::Uuid;

use crate::remote::RemoteLauncher;
use crate::server::failure::not_launched;

/// Hears how far the preparation of a server is.
pub type Tell<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Starts servers. Whatever fails is told in words for people; a failure of the kind
/// `engine_unavailable` is nobody's fault and passes by itself.
#[async_trait]
pub trait Launcher: Send + Sync + 'static {
    /// Whether there is what the server runs on. Asked again and again while there is not.
    async fn available(&self, spec: &ServerSpec) -> Result<(), Failure>;

    /// Fetches the server's image, which may take long and is no part of its start. Asked for
    /// after a launch that failed because it is missing.
    async fn prepare(&self, spec: &ServerSpec, tell: Tell<'_>) -> Result<(), Failure>;

    /// Starts the server's workload; a failure of the kind `image_missing` says that it is to be
    /// prepared first. Dropping the future leaves nothing behind.
    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, Failure>;

    /// Waits until nothing is left of all launches, also of those that were dropped midway.
    async fn close(&self) {}
}

/// A workload that was started.
pub struct Launched {
    /// Dropping it ends it, with everything it started.
    pub running: Box<dyn Running>,
    /// Its stdin, stdout and stderr.
    pub streams: Streams,
    /// Where it is spoken to, where that is not over its stdin and stdout.
    pub door: Option<Door>,
}

/// What a runtime tells of a workload. Some of it is known only a moment after the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its container.
    pub container_id: Option<String>,
    /// What its image is.
    pub image_digest: Option<String>,
    /// Where its published ports are reached.
    pub endpoints: Vec<String>,
    /// What a person should know of how it runs.
    pub warnings: Vec<String>,
}

/// A port of a server without a stdio bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// The port inside the container.
    pub port: u16,
    /// Where this machine reaches it.
    pub address: SocketAddr,
    /// Where MCP is spoken there, where a person said so; then it has to be.
    pub path: Option<String>,
}

/// Why a workload ended, where its runtime knows more than its exit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The sort of failure.
    pub kind: FailureKind,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// A workload that runs, or has run.
#[async_trait]
pub trait Running: Send + Sync {
    /// The server's own process, where it is one of this machine's.
    fn pid(&self) -> Option<u32>;
    /// Whether it runs elsewhere, so that an error may be our own word for its silence.
    fn is_remote(&self) -> bool {
        false
    }
    /// What is known of it now.
    fn facts(&self) -> Facts {
        Facts::default()
    }
    /// Waits for the end of the server's own process.
    async fn exited(&self) -> Exit;
    /// Whether that process has ended and only the question how is still open, which an engine
    /// that is busy takes its time to answer.
    fn has_ended(&self) -> bool {
        false
    }
    /// Waits until nothing of it is left.
    async fn gone(&self);
    /// Asks it to end.
    fn terminate(&self);
    /// Ends it, with everything it started.
    fn kill(&self);
    /// Why it ended, once it has.
    async fn explain(&self) -> Option<Explanation> {
        None
    }
    /// Why it refused to open a conversation, where its runtime has better words for that.
    fn explain_refusal(&self, _error: &HandshakeError) -> Option<Explanation> {
        None
    }
    /// Whether package managers may run in it, so that `fetching` is worth asking.
    fn may_fetch_packages(&self) -> bool {
        false
    }
    /// The package managers that run in it. May read `/proc` with blocking calls.
    async fn fetching(&self) -> Vec<Fetching> {
        Vec::new()
    }
    /// What it uses. May read `/proc` with blocking calls.
    async fn usage(&self) -> Option<Usage>;
    /// What isolation is in force. May read `/proc` with blocking calls.
    async fn isolation(&self) -> Value;
}

#[async_trait]
impl Running for Workload {
    fn pid(&self) -> Option<u32> {
        Some(Self::pid(self))
    }

    async fn exited(&self) -> Exit {
        Self::exited(self).await
    }

    async fn gone(&self) {
        Self::gone(self).await;
    }

    fn terminate(&self) {
        Self::terminate(self);
    }

    fn kill(&self) {
        Self::kill(self);
    }

    fn may_fetch_packages(&self) -> bool {
        true
    }

    async fn fetching(&self) -> Vec<Fetching> {
        Self::fetching(self)
    }

    async fn usage(&self) -> Option<Usage> {
        Self::usage(self)
    }

    async fn isolation(&self) -> Value {
        Self::isolation(self)
    }
}

/// Starts servers as processes of this machine.
#[derive(Debug)]
pub struct ProcessLauncher {
    runner: Runner,
    owner: String,
    daemon_id: Uuid,
}

impl ProcessLauncher {
    /// `shim` is the program that contains each server; `owner` marks what is ours; servers that are
    /// clients of another daemon pass `daemon_id` on to it.
    pub fn new(shim: PathBuf, owner: String, daemon_id: Uuid) -> Self {
        Self { runner: Runner::new(shim), owner, daemon_id }
    }
}

#[async_trait]
impl Launcher for ProcessLauncher {
    async fn available(&self, _spec: &ServerSpec) -> Result<(), Failure> {
        Ok(())
    }

    async fn prepare(&self, _spec: &ServerSpec, _tell: Tell<'_>) -> Result<(), Failure> {
        Ok(())
    }

    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, Failure> {
        let mut environment = spec.environment.clone();
        environment.insert(HOPS_VARIABLE.to_owned(), self.daemon_id.to_string());
        let launch = Launch {
            program: spec.command.clone().unwrap_or_default(),
            args: spec.args.clone(),
            environment,
            cwd: spec.cwd.clone(),
            marker: format!("{}/{id}", self.owner),
        };
        let started = self.runner.start(&launch).await;
        let (workload, streams) = started.map_err(|error| not_launched(&error))?;
        Ok(Launched { running: Box::new(workload), streams, door: None })
    }

    async fn close(&self) {
        self.runner.drained().await;
    }
}

/// Starts each server as the kind of thing that it is.
pub struct LauncherByKind {
    processes: ProcessLauncher,
    containers: Arc<dyn Launcher>,
    remotes: RemoteLauncher,
}

impl LauncherByKind {
    /// Each kind by its own.
    pub fn new(
        processes: ProcessLauncher,
        containers: Arc<dyn Launcher>,
        remotes: RemoteLauncher,
    ) -> Self {
        Self { processes, containers, remotes }
    }

    fn of(&self, spec: &ServerSpec) -> &dyn Launcher {
        match spec.kind() {
            Kind::Container => &*self.containers,
            Kind::Process => &self.processes,
            Kind::Remote => &self.remotes,
        }
    }
}

#[async_trait]
impl Launcher for LauncherByKind {
    async fn available(&self, spec: &ServerSpec) -> Result<(), Failure> {
        self.of(spec).available(spec).await
    }

    async fn prepare(&self, spec: &ServerSpec, tell: Tell<'_>) -> Result<(), Failure> {
        self.of(spec).prepare(spec, tell).await
    }

    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, Failure> {
        self.of(spec).launch(id, spec).await
    }

    async fn close(&self) {
        self.processes.close().await;
    }
}
