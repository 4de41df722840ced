//! Ends process trees that lost their shim: at once if only the shim was killed, and at the
//! daemon's next start if both were. They are identified by their cgroup, by the resource limit
//! that the shim has set, and by the marker in their environment.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cofer_model::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Signal, WaitOptions, getpid, set_child_subreaper, test_kill_process, waitpid,
};

use crate::command::SHIM_NAME;
use crate::environment::MARKER;
use crate::mark::Mark;
use crate::proc::{Process, Snapshot, raw};
use crate::server_cgroup::{self, ServerCgroup};
use crate::shim;

/// Looks at the machine are repeated until nothing marked is left, at most so often.
const MAX_LOOKS: usize = 50;

/// How long the killed may take to be gone before the next look.
const LOOK_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// How long the shims of a dead daemon, which see its death themselves, are left to their work.
const SHIM_WAIT: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// Makes orphans of killed shims children of this process, so that it can collect them. To be
/// called once, before the first workload.
pub fn become_subreaper() -> std::io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills every process on the machine that belongs to a run of `owner`, except this one, and
/// waits, for at most some seconds, until they are gone. Returns their pids. For the start of
/// a daemon, when no workload of the owner can rightly run.
pub fn sweep(owner: &str) -> Vec<u32> {
    let prefix = format!("{owner}/");
    let of_owner = Mark::new(owner, 0, 0);
    let is_ours = |process: &Process| {
        Mark::read(process.pid).is_some_and(|mark| mark.has_owner_of(of_owner))
            || process.variable(MARKER).is_some_and(|marker| marker.starts_with(&prefix))
    };
    end_runs(is_ours, || server_cgroup::sweep(owner, None))
}

/// The same for the runs of one process of that owner, which has ended.
pub(crate) fn sweep_after(owner: &str, daemon: u32) -> Vec<u32> {
    let of_daemon = Mark::new(owner, daemon, 0);
    let is_ours = |process: &Process| {
        Mark::read(process.pid).is_some_and(|mark| mark.has_daemon_of(of_daemon))
    };
    end_runs(is_ours, || server_cgroup::sweep(owner, Some(daemon)))
}

/// Leaves the shims to their work first, then ends the rest.
fn end_runs(
    is_ours: impl Fn(&Process) -> bool + Copy,
    end_cgroups: impl FnOnce() -> Vec<u32>,
) -> Vec<u32> {
    let shims = marked(&Snapshot::take(), is_ours).into_iter().filter(is_shim).collect();
    wait_until_gone(open_all(shims), &SHIM_WAIT);
    let mut ended = end_cgroups();
    ended.extend(end_marked(is_ours));
    ended.sort_unstable();
    ended.dedup();
    ended
}

/// Ends all that belongs to the run with this marker, and collects it where it became this
/// process's child. Returns how `server` ended, where this process came to know.
pub(crate) fn end(
    marker: &str,
    cgroup: Option<&ServerCgroup>,
    server: Option<u32>,
) -> Option<Exit> {
    if let Some(cgroup) = cgroup {
        cgroup.end();
    }
    let of_run = Mark::of(marker);
    end_marked(|process| {
        (of_run.is_some() && Mark::read(process.pid) == of_run)
            || process.variable(MARKER).as_deref() == Some(marker)
    });
    let exit = server.and_then(collect);
    collect_strangers();
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
    exit
}

/// Processes this one answers for by number: shims, and the servers whose exit is awaited.
static CLAIMED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Holds the numbers of one workload, so that nobody else collects them.
pub(crate) struct Claim(Mutex<Vec<u32>>);

impl Claim {
    /// Starts a shim and claims it in one step, so that it is never taken for an orphan.
    pub(crate) fn spawn(
        mut command: tokio::process::Command,
    ) -> std::io::Result<(tokio::process::Child, Self)> {
        let mut claimed = claimed();
        let child = command.spawn()?;
        let pids: Vec<u32> = child.id().into_iter().collect();
        claimed.extend(&pids);
        Ok((child, Self(Mutex::new(pids))))
    }

    /// Claims the shim's server too.
    pub(crate) fn add_server(&self, pid: u32) {
        claimed().insert(pid);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = claimed();
        for pid in self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            claimed.remove(pid);
        }
    }
}

fn claimed() -> MutexGuard<'static, BTreeSet<u32>> {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills the processes that `is_ours` selects, with everything below them, until there is none.
fn end_marked(is_ours: impl Fn(&Process) -> bool + Copy) -> Vec<u32> {
    let mut ended = BTreeSet::new();
    for _ in 0..MAX_LOOKS {
        let snapshot = Snapshot::take();
        let roots = marked(&snapshot, is_ours);
        if roots.is_empty() {
            break;
        }
        let below: Vec<Process> =
            roots.iter().flat_map(|root| snapshot.descendants(root.pid)).copied().collect();
        let mut targets = roots;
        targets.extend(below.into_iter().filter(|process| process.pid != std::process::id()));
        ended.extend(targets.iter().map(|process| process.pid));
        let handles = open_all(targets.clone());
        for process in targets {
            process.signal(Signal::KILL);
        }
        wait_until_gone(handles, &LOOK_WAIT);
    }
    ended.into_iter().collect()
}

/// The living that `is_ours` selects and that this user may signal: one that gained another
/// user's rights cannot be ended, and would be found again and again.
fn marked(snapshot: &Snapshot, is_ours: impl Fn(&Process) -> bool) -> Vec<Process> {
    let may_signal =
        |process: &Process| raw(process.pid).is_some_and(|pid| test_kill_process(pid).is_ok());
    let living =
        snapshot.all().filter(|process| process.pid != std::process::id() && !process.is_dead);
    living.filter(|process| is_ours(process) && may_signal(process)).copied().collect()
}

fn is_shim(process: &Process) -> bool {
    fs::read(format!("/proc/{}/cmdline", process.pid))
        .is_ok_and(|line| line.split(|byte| *byte == 0).next() == Some(SHIM_NAME.as_bytes()))
}

pub(crate) fn open_all(processes: Vec<Process>) -> Vec<OwnedFd> {
    processes.iter().filter_map(|process| process.open().ok()).collect()
}

/// Waits until every handle's process has ended, or one of them has not for `longest`.
pub(crate) fn wait_until_gone(handles: Vec<OwnedFd>, longest: &Timespec) {
    for handle in handles {
        if poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(longest)) == Ok(0) {
            return;
        }
    }
}

/// How a child of ours ended, where it is one and has.
fn collect(pid: u32) -> Option<Exit> {
    let (_, status) = waitpid(Some(raw(pid)?), WaitOptions::NOHANG).ok()??;
    Some(shim::exit(status))
}

/// Collects dead children that this process did not start: they came to it from killed shims.
/// What it started itself is in its own session or claimed.
pub(crate) fn collect_strangers() {
    let claimed = claimed();
    let me = std::process::id();
    let snapshot = Snapshot::take();
    let Some(session) = snapshot.get(me).map(|process| process.session) else {
        return;
    };
    for process in snapshot.all() {
        let is_orphan = process.parent == me && process.session != session && process.is_dead;
        if is_orphan && !claimed.contains(&process.pid) {
            collect(process.pid);
        }
    }
}
