//! What the supervisor asks of a runtime: to start a workload, and to be told of it.
//! A seam of two small traits, so that containers come beside processes, and so that the
//! driver can be tested on paused time with servers that live in the test.

use std::path::PathBuf;

use async_trait::async_trait;
use cofer_model::{Exit, ServerId, ServerSpec, Usage};
use cofer_runtime::{Launch, Runner, StartError, Streams, Workload};
use serde_json::Value;

/// Starts servers.
#[async_trait]
pub trait Launcher: Send + Sync + 'static {
    /// Starts the server's workload. Dropping the future leaves nothing behind.
    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, StartError>;
}

/// A workload that was started.
pub struct Launched {
    /// Dropping it ends it, with everything it started.
    pub running: Box<dyn Running>,
    /// Its stdin, stdout and stderr.
    pub streams: Streams,
}

/// A workload that runs, or has run.
#[async_trait]
pub trait Running: Send + Sync {
    /// The server's own process.
    fn pid(&self) -> u32;
    /// Waits for the end of the server's own process.
    async fn exited(&self) -> Exit;
    /// Waits until nothing of it is left.
    async fn gone(&self);
    /// Asks it to end.
    fn terminate(&self);
    /// Ends it, with everything it started.
    fn kill(&self);
    /// What it uses.
    fn usage(&self) -> Option<Usage>;
    /// What isolation is in force.
    fn isolation(&self) -> Value;
}

#[async_trait]
impl Running for Workload {
    fn pid(&self) -> u32 {
        Self::pid(self)
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

    fn usage(&self) -> Option<Usage> {
        Self::usage(self)
    }

    fn isolation(&self) -> Value {
        Self::isolation(self)
    }
}

/// Starts servers as processes of this machine.
#[derive(Debug)]
pub struct ProcessLauncher {
    runner: Runner,
    owner: String,
}

impl ProcessLauncher {
    /// `shim` is the program that contains each server; `owner` marks what is ours.
    pub fn new(shim: PathBuf, owner: String) -> Self {
        Self { runner: Runner::new(shim), owner }
    }
}

#[async_trait]
impl Launcher for ProcessLauncher {
    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, StartError> {
        let launch = Launch {
            program: spec.command.clone().unwrap_or_default(),
            args: spec.args.clone(),
            environment: spec.environment.clone(),
            cwd: spec.cwd.clone(),
            marker: format!("{}/{id}", self.owner),
        };
        let (workload, streams) = self.runner.start(&launch).await?;
        Ok(Launched { running: Box::new(workload), streams })
    }
}
