//! The daemon's view of this machine: environments and programs, which it does not know itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofer_daemon::{EnvironmentRef, Machine, MachineFailure};
use cofer_environments::{Environments, Failure, Kind, Repository, Settings};
use cofer_model::{
    EnvironmentDestroyed, EnvironmentDiff, EnvironmentList, EnvironmentLog, ErrorKind, HostView,
    SecretDecision, SecretList,
};

use crate::programs;

/// How long deleting may take once the daemon ends; the next one goes on with the rest.
const DRAINING: Duration = Duration::from_secs(5);

/// What of the environment matters to somebody who runs no commands in environments.
const VARIABLES: [&str; 3] = ["COFER_PODMAN", "XDG_STATE_HOME", "HOME"];

/// See the module.
#[derive(Debug)]
pub(crate) struct ThisMachine {
    environments: Arc<Environments>,
}

impl ThisMachine {
    pub(crate) fn new() -> Result<Self, String> {
        let settings = Settings::from_variables(|name| {
            VARIABLES.contains(&name).then(|| std::env::var(name).ok()).flatten()
        })?;
        Ok(Self { environments: Arc::new(Environments::new(settings)) })
    }

    async fn locate(&self, of: &EnvironmentRef) -> Result<Repository, MachineFailure> {
        let located = self.environments.locate(&of.id, of.repository.as_deref()).await;
        located.map_err(failed)
    }
}

#[async_trait]
impl Machine for ThisMachine {
    async fn environments(&self) -> EnvironmentList {
        self.environments.survey().await
    }

    async fn log(&self, of: EnvironmentRef) -> Result<EnvironmentLog, MachineFailure> {
        let repository = self.locate(&of).await?;
        self.environments.log(&repository, &of.id).await.map_err(failed)
    }

    async fn diff(&self, of: EnvironmentRef) -> Result<EnvironmentDiff, MachineFailure> {
        let repository = self.locate(&of).await?;
        self.environments.diff(&repository, &of.id).await.map_err(failed)
    }

    async fn destroy(
        &self,
        of: EnvironmentRef,
        force: bool,
    ) -> Result<EnvironmentDestroyed, MachineFailure> {
        let repository = self.locate(&of).await?;
        self.environments.destroy_surely(repository, &of.id, force).await.map_err(failed)
    }

    async fn decide_secret(&self, decision: SecretDecision) -> Result<SecretList, MachineFailure> {
        self.environments.decide_secret(&decision).await.map_err(failed)
    }

    async fn host(&self) -> HostView {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = path.to_string_lossy().into_owned();
        // The daemon adds the providers: it has their trials.
        HostView { path, programs: programs::look().await, providers: Vec::new() }
    }

    async fn close(&self) {
        if tokio::time::timeout(DRAINING, self.environments.settled()).await.is_err() {
            tracing::info!("leaving before everything that was set aside is deleted");
        }
    }
}

fn failed(failure: Failure) -> MachineFailure {
    let kind = match failure.kind {
        Kind::InvalidRequest => ErrorKind::InvalidRequest,
        Kind::NotFound => ErrorKind::NotFound,
        Kind::Timeout => ErrorKind::Timeout,
        Kind::PreconditionFailed if failure.step == "container" => ErrorKind::EngineUnavailable,
        Kind::ProviderUnavailable => ErrorKind::EngineUnavailable,
        Kind::Conflict | Kind::PreconditionFailed | Kind::LimitExceeded => ErrorKind::Conflict,
        Kind::Internal => ErrorKind::Internal,
    };
    MachineFailure { kind, message: failure.message, hint: failure.recovery }
}
