//! What is true of a server: its status, how it ended, why it failed, what it uses.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The seven states of a server, as everybody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not running, and not wanted to.
    Stopped,
    /// On its way to its first readiness since it was switched on.
    Starting,
    /// Running, and answered the handshake.
    Ready,
    /// Running, but silent for too long.
    Unresponsive,
    /// Ended by itself or by a restart request, and about to run again.
    Restarting,
    /// On its way to `stopped`.
    Stopping,
    /// Failed to start, or ended and is not to be restarted.
    Error,
}

impl Status {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Unresponsive => "unresponsive",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Error => "error",
        }
    }

    /// Whether no more is to come without somebody asking: what `?wait=` waits for.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Stopped | Self::Ready | Self::Unresponsive | Self::Error)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether something of the server runs: HST-4.1's coarser word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessStatus {
    /// It has a process.
    Running,
    /// It has none.
    Stopped,
    /// It has none now and will have one by itself.
    Restarting,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Exit {
    /// Its exit code, where it exited.
    pub code: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
}

impl Exit {
    /// Whether it exited with 0.
    pub fn is_success(self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => write!(f, "was ended by {}", signal_name(signal)),
            (None, None) => f.write_str("ended in an unknown way"),
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}

/// Why a server is in `error`, in words a program can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The program is not there.
    CommandNotFound,
    /// The program is there and could not be run.
    SpawnFailed,
    /// The process ended before it was ready.
    ExitedEarly,
    /// It ran and did not complete the handshake in time.
    StartTimeout,
    /// It answered the handshake with an error, or with something that is not MCP.
    HandshakeFailed,
    /// It ended after it had been ready, and is not to be restarted.
    Crashed,
    /// The kernel ended it because it used more memory than its limit.
    OutOfMemory,
    /// The container engine is not installed or does not work; it is tried again by itself.
    EngineUnavailable,
    /// It wrote more than its limit.
    DiskFull,
    /// The image is not on this machine.
    ImageMissing,
    /// There is no such image.
    ImageNotFound,
    /// The registry wants a login.
    LoginRequired,
    /// The image could not be fetched.
    ImagePullFailed,
    /// The required isolation (`require`) is not available.
    IsolationUnavailable,
    /// The provider named in `provider` is not available; the message has the reason.
    ProviderUnavailable,
    /// A port that was asked for is taken.
    PortInUse,
    /// The container could not be made or started.
    ContainerFailed,
    /// The remote server could not be reached.
    Unreachable,
    /// No trusted TLS connection to the remote server came about.
    TlsFailed,
    /// The remote server wants to know who asks, and did not take what it was told for proof.
    Unauthorized,
    /// The remote server knows who asks, and does not let them in.
    Forbidden,
    /// Nothing is served at the remote server's URL.
    EndpointNotFound,
    /// The remote server answered with another HTTP status that is no success.
    HttpError,
    /// There is nothing to sign requests to the remote server with.
    CredentialsMissing,
    /// The server is the gateway of a Cofer daemon and leads back to this daemon.
    Cycle,
    /// The daemon lost the ownership of its database; the server starts again once it has it back.
    StoreUnavailable,
    /// Something on our side.
    Internal,
}

/// Why a server is in `error`, for people: what happened, what to do, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// The sort of failure.
    pub kind: FailureKind,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// The exit code, where it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The end of what it wrote to stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// How well a server does; the reasons stand beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Nothing to say.
    Ok,
    /// Somebody should look.
    Warning,
}

/// What a server's whole process tree uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Share of one core since the last look, in percent.
    pub cpu_percent: f64,
    /// Resident memory of the tree.
    pub memory_bytes: u64,
    /// Processes in the tree.
    pub pids: u32,
    /// Bytes written to storage of its own, where that is measured.
    pub disk_bytes: Option<u64>,
}

/// What the handshake told about a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerInfo {
    /// The protocol revision in use with it.
    pub protocol_version: String,
    /// Its capabilities, as it sent them.
    pub capabilities: Value,
    /// Its name and version, as it sent them.
    pub server_info: Value,
    /// Its instructions for models.
    pub instructions: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_reads_as_a_sentence() {
        assert_eq!(Exit { code: Some(3), signal: None }.to_string(), "exited with code 3");
        assert_eq!(Exit { code: None, signal: Some(9) }.to_string(), "was ended by SIGKILL");
        assert_eq!(Exit { code: None, signal: Some(40) }.to_string(), "was ended by signal 40");
    }

    #[test]
    fn the_word_in_json_is_the_word_in_rust() {
        for status in [
            Status::Stopped,
            Status::Starting,
            Status::Ready,
            Status::Unresponsive,
            Status::Restarting,
            Status::Stopping,
            Status::Error,
        ] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }
}
