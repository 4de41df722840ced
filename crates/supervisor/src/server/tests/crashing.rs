//! What becomes of a server that had been ready and ends by itself.

use std::time::Duration;

use cofer_model::{FailureKind, ProcessStatus, RestartPolicy, Status};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::fakes::Note;
use super::puppet::{Manners, Script};
use super::world::{Server, World};

#[tokio::test(start_paused = true)]
async fn a_crash_is_followed_by_a_restart_within_five_seconds() {
    // covers: HST-3.2
    let world = World::new();
    let server = world.ready().await;
    let crashed = Instant::now();
    server.run().complain("out of cheese");
    sleep(Duration::from_millis(1)).await;
    server.run().exit(7);
    let between = server.until(Status::Restarting).await;
    let failure = between.failure.clone().unwrap();
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::Crashed, Some(7)));
    assert_eq!(failure.stderr.as_deref(), Some("out of cheese"));
    assert_eq!(between.process_status(), ProcessStatus::Restarting);
    assert!(between.next_restart_at.is_some() && between.last_crash_at.is_some());
    assert!(between.pid.is_none() && between.health_reasons.is_empty());

    let ready = server.until(Status::Ready).await;
    assert!(crashed.elapsed() < Duration::from_secs(5));
    assert_eq!(ready.restart_count, 1);
    assert!(ready.failure.is_none() && ready.next_restart_at.is_none());
    assert!(ready.last_crash_at.is_some());
    use Status::{Ready, Restarting, Starting};
    assert_eq!(server.told(), [Starting, Ready, Restarting, Ready]);
    assert!(server.log().contains("crashed: the server exited with code 7"));
    server.handle.call("ping", None, None).await.unwrap();
}

/// Crashes a server that is ready, and tells how long it was away.
async fn time_away(server: &Server<'_>) -> u64 {
    server.crash().await;
    let crashed = Instant::now();
    server.until(Status::Ready).await;
    crashed.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_backs_off_with_a_warning_and_says_until_when() {
    // covers: HST-3.3
    let world = World::new();
    let server = world.ready().await;
    for _ in 0..3 {
        assert_eq!(time_away(&server).await, 0);
        assert!(server.snapshot().health_reasons.is_empty());
    }
    for pause in [5_u32, 15, 45, 120, 300, 300] {
        let snapshot = server.crash().await;
        assert!(snapshot.health_reasons[0].contains(&format!("{pause} s")), "{snapshot:?}");
        let wait = snapshot.next_restart_at.unwrap() - snapshot.last_crash_at.unwrap();
        assert!((wait.as_seconds_f64() - f64::from(pause)).abs() < 1.0, "{wait}");
        let crashed = Instant::now();
        server.until(Status::Ready).await;
        assert_eq!(crashed.elapsed().as_secs(), u64::from(pause));
    }
    assert!(!server.snapshot().health_reasons.is_empty(), "the warning outlasts the restart");
    assert_eq!(server.snapshot().restart_count, 9);
}

#[tokio::test(start_paused = true)]
async fn a_minute_of_health_ends_a_crash_loop() {
    // covers: HST-3.3
    let world = World::new();
    let server = world.ready().await;
    for _ in 0..4 {
        time_away(&server).await;
    }
    sleep(Duration::from_secs(59)).await;
    assert_eq!(server.snapshot().health_reasons.len(), 1);
    sleep(Duration::from_secs(2)).await;
    assert!(server.snapshot().health_reasons.is_empty());
    assert_eq!(time_away(&server).await, 0, "and it begins anew");
}

#[tokio::test(start_paused = true)]
async fn a_minute_of_silence_is_no_health() {
    let world = World::new();
    let more = json!({"heartbeat": {"interval_ms": 10_000, "timeout_ms": 5_000}});
    let server = world.add_with(Manners::good(Script::Serves), more);
    for _ in 0..4 {
        server.crash().await;
        server.until(Status::Ready).await;
    }
    server.run().fall_silent();
    server.until(Status::Unresponsive).await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(server.snapshot().health_reasons.len(), 2, "the loop and the silence");
    server.run().exit(1);
    let snapshot = server.until(Status::Restarting).await;
    assert!(snapshot.health_reasons[0].contains("15 s"), "the loop goes on: {snapshot:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_does_not_start_is_another_crash() {
    // covers: HST-3.3
    let world = World::new();
    let server = world.ready().await;
    server.teach(Manners::good(Script::Exits { code: 4, stderr: "still broken" }));
    server.run().exit(1);
    let looping = |snapshot: &crate::Snapshot| !snapshot.health_reasons.is_empty();
    let snapshot = server.until_that("loops", looping).await;
    assert_eq!(snapshot.status, Status::Restarting);
    assert_eq!(snapshot.restart_count, 3);
    let failure = snapshot.failure.clone().unwrap();
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::ExitedEarly, Some(4)));
    assert_eq!(failure.stderr.as_deref(), Some("still broken"));
    assert!(snapshot.spec.enabled, "it stays switched on");
    server.teach(Manners::good(Script::Serves));
    assert_eq!(server.until(Status::Ready).await.restart_count, 4);
}

