//! What is asked for: the registration of one server, as stored.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{CallSource, Limits, MaxInFlight, Openings, RemoteAuth, ServerName};

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

/// The isolation provider of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// gVisor's `runsc` under Podman.
    Gvisor,
    /// A Firecracker microVM. Accepted and answered with `provider_unavailable`: this version has
    /// no launcher for it.
    Firecracker,
    /// A sandbox of the E2B service. Accepted and answered with `provider_unavailable`: this
    /// version has no launcher for it.
    E2b,
    /// A libkrun microVM: the OCI runtime `krun` under Podman. Used only if it is named.
    Krun,
    /// Podman with its usual OCI runtime.
    Podman,
    /// A plain process on this machine.
    Process,
}

impl Provider {
    /// The providers tried for a container whose registration names none, best first. A
    /// container runs with [`Provider::Podman`] if none of them is available.
    pub const PREFERENCE: [Self; 3] = [Self::Gvisor, Self::Firecracker, Self::E2b];

    /// The first of [`Self::PREFERENCE`] that `is_available`, else Podman's own OCI runtime.
    pub fn preferred(is_available: impl Fn(Self) -> bool) -> Self {
        Self::PREFERENCE.into_iter().find(|one| is_available(*one)).unwrap_or(Self::Podman)
    }

    /// Its name in registrations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gvisor => "gvisor",
            Self::Firecracker => "firecracker",
            Self::E2b => "e2b",
            Self::Krun => "krun",
            Self::Podman => "podman",
            Self::Process => "process",
        }
    }
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
    #[schema(minimum = 1)]
    pub container: u16,
    /// The port on this machine, 0 for any free one.
    #[serde(default)]
    pub host: u16,
    /// The address of this machine on which it is published; loopback where none is given, so
    /// that nobody else reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
}

impl PortMapping {
    /// Where it is published.
    pub fn address(&self) -> IpAddr {
        self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}

/// How often an idle server is asked for a sign of life, and how long it may take to give one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatSpec {
    /// Milliseconds of silence after which a heartbeat is sent; 0 switches heartbeats off.
    #[serde(default = "HeartbeatSpec::default_interval")]
    #[schema(maximum = 86_400_000)]
    pub interval_ms: u64,
    /// Milliseconds after which an unanswered heartbeat makes the server `unresponsive`.
    #[serde(default = "HeartbeatSpec::default_timeout")]
    #[schema(minimum = 1, maximum = 86_400_000)]
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

/// One registered server: everything a person decides about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerSpec {
    /// What people call it.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    pub name: ServerName,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Stands in place of its name in the names of its tools, prompts and `ui://` resources where
    /// all servers are joined: `PREFIX__tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 24, pattern = "^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    pub prefix: Option<String>,
    /// The program to run, found on PATH or given as a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments, never read by a shell; for an image, what its entry point is given.
    #[serde(default)]
    pub args: Vec<String>,
    /// The working directory: of a process, the daemon user's home where it is not given; in a
    /// container, what the image says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The container image to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The Streamable HTTP endpoint to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What goes with every request to a remote server, such as `Authorization`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// How requests to a remote server are signed beside that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<RemoteAuth>,
    /// Whom such a signature is for; the URL's origin where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Whether the daemon speaks to it over stdin and stdout.
    #[serde(default = "yes")]
    pub stdio_bridge: bool,
    /// Ports of a container to publish. Without a stdio bridge, the first is the one on which
    /// the server is expected.
    #[serde(default)]
    pub ports: Vec<PortMapping>,
    /// Where on that port it speaks MCP over Streamable HTTP; `/mcp`, then `/` are tried where
    /// it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_path: Option<String>,
    /// Variables for the server's process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Paths in a container that are kept, each on a volume of its own.
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
    /// The tools that agents may see and call; all where it is empty. `*` stands for anything.
    #[serde(default)]
    pub tools_allow: Vec<String>,
    /// The tools that they may not, even where `tools_allow` names them.
    #[serde(default)]
    pub tools_deny: Vec<String>,
    /// How long the server may be silent about a call, in milliseconds. Where it is not given,
    /// 30 s for `POST …/call` and 60 s for the gateway, the chat and the console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub call_timeout_ms: Option<u64>,
    /// How long it may take to become ready, in milliseconds.
    #[serde(default = "default_start_timeout")]
    #[schema(minimum = 1, maximum = 86_400_000)]
    pub start_timeout_ms: u64,
    /// How many requests it is given at once: a number up to 4096, or `auto`: 1, and 8 once it has
    /// answered a request while another was open. The daemon's default where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<MaxInFlight>,
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
    /// Who it is inside its container, `user` or `user:group`; what the image says where it is
    /// not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What of a container's isolation is given up, by name.
    #[serde(default)]
    pub openings: Openings,
}

