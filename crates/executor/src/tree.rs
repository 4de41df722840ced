//! All that descends from a process, as /proc shows it, and how it is ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::sys::{self, SIGCONT, SIGKILL, SIGSTOP, Side};

/// How long between two looks at what is left.
pub(crate) const PAUSE_MS: i32 = 3;

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process as /proc shows it.
struct Process {
    parent: i32,
    session: i32,
    /// With the pid it names a process for good.
    started: String,
}

/// All processes but those that have ended and wait to be reaped.
fn processes() -> BTreeMap<i32, Process> {
    pids()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, Process::parse(&stat)?))
        })
        .collect()
}

impl Process {
    fn parse(stat: &str) -> Option<Self> {
        // The name before the last parenthesis may hold anything.
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        let is_alive = !matches!(*fields.first()?, "Z" | "X");
        // proc(5): the state is field 3, the parent 4, the session 6, the start time 22.
        let (parent, session) = (number(1)?, number(3)?);
        let started = fields.get(19).copied().unwrap_or_default().to_owned();
        is_alive.then_some(Self { parent, session, started })
    }
}

/// The processes of one command.
pub(crate) enum Family {
    /// Its orphans become children of this process.
    Subreaper,
    /// gVisor has subreapers only as pid 1, which gets all orphans. So they are this command's if they
    /// became orphans while it ran: those from before it.
    Orphans(BTreeMap<i32, String>),
}

impl Family {
    /// Before the command is started. `alone` if pid 1 is our own.
    pub(crate) fn begin(alone: bool) -> io::Result<Self> {
        match sys::become_subreaper() {
            Ok(()) => Ok(Self::Subreaper),
            Err(error) if alone && error.kind() == io::ErrorKind::InvalidInput => {
                let all = processes();
                let before = orphans(&all).map(|(pid, one)| (pid, one.started.clone()));
                Ok(Self::Orphans(before.collect()))
            }
            Err(error) => Err(error),
        }
    }

    /// All that run now.
    pub(crate) fn members(&self) -> BTreeSet<i32> {
        let all = processes();
        let mut roots = vec![std::process::id().cast_signed()];
        let mut found = BTreeSet::new();
        if let Self::Orphans(before) = self {
            let is_new = |pid: &i32, one: &Process| before.get(pid) != Some(&one.started);
            found.extend(orphans(&all).filter(|(pid, one)| is_new(pid, one)).map(|(pid, _)| pid));
            roots.extend(&found);
        }
        found.extend(below(&all, roots));
        found
    }
}

/// Children of pid 1 but for the executor's own: those stay in its session, which a command has left
/// for good by setsid(2).
fn orphans(all: &BTreeMap<i32, Process>) -> impl Iterator<Item = (i32, &Process)> {
    let own = all.get(&1).map_or(1, |init| init.session);
    all.iter()
        .filter(move |(_, one)| one.parent == 1 && one.session != own)
        .map(|(pid, one)| (*pid, one))
}

/// The processes below `next`.
fn below(all: &BTreeMap<i32, Process>, mut next: Vec<i32>) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, process) in all {
        children.entry(process.parent).or_default().push(*pid);
    }
    let mut found = BTreeSet::new();
    while let Some(parent) = next.pop() {
        let here = children.remove(&parent).unwrap_or_default();
        found.extend(&here);
        next.extend(here);
    }
    found
}

/// All processes but `spared`.
pub(crate) fn all_but(spared: &[i32]) -> BTreeSet<i32> {
    processes().into_keys().filter(|pid| !spared.contains(pid)).collect()
}

/// So many processes may compete with whoever looks for them one by one.
const CROWD: usize = 256;

/// Kills all that `list` finds until it finds nothing. They are stopped first, so that none of
/// them starts another while the others die. In a container of our own (`alone`), a crowd is
/// stopped in one call, and the innocent go on afterwards: a fork bomb leaves nobody else the time
/// to look at it.
pub(crate) fn kill_all(alone: bool, list: impl Fn() -> BTreeSet<i32>) {
    let claim = if alone && pids().count() > CROWD { only_one() } else { None };
    if claim.is_some() {
        sys::send_signal(sys::EVERYBODY_ELSE, SIGSTOP);
    }
    stop_and_kill(list);
    if claim.is_some() {
        sys::send_signal(sys::EVERYBODY_ELSE, SIGCONT);
    }
}

/// Two that stopped each other would stay stopped: held by one at a time, and whoever does not
/// get it does without.
fn only_one() -> Option<File> {
    let socket = std::env::args_os().nth(1)?;
    let folder = File::open(Path::new(&socket).parent()?).ok()?;
    folder.try_lock().ok()?;
    Some(folder)
}

fn stop_and_kill(list: impl Fn() -> BTreeSet<i32>) {
    loop {
        let mut stopped = BTreeSet::new();
        loop {
            let new: Vec<i32> = list().difference(&stopped).copied().collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                sys::send_signal(pid, SIGSTOP);
                stopped.insert(pid);
            }
        }
        if stopped.is_empty() {
            return;
        }
        for pid in &stopped {
            sys::send_signal(*pid, SIGKILL);
        }
        pause();
        while sys::reap().is_some() {}
    }
}

/// Splits this process. Where the container is full, the places of a tree that was just killed
/// come free as it is reaped: that is waited for, and a container that stays full is refused.
pub(crate) fn split_when_there_is_room() -> io::Result<Side> {
    const WAIT: Duration = Duration::from_secs(10);
    for _ in 0..pauses_in(WAIT) {
        match sys::split() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            split => return split,
        }
        while sys::reap().is_some() {}
        pause();
    }
    sys::split()
}

fn pauses_in(span: Duration) -> u128 {
    span.as_millis() / u128::from(PAUSE_MS.unsigned_abs()) + 1
}

/// A moment for the others.
pub(crate) fn pause() {
    // No descriptors, so that it only waits.
    let waited = sys::wait_readable::<0>([], PAUSE_MS);
    waited.unwrap_or_default();
}

/// Whether `list` finds nothing within `span`.
pub(crate) fn empties(list: impl Fn() -> BTreeSet<i32>, span: Duration) -> bool {
    for _ in 0..pauses_in(span) {
        while sys::reap().is_some() {}
        if list().is_empty() {
            return true;
        }
        pause();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(parent: i32, session: i32) -> Process {
        Process { parent, session, started: String::new() }
    }

    #[test]
    fn a_process_is_parsed_whatever_its_name_is() {
        let fields = "-1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 99";
        let stat = format!("7 (a) Z (b) S 1 7 5 0 {fields}");
        let found = Process::parse(&stat).unwrap();
        assert_eq!((found.parent, found.session, found.started.as_str()), (1, 5, "777"));
        assert!(Process::parse(&format!("7 (a) Z 1 7 5 0 {fields}")).is_none());
        assert!(Process::parse("7 (a").is_none() && Process::parse("7 (a) S").is_none());
    }

    #[test]
    fn orphans_are_children_of_init_that_left_its_session() {
        let all = BTreeMap::from([
            (1, process(0, 1)),
            // A keeper, its command, and what that started.
            (2, process(1, 1)),
            (3, process(2, 3)),
            (4, process(3, 3)),
            // An orphan and its child.
            (5, process(1, 3)),
            (6, process(5, 6)),
        ]);
        let found: Vec<i32> = orphans(&all).map(|(pid, _)| pid).collect();
        assert_eq!(found, [5]);
        assert_eq!(below(&all, vec![2, 5]), BTreeSet::from([3, 4, 6]));
    }
}
