//! What happens when the daemon is killed: the shims clean up; and where they were killed
//! too, the next daemon sweeps. The daemon here is this test binary, run a second time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Stdio;

use cofer_runtime::sweep;
use rustix::process::Signal;
use support::{FAMILY, FAMILY_SIZE, PATIENCE, owner, runs, sh, start, until};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Says to the second run whose daemon it is, and what its server does.
const OWNER: &str = "RUNTIME_TEST_OWNER";
const SCRIPT: &str = "RUNTIME_TEST_SCRIPT";

/// The daemon: not a test of its own. Tells the pids of the family, then the shim's and the
/// server's, each on a line that begins with `pid`, and then the containment in force.
#[tokio::test]
async fn daemon_to_be_killed() {
    let (Ok(owner), Ok(script)) = (std::env::var(OWNER), std::env::var(SCRIPT)) else {
        return;
    };
    cofer_runtime::become_subreaper().unwrap();
    let mut running = start(&sh(&owner, &script)).await;
    let mut pids = running.pids(FAMILY_SIZE).await;
    pids.extend([running.shim(), running.workload.pid()]);
    let mut lines: String = pids.iter().map(|pid| format!("\npid {pid}")).collect();
    let containment = running.workload.isolation()["containment"].clone();
    lines.push_str(&format!("\ncontainment {}\n", containment.as_str().unwrap()));
    std::io::Write::write_all(&mut std::io::stdout(), lines.as_bytes()).unwrap();
    running.exited().await;
    running.gone().await;
}

/// The cgroups that the daemon under test sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cgroups {
    /// Those of this machine.
    Visible,
    /// None, in a mount namespace of its own.
    Hidden,
    /// The freezer of version 1, without a hierarchy of version 2.
    Freezer,
    /// The hierarchy that systemd has with version 1, without a freezer.
    Systemd,
}

/// Ignores some signals, the way `nohup` does it, and becomes its arguments.
const IGNORING: &str = r#"trap "" HUP USR1 CHLD; exec "$0" "$@""#;

impl Cgroups {
    /// Every case; only root may mount a hierarchy of version 1.
    fn all() -> &'static [Self] {
        let all = &[Self::Visible, Self::Hidden, Self::Freezer, Self::Systemd];
        if rustix::process::geteuid().is_root() { all } else { &all[..2] }
    }

    fn command(self) -> Command {
        let mount = match self {
            Self::Visible => "true",
            Self::Hidden => "mount -t tmpfs none /sys/fs/cgroup",
            Self::Freezer => {
                "mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup -o freezer none /sys/fs/cgroup"
            }
            Self::Systemd => {
                "mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup -o none,name=systemd none /sys/fs/cgroup"
            }
        };
        let script = format!("{mount} || exit 9; {IGNORING}");
        let unshare: &[&str] = match self {
            Self::Visible => &["/bin/sh", "-c"],
            _ if rustix::process::geteuid().is_root() => &["unshare", "--mount", "/bin/sh", "-c"],
            _ => &["unshare", "--user", "-r", "--mount", "/bin/sh", "-c"],
        };
        #[expect(clippy::disallowed_methods, reason = "the daemon under test is a program")]
        let mut command = Command::new(unshare[0]);
        command.args(&unshare[1..]).arg(script);
        command
    }

    fn containment(self) -> &'static str {
        match self {
            Self::Hidden => "subreaper",
            Self::Visible if cofer_runtime::containment().is_err() => "subreaper",
            _ => "cgroup",
        }
    }
}

/// A daemon and the pids it told: the family's, the shim's, the server's.
async fn daemon_with(cgroups: Cgroups, owner: &str, script: &str) -> (Child, Vec<u32>) {
    let mut command = cgroups.command();
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "daemon_to_be_killed", "--nocapture"]);
    command.env(OWNER, owner).env(SCRIPT, script).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut pids = Vec::new();
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        pids.extend(line.strip_prefix("pid ").map(|pid| pid.parse::<u32>().unwrap()));
        if let Some(containment) = line.strip_prefix("containment ") {
            assert_eq!(containment, cgroups.containment(), "{cgroups:?}");
            // It may yet have something to print.
            child.stdout = Some(lines.into_inner().into_inner());
            return (child, pids);
        }
    }
}

async fn daemon(owner: &str, script: &str) -> (Child, Vec<u32>) {
    daemon_with(Cgroups::Visible, owner, script).await
}

#[tokio::test]
async fn a_daemon_killed_with_9_leaves_nothing() {
    for cgroups in Cgroups::all().iter().copied() {
        let script = format!("{FAMILY} exec sleep 1000");
        let (mut daemon, pids) = daemon_with(cgroups, &owner("killed"), &script).await;
        assert!(pids.iter().all(|pid| runs(*pid)));
        daemon.kill().await.unwrap();
        until("everything has ended", || !pids.iter().any(|pid| runs(*pid))).await;
    }
}

