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

/// Parent of each process, but for those that have ended and wait to be reaped.
fn parents() -> BTreeMap<i32, i32> {
    pids()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name before the last parenthesis may hold anything.
            let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            (!matches!(state, "Z" | "X")).then_some((pid, parent))
        })
        .collect()
}

/// All processes below `root`.
pub(crate) fn below(root: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, parent) in parents() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = BTreeSet::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        let here = children.remove(&parent).unwrap_or_default();
        found.extend(&here);
        next.extend(here);
    }
    found
}

/// All processes but `spared`.
pub(crate) fn all_but(spared: &[i32]) -> BTreeSet<i32> {
    parents().into_keys().filter(|pid| !spared.contains(pid)).collect()
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
