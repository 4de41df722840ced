//! What isolation is in force for a container: from the kernel where it can see the container's
//! own processes, and from the configuration its runtime was given for what it cannot see: what
//! is inside a sandbox, and where mounts come from. Never from what was asked for.

use std::fs;

use serde_json::Value;

use super::bundle::{Bundle, Mount};
use super::cgroup::Cgroup;
use crate::isolation as process;

/// What is looked at.
pub(crate) struct Subject<'a> {
    pub(crate) pid: u32,
    /// Whether the process is a sandbox around the container's processes.
    pub(crate) is_sandbox: bool,
    pub(crate) provider: &'a str,
    /// The program that conmon runs it by.
    pub(crate) runtime: Option<&'a str>,
    pub(crate) cgroup: &'a Cgroup,
    pub(crate) bundle: Option<&'a Bundle>,
    /// The limit that its disk is held to.
    pub(crate) disk: Option<DiskLimit>,
}

/// How what a container writes is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskLimit {
    /// It can write to nothing that lies on a disk.
    NothingToWriteTo,
    /// It is ended when it has written more.
    Watched(u64),
    /// The storage refuses more in its layer; its volumes are watched.
    Quota(u64),
}

const NOT_ENFORCED: &str = "not enforced";

/// What holds now; null where the container has ended.
pub(crate) fn read(subject: &Subject<'_>) -> Value {
    let mut facts = process::read(subject.pid);
    if facts.is_null() {
        return facts;
    }
    facts["provider"] = subject.provider.into();
    facts["runtime"] = subject.runtime.into();
    if subject.is_sandbox {
        // The kernel sees the sandbox, and shows that it filters its own system calls.
        describe_inside(&mut facts, subject.bundle);
    } else {
        facts["user"] = inner_user(subject.pid, facts["user"].as_u64()).into();
    }
    facts["network"] = network(subject.pid, facts["network"].as_str()).into();
    let cgroup = subject.cgroup;
    facts["memory"] = enforced(cgroup.memory_limit());
    facts["cpu"] = enforced(cgroup.cpu_limit());
    facts["pids"] = enforced(cgroup.pids_limit());
    let (disk, by) = disk(subject.disk);
    facts["disk"] = disk;
    facts["disk_enforced_by"] = by.into();
    let mounts = subject.bundle.map(Bundle::mounts);
    facts["mounts"] = mounts.map(|all| all.iter().map(Mount::to_json).collect::<Value>()).into();
    facts
}

fn enforced(limit: Option<impl Into<Value>>) -> Value {
    limit.map_or_else(|| NOT_ENFORCED.into(), Into::into)
}

/// What a sandbox enforces on what runs in it; null where that is not known.
fn describe_inside(facts: &mut Value, bundle: Option<&Bundle>) {
    facts["capabilities"] = bundle.map(Bundle::capabilities).into();
    facts["no_new_privileges"] = bundle.map(Bundle::no_new_privileges).into();
    facts["read_only_root"] = bundle.map(Bundle::read_only_root).into();
    facts["user"] = bundle.and_then(Bundle::user).into();
}

/// The user as the container numbers it.
fn inner_user(pid: u32, outer: Option<u64>) -> Option<u64> {
    let map = fs::read_to_string(format!("/proc/{pid}/uid_map")).ok()?;
    mapped(&map, outer?)
}

fn mapped(map: &str, outer: u64) -> Option<u64> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
        let (inner, start, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let at = outer.checked_sub(start)?;
        (at < count).then_some(inner + at)
    })
}

/// `none` where its namespace has nothing but a loopback.
fn network(pid: u32, namespace: Option<&str>) -> Option<&'static str> {
    if namespace? == "host" {
        return Some("host");
    }
    let devices = fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    let mut names = devices.lines().skip(2).filter_map(|line| line.split(':').next());
    Some(if names.any(|name| name.trim() != "lo") { "egress" } else { "none" })
}

fn disk(limit: Option<DiskLimit>) -> (Value, Option<&'static str>) {
    match limit {
        Some(DiskLimit::NothingToWriteTo) => {
            (0.into(), Some("it can write to nothing but tmpfs, which counts as memory"))
        }
        Some(DiskLimit::Watched(limit)) => {
            (limit.into(), Some("a watch, which ends it when it has written more"))
        }
        Some(DiskLimit::Quota(limit)) => {
            (limit.into(), Some("the storage's quota for its root, a watch for its volumes"))
        }
        None => (NOT_ENFORCED.into(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::podman::bundle::tests::bundle;
    use serde_json::json;

    #[test]
    fn a_user_is_told_by_the_containers_own_number() {
        let map = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(mapped(map, 1000), Some(0));
        assert_eq!(mapped(map, 100_999), Some(1000));
        assert_eq!(mapped(map, 5), None);
        assert_eq!(mapped("0 0 4294967295\n", 33), Some(33));
    }

    #[test]
    fn inside_a_sandbox_the_configuration_in_force_tells() {
        let mut facts = json!({"capabilities": ["sys_admin"], "seccomp": "filter", "user": 0});
        describe_inside(&mut facts, Some(&bundle(true)));
        assert_eq!(facts["capabilities"], json!(["chown"]));
        assert_eq!(facts["user"], 7);
        assert_eq!(facts["no_new_privileges"], true);
        assert_eq!(facts["read_only_root"], true);
        assert_eq!(facts["seccomp"], "filter");
        describe_inside(&mut facts, None);
        for field in ["capabilities", "no_new_privileges", "read_only_root", "user"] {
            assert!(facts[field].is_null(), "{field}");
        }
    }

    #[test]
    fn what_does_not_hold_is_said_not_to() {
        let subject = Subject {
            pid: std::process::id(),
            is_sandbox: false,
            provider: "podman",
            runtime: Some("runc"),
            cgroup: &Cgroup::default(),
            bundle: None,
            disk: None,
        };
        let told = read(&subject);
        for limit in ["memory", "cpu", "pids", "disk"] {
            assert_eq!(told[limit], NOT_ENFORCED, "{limit}");
        }
        assert_eq!((&told["network"], &told["mounts"]), (&json!("host"), &Value::Null));
        assert_eq!(read(&Subject { pid: u32::MAX, ..subject }), Value::Null);
    }
}