#[tokio::test]
async fn a_shim_killed_with_9_leaves_nothing() {
    for cgroups in Cgroups::all().iter().copied() {
        let script = format!("{FAMILY} exec sleep 1000");
        let (mut daemon, pids) = daemon_with(cgroups, &owner("shim"), &script).await;
        support::signal(pids[FAMILY_SIZE], Signal::KILL);
        let status = timeout(PATIENCE, daemon.wait()).await.unwrap().unwrap();
        assert!(status.success());
        assert!(!pids.iter().any(|pid| runs(*pid)), "the daemon saw the end before it was one");
    }
}

#[tokio::test]
async fn signals_that_the_daemon_was_born_to_ignore_work_for_its_servers() {
    let script = format!("{FAMILY} exec sleep 1000");
    let (mut daemon, pids) = daemon(&owner("ignoring"), &script).await;
    assert_ne!(support::ignored_signals(daemon.id().unwrap()), 0);
    assert_eq!(support::ignored_signals(pids[FAMILY_SIZE + 1]), 0);
    daemon.kill().await.unwrap();
}

/// The sweeper of a daemon.
fn sweeper_of(daemon: &Child) -> u32 {
    let line = "cofer-shim\0--sweep\0";
    let daemon = daemon.id().unwrap();
    let pids = std::fs::read_dir("/proc").unwrap();
    let mut pids = pids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.find(|pid| {
        let its = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        its.starts_with(line) && support::parent(*pid) == daemon
    })
    .unwrap()
}

#[tokio::test]
async fn daemon_and_shim_killed_with_9_at_once_leave_nothing() {
    for cgroups in Cgroups::all().iter().copied() {
        let script = format!("{FAMILY} exec sleep 1000");
        let (mut daemon, pids) = daemon_with(cgroups, &owner("both"), &script).await;
        let (shim, sweeper) = (pids[FAMILY_SIZE], sweeper_of(&daemon));
        // Stopped first, so that neither acts on the death of the other.
        support::stop(shim).await;
        support::stop(daemon.id().unwrap()).await;
        support::signal(shim, Signal::KILL);
        daemon.kill().await.unwrap();
        until("everything has ended", || !pids.iter().any(|pid| runs(*pid))).await;
        until("the sweeper has ended", || !runs(sweeper)).await;
    }
}

#[tokio::test]
async fn what_outlives_daemon_shim_and_sweeper_is_swept_by_the_next_daemon() {
    for cgroups in Cgroups::all().iter().copied() {
        let owner = owner("swept");
        let script = format!("{FAMILY} exec sleep 1000");
        let (mut daemon, pids) = daemon_with(cgroups, &owner, &script).await;
        let other = start(&sh(&format!("{owner}2"), "exec sleep 1000")).await;
        let (shim, server) = (pids[FAMILY_SIZE], pids[FAMILY_SIZE + 1]);

        // Stopped first, so that it does not clean up when it sees the daemon die.
        support::stop(shim).await;
        support::signal(sweeper_of(&daemon), Signal::KILL);
        daemon.kill().await.unwrap();
        support::signal(shim, Signal::KILL);
        until("the server died with its shim", || !runs(server) && !runs(shim)).await;
        let left: Vec<u32> = pids.iter().copied().filter(|pid| runs(*pid)).collect();
        assert_eq!(left.len(), FAMILY_SIZE);

        let swept = sweep(&owner);
        assert!(left.iter().all(|pid| swept.contains(pid)), "{left:?} {swept:?}");
        assert!(!left.iter().any(|pid| runs(*pid)));
        assert!(runs(other.workload.pid()), "another owner's workload was swept");
        assert_eq!(sweep(&owner), Vec::<u32>::new());
    }
}

#[tokio::test]
async fn a_sweeper_spares_the_runs_of_another_daemon_of_the_same_owner() {
    let owner = owner("spared");
    let other = start(&sh(&owner, "exec sleep 1000")).await;
    let (mut daemon, pids) = daemon(&owner, &format!("{FAMILY} exec sleep 1000")).await;
    let sweeper = sweeper_of(&daemon);
    daemon.kill().await.unwrap();
    until("the sweeper has ended", || !runs(sweeper)).await;
    assert!(!pids.iter().any(|pid| runs(*pid)));
    assert!(runs(other.workload.pid()), "another daemon's workload was ended");
}

#[tokio::test]
async fn shims_that_are_cleaning_up_are_not_disturbed_by_the_sweep() {
    let owner = owner("left-to-shims");
    let (mut daemon, pids) = daemon(&owner, &format!("{FAMILY} exec sleep 1000")).await;
    let shim = pids[FAMILY_SIZE];
    support::stop(shim).await;
    daemon.kill().await.unwrap();
    let sweeping = tokio::task::spawn_blocking(move || sweep(&owner));
    let mut looks = 0..10;
    until("some looks at an undisturbed shim", || looks.next().is_none() || !runs(shim)).await;
    support::signal(shim, Signal::CONT);
    assert_eq!(sweeping.await.unwrap(), Vec::<u32>::new(), "the shim had ended everything");
    assert!(!pids.iter().any(|pid| runs(*pid)));
}
