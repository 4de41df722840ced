//! What the HTTP API shows of environments and of the machine they are made on.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

/// Every repository in which environments were used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentList {
    /// Sorted by path.
    pub repositories: Vec<RepositoryView>,
}

/// One repository and its environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RepositoryView {
    /// Its working tree: what tells two environments of the same id apart.
    pub path: String,
    /// Sorted by id.
    pub environments: Vec<EnvironmentView>,
    /// The secrets that its environment.json asks for, and those that were approved before.
    #[serde(default)]
    pub secrets: Vec<SecretView>,
    /// Why it could not be looked into, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RepositoryError>,
}

/// One secret that a repository asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretView {
    /// The variable that commands in environments get.
    pub name: String,
    /// `env://VARIABLE` or `file://PATH`, as the repository writes it.
    pub reference: String,
    /// The file that the reference leads to, through all links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the user has approved it.
    pub state: SecretState,
}

/// Whether the user has approved a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecretState {
    /// Approved: commands get it.
    Allowed,
    /// Not approved: environments of the repository are refused.
    Pending,
    /// Not approved, while another reference or file was approved for this name.
    Changed,
    /// Approved, and no longer asked for.
    Unused,
}

/// The user's decision on one secret of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretDecision {
    /// The repository's path, as the list of environments has it.
    pub repository: String,
    /// The secret's name.
    pub name: String,
    /// The reference that was shown: if the repository asks for another one by now, nothing is done.
    pub reference: String,
    /// Whether commands in its environments get the secret.
    pub allow: bool,
}

/// The secrets of a repository after a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretList {
    /// In the order of the repository's environment.json.
    pub secrets: Vec<SecretView>,
}

/// Why a repository could not be looked into.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RepositoryError {
    /// What was attempted and why it failed.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

/// One environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentView {
    /// Its id, unique in its repository.
    pub id: String,
    /// What it was made for.
    pub title: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// How it is.
    pub state: EnvironmentState,
    /// The branch with its work, as git in the repository resolves it.
    pub branch: String,
    /// Its container's image.
    pub image: String,
    /// Its files.
    pub worktree: String,
    /// Its container's name.
    pub container: String,
    /// Its container's id, once it had one.
    pub container_id: Option<String>,
    /// The isolation in force in its container, read from the kernel; absent if it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub isolation: Option<serde_json::Value>,
    /// Ports on which commands in the background answer.
    pub ports: Vec<EnvironmentPort>,
    /// Its last commands, the newest first.
    pub commands: Vec<EnvironmentCommand>,
}

/// How an environment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentState {
    /// Its container runs.
    Running,
    /// Its container does not run; the next command starts it again.
    Stopped,
    /// It is being made.
    Creating,
    /// It is being taken away.
    Destroying,
    /// Whoever made it or took it away died over it.
    Unfinished,
}

/// A port in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentPort {
    /// The port in the container.
    pub container: u16,
    /// The port on which it answers on this machine's loopback address.
    pub host: u16,
}

/// A command that was run in an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentCommand {
    /// Its beginning, cut off where it is long.
    pub command: String,
    /// When it ended; for one in the background, when it was started.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Whether it goes on while others run.
    pub background: bool,
    /// Whether it runs now.
    pub running: bool,
    /// How it ended; nothing where it runs, was ended by us, or went with its container.
    pub exit_code: Option<i32>,
    /// The sort of failure, where it did not come to an end of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What was done in an environment, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentLog {
    /// One for each commit since its beginning.
    pub steps: Vec<EnvironmentStep>,
    /// Whether there are more than are told.
    pub truncated: bool,
}

/// One commit of an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentStep {
    /// The commit.
    pub commit: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The first line of its message.
    pub subject: String,
    /// The command that changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// How that command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// What an environment changed since its beginning, as far as it is committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentDiff {
    /// The files that differ.
    pub files: Vec<ChangedFile>,
    /// As `git diff` writes it.
    pub text: String,
    /// Whether there is more than is told.
    pub truncated: bool,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedFile {
    /// Its path in the repository.
    pub path: String,
    /// Lines that were added; nothing where it is binary.
    pub added: Option<u64>,
    /// Lines that were removed; nothing where it is binary.
    pub removed: Option<u64>,
}

/// What was taken away with an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentDestroyed {
    /// The environment.
    pub environment_id: String,
    /// The paths that are gone.
    pub removed_paths: Vec<String>,
    /// The ids of the containers that were removed.
    pub stopped_containers: Vec<String>,
    /// How what ran in it ended: `graceful`, `forced` or `already_stopped`.
    pub termination: String,
    /// What should be known although it succeeded.
    pub warnings: Vec<String>,
    /// Whether the branch with its work is still there.
    pub branch_kept: bool,
}

/// The programs that servers and environments are commonly run with, as the daemon finds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostView {
    /// The daemon's `PATH`.
    pub path: String,
    /// In a fixed order.
    pub programs: Vec<ProgramView>,
    /// The isolation providers for containers: in the order in which they are preferred, then
    /// those used only if they are named, then the fallback.
    #[serde(default)]
    pub providers: Vec<IsolationProviderView>,
}

/// An isolation provider for containers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IsolationProviderView {
    /// Its name in registrations.
    pub name: String,
    /// Whether its program is installed.
    pub installed: bool,
    /// Whether it can run containers on this machine.
    pub available: bool,
    /// Why it is not available.
    pub reason: Option<String>,
    /// Its OCI runtime with its flags, if it is available.
    pub runtime: Option<String>,
}

/// A program of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProgramView {
    /// What it is called.
    pub name: String,
    /// What it is good for, such as `runs servers written in Python`.
    pub purpose: String,
    /// Where it is; nothing where it is not on `PATH`.
    pub path: Option<String>,
    /// What it says about its version; nothing where it does not run.
    pub version: Option<String>,
}
