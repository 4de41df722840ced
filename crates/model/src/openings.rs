//! What of a container's isolation a person may give up: each thing by its name, none by
//! default.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Openings {
    /// Capabilities that are not dropped, such as `NET_BIND_SERVICE`.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Whether its processes may gain privileges, as by a setuid program.
    #[serde(default)]
    pub new_privileges: bool,
    /// Whether it may write to its root file system and not only to `/tmp` and its volumes.
    #[serde(default)]
    pub writable_root: bool,
    /// Whether it may use every system call, without the engine's seccomp profile.
    #[serde(default)]
    pub all_system_calls: bool,
    /// Directories and files of this machine that it sees.
    #[serde(default)]
    pub mounts: Vec<HostMount>,
}

/// A path of this machine in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostMount {
    /// The path on this machine.
    pub host: String,
    /// The path in the container.
    pub container: String,
    /// Whether it may be written to.
    #[serde(default)]
    pub writable: bool,
}

impl Openings {
    /// Whether nothing is given up.
    pub fn is_closed(&self) -> bool {
        *self == Self::default()
    }
}

/// The capabilities that Linux has, as people write them.
const CAPABILITIES: [&str; 41] = [
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "BPF",
    "CHECKPOINT_RESTORE",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "PERFMON",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "WAKE_ALARM",
];

/// Whether `name` is a capability, with or without `CAP_` in front.
pub fn is_capability(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    CAPABILITIES.binary_search(&name.strip_prefix("CAP_").unwrap_or(&name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_known_with_and_without_its_prefix() {
        assert!(CAPABILITIES.is_sorted());
        for name in ["NET_BIND_SERVICE", "CAP_NET_RAW", "cap_chown", "wake_alarm"] {
            assert!(is_capability(name), "{name}");
        }
        for name in ["ALL", "", "CAP_", "NET-RAW", "--privileged"] {
            assert!(!is_capability(name), "{name}");
        }
    }
}
