//! The start of a daemon that finds servers of an earlier one.

use std::time::Duration;

use cofer_model::{Failure, FailureKind, Status};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::fakes::STORING;
use super::puppet::{Script, TAKES};
use super::world::World;

#[tokio::test(start_paused = true)]
async fn all_servers_that_are_on_start_together() {
    // covers: HST-3.1
    let world = World::starting_at_most(16);
    let begun = Instant::now();
    let servers: Vec<_> =
        (0..10).map(|_| world.restore(Script::Serves, json!({}), None, true)).collect();
    let off = world.restore(Script::Serves, json!({"enabled": false}), None, true);
    for server in &servers {
        server.until(Status::Ready).await;
    }
    assert_eq!(begun.elapsed(), TAKES + STORING, "as long as one of them");
    assert_eq!(off.status(), Status::Stopped);
    assert_eq!(world.launcher.launches(), 10);
}

#[tokio::test(start_paused = true)]
async fn only_so_many_start_at_once() {
    // covers: HST-3.1
    let world = World::starting_at_most(2);
    let more = json!({"start_timeout_ms": 10_000});
    // Also those that were never ready before are servers of the boot.
    let servers: Vec<_> = (0..6)
        .map(|number| world.restore(Script::IsMute, more.clone(), None, number % 2 == 0))
        .collect();
    let added = world.add(Script::Serves);
    added.until(Status::Ready).await;
    assert_eq!(world.launcher.launches(), 2 + 1, "who is added does not wait for the boot");
    sleep(Duration::from_secs(9)).await;
    assert_eq!(world.launcher.launches(), 2 + 1);
    sleep(Duration::from_secs(2)).await;
    let launched = servers.iter().filter(|server| !server.runs().is_empty()).count();
    assert_eq!(launched, 4, "the next two had their turn");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_of_those_that_are_added_or_switched_on_start_at_once() {
    let world = World::starting_at_most(2);
    let begun = Instant::now();
    let servers: Vec<_> = (0..6).map(|_| world.add(Script::Serves)).collect();
    for server in &servers {
        server.until(Status::Ready).await;
    }
    assert!(begun.elapsed() >= 3 * TAKES, "three rounds of two, not {:?}", begun.elapsed());
    for server in &servers {
        server.switch(false).await;
        server.until(Status::Stopped).await;
    }
    let begun = Instant::now();
    for server in &servers {
        server.switch(true).await;
    }
    for server in &servers {
        server.until(Status::Ready).await;
    }
    assert!(begun.elapsed() >= 3 * TAKES, "three rounds of two, not {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_turn_can_be_switched_off() {
    let world = World::starting_at_most(1);
    let _first = world.restore(Script::IsMute, json!({}), None, true);
    let second = world.restore(Script::Serves, json!({}), None, true);
    let third = world.restore(Script::Serves, json!({}), None, true);
    sleep(Duration::from_secs(1)).await;
    second.switch(false).await;
    second.until(Status::Stopped).await;
    assert!(third.handle.restart().await);
    third.until(Status::Ready).await;
    assert!(second.runs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_proven_server_that_does_not_start_at_boot_backs_off_and_stays_on() {
    // covers: HST-3.2, HST-3.3
    let world = World::new();
    let server = world.restore(Script::Exits { code: 1, stderr: "not yet" }, json!({}), None, true);
    let looping = |snapshot: &crate::Snapshot| !snapshot.health_reasons.is_empty();
    let snapshot = server.until_that("loops", looping).await;
    assert_eq!(snapshot.status, Status::Restarting);
    assert!(snapshot.spec.enabled && snapshot.next_restart_at.is_some());
    assert!(server.stored().is_empty(), "nothing that the next daemon should know");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_never_ready_and_does_not_start_at_boot_is_switched_off() {
    // covers: MGR-22
    let world = World::new();
    let server = world.restore(Script::Exits { code: 1, stderr: "" }, json!({}), None, false);
    assert!(!server.until(Status::Error).await.spec.enabled);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_remembered_until_the_server_is_switched_on() {
    let world = World::new();
    let failure = Failure {
        kind: FailureKind::ExitedEarly,
        message: "it failed yesterday".to_owned(),
        hint: String::new(),
        exit_code: Some(1),
        signal: None,
        stderr: None,
    };
    let off = json!({"enabled": false});
    let server = world.restore(Script::Serves, off, Some(failure.clone()), false);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.status(), Status::Error);
    assert_eq!(server.snapshot().failure.as_ref(), Some(&failure));
    assert!(server.runs().is_empty());
    server.switch(true).await;
    assert_eq!(server.until(Status::Ready).await.failure, None);
}
