//! A container's cgroups, of version 1 and 2: what it uses, which limits are in force, and
//! whether the kernel killed it for memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::cgroups::{mount_of, path_of};

/// The directories of one container, by controller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cgroup {
    memory: Option<Place>,
    cpu: Option<Place>,
    /// Where processor time is counted, which version 1 does elsewhere.
    cpuacct: Option<Place>,
    pids: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// What is counted here is the whole container's.
    path: PathBuf,
    /// The part of it below, where its processes are, where that is another.
    inner: Option<PathBuf>,
    unified: bool,
}

impl Place {
    fn read(&self, old: &str, new: &str) -> Option<String> {
        read(&self.path, if self.unified { new } else { old })
    }

    fn number(&self, old: &str, new: &str) -> Option<u64> {
        self.read(old, new)?.trim().parse().ok()
    }

    /// The limits that `read` finds. Some runtimes set one on the whole, some on the part below,
    /// and each of them holds.
    fn limits<T>(&self, read: impl Fn(&Path) -> Option<T>) -> impl Iterator<Item = T> {
        [Some(&self.path), self.inner.as_ref()].into_iter().flatten().filter_map(move |at| read(at))
    }

    /// The lowest limit in a file of one number.
    fn lowest(&self, old: &str, new: &str) -> Option<u64> {
        let name = if self.unified { new } else { old };
        self.limits(|at| read(at, name)?.trim().parse().ok()).min()
    }
}

fn read(directory: &Path, name: &str) -> Option<String> {
    fs::read_to_string(directory.join(name)).ok()
}

impl Cgroup {
    /// The cgroups that `pid` is in; those it shares with this process limit others too and
    /// are none of its own.
    pub(crate) fn of(pid: u32) -> Self {
        let read = |path: String| fs::read_to_string(path).unwrap_or_default();
        Self::parse(
            &read(format!("/proc/{pid}/cgroup")),
            &read("/proc/self/cgroup".to_owned()),
            &read("/proc/self/mountinfo".to_owned()),
        )
    }

    fn parse(its: &str, ours: &str, mounts: &str) -> Self {
        let find = |controller: &str| {
            let (path, unified) = path_of(its, controller)?;
            if Some((path, unified)) == path_of(ours, controller) {
                return None;
            }
            let own = mount_of(mounts, controller, unified)?.directory(path)?;
            let path = whole(&own);
            let inner = (path != own).then_some(own);
            Some(Place { path, inner, unified })
        };
        Self {
            memory: find("memory"),
            cpu: find("cpu"),
            cpuacct: find("cpuacct").or_else(|| find("cpu").filter(|place| place.unified)),
            pids: find("pids"),
        }
    }

    /// Processor time used, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Option<u64> {
        let place = self.cpuacct.as_ref()?;
        if place.unified {
            return field(&place.read("", "cpu.stat")?, "usage_usec");
        }
        Some(place.number("cpuacct.usage", "")? / 1000)
    }

    /// Memory in use, without what the kernel only keeps because nobody else needs it.
    pub(crate) fn memory(&self) -> Option<u64> {
        let place = self.memory.as_ref()?;
        let used = place.number("memory.usage_in_bytes", "memory.current")?;
        let stat = place.read("memory.stat", "memory.stat").unwrap_or_default();
        let name = if place.unified { "inactive_file" } else { "total_inactive_file" };
        Some(used.saturating_sub(field(&stat, name).unwrap_or(0)))
    }

    /// Processes and threads.
    pub(crate) fn pids(&self) -> Option<u64> {
        self.pids.as_ref()?.number("pids.current", "pids.current")
    }

    /// How often the kernel killed something in it because its memory was used up.
    pub(crate) fn oom_kills(&self) -> Option<u64> {
        let place = self.memory.as_ref()?;
        field(&place.read("memory.oom_control", "memory.events")?, "oom_kill")
    }

    /// The file of its kills, which the kernel tells the changes of; with version 2 only.
    pub(crate) fn memory_events(&self) -> Option<File> {
        let place = self.memory.as_ref().filter(|place| place.unified)?;
        File::open(place.path.join("memory.events")).ok()
    }

    /// Whether a limit is in force that `controller` enforces.
    pub(crate) fn has_limit(&self, controller: &str) -> bool {
        match controller {
            "memory" => self.memory_limit().is_some(),
            "cpu" => self.cpu_limit().is_some(),
            "pids" => self.pids_limit().is_some(),
            _ => false,
        }
    }

    /// The limit of memory in force, in bytes.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        let bytes = self.memory.as_ref()?.lowest("memory.limit_in_bytes", "memory.max")?;
        // Version 1 has a number near the largest for "none".
        (bytes < 1 << 60).then_some(bytes)
    }

    /// The limit of processor time in force, in cores.
    pub(crate) fn cpu_limit(&self) -> Option<f64> {
        let place = self.cpu.as_ref()?;
        place.limits(|at| cores(at, place.unified)).min_by(f64::total_cmp)
    }

    /// The limit of processes and threads in force.
    pub(crate) fn pids_limit(&self) -> Option<u64> {
        self.pids.as_ref()?.lowest("pids.max", "pids.max")
    }
}