#[tokio::test(start_paused = true)]
async fn a_restart_by_hand_resets_the_counters_and_ends_a_pause() {
    // covers: HST-3.5
    let world = World::new();
    let server = world.ready().await;
    for _ in 0..4 {
        time_away(&server).await;
    }
    server.crash().await;
    let asked = Instant::now();
    assert!(server.handle.restart().await);
    let snapshot = server.snapshot();
    assert_eq!((snapshot.status, snapshot.restart_count), (Status::Restarting, 0));
    assert!(snapshot.next_restart_at.is_none() && snapshot.health_reasons.is_empty());
    server.until(Status::Ready).await;
    assert_eq!(asked.elapsed().as_secs(), 0, "it did not wait for the pause of 15 s");
    assert_eq!(time_away(&server).await, 0, "it is out of the loop");
    assert_eq!(server.snapshot().restart_count, 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_switched_off_and_on_again_begins_a_new_history() {
    let world = World::new();
    let server = world.ready().await;
    for _ in 0..4 {
        time_away(&server).await;
    }
    server.switch(false).await;
    server.until(Status::Stopped).await;
    server.switch(true).await;
    assert_eq!(server.until(Status::Ready).await.restart_count, 0);
    assert_eq!(time_away(&server).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_is_ended_when_its_stdout_is_closed_and_it_runs_on() {
    let world = World::new();
    let server = world.ready().await;
    let first = server.run();
    first.close_stdout();
    let failure = server.until(Status::Restarting).await.failure.clone().unwrap();
    assert!(!first.is_there());
    assert_eq!(failure.kind, FailureKind::Crashed);
    assert!(failure.message.contains("closed its stdout"), "{}", failure.message);
    server.until(Status::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_its_stdout_and_then_exits_has_an_exit_code() {
    let world = World::new();
    let server = world.ready().await;
    server.run().close_stdout();
    sleep(Duration::from_millis(100)).await;
    server.run().exit(9);
    let failure = server.until(Status::Restarting).await.failure.clone().unwrap();
    assert_eq!(failure.exit_code, Some(9));
}

/// Where a server with this policy is after it exited with this code.
async fn check_policy(policy: RestartPolicy, code: i32, expected: Status) {
    let world = World::new();
    let more = json!({"restart_policy": policy});
    let server = world.add_with(Manners::good(Script::Serves), more);
    server.until(Status::Ready).await;
    server.run().exit(code);
    server.until_that("ended", |snapshot| snapshot.status != Status::Ready).await;
    sleep(Duration::from_secs(10)).await;
    let snapshot = server.snapshot();
    let what = format!("{policy:?} after exit {code}");
    assert_eq!(snapshot.status, expected, "{what}");
    assert!(snapshot.spec.enabled, "{what}: nobody switched it off");
    let ended = server.stored().last().cloned().unwrap();
    match expected {
        Status::Stopped => assert_eq!(ended, Note::Stopped { told: Status::Ready }, "{what}"),
        Status::Error => {
            assert!(matches!(ended, Note::Failed { disable: false, .. }), "{what}: {ended:?}");
            assert_eq!(snapshot.failure.as_ref().unwrap().exit_code, Some(code), "{what}");
        }
        _ => assert_eq!(server.runs().len(), 2, "{what}"),
    }
    if expected != Status::Ready {
        server.patch(json!({"description": "words"})).await;
        assert_eq!(server.status(), expected, "{what}: a change of words does not start it");
        assert!(server.handle.restart().await, "{what}: it is on, so that it can be restarted");
        assert_eq!(server.status(), Status::Starting, "{what}");
        server.until(Status::Ready).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_restart_policy_decides_what_follows_an_exit() {
    check_policy(RestartPolicy::Always, 0, Status::Ready).await;
    check_policy(RestartPolicy::Always, 1, Status::Ready).await;
    check_policy(RestartPolicy::OnFailure, 0, Status::Stopped).await;
    check_policy(RestartPolicy::OnFailure, 1, Status::Ready).await;
    check_policy(RestartPolicy::Never, 0, Status::Stopped).await;
    check_policy(RestartPolicy::Never, 1, Status::Error).await;
}
