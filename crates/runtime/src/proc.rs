//! Processes as `/proc` shows them: one look at all of them, who descends from whom, and
//! signals that cannot hit a stranger who got the same number.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// More than the kernel lets arguments and environment take together.
const MAX_ENVIRON: u64 = 8 * 1024 * 1024;

/// One process, from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) session: u32,
    /// Processor time of its own, in clock ticks.
    pub(crate) ticks: u64,
    /// Processor time of children it has waited for, in clock ticks.
    pub(crate) waited_ticks: u64,
    /// When it started, in ticks since boot: with the pid, its identity.
    started: u64,
    pub(crate) resident_pages: u64,
    /// Whether nothing of it runs any more and its parent has yet to collect it.
    pub(crate) is_dead: bool,
}

impl Process {
    /// The process with this number, where there is one.
    pub(crate) fn read(pid: u32) -> Option<Self> {
        let mut buffer = [0; 1024];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut buffer).ok()?;
        Self::parse(&String::from_utf8_lossy(&buffer[..length]))
    }

    /// The second field is the program's name in parentheses, which may itself hold anything.
    fn parse(stat: &str) -> Option<Self> {
        let (pid, _) = stat.split_once(" (")?;
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |nth: usize| fields.get(nth - 3)?.parse::<u64>().ok();
        let small = |nth: usize| u32::try_from(number(nth)?).ok();
        // A process whose first thread has ended is shown as a zombie while others still run.
        let is_dead = matches!(*fields.first()?, "Z" | "X") && number(20)? <= 1;
        Some(Self {
            pid: pid.parse().ok()?,
            parent: small(4)?,
            session: small(6)?,
            ticks: number(14)? + number(15)?,
            waited_ticks: number(16)? + number(17)?,
            started: number(22)?,
            resident_pages: number(24)?,
            is_dead,
        })
    }

    /// A handle on exactly this process, where it is still the one that was seen.
    pub(crate) fn open(&self) -> Result<OwnedFd, Errno> {
        let pid = raw(self.pid).ok_or(Errno::SRCH)?;
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        if self.is_still_there() { Ok(handle) } else { Err(Errno::SRCH) }
    }

    /// Sends `signal`; false where the process is gone or belongs to another user.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        match self.open() {
            Ok(handle) => pidfd_send_signal(&handle, signal).is_ok(),
            // Sandboxes and old kernels without these handles.
            Err(Errno::NOSYS | Errno::PERM) => {
                self.is_still_there()
                    && raw(self.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
            }
            Err(_) => false,
        }
    }

    fn is_still_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// The value of `name` in the environment it was started with; none for another user's.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let mut environ = Vec::new();
        let file = File::open(format!("/proc/{}/environ", self.pid)).ok()?;
        file.take(MAX_ENVIRON).read_to_end(&mut environ).ok()?;
        environ.split(|byte| *byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
    }
}

/// A pid as the system calls want it.
pub(crate) fn raw(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// One look at all processes of the machine.
pub(crate) struct Snapshot {
    processes: HashMap<u32, Process>,
    children: HashMap<u32, Vec<u32>>,
}

impl Snapshot {
    /// Looks. Processes that come and go meanwhile may or may not be in it.
    pub(crate) fn take() -> Self {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Self::of(pids.filter_map(Process::read))
    }

    fn of(processes: impl Iterator<Item = Process>) -> Self {
        let mut snapshot = Self { processes: HashMap::new(), children: HashMap::new() };
        for process in processes {
            snapshot.children.entry(process.parent).or_default().push(process.pid);
            snapshot.processes.insert(process.pid, process);
        }
        snapshot
    }

    /// All processes.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// The process with this number.
    pub(crate) fn get(&self, pid: u32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// Everything below `root`, parents before their children, without `root` itself.
    pub(crate) fn descendants(&self, root: u32) -> Vec<&Process> {
        let mut found: Vec<&Process> = Vec::new();
        let mut parents = vec![root];
        while let Some(parent) = parents.pop() {
            let children = self.children.get(&parent).into_iter().flatten();
            for child in children.filter_map(|pid| self.processes.get(pid)) {
                // Two numbers reused while we looked could make a circle.
                if child.pid != root && found.len() < self.processes.len() {
                    found.push(child);
                    parents.push(child.pid);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, name: &str, state: char, parent: u32) -> String {
        format!(
            "{pid} ({name}) {state} {parent} 7 8 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 555 9000 77 18446744073709551615 1 1"
        )
    }

    fn process(pid: u32, parent: u32) -> Process {
        Process::parse(&stat(pid, "x", 'S', parent)).unwrap()
    }

    #[test]
    fn a_line_of_stat_is_read_whatever_the_program_is_called() {
        for name in ["sh", "a) R 1 2 3", "((", "with space"] {
            let process = Process::parse(&stat(42, name, 'S', 6)).unwrap();
            assert_eq!((process.pid, process.parent, process.session), (42, 6, 8), "{name}");
            assert_eq!((process.ticks, process.waited_ticks), (30, 70), "{name}");
            assert_eq!((process.started, process.resident_pages), (555, 77), "{name}");
        }
        assert_eq!(Process::parse("42 (sh) S 1"), None);
    }

    #[test]
    fn a_zombie_is_dead_unless_threads_of_it_still_run() {
        let zombie = stat(1, "x", 'Z', 2);
        assert!(Process::parse(&zombie).unwrap().is_dead);
        let leaderless = zombie.replace(" 20 0 1 0 555", " 20 0 4 0 555");
        assert!(!Process::parse(&leaderless).unwrap().is_dead);
    }

    #[test]
    fn descendants_are_all_below_and_nobody_beside() {
        let tree = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 4)];
        let snapshot = Snapshot::of(tree.into_iter().map(|(pid, parent)| process(pid, parent)));
        let pids: Vec<u32> = snapshot.descendants(2).iter().map(|process| process.pid).collect();
        assert_eq!(pids, [3, 4, 6]);
    }

    #[test]
    fn a_circle_from_reused_numbers_does_not_hang() {
        let tree = [(2, 3), (3, 4), (4, 3)];
        let snapshot = Snapshot::of(tree.into_iter().map(|(pid, parent)| process(pid, parent)));
        assert!(snapshot.descendants(3).len() <= 3);
    }

    #[test]
    fn this_process_is_seen_and_is_the_one_it_says() {
        let me = *Snapshot::take().get(std::process::id()).unwrap();
        assert!(me.open().is_ok());
        let impostor = Process { started: me.started + 1, ..me };
        assert_eq!(impostor.open().err(), Some(Errno::SRCH));
    }
}
