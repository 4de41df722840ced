//! What the daemon shows and does not do itself: the environments of this user and the programs
//! of this machine. Whoever starts the daemon hands it in.

use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;
use cofer_model::{
    EnvironmentDestroyed, EnvironmentDiff, EnvironmentList, EnvironmentLog, ErrorKind, HostView,
    SecretDecision, SecretList,
};

/// Which environment is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentRef {
    /// Its id.
    pub id: String,
    /// Its repository; needed where two have an environment of that id.
    pub repository: Option<PathBuf>,
}

/// Why something about an environment was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MachineFailure {
    /// The sort of failure.
    pub kind: ErrorKind,
    /// What was attempted and why it failed.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

/// See the module.
#[async_trait]
pub trait Machine: Debug + Send + Sync + 'static {
    /// All environments, by repository.
    async fn environments(&self) -> EnvironmentList;

    /// What was done in an environment.
    async fn log(&self, of: EnvironmentRef) -> Result<EnvironmentLog, MachineFailure>;

    /// What an environment changed.
    async fn diff(&self, of: EnvironmentRef) -> Result<EnvironmentDiff, MachineFailure>;

    /// Takes an environment away, with its branch where `force` asks for that. Goes on to its
    /// end where nobody waits for it any more.
    async fn destroy(
        &self,
        of: EnvironmentRef,
        force: bool,
    ) -> Result<EnvironmentDestroyed, MachineFailure>;

    /// Approves or revokes a secret that a repository asks for.
    async fn decide_secret(&self, decision: SecretDecision) -> Result<SecretList, MachineFailure>;

    /// The programs of this machine.
    async fn host(&self) -> HostView;

    /// Waits, not for long, until nothing goes on any more.
    async fn close(&self);
}
