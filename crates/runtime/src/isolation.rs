//! What isolation is in force for a process, read back from the system and not from what
//! was asked for.

use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::fs::{StatVfsMountFlags, statvfs};
use serde_json::{Value, json};

use crate::server_cgroup;

/// Capabilities by their number, as in `linux/capability.h`.
const CAPABILITIES: [&str; 41] = [
    "chown",
    "dac_override",
    "dac_read_search",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "linux_immutable",
    "net_bind_service",
    "net_broadcast",
    "net_admin",
    "net_raw",
    "ipc_lock",
    "ipc_owner",
    "sys_module",
    "sys_rawio",
    "sys_chroot",
    "sys_ptrace",
    "sys_pacct",
    "sys_admin",
    "sys_boot",
    "sys_nice",
    "sys_resource",
    "sys_time",
    "sys_tty_config",
    "mknod",
    "lease",
    "audit_write",
    "audit_control",
    "setfcap",
    "mac_override",
    "mac_admin",
    "syslog",
    "wake_alarm",
    "block_suspend",
    "audit_read",
    "perfmon",
    "bpf",
    "checkpoint_restore",
];

/// The means by which the processes of a server are known, and ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A cgroup of its own, beside the subreapers.
    Cgroup,
    /// Subreapers and an inherited resource limit.
    Subreaper,
}

impl Containment {
    /// The name in the server object.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cgroup => "cgroup",
            Self::Subreaper => "subreaper",
        }
    }
}

/// The cgroup below which this process can make one per server, or the reason why it cannot;
/// then subreapers contain servers. Makes a cgroup and removes it.
pub fn containment() -> io::Result<PathBuf> {
    server_cgroup::probe()
}

/// What holds for `pid`; null where it is gone.
pub(crate) fn read(pid: u32) -> Value {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
        return Value::Null;
    };
    let read_only = statvfs(format!("/proc/{pid}/root"))
        .map(|root| root.f_flag.contains(StatVfsMountFlags::RDONLY))
        .ok();
    describe(&status, read_only, network(pid))
}

/// Limits are said to be what they are for a plain process: not enforced.
fn describe(status: &str, read_only_root: Option<bool>, network: Option<&str>) -> Value {
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()
    };
    // Four numbers: real, effective, saved, file system. The effective one decides.
    let user = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u32>().ok());
    let seccomp = match field("Seccomp") {
        Some("0") => Some("disabled"),
        Some("1") => Some("strict"),
        Some("2") => Some("filter"),
        _ => None,
    };
    let capabilities = field("CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    json!({
        "runtime": "process",
        "user": user,
        "no_new_privileges": field("NoNewPrivs").map(|value| value == "1"),
        "seccomp": seccomp,
        "capabilities": capabilities.map(capability_names),
        "read_only_root": read_only_root,
        "network": network,
        "memory": "not enforced",
        "cpu": "not enforced",
        "pids": "not enforced",
        "disk": "not enforced",
    })
}

pub(crate) fn capability_names(set: u64) -> Vec<String> {
    let named = |bit: u32| match CAPABILITIES.get(bit as usize) {
        Some(name) => (*name).to_owned(),
        None => format!("capability_{bit}"),
    };
    (0..u64::BITS).filter(|bit| set & (1 << bit) != 0).map(named).collect()
}

/// `host` where it shares our network, `own` where it has another.
fn network(pid: u32) -> Option<&'static str> {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let (ours, its) = (namespace("self")?, namespace(&pid.to_string())?);
    Some(if ours == its { "host" } else { "own" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nUid:\t1000\t1001\t1000\t1000\nCapEff:\t0000000000000021\n\
                          NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";

    #[test]
    fn what_the_kernel_says_is_what_is_told() {
        let told = describe(STATUS, Some(false), Some("host"));
        assert_eq!(told["user"], 1001);
        assert_eq!(told["no_new_privileges"], true);
        assert_eq!(told["seccomp"], "filter");
        assert_eq!(told["capabilities"], json!(["chown", "kill"]));
        assert_eq!(told["memory"], "not enforced");
    }

    #[test]
    fn what_the_kernel_does_not_say_is_not_made_up() {
        let told = describe("", None, None);
        for field in ["user", "no_new_privileges", "seccomp", "capabilities", "network"] {
            assert_eq!(told[field], Value::Null, "{field}");
        }
    }

    #[test]
    fn a_process_that_is_gone_has_no_isolation() {
        assert_eq!(read(u32::MAX), Value::Null);
        assert_eq!(read(std::process::id())["network"], "host");
    }
}
