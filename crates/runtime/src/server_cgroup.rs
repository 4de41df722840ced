//! One cgroup per run of a server: a name for its process tree that survives `setsid`, a
//! cleared environment, and the death of the shim and of the daemon.
//!
//! It has no controllers: only membership counts, so that it may be made below a cgroup that
//! has processes itself ("no internal processes" holds for controllers only). Its path is
//! `<cgroup of the daemon>/cofer-<owner>/<run>`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::event::{Timespec, poll};
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::Signal;

use crate::cgroups::{Hierarchy, hierarchies};
use crate::orphans::{open_all, wait_until_gone};
use crate::proc::Process;

/// Rounds of killing before a tree that does not end is given up. Each waits for `ROUND_WAIT`
/// at most; a process in an uninterruptible sleep is what could outlast them.
const MAX_ROUNDS: usize = 50;
const ROUND_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// The pause while the freezer of version 1 reports `FREEZING`, and before `rmdir` is retried:
/// the kernel keeps a cgroup busy for a moment after its last process was reaped.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
const MAX_PAUSES: usize = 50;

/// The directories visited in search of cgroups that an earlier daemon left.
const MAX_VISITED: usize = 20_000;

/// Attempts to make a directory whose parent another run may remove at the same moment.
const MAX_ATTEMPTS: usize = 8;

/// The cgroup of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerCgroup {
    path: PathBuf,
}

