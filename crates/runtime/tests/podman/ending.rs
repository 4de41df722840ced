//! How containers end: asked to, killed, dropped, killed by others; and that nothing is left.

use std::fs;
use std::time::Duration;

use cofer_model::Exit;
use rustix::process::Signal;

use crate::support::{runs, signal, until};
use crate::world::{Runtime, World, eventually, podman, sh, try_podman};

with_both_runtimes!(
    asked_to_end_a_server_may_say_how,
    a_server_without_a_handler_ends_when_asked,
    a_stubborn_server_is_killed,
    dropping_a_container_ends_it,
    a_container_killed_by_others_is_noticed,
    a_container_removed_by_others_is_noticed,
    dropping_a_start_leaves_nothing,
    a_client_killed_in_the_middle_of_a_start_leaves_nothing,
);

const STUBBORN: &str = r#"trap "" TERM; echo up; while :; do sleep 1; done"#;

async fn asked_to_end_a_server_may_say_how(runtime: Runtime) {
    // covers: HST-3.4
    let world = World::new("asked");
    let script = r#"trap "echo bye; exit 3" TERM; echo up; while :; do sleep 0.1; done"#;
    let mut running = world.start(&sh(runtime, script)).await;
    assert_eq!(running.line().await, "up");
    running.container.terminate();
    assert_eq!(running.line().await, "bye");
    assert_eq!(running.exited().await, Exit { code: Some(3), signal: None });
    drop(running);
    world.close().await;
}

async fn a_server_without_a_handler_ends_when_asked(runtime: Runtime) {
    // covers: HST-3.4
    let world = World::new("default");
    let mut running = world.start(&sh(runtime, "echo up; exec sleep 1000")).await;
    running.line().await;
    running.container.terminate();
    assert_eq!(running.exited().await, Exit { code: None, signal: Some(15) });
    drop(running);
    world.close().await;
}

async fn a_stubborn_server_is_killed(runtime: Runtime) {
    // covers: HST-3.4
    let world = World::new("stubborn");
    let mut running = world.start(&sh(runtime, STUBBORN)).await;
    running.line().await;
    let pid = running.container.pid();
    assert!(runs(pid));
    running.container.terminate();
    running.container.kill();
    assert_eq!(running.exited().await, Exit { code: None, signal: Some(9) });
    assert_eq!(running.container.cause(), None);
    running.gone().await;
    assert!(!runs(pid));
    world.close().await;
}

async fn dropping_a_container_ends_it(runtime: Runtime) {
    let world = World::new("dropped");
    let mut running = world.start(&sh(runtime, STUBBORN)).await;
    running.line().await;
    let pid = running.container.pid();
    drop(running);
    until("the process has ended", || !runs(pid)).await;
    world.close().await;
}

async fn a_container_killed_by_others_is_noticed(runtime: Runtime) {
    // covers: HST-3.2
    let world = World::new("killed");
    let mut running = world.start(&sh(runtime, STUBBORN)).await;
    running.line().await;
    podman(&["kill", running.container.name()]).await;
    assert_eq!(running.exited().await, Exit { code: None, signal: Some(9) });
    assert_eq!(running.container.cause(), None, "nobody was out of memory");
    running.gone().await;
    world.close().await;
}

async fn a_container_removed_by_others_is_noticed(runtime: Runtime) {
    let world = World::new("removed");
    let mut running = world.start(&sh(runtime, STUBBORN)).await;
    running.line().await;
    podman(&["rm", "--force", "--time=0", running.container.id()]).await;
    assert!(!running.exited().await.is_success());
    running.gone().await;
    world.close().await;
}

async fn dropping_a_start_leaves_nothing(runtime: Runtime) {
    let world = World::new("given-up");
    let plan = sh(runtime, STUBBORN);
    // Tries the runtime first, which is not what is given up here.
    drop(world.start(&plan).await);
    for millis in [1, 60, 150, 300, 500] {
        let start = world.podman.start(&plan);
        drop(tokio::time::timeout(Duration::from_millis(millis), start).await);
    }
    // The last of them was waited for by the next, and this waits for that one.
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "up");
    assert_eq!(world.containers().await, [running.container.id()]);
    drop(running);
    world.close().await;
}

async fn a_client_killed_in_the_middle_of_a_start_leaves_nothing(runtime: Runtime) {
    let world = World::new("client-killed");
    let plan = sh(runtime, STUBBORN);
    drop(world.start(&plan).await);
    world.podman.drained().await;
    for millis in [0, 40, 120] {
        let killing = async {
            let client = client_at_work().await;
            tokio::time::sleep(Duration::from_millis(millis)).await;
            if runs(client) {
                signal(client, Signal::KILL);
            }
        };
        let (result, ()) = tokio::join!(world.try_start(&plan), killing);
        // Either it was too late to harm, or the start failed; in both cases all is removed.
        drop(result);
        world.podman.drained().await;
        assert_eq!(world.containers().await, Vec::<String>::new());
    }
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "up", "the name is free again");
    drop(running);
    world.close().await;
}

/// The `podman run` that this process has started.
async fn client_at_work() -> u32 {
    let mut found = None;
    until("a client works", || {
        let me = std::process::id();
        let tasks = fs::read_dir(format!("/proc/{me}/task")).unwrap().flatten();
        let children = tasks.map(|task| fs::read_to_string(task.path().join("children")));
        let children: String = children.map(|text| text.unwrap_or_default()).collect();
        found = children.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).find(|pid| {
            let line: u32 = *pid;
            let line = fs::read_to_string(format!("/proc/{line}/cmdline")).unwrap_or_default();
            line.split('\0').any(|arg| arg == "run")
        });
        found.is_some()
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn containers_leave_no_zombies_in_a_daemon_that_collects_orphans() {
    cofer_runtime::become_subreaper().unwrap();
    let world = World::new("zombies");
    for runtime in [Runtime::Runc, Runtime::Runsc] {
        let running = world.start(&sh(runtime, "exit 0")).await;
        running.exited().await;
        running.gone().await;
    }
    world.podman.close().await;
    let zombies = || {
        let me = std::process::id();
        let snapshot = fs::read_dir("/proc").unwrap().flatten();
        let stats = snapshot.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        let dead = stats.filter(|stat| {
            let rest: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
            rest[0] == "Z" && rest[1] == me.to_string()
        });
        dead.collect::<Vec<_>>()
    };
    assert_eq!(zombies(), Vec::<String>::new());
    world.close().await;
}

#[tokio::test]
async fn a_guard_that_is_killed_is_replaced() {
    let world = World::new("guarded");
    let mut running = world.start(&sh(Runtime::Runc, STUBBORN)).await;
    running.line().await;
    let first = guards()[0];
    signal(first, Signal::KILL);
    until("there is another guard", || guards().iter().any(|pid| *pid != first)).await;
    eventually("the container runs on", || async {
        try_podman(&["container", "exists", running.container.id()]).await.status.success()
    })
    .await;
    drop(running);
    world.close().await;
    assert_eq!(guards(), Vec::<u32>::new(), "a guard that was dismissed is gone");
}

/// The guards that are children of this process.
fn guards() -> Vec<u32> {
    let me = std::process::id();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_guard = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with("cofer-shim\0--guard") && runs(*pid) && crate::support::parent(*pid) == me
    };
    pids.filter(is_guard).collect()
}