/// The limit of processor time that a directory sets.
fn cores(at: &Path, unified: bool) -> Option<f64> {
    let (quota, period) = if unified {
        let text = read(at, "cpu.max")?;
        let (quota, period) = text.trim().split_once(' ')?;
        (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
    } else {
        let number = |name| read(at, name)?.trim().parse::<f64>().ok();
        (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// crun puts the container one level below the cgroup that Podman has made for it.
fn whole(path: &Path) -> PathBuf {
    let is_below = path.file_name().is_some_and(|name| name == "container");
    let of_podman = |parent: &&Path| {
        parent.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with("libpod-"))
    };
    match path.parent().filter(of_podman) {
        Some(parent) if is_below => parent.to_owned(),
        _ => path.to_owned(),
    }
}

/// The number behind `name` in lines of a name and a number.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD_MOUNTS: &str = "\
30 29 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
31 29 0:27 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
33 29 0:29 /here /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n\
34 29 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn cgroups_of_version_1_are_found_by_controller() {
        let its = "4:memory:/here/libpod-1\n2:cpuacct:/libpod-1\n1:cpu:/libpod-1\n0::/libpod-1\n";
        let cgroup = Cgroup::parse(its, "4:memory:/here\n2:cpuacct:/\n1:cpu:/\n0::/\n", OLD_MOUNTS);
        let place = |path: &str| Some(Place { path: path.into(), inner: None, unified: false });
        assert_eq!(cgroup.memory, place("/sys/fs/cgroup/memory/libpod-1"));
        assert_eq!(cgroup.cpu, place("/sys/fs/cgroup/cpu/libpod-1"));
        assert_eq!(cgroup.cpuacct, place("/sys/fs/cgroup/cpuacct/libpod-1"));
        assert_eq!(cgroup.pids, None);
    }

    #[test]
    fn cgroups_of_version_2_are_found_whole() {
        let mounts = "34 29 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let its = "0::/user.slice/libpod-1.scope/container\n";
        let cgroup = Cgroup::parse(its, "0::/user.slice\n", mounts);
        let expected = Some(Place {
            path: "/sys/fs/cgroup/user.slice/libpod-1.scope".into(),
            inner: Some("/sys/fs/cgroup/user.slice/libpod-1.scope/container".into()),
            unified: true,
        });
        for found in [&cgroup.memory, &cgroup.cpu, &cgroup.cpuacct, &cgroup.pids] {
            assert_eq!(*found, expected);
        }
    }

    #[test]
    fn a_cgroup_that_is_shared_with_us_is_not_its_own() {
        let same = "4:memory:/here\n1:cpu:/\n";
        assert_eq!(Cgroup::parse(same, same, OLD_MOUNTS), Cgroup::default());
        assert_eq!(Cgroup::parse("", "", ""), Cgroup::default());
    }

    #[test]
    fn limits_and_kills_are_read_in_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let cgroup = |unified| {
            let place = Some(Place { path: dir.path().to_owned(), inner: None, unified });
            Cgroup {
                memory: place.clone(),
                cpu: place.clone(),
                cpuacct: place.clone(),
                pids: place,
            }
        };
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "100000\n");
        write("pids.max", "max\n");
        write("cpuacct.usage", "5000000\n");
        let old = cgroup(false);
        assert_eq!(old.oom_kills(), Some(2));
        assert_eq!((old.memory_limit(), old.cpu_limit(), old.pids_limit()), (None, None, None));
        assert!(!["memory", "cpu", "pids"].iter().any(|name| old.has_limit(name)));
        assert_eq!(old.cpu_micros(), Some(5000));

        write("memory.events", "low 0\noom 3\noom_kill 1\noom_group_kill 0\n");
        write("memory.max", "536870912\n");
        write("memory.current", "1000\n");
        write("memory.stat", "anon 1\ninactive_file 400\n");
        write("cpu.max", "50000 100000\n");
        write("cpu.stat", "usage_usec 77\n");
        write("pids.max", "256\n");
        let new = cgroup(true);
        assert_eq!(new.oom_kills(), Some(1));
        assert_eq!(new.memory_limit(), Some(512 << 20));
        assert_eq!((new.cpu_limit(), new.pids_limit()), (Some(0.5), Some(256)));
        assert!(["memory", "cpu", "pids"].iter().all(|name| new.has_limit(name)));
        assert_eq!((new.memory(), new.cpu_micros()), (Some(600), Some(77)));
    }

    #[test]
    fn a_limit_that_crun_sets_below_the_whole_is_the_one_in_force() {
        let dir = tempfile::tempdir().unwrap();
        let whole = dir.path().join("libpod-1.scope");
        let inner = whole.join("container");
        fs::create_dir_all(&inner).unwrap();
        let mounts = format!("34 29 0:30 / {} rw - cgroup2 cgroup2 rw\n", dir.path().display());
        let cgroup = Cgroup::parse("0::/libpod-1.scope/container\n", "0::/a\n", &mounts);
        for (name, above, below) in [
            ("memory.max", "max\n", "536870912\n"),
            ("cpu.max", "max 100000\n", "50000 100000\n"),
            ("pids.max", "4650\n", "256\n"),
            ("memory.current", "1000\n", "900\n"),
        ] {
            fs::write(whole.join(name), above).unwrap();
            fs::write(inner.join(name), below).unwrap();
        }
        let limits = || (cgroup.memory_limit(), cgroup.cpu_limit(), cgroup.pids_limit());
        assert_eq!(limits(), (Some(512 << 20), Some(0.5), Some(256)));
        assert_eq!(cgroup.memory(), Some(1000), "what is used is counted for the whole");
        // Another sets it above, where it holds for everything below.
        fs::write(whole.join("memory.max"), "1048576\n").unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(limits().0, Some(1 << 20));
    }
}
