//! The isolation in force for a container that this process did not start, such as that of an
//! environment: found by its pid, verified by its id, read from the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::bundle::Bundle;
use super::cgroup::Cgroup;
use super::info::Info;
use super::isolation::{self, Subject};
use super::shortfall;
use super::witness::Witness;
use crate::isolation::capability_names;

/// A container that may be running.
#[derive(Debug, Clone, Copy)]
pub struct RunningContainer<'a> {
    /// Its first process; the kernel may have given the number to another process since.
    pub pid: u32,
    /// Its id, by which its first process is verified.
    pub id: &'a str,
    /// Mount points in the container whose flags are reported.
    pub mount_points: &'a [&'a str],
    /// The limit of its disk in bytes, and who enforces it.
    pub disk: Option<(u64, &'a str)>,
}

/// The isolation in force; null if the container does not run.
pub fn effective_isolation(container: &RunningContainer<'_>) -> Value {
    let &RunningContainer { pid, id, .. } = container;
    let witness = Witness::of(pid, id);
    if witness.handle.is_none() {
        return Value::Null;
    }
    let bundle = witness.bundle.as_deref().and_then(|path| Bundle::read(path, id));
    let is_sandbox = witness.is_sandbox == Some(true);
    let subject = Subject {
        pid,
        is_sandbox,
        provider: if is_sandbox { "gvisor" } else { "podman" },
        runtime: witness.runtime.as_deref(),
        cgroup: &Cgroup::of(pid),
        bundle: bundle.as_ref(),
        disk: None,
    };
    let mut facts = isolation::read(&subject);
    if facts.is_null() {
        return facts;
    }
    if let Some((bytes, by)) = container.disk {
        facts["disk"] = bytes.into();
        facts["disk_enforced_by"] = by.into();
    }
    facts["user_namespace"] = has_user_namespace(pid).into();
    facts["capability_bounding_set"] = match is_sandbox {
        true => facts["capabilities"].clone(),
        false => bounding_set(pid).into(),
    };
    // A sandbox mounts for itself; this kernel does not see those mounts.
    let flags = (!is_sandbox).then(|| mount_flags(pid, container.mount_points));
    facts["mount_flags"] = json!(flags);
    facts
}

/// One sentence for each reason why CPU, memory or pids are not limited, by the isolation in
/// force.
pub fn limit_warnings(info: &Info, isolation: &Value) -> Vec<String> {
    shortfall::of_limits(info, |controller| isolation[controller].is_number())
}

/// The directory of this machine that holds what a running container wrote to its root.
pub fn writable_layer(pid: u32, id: &str) -> Option<PathBuf> {
    let witness = Witness::of(pid, id);
    Bundle::read(witness.bundle.as_deref()?, id)?.layer()
}

/// Whether its user ids are not this machine's.
fn has_user_namespace(pid: u32) -> Option<bool> {
    let map = fs::read_to_string(format!("/proc/{pid}/uid_map")).ok()?;
    let words: Vec<&str> = map.split_ascii_whitespace().collect();
    Some(words != ["0", "0", "4294967295"])
}

fn bounding_set(pid: u32) -> Option<Vec<String>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let hex = status.lines().find_map(|line| line.strip_prefix("CapBnd:"))?;
    Some(capability_names(u64::from_str_radix(hex.trim(), 16).ok()?))
}

/// Which of `nosuid`, `nodev`, `noexec` and `ro` each mount has.
fn mount_flags(pid: u32, points: &[&str]) -> BTreeMap<String, Vec<String>> {
    let mountinfo = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let of = |point: &&str| Some(((*point).to_owned(), flags_in(&mountinfo, point)?));
    points.iter().filter_map(of).collect()
}

/// The flags of the last mount on `point`, which covers those before it (proc(5), mountinfo).
fn flags_in(mountinfo: &str, point: &str) -> Option<Vec<String>> {
    let line = mountinfo.lines().rfind(|line| {
        line.split(' ').nth(4).is_some_and(|field| unescaped(field) == point.as_bytes())
    })?;
    let options = line.split(' ').nth(5)?.split(',');
    let flags = options.filter(|flag| matches!(*flag, "nosuid" | "nodev" | "noexec" | "ro"));
    Some(flags.map(str::to_owned).collect())
}

/// The kernel writes space, tab, line feed and backslash as three octal digits.
fn unescaped(field: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| byte == b'\\' && digits.is_ascii());
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(number) => {
                out.push(number);
                rest = &after[3..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        36 35 0:40 / / rw,relatime master:1 - overlay overlay rw\n\
        37 36 0:41 / /workdir rw,relatime - ext4 /dev/vda rw\n\
        38 36 0:42 / /workdir rw,nosuid,nodev,relatime - overlay cofer rw,lowerdir=/a\n\
        39 36 0:43 / /a\\040b ro,relatime - ext4 /dev/vda rw\n";

    #[test]
    fn flags_are_those_of_the_mount_on_top() {
        assert_eq!(flags_in(MOUNTS, "/workdir").unwrap(), ["nosuid", "nodev"]);
        assert_eq!(flags_in(MOUNTS, "/a b").unwrap(), ["ro"]);
        assert_eq!(flags_in(MOUNTS, "/").unwrap(), Vec::<String>::new());
        assert_eq!(flags_in(MOUNTS, "/no"), None);
    }

    #[test]
    fn a_process_that_is_not_the_containers_has_no_isolation() {
        let id = "0".repeat(64);
        let pid = std::process::id();
        let container = RunningContainer { pid, id: &id, mount_points: &[], disk: None };
        assert_eq!(effective_isolation(&container), Value::Null);
    }

    #[test]
    fn this_process_has_a_bounding_set() {
        assert!(bounding_set(std::process::id()).is_some());
        assert_eq!(bounding_set(u32::MAX), None);
    }
}
