//! From nothing to ready, and the first start that fails.

use std::time::Duration;

use cofer_model::{FailureKind, Status};
use serde_json::json;
use tokio::time::Instant;

use super::fakes::Note;
use super::puppet::{Manners, Script};
use super::world::{Server, World};

#[tokio::test(start_paused = true)]
async fn a_server_that_is_added_switched_on_starts_at_once_and_is_ready() {
    // covers: MGR-11, MGR-13
    let world = World::new();
    let server = world.add(Script::Serves);
    assert_eq!(server.status(), Status::Starting, "before anything else happens");
    let ready = server.until(Status::Ready).await;
    assert_eq!(server.told(), [Status::Starting, Status::Ready]);
    assert_eq!(server.stored(), [Note::Ready { told: Status::Starting }], "stored, then told");
    assert_eq!(ready.pid, Some(server.run().pid));
    assert!(ready.started_at.is_some() && ready.failure.is_none());
    assert_eq!(ready.peer.as_ref().unwrap().protocol_version, "2025-11-25");
    assert!(server.handle.usage().await.is_some());
    assert_eq!(server.handle.isolation().await, Some(json!({"puppet": true})));
}

#[tokio::test(start_paused = true)]
async fn uptime_does_not_follow_the_wall_clock() {
    // covers: HST-4.1
    let world = World::new();
    let server = world.add(Script::Serves);
    let ready = server.until(Status::Ready).await;
    let before = ready.uptime().unwrap();
    // Only the time that cannot be set goes on here; the wall clock stands as good as still.
    tokio::time::advance(Duration::from_secs(90)).await;
    assert_eq!(ready.uptime().unwrap() - before, Duration::from_secs(90));
    server.switch(false).await;
    assert!(server.until(Status::Stopped).await.uptime().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_added_switched_off_does_not_start() {
    // covers: MGR-12
    let world = World::new();
    let server = world.add_with(Manners::good(Script::Serves), json!({"enabled": false}));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.status(), Status::Stopped);
    assert!(server.runs().is_empty() && server.told().is_empty() && server.stored().is_empty());
    assert!(!server.handle.restart().await, "what is off is not restarted");
}

/// What must hold of every first start that failed: one stored change, then one event.
fn check_failed_start(server: &Server<'_>) {
    let snapshot = server.snapshot();
    let failure = snapshot.failure.clone().unwrap();
    assert!(!snapshot.spec.enabled && !server.handle.spec().enabled, "the switch is off again");
    assert_eq!(server.told(), [Status::Starting, Status::Error]);
    let note = Note::Failed { told: Status::Starting, disable: true, failure };
    assert_eq!(server.stored(), [note], "stored before it was told");
    assert!(snapshot.pid.is_none() && snapshot.next_restart_at.is_none());
    assert_eq!(snapshot.restart_count, 0);
    assert!(server.has_gone());
}

#[tokio::test(start_paused = true)]
async fn a_first_start_that_exits_is_an_error_with_exit_code_and_stderr_and_switches_off() {
    // covers: MGR-14, MGR-15, MGR-22
    let world = World::new();
    let server = world.add(Script::Exits { code: 3, stderr: "no config\ngiving up\n" });
    let failure = server.until(Status::Error).await.failure.clone().unwrap();
    check_failed_start(&server);
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::ExitedEarly, Some(3)));
    assert_eq!(failure.stderr.as_deref(), Some("no config\ngiving up"));
    assert!(failure.message.contains("exited with code 3"), "{}", failure.message);
    assert!(server.log().contains("did not start: the server exited with code 3"));
    assert!(!server.handle.restart().await, "it is off");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_is_not_there_is_an_error() {
    // covers: MGR-14, MGR-22
    let world = World::new();
    let server = world.add(Script::IsMissing);
    let failure = server.until(Status::Error).await.failure.clone().unwrap();
    check_failed_start(&server);
    assert_eq!(failure.kind, FailureKind::CommandNotFound);
    assert!(failure.message.contains("`puppet` was not found"), "{}", failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up_after_its_start_timeout() {
    let world = World::new();
    let begun = Instant::now();
    let more = json!({"start_timeout_ms": 7000});
    let server = world.add_with(Manners::good(Script::IsMute), more);
    let failure = server.until(Status::Error).await.failure.clone().unwrap();
    assert_eq!(begun.elapsed().as_secs(), 7);
    check_failed_start(&server);
    assert_eq!(failure.kind, FailureKind::StartTimeout);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_stdout_is_told_apart_from_one_that_exited() {
    let world = World::new();
    let server = world.add(Script::IsMute);
    server.until_that("has a process", |snapshot| snapshot.pid.is_some()).await;
    server.run().close_stdout();
    let failure = server.until(Status::Error).await.failure.clone().unwrap();
    check_failed_start(&server);
    assert_eq!(failure.kind, FailureKind::HandshakeFailed);
    assert!(failure.hint.contains("stdout"), "{}", failure.hint);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_server_is_noticed_although_a_child_of_it_holds_its_pipes() {
    let world = World::new();
    let begun = Instant::now();
    let server = world.add(Script::LeavesChild);
    let failure = server.until(Status::Error).await.failure.clone().unwrap();
    check_failed_start(&server);
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::ExitedEarly, Some(0)));
    assert!(begun.elapsed() < Duration::from_secs(5), "it did not wait for the start to fail");
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_leaves_the_others_alone() {
    // covers: MGR-16
    let world = World::new();
    let well = world.ready().await;
    let broken = world.add(Script::Exits { code: 1, stderr: "" });
    broken.until(Status::Error).await;
    assert_eq!(well.status(), Status::Ready);
    well.handle.call("ping", None, None).await.unwrap();
    let later = world.add(Script::Serves);
    later.until(Status::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_in_error_can_be_switched_on_again() {
    // covers: MGR-19, MGR-21
    let world = World::new();
    let server = world.add(Script::Exits { code: 1, stderr: "" });
    server.until(Status::Error).await;
    server.teach(Manners::good(Script::Serves));
    server.switch(true).await;
    assert_eq!(server.status(), Status::Starting, "seen as soon as the switch was used");
    assert_eq!(server.snapshot().failure, None);
    server.until(Status::Ready).await;
    assert!(server.handle.spec().enabled);
}

#[tokio::test(start_paused = true)]
async fn an_error_goes_when_it_is_forgiven_and_stays_when_only_words_change() {
    let world = World::new();
    let server = world.add(Script::Exits { code: 1, stderr: "" });
    server.until(Status::Error).await;
    server.patch(json!({"description": "broken"})).await;
    assert_eq!(server.status(), Status::Error);
    server.switch(false).await;
    assert_eq!(server.status(), Status::Stopped, "seen as soon as the switch was used");
    assert_eq!(server.snapshot().failure, None);
    assert_eq!(server.stored().last(), Some(&Note::Stopped { told: Status::Error }));
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_a_first_start_does_not_make_it_a_proven_server() {
    // covers: MGR-22
    let world = World::new();
    let server = world.add(Script::IsMute);
    server.until_that("has a process", |snapshot| snapshot.pid.is_some()).await;
    server.teach(Manners::good(Script::Exits { code: 1, stderr: "" }));
    assert!(server.handle.restart().await);
    server.until(Status::Error).await;
    check_failed_start(&server);
    assert_eq!(server.runs().len(), 2);
}
