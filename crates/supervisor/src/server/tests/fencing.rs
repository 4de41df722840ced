//! The fence: nothing runs while it is raised, and everything runs again afterwards.

use std::time::Duration;

use bytes::Bytes;
use cofer_model::{Failure, FailureKind, Status};
use serde_json::json;
use tokio::time::Instant;

use super::puppet::{Manners, Script};
use super::world::{Server, World};

/// Ends on SIGKILL only.
const STUBBORN: Manners =
    Manners { script: Script::Serves, heeds_eof: false, heeds_sigterm: false };

fn lost() -> Failure {
    Failure {
        kind: FailureKind::StoreUnavailable,
        message: "ownership lost".to_owned(),
        hint: String::new(),
        exit_code: None,
        signal: None,
        stderr: None,
    }
}

async fn resume(world: &World, server: &Server<'_>) {
    let spec = (*server.handle.spec()).clone();
    world.supervisor.resume_server(server.id(), spec, None, true).await;
}

#[tokio::test(start_paused = true)]
async fn servers_end_within_the_grace_of_the_fence_and_nothing_is_stored() {
    let world = World::new();
    let (good, stubborn) = (world.ready().await, world.add_with(STUBBORN, json!({})));
    stubborn.until(Status::Ready).await;
    let stored = stubborn.stored();
    let begun = Instant::now();
    world.supervisor.suspend(lost()).await;
    assert!(begun.elapsed() <= Duration::from_millis(3500), "{:?}", begun.elapsed());
    assert!(good.has_gone() && stubborn.has_gone());
    for server in [&good, &stubborn] {
        let snapshot = server.snapshot();
        assert_eq!(snapshot.status, Status::Error);
        assert_eq!(snapshot.failure.as_ref().unwrap().kind, FailureKind::StoreUnavailable);
        assert!(snapshot.spec.enabled);
    }
    assert_eq!(stubborn.stored(), stored, "the store is another daemon's");
}

#[tokio::test(start_paused = true)]
async fn suspended_servers_start_when_they_are_resumed_and_not_by_any_other_order() {
    let world = World::new();
    let server = world.ready().await;
    let off = world.add_with(Manners::good(Script::Serves), json!({"enabled": false}));
    world.supervisor.suspend(lost()).await;
    assert!(!server.handle.restart().await);
    server.patch(json!({"args": ["changed"]})).await;
    server.switch(true).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!((server.runs().len(), server.status()), (1, Status::Error));

    world.supervisor.resume();
    for server in [&server, &off] {
        resume(&world, server).await;
    }
    let ready = server.until(Status::Ready).await;
    assert_eq!((ready.failure.as_ref(), server.runs().len()), (None, 2));
    assert_eq!((off.runs().len(), off.status()), (0, Status::Stopped));
    assert_eq!(world.launcher.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_given_more_time_to_stop_is_killed_by_the_fence() {
    let world = World::new();
    let server = world.add_with(STUBBORN, json!({}));
    server.until(Status::Ready).await;
    let begun = Instant::now();
    server.switch(false).await;
    world.supervisor.suspend(lost()).await;
    assert!(begun.elapsed() <= Duration::from_millis(3500), "{:?}", begun.elapsed());
    assert!(server.has_gone());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_starting_or_backing_off_is_suspended() {
    let world = World::new();
    let mute = world.add(Script::IsMute);
    mute.until_that("has a process", |snapshot| snapshot.pid.is_some()).await;
    let crashed = world.ready().await;
    crashed.crash().await;
    world.supervisor.suspend(lost()).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    for server in [&mute, &crashed] {
        assert!(server.has_gone());
        assert_eq!((server.runs().len(), server.status()), (1, Status::Error));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_added_while_the_fence_is_raised_waits() {
    let world = World::new();
    world.supervisor.suspend(lost()).await;
    let server = world.add(Script::Serves);
    server.until(Status::Error).await;
    assert!(server.runs().is_empty());
    world.supervisor.resume();
    resume(&world, &server).await;
    server.until(Status::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn processes_of_single_sessions_end_at_the_fence_and_none_starts() {
    let world = World::new();
    let server = world.ready().await;
    let initialize = Bytes::from_static(b"{}");
    let kept = server.handle.open_private(initialize.clone(), None).await.unwrap();
    let dropped = server.handle.open_private(initialize.clone(), None).await.unwrap();
    drop(dropped);
    world.supervisor.suspend(lost()).await;
    assert!(server.has_gone(), "its session has not dropped it");
    let refused = server.handle.open_private(initialize, None).await.err().unwrap();
    assert_eq!(refused.kind, FailureKind::StoreUnavailable);
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn suspended_servers_are_removed_and_shut_down() {
    let world = World::new();
    let (removed, other) = (world.ready().await, world.ready().await);
    world.supervisor.suspend(lost()).await;
    world.supervisor.remove(removed.id()).await;
    assert!(world.supervisor.get(removed.id()).is_none());
    world.supervisor.shut_down().await;
    assert!(other.has_gone());
}
