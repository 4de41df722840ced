//! A person's orders, in each state in which they may come.

use std::time::Duration;

use cofer_model::Status;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::fakes::Note;
use super::puppet::{Manners, Script};
use super::world::World;

#[tokio::test(start_paused = true)]
async fn a_server_can_be_switched_off_while_it_is_launched() {
    // covers: MGR-23
    let world = World::new();
    let server = world.add(Script::IsNeverLaunched);
    sleep(Duration::from_secs(1)).await;
    server.switch(false).await;
    server.until(Status::Stopped).await;
    assert!(server.runs().is_empty());
    assert_eq!(server.stored(), [Note::Stopped { told: Status::Stopping }]);
}

#[tokio::test(start_paused = true)]
async fn a_server_can_be_switched_off_while_it_shakes_hands() {
    // covers: MGR-23
    let world = World::new();
    let server = world.add(Script::IsMute);
    server.until_that("has a process", |snapshot| snapshot.pid.is_some()).await;
    let asked = Instant::now();
    server.switch(false).await;
    assert_eq!(server.status(), Status::Stopping);
    server.until(Status::Stopped).await;
    assert!(asked.elapsed() < Duration::from_secs(1), "it did not wait for the start to fail");
    assert!(server.has_gone());
    assert!(server.snapshot().failure.is_none() && server.snapshot().pid.is_none());
    use Status::{Starting, Stopped, Stopping};
    assert_eq!(server.told(), [Starting, Stopping, Stopped]);
}

#[tokio::test(start_paused = true)]
async fn a_server_can_be_switched_off_while_it_is_ready() {
    // covers: MGR-23, MGR-25
    let world = World::new();
    let server = world.ready().await;
    server.switch(false).await;
    assert_eq!(server.status(), Status::Stopping);
    let stopped = server.until(Status::Stopped).await;
    assert!(server.has_gone());
    assert!(stopped.pid.is_none() && stopped.peer.is_none() && stopped.notice.is_none());
    assert_eq!(server.stored().last(), Some(&Note::Stopped { told: Status::Stopping }));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.runs().len(), 1, "it stays off");
}

#[tokio::test(start_paused = true)]
async fn a_server_can_be_switched_off_while_it_waits_for_its_restart() {
    // covers: MGR-23
    let world = World::new();
    let server = world.ready().await;
    server.crash().await;
    server.switch(false).await;
    let snapshot = server.snapshot();
    assert_eq!(snapshot.status, Status::Stopped, "nothing runs, so that nothing is stopped");
    assert!(snapshot.next_restart_at.is_none() && snapshot.failure.is_none());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.runs().len(), 1, "it stays off");
}

