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
/// server's, each on a line that begins with `pid`.
#[tokio::test]
async fn daemon_to_be_killed() {
    let (Ok(owner), Ok(script)) = (std::env::var(OWNER), std::env::var(SCRIPT)) else {
        return;
    };
    let mut running = start(&sh(&owner, &script)).await;
    let mut pids = running.pids(FAMILY_SIZE).await;
    pids.extend([running.shim(), running.workload.pid()]);
    let lines: String = pids.iter().map(|pid| format!("\npid {pid}")).collect();
    std::io::Write::write_all(&mut std::io::stdout(), format!("{lines}\n").as_bytes()).unwrap();
    running.exited().await;
}

/// A running daemon, and the pids it told: the family's, the shim's, the server's. It was
/// started the way `nohup` does it, with some signals ignored.
async fn daemon(owner: &str, script: &str) -> (Child, Vec<u32>) {
    #[expect(clippy::disallowed_methods, reason = "the daemon under test is a program")]
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"trap "" HUP USR1 CHLD; exec "$0" "$@""#]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "daemon_to_be_killed", "--nocapture"]);
    command.env(OWNER, owner).env(SCRIPT, script).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut pids = Vec::new();
    while pids.len() < FAMILY_SIZE + 2 {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        pids.extend(line.strip_prefix("pid ").map(|pid| pid.parse::<u32>().unwrap()));
    }
    (child, pids)
}

#[tokio::test]
async fn a_daemon_killed_with_9_leaves_nothing() {
    let script = format!("{FAMILY} exec sleep 1000");
    let (mut daemon, pids) = daemon(&owner("killed"), &script).await;
    assert!(pids.iter().all(|pid| runs(*pid)));
    daemon.kill().await.unwrap();
    until("everything has ended", || !pids.iter().any(|pid| runs(*pid))).await;
}

#[tokio::test]
async fn signals_that_the_daemon_was_born_to_ignore_work_for_its_servers() {
    let script = format!("{FAMILY} exec sleep 1000");
    let (mut daemon, pids) = daemon(&owner("ignoring"), &script).await;
    assert_ne!(support::ignored_signals(daemon.id().unwrap()), 0);
    assert_eq!(support::ignored_signals(pids[FAMILY_SIZE + 1]), 0);
    daemon.kill().await.unwrap();
}

#[tokio::test]
async fn what_outlives_daemon_and_shim_is_swept_by_the_next_daemon() {
    let owner = owner("swept");
    let script = format!("{} exec sleep 1000", FAMILY.replace("env -i", ""));
    let (mut daemon, pids) = daemon(&owner, &script).await;
    let other = start(&sh(&format!("{owner}2"), "exec sleep 1000")).await;
    let (shim, server) = (pids[FAMILY_SIZE], pids[FAMILY_SIZE + 1]);

    // Stopped first, so that it does not clean up when it sees the daemon die.
    support::stop(shim).await;
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
