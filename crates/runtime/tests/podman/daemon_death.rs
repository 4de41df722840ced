//! What happens when the daemon is killed: the guard ends its containers; and where it was
//! killed too, the next daemon sweeps. The daemon here is this test binary, run a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{owner, runs, signal, stop, until};
use crate::world::{PATIENCE, Runtime, World, containers_of, eventually, sh};

with_both_runtimes!(
    a_daemon_killed_with_9_leaves_no_containers,
    what_outlives_daemon_and_guard_is_swept_by_the_next_daemon,
);

/// Says to the second run whose daemon it is, and which runtime it uses.
const OWNER: &str = "PODMAN_TEST_OWNER";
const RUNTIME: &str = "PODMAN_TEST_RUNTIME";

/// A server that ends neither by itself nor when asked.
const STUBBORN: &str = r#"trap "" TERM; echo up; while :; do sleep 1; done"#;

/// The daemon: not a test of its own. Tells the pids of two servers.
#[tokio::test]
async fn daemon_to_be_killed() {
    let (Ok(owner), Ok(runtime)) = (std::env::var(OWNER), std::env::var(RUNTIME)) else {
        return;
    };
    let runtime = if runtime == "runsc" { Runtime::Runsc } else { Runtime::Runc };
    let world = World::owned_by(&owner, &BTreeMap::new());
    let mut all = Vec::new();
    for _ in 0..2 {
        let mut running = world.start(&sh(runtime, STUBBORN)).await;
        running.line().await;
        all.push(running);
    }
    let lines = all.iter().map(|running| format!("\npid {}", running.container.pid()));
    let lines: String = lines.collect();
    std::io::Write::write_all(&mut std::io::stdout(), format!("{lines}\n").as_bytes()).unwrap();
    // In the middle of another start for as long as it lives.
    loop {
        drop(world.try_start(&sh(runtime, STUBBORN)).await);
    }
}

async fn daemon(owner: &str, runtime: Runtime) -> (Child, Vec<u32>) {
    #[expect(clippy::disallowed_methods, reason = "the daemon under test is a program")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "daemon_death::daemon_to_be_killed", "--nocapture"]);
    command.env(OWNER, owner).env(RUNTIME, runtime.name()).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut pids = Vec::new();
    while pids.len() < 2 {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        pids.extend(line.strip_prefix("pid ").map(|pid| pid.parse::<u32>().unwrap()));
    }
    (child, pids)
}

async fn a_daemon_killed_with_9_leaves_no_containers(runtime: Runtime) {
    let owner = owner("killed");
    let (mut daemon, pids) = daemon(&owner, runtime).await;
    let guard = guard_of(daemon.id().unwrap());
    assert!(pids.iter().all(|pid| runs(*pid)));
    daemon.kill().await.unwrap();
    eventually("the guard has nothing left to do", || async { !runs(guard) }).await;
    assert!(!pids.iter().any(|pid| runs(*pid)));
    assert_eq!(containers_of(&owner).await, Vec::<String>::new());
}

async fn what_outlives_daemon_and_guard_is_swept_by_the_next_daemon(runtime: Runtime) {
    // covers: HST-3.1
    let owner = owner("swept");
    let (mut daemon, pids) = daemon(&owner, runtime).await;
    let guard = guard_of(daemon.id().unwrap());
    // Stopped first, so that it does not clean up when it sees the daemon die.
    stop(guard).await;
    daemon.kill().await.unwrap();
    signal(guard, Signal::KILL);
    until("the guard is gone", || !runs(guard)).await;
    assert!(pids.iter().all(|pid| runs(*pid)));

    let world = World::owned_by(&owner, &BTreeMap::new());
    let mut own = world.start(&sh(runtime, STUBBORN)).await;
    own.line().await;
    let other = World::new("other");
    let mut foreign = other.start(&sh(runtime, STUBBORN)).await;
    foreign.line().await;
    let swept = world.podman.sweep(&BTreeSet::new()).await.unwrap();
    assert!(swept.containers.len() >= 2, "{swept:?}");
    assert!(!pids.iter().any(|pid| runs(*pid)));
    assert!(runs(own.container.pid()), "this daemon's own container was swept");
    assert!(runs(foreign.container.pid()), "another owner's container was swept");
    let again = world.podman.sweep(&BTreeSet::new()).await.unwrap();
    // A start that was under way when the daemon died may have come to its end only now.
    assert!(again.containers.len() <= 1, "{again:?}");
    drop((own, foreign));
    world.close().await;
    other.close().await;
}

fn guard_of(daemon: u32) -> u32 {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = pids.find(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with("cofer-shim\0--guard") && crate::support::parent(*pid) == daemon
    });
    found.unwrap()
}