#[tokio::test(start_paused = true)]
async fn a_changed_run_configuration_restarts_a_ready_server() {
    let world = World::new();
    let server = world.ready().await;
    server.patch(json!({"args": ["--new"]})).await;
    assert_eq!(server.status(), Status::Restarting);
    let ready = server.until(Status::Ready).await;
    assert_eq!(server.run().spec.args, ["--new"]);
    assert_eq!((server.runs().len(), ready.restart_count), (2, 0));
    assert_eq!(world.launcher.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_changed_run_configuration_that_does_not_start_is_an_error() {
    // covers: MGR-22
    let world = World::new();
    let server = world.ready().await;
    server.teach(Manners::good(Script::Exits { code: 1, stderr: "" }));
    server.patch(json!({"args": ["--wrong"]})).await;
    let snapshot = server.until(Status::Error).await;
    assert!(!snapshot.spec.enabled);
    assert_eq!(snapshot.spec.args, ["--wrong"]);
}

#[tokio::test(start_paused = true)]
async fn a_changed_run_configuration_is_taken_up_by_a_start_and_by_a_pause() {
    let world = World::new();
    let server = world.add(Script::IsMute);
    server.until_that("has a process", |snapshot| snapshot.pid.is_some()).await;
    server.teach(Manners::good(Script::Serves));
    server.patch(json!({"args": ["1"]})).await;
    server.until(Status::Ready).await;
    assert_eq!(server.run().spec.args, ["1"]);

    for _ in 0..4 {
        server.crash().await;
    }
    let changed = Instant::now();
    server.patch(json!({"args": ["2"]})).await;
    let ready = server.until(Status::Ready).await;
    assert_eq!(server.run().spec.args, ["2"]);
    assert_eq!(changed.elapsed().as_secs(), 0, "it did not wait for the pause of 5 s");
    assert_eq!(ready.restart_count, 0);
    assert_eq!(world.launcher.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_words_is_seen_and_restarts_nothing() {
    let world = World::new();
    let server = world.ready().await;
    let patch = json!({"name": "renamed", "call_timeout_ms": 5, "restart_policy": "never"});
    server.patch(patch).await;
    let snapshot = server.snapshot();
    assert_eq!(snapshot.status, Status::Ready);
    assert_eq!(snapshot.spec.name.as_str(), "renamed");
    assert_eq!(world.supervisor.find("renamed").unwrap().id(), server.id());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.runs().len(), 1);
    assert_eq!(server.told(), [Status::Starting, Status::Ready]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_words_does_not_shorten_a_pause() {
    let world = World::new();
    let server = world.ready().await;
    for _ in 0..4 {
        server.crash().await;
    }
    let crashed = Instant::now();
    sleep(Duration::from_secs(2)).await;
    server.patch(json!({"description": "words"})).await;
    assert_eq!(server.status(), Status::Restarting);
    server.until(Status::Ready).await;
    assert_eq!(crashed.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_restart_by_hand_ends_the_old_process_before_the_new_one() {
    // covers: HST-3.5
    let world = World::new();
    let server = world.ready().await;
    assert!(server.handle.restart().await);
    assert_eq!(server.status(), Status::Restarting, "seen as soon as it was asked for");
    let ready = server.until(Status::Ready).await;
    assert_eq!((server.runs().len(), ready.restart_count), (2, 0));
    assert!(!server.runs()[0].is_there());
    assert_eq!(world.launcher.overlaps(), 0);
    server.handle.call("ping", None, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_restart_by_hand_that_does_not_start_backs_off_and_stays_on() {
    let world = World::new();
    let server = world.ready().await;
    server.teach(Manners::good(Script::IsMissing));
    server.handle.restart().await;
    let failed = |snapshot: &crate::Snapshot| snapshot.failure.is_some();
    let snapshot = server.until_that("failed", failed).await;
    assert_eq!(snapshot.status, Status::Restarting);
    assert!(snapshot.spec.enabled && snapshot.last_crash_at.is_some());
}

#[tokio::test(start_paused = true)]
async fn orders_that_come_in_one_moment_are_done_in_their_order() {
    let world = World::new();
    let server = world.ready().await;
    let off = server.switch(false);
    let on = server.switch(true);
    let off_again = server.switch(false);
    tokio::join!(off, on, off_again);
    server.until(Status::Stopped).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.status(), Status::Stopped);
    assert!(server.has_gone());
    assert_eq!(world.launcher.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn secrets_that_are_replaced_are_masked_as_well_as_those_that_replace_them() {
    let world = World::new();
    let secret = |value| json!({"environment": {"API_KEY": value}});
    let manners = Manners { script: Script::Serves, heeds_eof: false, heeds_sigterm: false };
    let server = world.add_with(manners, secret("canary-old-0123"));
    server.until(Status::Ready).await;
    let old = server.run();
    server.patch(secret("canary-new-4567")).await;
    old.complain("I was canary-old-0123");
    server.until(Status::Ready).await;
    server.run().complain("I am canary-new-4567");
    sleep(Duration::from_secs(1)).await;
    let log = server.log();
    assert!(log.contains("I was ****") && log.contains("I am ****"), "{log}");
    assert!(!log.contains("canary"), "{log}");
}
