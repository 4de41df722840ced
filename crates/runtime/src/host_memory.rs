//! How much memory this process may use at most: that of the machine, or what its control group
//! and the groups above it allow, if that is less.

use std::fs;
use std::path::{Path, PathBuf};

/// For a machine whose memory cannot be read.
const UNKNOWN: u64 = 4 << 30;

/// The memory in bytes. Reads `/proc` and `/sys/fs/cgroup`.
pub fn host_memory() -> u64 {
    let read = |path: &Path| fs::read_to_string(path).ok();
    find(Path::new("/"), read)
}

fn find(root: &Path, read: impl Fn(&Path) -> Option<String>) -> u64 {
    let physical = read(&root.join("proc/meminfo")).as_deref().and_then(total);
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|path| {
        // `max` in version 2; version 1 writes a number beyond any memory.
        read(&root.join(path))?.trim().parse::<u64>().ok()
    });
    limits.chain(physical).min().unwrap_or(UNKNOWN)
}

/// `MemTotal` of `/proc/meminfo`, which is in KiB.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The files with the limits of the groups that `/proc/self/cgroup` names, and of those above
/// them. In a container that sees its own group as the root, that is the file at the root.
fn limit_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        files.extend(path.ancestors().map(|group| Path::new(mount).join(group).join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn memory(files: &[(&str, &str)]) -> u64 {
        let files: HashMap<PathBuf, &str> =
            files.iter().map(|(path, text)| (PathBuf::from(path), *text)).collect();
        find(Path::new("/"), |path| files.get(path).map(|text| (*text).to_owned()))
    }

    #[test]
    fn the_lowest_limit_counts() {
        let machine = ("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\n");
        assert_eq!(memory(&[machine]), 8_192_000_000);
        let v2 = ("/proc/self/cgroup", "0::/user.slice/cofer.service\n");
        let max = ("/sys/fs/cgroup/user.slice/cofer.service/memory.max", "max\n");
        assert_eq!(memory(&[machine, v2, max]), 8_192_000_000);
        let above = ("/sys/fs/cgroup/user.slice/memory.max", "2147483648\n");
        assert_eq!(memory(&[machine, v2, max, above]), 2 << 30);
        let v1 = ("/proc/self/cgroup", "5:cpu,memory:/docker/x\n0::/\n");
        let none = ("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(memory(&[machine, v1, none]), 8_192_000_000);
        let namespaced = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
        assert_eq!(memory(&[machine, v1, namespaced]), 512 << 20);
        assert_eq!(memory(&[]), UNKNOWN);
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = host_memory();
        assert!((64 << 20..1 << 50).contains(&memory), "{memory}");
    }
}
