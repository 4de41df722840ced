//! A server's whole tree ends with it, however the server, the shim or the daemon ends.
//! What a killed shim leaves comes to this process, so that it is a subreaper here.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use cofer_model::Exit;
use cofer_runtime::{become_subreaper, sweep};
use rustix::process::Signal;
use support::{FAMILY, FAMILY_SIZE, PATIENCE, Running, exists, owner, program, runner, sh, start};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

const KILLED: Exit = Exit { code: None, signal: Some(9) };
const TERMINATED: Exit = Exit { code: None, signal: Some(15) };

/// A server with a family, and everybody's pids: the shim's, the server's and the family's.
async fn family(owner: &str, script: &str) -> (Running, Vec<u32>) {
    let mut running = start(&sh(owner, &format!("{FAMILY}\n{script}"))).await;
    let mut pids = running.pids(FAMILY_SIZE).await;
    pids.extend([running.shim(), running.workload.pid()]);
    (running, pids)
}

/// Nobody is left, not even as a zombie.
fn assert_gone(pids: &[u32]) {
    let left: Vec<&u32> = pids.iter().filter(|pid| exists(**pid)).collect();
    assert!(left.is_empty(), "{left:?} of {pids:?}");
}

#[tokio::test]
async fn a_server_that_exits_takes_its_tree_with_it() {
    let (mut running, pids) = family(&owner("exits"), "read line; exit 3").await;
    running.stdin.write_all(b"\n").await.unwrap();
    assert_eq!(running.exited().await, Exit { code: Some(3), signal: None });
    running.gone().await;
    assert_gone(&pids);
}

#[tokio::test]
async fn a_server_whose_input_ends_can_end_by_itself() {
    let (running, pids) = family(&owner("input-ends"), "cat >/dev/null; exit 0").await;
    let Running { workload, stdin, .. } = running;
    drop(stdin);
    assert_eq!(timeout(PATIENCE, workload.exited()).await.unwrap().code, Some(0));
    timeout(PATIENCE, workload.gone()).await.unwrap();
    assert_gone(&pids);
}

#[tokio::test]
async fn terminate_is_a_sigterm_and_the_rest_of_the_tree_follows() {
    let (running, pids) = family(&owner("terminate"), "exec sleep 1000").await;
    running.workload.terminate();
    assert_eq!(running.exited().await, TERMINATED);
    running.gone().await;
    assert_gone(&pids);
}

#[tokio::test]
async fn a_server_may_do_its_own_last_things_on_sigterm() {
    let script = "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 1; done";
    let mut running = start(&sh(&owner("trap"), script)).await;
    assert_eq!(running.line().await, "up");
    running.workload.terminate();
    assert_eq!(running.line().await, "bye");
    assert_eq!(running.exited().await.code, Some(5));
}

#[tokio::test]
async fn a_server_that_ignores_sigterm_is_killed() {
    let script = "trap '' TERM; while read line; do echo \"$line\"; done; exec sleep 1000";
    let (mut running, pids) = family(&owner("ignores"), script).await;
    running.stdin.write_all(b"deaf now\n").await.unwrap();
    assert_eq!(running.line().await, "deaf now");
    running.workload.terminate();
    running.stdin.write_all(b"still here\n").await.unwrap();
    assert_eq!(running.line().await, "still here");
    running.workload.kill();
    assert_eq!(running.exited().await, KILLED);
    running.gone().await;
    assert_gone(&pids);
    // Both may be asked for again, of whatever is left.
    running.workload.terminate();
    running.workload.kill();
}

#[tokio::test]
async fn dropping_a_workload_ends_its_tree() {
    let runner = runner();
    let launch = sh(&owner("drop"), &format!("{FAMILY} exec sleep 1000"));
    let (workload, streams) = runner.start(&launch).await.unwrap();
    let cofer_runtime::Streams { stdin, stdout, stderr } = streams;
    let stdout = tokio::io::BufReader::new(stdout);
    let mut running = Running { workload, stdin, stdout, stderr };
    let mut pids = running.pids(FAMILY_SIZE).await;
    pids.extend([running.shim(), running.workload.pid()]);
    drop(running);
    timeout(PATIENCE, runner.drained()).await.unwrap();
    assert_gone(&pids);
}

