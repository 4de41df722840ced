//! The cgroup hierarchies of this machine, of version 1 and 2: where each is mounted, and in
//! which directory of it a process is.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The part of the hierarchy that is visible at the mount point.
    pub(crate) root: PathBuf,
    /// The mount point.
    pub(crate) at: PathBuf,
}

impl Mount {
    /// The directory of a path from `/proc/PID/cgroup`; none for one outside the mounted part,
    /// which a cgroup namespace shows as `/..`.
    pub(crate) fn directory(&self, path: &str) -> Option<PathBuf> {
        let inside = Path::new(path).strip_prefix(&self.root).ok()?;
        let leaves = inside.components().any(|part| part == Component::ParentDir);
        (!leaves).then(|| self.at.join(inside))
    }
}

/// The path of `controller` in a file such as `/proc/self/cgroup`, and whether it is of version 2.
pub(crate) fn path_of<'a>(file: &'a str, controller: &str) -> Option<(&'a str, bool)> {
    if let Some(path) = path_in(file, controller) {
        return Some((path, false));
    }
    // A hierarchy of version 1 for the controller would have been named.
    let has_old = file.lines().any(|line| line.contains(":memory:") || line.contains(",memory:"));
    path_in(file, "").filter(|_| !has_old).map(|path| (path, true))
}

/// The path in the hierarchy of version 1 that has `controller`, or, for an empty name, in the
/// hierarchy of version 2.
fn path_in<'a>(file: &'a str, controller: &str) -> Option<&'a str> {
    file.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (names, path) = (fields.next()?, fields.next()?);
        names.split(',').any(|name| name == controller).then_some(path)
    })
}

/// The first mount of a controller's hierarchy, from `/proc/self/mountinfo`.
pub(crate) fn mount_of(mountinfo: &str, controller: &str, unified: bool) -> Option<Mount> {
    mounts_of(mountinfo, controller, unified).next()
}

/// Every mount of a controller's hierarchy. Another file system may be mounted over one of them.
fn mounts_of(mountinfo: &str, controller: &str, unified: bool) -> impl Iterator<Item = Mount> {
    mountinfo.lines().filter_map(move |line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let mut file_system = file_system.split(' ');
        let kind = file_system.next()?;
        let options = file_system.nth(1)?;
        let is_it = match kind {
            "cgroup2" => unified,
            "cgroup" => !unified && options.split(',').any(|option| option == controller),
            _ => false,
        };
        is_it.then_some(())?;
        Some(Mount { root: (*mount.get(3)?).into(), at: (*mount.get(4)?).into() })
    })
}

/// A hierarchy whose membership can contain a process tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// The mount point.
    pub(crate) mount: PathBuf,
    /// The directory that this process is in.
    pub(crate) own: PathBuf,
}

/// Hierarchies in the order of preference: version 2 has `cgroup.kill`, the freezer of version
/// 1 can stop a tree before it is killed, and systemd's own is the one that version 1 delegates
/// to users.
pub(crate) fn hierarchies() -> Vec<Hierarchy> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    hierarchies_in(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
}

fn hierarchies_in(own: &str, mountinfo: &str) -> Vec<Hierarchy> {
    let of = |(controller, unified)| {
        let path = path_in(own, controller);
        let mounts = mounts_of(mountinfo, controller, unified);
        mounts.filter_map(move |mount| {
            let own = mount.directory(path?)?;
            Some(Hierarchy { mount: mount.at, own })
        })
    };
    [("", true), ("freezer", false), ("name=systemd", false)].into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 29 0:26 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n\
31 29 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n\
34 29 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn check(own: &str, mountinfo: &str, expected: &[&str]) {
        let found = hierarchies_in(own, mountinfo);
        let found: Vec<&Path> = found.iter().map(|hierarchy| hierarchy.own.as_path()).collect();
        let expected: Vec<&Path> = expected.iter().map(Path::new).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn hierarchies_are_found_in_the_order_of_preference() {
        check(
            "9:name=systemd:/user.slice/a\n6:freezer:/\n0::/user.slice/a\n",
            HYBRID,
            &[
                "/sys/fs/cgroup/unified/user.slice/a",
                "/sys/fs/cgroup/freezer",
                "/sys/fs/cgroup/systemd/user.slice/a",
            ],
        );
        let unified = "34 29 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        check(
            "0::/system.slice/cofer.service\n",
            unified,
            &["/sys/fs/cgroup/system.slice/cofer.service"],
        );
    }

    #[test]
    fn a_cgroup_outside_the_visible_part_is_not_used() {
        let part = "34 29 0:30 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        check("0::/docker/1/a\n", part, &["/sys/fs/cgroup/a"]);
        check("0::/docker/2\n", part, &[]);
        let namespaced = "34 29 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        check("0::/../outside\n", namespaced, &[]);
        check("0::/\n", "", &[]);
    }
}