impl ServerCgroup {
    /// Makes a cgroup for the run with this marker, in the first hierarchy that permits it; the
    /// error is the one of the preferred hierarchy.
    pub(crate) fn create(marker: &str) -> io::Result<Self> {
        let mut refusal = None;
        for hierarchy in hierarchies() {
            match Self::create_in(&hierarchy, marker) {
                Ok(cgroup) => return Ok(cgroup),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        let none = || io::Error::new(io::ErrorKind::NotFound, "no cgroup hierarchy is mounted");
        Err(refusal.unwrap_or_else(none))
    }

    fn create_in(hierarchy: &Hierarchy, marker: &str) -> io::Result<Self> {
        // Moving a process needs write access to `cgroup.procs` of the common ancestor.
        rustix::fs::access(hierarchy.own.join("cgroup.procs"), Access::WRITE_OK)?;
        let (owner, run) = marker.split_once('/').unwrap_or((marker, "run"));
        let parent = hierarchy.own.join(directory_name(owner));
        let run = file_name(run);
        for attempt in 0..MAX_ATTEMPTS {
            let name = if attempt == 0 { run.clone() } else { format!("{run}.{attempt}") };
            let made = match fs::create_dir(&parent) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => fs::create_dir(parent.join(&name)),
            };
            match made {
                Ok(()) => return Ok(Self { path: parent.join(name) }),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// The cgroup at `path`, which the daemon has made.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file to which a process writes `0` to become a member.
    pub(crate) fn entrance(&self) -> io::Result<File> {
        File::options().write(true).open(self.path.join("cgroup.procs"))
    }

    /// Whether a process is a member, here or in a cgroup below.
    pub(crate) fn contains(&self, pid: u32) -> bool {
        members(&self.path).contains(&pid)
    }

    /// Kills every member once, without waiting.
    pub(crate) fn kill(&self) {
        if fs::write(self.path.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        // Kernels before 5.14, and version 1.
        self.set_frozen(true);
        let seen: Vec<Process> =
            members(&self.path).into_iter().filter_map(Process::read).collect();
        // Read a second time: a number that was reused in between is no member any more.
        let still = members(&self.path);
        for process in seen.iter().filter(|process| still.contains(&process.pid)) {
            process.signal(Signal::KILL);
        }
        self.set_frozen(false);
    }

    /// A frozen tree cannot fork, so that none of it is missed. Without a freezer the rounds of
    /// [`Self::end`] have to do.
    fn set_frozen(&self, frozen: bool) {
        if fs::write(self.path.join("cgroup.freeze"), if frozen { "1" } else { "0" }).is_ok() {
            return;
        }
        let state = self.path.join("freezer.state");
        let wanted = if frozen { "FROZEN" } else { "THAWED" };
        if fs::write(&state, wanted).is_err() {
            return;
        }
        for _ in 0..MAX_PAUSES {
            if !frozen || fs::read_to_string(&state).is_ok_and(|now| now.trim() == wanted) {
                return;
            }
            poll(&mut [], Some(&PAUSE)).ok();
        }
    }

    /// Kills until there is no member left, and returns those that were seen.
    pub(crate) fn end(&self) -> Vec<u32> {
        let mut ended = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let now = members(&self.path);
            if now.is_empty() {
                break;
            }
            let handles = open_all(now.iter().copied().filter_map(Process::read).collect());
            self.kill();
            ended.extend(now);
            wait_until_gone(handles, &ROUND_WAIT);
        }
        ended.sort_unstable();
        ended.dedup();
        ended
    }

    /// Removes the cgroup, which must be empty, and its parent with the last run of the owner.
    pub(crate) fn remove(&self) {
        for _ in 0..MAX_PAUSES {
            match remove_tree(&self.path) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => {
                    poll(&mut [], Some(&PAUSE)).ok();
                }
                _ => break,
            }
        }
        if let Some(parent) = self.path.parent() {
            // Fails while the owner has another run.
            fs::remove_dir(parent).ok();
        }
    }
}

/// Ends every tree in a cgroup of `owner`, or only in those that the process `daemon` has made,
/// wherever they are; returns the processes.
pub(crate) fn sweep(owner: &str, daemon: Option<u32>) -> Vec<u32> {
    let name = directory_name(owner);
    let mut ended = Vec::new();
    for hierarchy in hierarchies() {
        for owned in find(&hierarchy.mount, &name) {
            let runs = subdirectories(&owned).into_iter();
            for path in runs.filter(|path| daemon.is_none_or(|daemon| made_by(path, daemon))) {
                let cgroup = ServerCgroup::at(path);
                ended.extend(cgroup.end());
                cgroup.remove();
            }
            fs::remove_dir(&owned).ok();
        }
    }
    ended
}

/// Where a cgroup per server can be made by this process, or why it cannot.
pub(crate) fn probe() -> io::Result<PathBuf> {
    let cgroup = ServerCgroup::create(&format!("probe-{}/run", std::process::id()))?;
    let own = cgroup.path.ancestors().nth(2).unwrap_or(&cgroup.path).to_owned();
    cgroup.remove();
    Ok(own)
}

/// Whether a run's directory, `<server>-<daemon>-<run>`, names this daemon process.
fn made_by(path: &Path, daemon: u32) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.rsplit('-').nth(1).and_then(|pid| pid.parse().ok()) == Some(daemon)
}

fn directory_name(owner: &str) -> String {
    format!("cofer-{}", file_name(owner))
}

/// `text` as the name of one directory.
fn file_name(text: &str) -> String {
    let plain =
        |char: char| if char.is_ascii_alphanumeric() || "-_".contains(char) { char } else { '-' };
    text.chars().map(plain).collect()
}

/// The processes in a cgroup and below it. Those outside this PID namespace are shown as 0.
fn members(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<u32> =
        text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0).collect();
    for below in subdirectories(path) {
        found.extend(members(&below));
    }
    found
}

fn subdirectories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn remove_tree(path: &Path) -> io::Result<()> {
    for below in subdirectories(path) {
        remove_tree(&below)?;
    }
    fs::remove_dir(path)
}

/// The directories called `name` at and below `root`.
fn find(root: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut visit = vec![root.to_owned()];
    let mut visited = 0;
    while let Some(path) = visit.pop() {
        visited += 1;
        if visited > MAX_VISITED {
            tracing::warn!(root = %root.display(), "more cgroups than are searched for leftovers");
            break;
        }
        for below in subdirectories(&path) {
            if below.file_name().is_some_and(|found| found == name) {
                found.push(below);
            } else {
                visit.push(below);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory in place of a hierarchy: `mkdir` and `rmdir` behave alike, and the kernel's
    /// files are absent or plain.
    fn hierarchy() -> (tempfile::TempDir, Hierarchy) {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("user.slice/daemon.scope");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cgroup.procs"), "").unwrap();
        let hierarchy = Hierarchy { mount: root.path().to_owned(), own };
        (root, hierarchy)
    }

    #[test]
    fn a_cgroup_is_named_by_owner_and_run_and_leaves_nothing() {
        let (_root, hierarchy) = hierarchy();
        let cgroup = ServerCgroup::create_in(&hierarchy, "own er/../server/7-1").unwrap();
        assert_eq!(cgroup.path(), hierarchy.own.join("cofer-own-er/---server-7-1"));
        let other = ServerCgroup::create_in(&hierarchy, "own er/../server/7-1").unwrap();
        assert_ne!(cgroup, other, "a directory that exists is another run's");
        cgroup.remove();
        assert!(other.path().is_dir());
        other.remove();
        assert!(!hierarchy.own.join("cofer-own-er").exists());
    }

    #[test]
    fn a_hierarchy_without_cgroup_procs_is_refused() {
        let (_root, hierarchy) = hierarchy();
        fs::remove_file(hierarchy.own.join("cgroup.procs")).unwrap();
        assert!(ServerCgroup::create_in(&hierarchy, "o/s").is_err());
    }

    #[test]
    fn cgroups_of_an_owner_are_found_wherever_they_are() {
        let (root, hierarchy) = hierarchy();
        let cgroup = ServerCgroup::create_in(&hierarchy, "o/s").unwrap();
        let parent = cgroup.path().parent().unwrap();
        assert_eq!(find(root.path(), "cofer-o"), [parent]);
        assert_eq!(find(root.path(), "cofer-other"), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_daemon_of_a_run_is_in_its_name() {
        for name in ["server-17-3", "a-b-17-3.1", "0192-17-262144"] {
            assert!(made_by(Path::new(name), 17), "{name}");
        }
        for name in ["server-18-17", "17-server-3-1", "17", ""] {
            assert!(!made_by(Path::new(name), 17), "{name}");
        }
    }

    #[test]
    fn members_below_count_and_processes_of_other_namespaces_do_not() {
        let (_root, hierarchy) = hierarchy();
        fs::write(hierarchy.own.join("cgroup.procs"), "12\n0\n7\n").unwrap();
        let below = hierarchy.own.join("below");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("cgroup.procs"), "9\n").unwrap();
        assert_eq!(members(&hierarchy.own), [12, 7, 9]);
    }
}