#[tokio::test]
async fn a_start_that_is_dropped_midway_leaves_nothing() {
    let owner = owner("midway");
    let runner = runner();
    for _ in 0..20 {
        let launch = sh(&owner, "exec sleep 1000");
        let start = timeout(Duration::ZERO, runner.start(&launch));
        assert!(start.await.is_err(), "the start was done before it could be dropped");
    }
    timeout(PATIENCE, runner.drained()).await.unwrap();
    assert_eq!(sweep(&owner), Vec::<u32>::new());
}

#[tokio::test]
async fn a_start_that_fails_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let script = script(place.path(), "#!/no/such/interpreter\n");
    let owner = owner("fails");
    let runner = runner();
    assert!(runner.start(&program(&owner, &script, &[])).await.is_err());
    timeout(PATIENCE, runner.drained()).await.unwrap();
    assert_eq!(sweep(&owner), Vec::<u32>::new());
}

#[tokio::test]
async fn a_killed_shim_takes_the_server_and_its_tree_with_it() {
    become_subreaper().unwrap();
    let (running, pids) = family(&owner("shim-killed"), "exec sleep 1000").await;
    support::signal(running.shim(), Signal::KILL);
    assert_eq!(running.exited().await, KILLED);
    running.gone().await;
    assert_gone(&pids);
}

#[tokio::test]
async fn cleaning_up_after_one_run_spares_another_run_of_the_same_server() {
    become_subreaper().unwrap();
    let launch = program(&owner("two-runs"), "cat", &[]);
    let (killed, mut spared) = (start(&launch).await, start(&launch).await);
    support::signal(killed.shim(), Signal::KILL);
    killed.gone().await;
    spared.stdin.write_all(b"still here\n").await.unwrap();
    assert_eq!(spared.line().await, "still here");
}

#[tokio::test]
async fn a_stopped_shim_is_made_to_end_its_tree() {
    let (running, pids) = family(&owner("shim-stopped"), "exec sleep 1000").await;
    support::stop(running.shim()).await;
    running.workload.kill();
    running.gone().await;
    assert_gone(&pids);
}

#[tokio::test]
async fn orphans_are_collected_while_the_server_runs() {
    let script = "(setsid sh -c 'echo $$; exit 0' &); exec cat";
    let mut running = start(&sh(&owner("collected"), script)).await;
    let orphan: u32 = running.line().await.parse().unwrap();
    support::until("the orphan is collected", || !exists(orphan)).await;
    assert!(exists(running.workload.pid()));
}

/// Writes an executable script and returns its path.
fn script(place: &std::path::Path, text: &str) -> String {
    let path = place.join("script");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_tree_that_is_still_growing_is_ended_whole() {
    let place = tempfile::tempdir().unwrap();
    // Every process makes three more, each in a session of its own, four levels deep.
    let script = script(
        place.path(),
        "#!/bin/sh\necho $1\n[ $1 -gt 0 ] && for i in 1 2 3; do setsid $0 $(($1-1)) & done\n\
         exec sleep 1000\n",
    );
    let owner = owner("grows");
    let mut running = start(&program(&owner, &script, &["4"])).await;
    for _ in 0..10 {
        running.line().await;
    }
    running.workload.kill();
    running.gone().await;
    assert_eq!(sweep(&owner), Vec::<u32>::new());
}

#[tokio::test]
async fn a_process_that_flees_by_forking_and_exiting_is_caught() {
    let place = tempfile::tempdir().unwrap();
    let script =
        script(place.path(), "#!/bin/sh\necho $1\n[ $1 -gt 0 ] && setsid $0 $(($1-1)) &\nexit 0\n");
    let owner = owner("flees");
    let launch = sh(&owner, &format!("{script} 2000; exec sleep 1000"));
    let mut running = start(&launch).await;
    for _ in 0..20 {
        running.line().await;
    }
    running.workload.kill();
    running.gone().await;
    assert_eq!(sweep(&owner), Vec::<u32>::new());
}

#[tokio::test]
async fn many_workloads_start_and_end_at_once() {
    let owner = owner("many");
    let runner = runner();
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (runner, owner) = (runner.clone(), owner.clone());
        starts.spawn(async move { runner.start(&sh(&owner, "sleep 1000 & cat")).await.unwrap() });
    }
    let running = starts.join_all().await;
    assert_eq!(running.len(), 40);
    drop(running);
    timeout(PATIENCE, runner.drained()).await.unwrap();
    assert_eq!(sweep(&owner), Vec::<u32>::new());
}
