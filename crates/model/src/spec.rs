//! What is asked for: the registration of one server, as stored.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ServerName;

/// The identifier given to a server when it is registered.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct ServerId(pub Uuid);

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ServerId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::from_str(text).map(Self)
    }
}

/// Which sort of runtime carries a server; follows from which of `command`, `image`, `url` is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A `command` on this machine.
    Process,
    /// An `image` in a container.
    Container,
    /// A `url` elsewhere.
    Remote,
}

/// What to do when a server that had been ready ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    /// Start it again, whatever its exit code.
    #[default]
    Always,
    /// Start it again unless it exited with 0.
    OnFailure,
    /// Leave it stopped, or in error where it failed.
    Never,
}

/// Who isolates the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// gVisor's `runsc` under Podman.
    Gvisor,
    /// Podman with its usual OCI runtime.
    Podman,
    /// A plain process on this machine.
    Process,
}

/// How many server processes serve the clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// One for all of them.
    #[default]
    Shared,
    /// One for each session.
    PerSession,
}

/// What a container may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// The outside, from a network namespace of its own.
    #[default]
    Egress,
    /// Nothing.
    None,
    /// The host's own network.
    Host,
}

/// Isolation without which a server must not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// gVisor, nothing less.
    Gvisor,
}

/// A container's port and the host's; host 0 lets the system choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortMapping {
    /// The port inside the container.
    pub container: u16,
    /// The port on this machine, 0 for any free one.
    #[serde(default)]
    pub host: u16,
}

/// How often an idle server is asked for a sign of life, and how long it may take to give one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatSpec {
    /// Milliseconds of silence after which a heartbeat is sent; 0 switches heartbeats off.
    #[serde(default = "HeartbeatSpec::default_interval")]
    pub interval_ms: u64,
    /// Milliseconds after which an unanswered heartbeat makes the server `unresponsive`.
    #[serde(default = "HeartbeatSpec::default_timeout")]
    pub timeout_ms: u64,
}

impl HeartbeatSpec {
    const fn default_interval() -> u64 {
        15_000
    }

    const fn default_timeout() -> u64 {
        10_000
    }

    /// The pause between heartbeats, or none where they are off.
    pub fn interval(&self) -> Option<Duration> {
        (self.interval_ms > 0).then(|| Duration::from_millis(self.interval_ms))
    }

    /// How long a heartbeat may stay unanswered.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

impl Default for HeartbeatSpec {
    fn default() -> Self {
        Self { interval_ms: Self::default_interval(), timeout_ms: Self::default_timeout() }
    }
}

/// What a server may use at most, as written by the person who registered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Cores, such as `"0.5"`.
    #[serde(default = "Limits::default_cpu")]
    pub cpu: String,
    /// Bytes of memory, such as `"512M"`.
    #[serde(default = "Limits::default_memory")]
    pub memory: String,
    /// Bytes of writable storage, such as `"1G"`.
    #[serde(default = "Limits::default_disk")]
    pub disk: String,
    /// Processes and threads.
    #[serde(default = "Limits::default_pids")]
    pub pids: u32,
}

impl Limits {
    fn default_cpu() -> String {
        "0.5".to_owned()
    }

    fn default_memory() -> String {
        "512M".to_owned()
    }

    fn default_disk() -> String {
        "1G".to_owned()
    }

    const fn default_pids() -> u32 {
        256
    }

    /// Cores as a number, where `cpu` is one above zero.
    pub fn cores(&self) -> Option<f64> {
        self.cpu.parse().ok().filter(|cores: &f64| cores.is_finite() && *cores > 0.0)
    }

    /// `memory` in bytes.
    pub fn memory_bytes(&self) -> Option<u64> {
        parse_bytes(&self.memory)
    }

    /// `disk` in bytes.
    pub fn disk_bytes(&self) -> Option<u64> {
        parse_bytes(&self.disk)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu: Self::default_cpu(),
            memory: Self::default_memory(),
            disk: Self::default_disk(),
            pids: Self::default_pids(),
        }
    }
}