pub(crate) const fn yes() -> bool {
    true
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

    /// The first part of the names that its tools have where all servers are joined.
    pub fn joined_prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(self.name.as_str())
    }

    /// How long the server may be silent about a call that came by `source`. HST-2.3 wants 30 s of
    /// the API; an agent or a person can wait longer, and many tools take longer.
    pub fn call_timeout(&self, source: CallSource) -> Duration {
        let default = match source {
            CallSource::Api => 30_000,
            CallSource::Console | CallSource::Chat | CallSource::Gateway => 60_000,
        };
        Duration::from_millis(self.call_timeout_ms.unwrap_or(default))
    }

    /// How long it may take to become ready.
    pub fn start_timeout(&self) -> Duration {
        Duration::from_millis(self.start_timeout_ms)
    }

    /// Whether a change from `self` to `other` needs a new process: all fields do but those
    /// that only describe the server or that the daemon reads at each use.
    pub fn runs_like(&self, other: &Self) -> bool {
        Self { name: self.name.clone(), ..other.as_run() } == self.as_run()
    }

    /// SHA-256 of the configuration that a process runs with, in hexadecimal. Specifications that
    /// differ only in their names, or in fields that do not matter to `runs_like`, have the same.
    pub fn run_digest(&self) -> String {
        let mut run = serde_json::to_value(self.as_run()).unwrap_or_default();
        if let Some(fields) = run.as_object_mut() {
            fields.remove("name");
        }
        let digest = Sha256::digest(run.to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The specification with defaults in the fields that do not matter to a running process.
    fn as_run(&self) -> Self {
        Self {
            description: None,
            prefix: None,
            enabled: true,
            include_resources: false,
            tools_allow: Vec::new(),
            tools_deny: Vec::new(),
            restart_policy: RestartPolicy::Always,
            call_timeout_ms: None,
            max_in_flight: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_provider_is_the_first_available_of_gvisor_firecracker_e2b() {
        // covers: HST-5.3
        use Provider::{E2b, Firecracker, Gvisor, Krun, Podman, Process};
        let never = [Krun, Process];
        for (available, expected) in [
            (&[Gvisor, Firecracker, E2b][..], Gvisor),
            (&[Gvisor, E2b], Gvisor),
            (&[Gvisor, Firecracker], Gvisor),
            (&[Gvisor], Gvisor),
            (&[Firecracker, E2b], Firecracker),
            (&[Firecracker], Firecracker),
            (&[E2b], E2b),
            (&[], Podman),
        ] {
            let is_available = |one| available.contains(&one) || never.contains(&one);
            assert_eq!(Provider::preferred(is_available), expected, "{available:?}");
        }
    }

    #[test]
    fn a_call_may_take_as_long_as_its_caller_waits() {
        // covers: HST-2.3
        use CallSource::{Api, Chat, Console, Gateway};
        let body = serde_json::json!({"name": "s", "command": "x"});
        let mut spec: ServerSpec = serde_json::from_value(body).unwrap();
        let seconds = |spec: &ServerSpec| {
            [Api, Console, Chat, Gateway].map(|source| spec.call_timeout(source).as_secs())
        };
        assert_eq!(seconds(&spec), [30, 60, 60, 60]);
        spec.call_timeout_ms = Some(5000);
        assert_eq!(seconds(&spec), [5, 5, 5, 5]);
    }

    #[test]
    fn a_provider_is_named_as_it_is_written() {
        use Provider::{E2b, Firecracker, Gvisor, Krun, Podman, Process};
        for provider in [Gvisor, Firecracker, E2b, Krun, Podman, Process] {
            assert_eq!(serde_json::json!(provider), provider.name());
        }
    }

    #[test]
    fn the_digest_of_a_run_changes_with_all_that_a_process_depends_on() {
        let spec = |body: serde_json::Value| crate::parse_registration(body).unwrap();
        let first = spec(serde_json::json!({"name": "a", "command": "x", "args": ["1"]}));
        let renamed = spec(serde_json::json!({"name": "b", "command": "x", "args": ["1"],
            "description": "d", "enabled": false, "tools_deny": ["y"], "call_timeout_ms": 5}));
        assert!(first.runs_like(&renamed) && first.run_digest() == renamed.run_digest());
        for other in [
            serde_json::json!({"name": "a", "command": "x", "args": ["2"]}),
            serde_json::json!({"name": "a", "command": "x", "args": ["1"], "environment": {"K": "v"}}),
        ] {
            let other = spec(other);
            assert!(!first.runs_like(&other) && first.run_digest() != other.run_digest());
        }
    }
}