/// A size such as `512M`, `1G`, `64KiB` or `1048576`; powers of 1024, as Podman reads them.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    let count: u64 = digits.trim().parse().ok()?;
    (count > 0).then_some(())?;
    count.checked_mul(1 << shift)
}

/// One registered server: everything a person decides about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerSpec {
    /// What people call it.
    #[schema(value_type = String)]
    pub name: ServerName,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The program to run, found on PATH or given as a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments, never read by a shell.
    #[serde(default)]
    pub args: Vec<String>,
    /// The working directory of the process; the daemon user's home where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The container image to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The Streamable HTTP endpoint to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether the daemon speaks to it over stdin and stdout.
    #[serde(default = "yes")]
    pub stdio_bridge: bool,
    /// Ports of a container to publish.
    #[serde(default)]
    pub ports: Vec<PortMapping>,
    /// Variables for the server's process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Paths in a container that are kept.
    #[serde(default)]
    pub volumes: Vec<String>,
    /// What it may use at most.
    #[serde(default)]
    pub resource_limits: Limits,
    /// What to do when it ends by itself.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
    /// Who isolates it; chosen by kind where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Whether it should run.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether its resources are offered as tools.
    #[serde(default)]
    pub include_resources: bool,
    /// How long one call may stay unanswered, in milliseconds.
    #[serde(default = "default_call_timeout")]
    pub call_timeout_ms: u64,
    /// How long it may take to become ready, in milliseconds.
    #[serde(default = "default_start_timeout")]
    pub start_timeout_ms: u64,
    /// How many requests it is given at once.
    #[serde(default = "one")]
    pub max_in_flight: u32,
    /// How its liveness is watched.
    #[serde(default)]
    pub heartbeat: HeartbeatSpec,
    /// Whether clients share one process.
    #[serde(default)]
    pub sharing: Sharing,
    /// What a container may reach.
    #[serde(default)]
    pub network: Network,
    /// Isolation without which it must not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require: Option<Requirement>,
}

pub(crate) const fn yes() -> bool {
    true
}

pub(crate) const fn one() -> u32 {
    1
}

pub(crate) const fn default_call_timeout() -> u64 {
    30_000
}

pub(crate) const fn default_start_timeout() -> u64 {
    60_000
}

impl ServerSpec {
    /// Which sort of runtime carries it.
    pub fn kind(&self) -> Kind {
        match (&self.image, &self.url) {
            (Some(_), _) => Kind::Container,
            (None, Some(_)) => Kind::Remote,
            (None, None) => Kind::Process,
        }
    }

    /// How long one call may stay unanswered.
    pub fn call_timeout(&self) -> Duration {
        Duration::from_millis(self.call_timeout_ms)
    }

    /// How long it may take to become ready.
    pub fn start_timeout(&self) -> Duration {
        Duration::from_millis(self.start_timeout_ms)
    }

    /// Whether a change from `self` to `other` needs a new process: all fields do but those
    /// that only describe the server or that the daemon reads at each use.
    pub fn runs_like(&self, other: &Self) -> bool {
        let as_run = |spec: &Self| Self {
            name: self.name.clone(),
            description: None,
            enabled: true,
            include_resources: false,
            restart_policy: RestartPolicy::Always,
            call_timeout_ms: 0,
            ..spec.clone()
        };
        as_run(self) == as_run(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_podman_reads_them() {
        for (text, bytes) in [
            ("1048576", Some(1 << 20)),
            ("512M", Some(512 << 20)),
            ("1g", Some(1 << 30)),
            ("64KiB", Some(64 << 10)),
            ("5mb", Some(5 << 20)),
            ("0", None),
            ("-1", None),
            ("1.5G", None),
            ("much", None),
            ("", None),
            ("99999999999T", None),
        ] {
            assert_eq!(parse_bytes(text), bytes, "{text:?}");
        }
    }

    #[test]
    fn defaults_are_half_a_core_512_mb_and_1_gb() {
        // covers: HST-5.1
        let limits = Limits::default();
        assert_eq!(limits.cores(), Some(0.5));
        assert_eq!(limits.memory_bytes(), Some(512 << 20));
        assert_eq!(limits.disk_bytes(), Some(1 << 30));
    }
}
