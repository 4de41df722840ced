//! The end of a server: gently, by force, for good, and all of them at once.

use std::time::Duration;

use cofer_model::Status;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::fakes::Note;
use super::puppet::{Manners, Script};
use super::world::World;

/// Heeds nothing but SIGKILL.
const STUBBORN: Manners =
    Manners { script: Script::Serves, heeds_eof: false, heeds_sigterm: false };
/// Heeds SIGTERM, but not the end of its stdin.
const DEAF: Manners = Manners { script: Script::Serves, heeds_eof: false, heeds_sigterm: true };

#[tokio::test(start_paused = true)]
async fn a_closed_stdin_is_enough_for_a_server_that_heeds_it() {
    let world = World::new();
    let server = world.ready().await;
    server.switch(false).await;
    server.until(Status::Stopped).await;
    assert!(!server.run().was_asked_to_end());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_heed_its_stdin_is_asked_by_sigterm() {
    let world = World::new();
    let server = world.add_with(DEAF, json!({}));
    server.until(Status::Ready).await;
    let asked = Instant::now();
    server.switch(false).await;
    let stopped = server.until(Status::Stopped).await;
    assert!(server.run().was_asked_to_end());
    assert!(asked.elapsed() < Duration::from_secs(1));
    assert_eq!(stopped.notice, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_sigterm_is_killed_after_the_grace_and_a_person_is_told() {
    // covers: MGR-26
    let world = World::new();
    let server = world.add_with(STUBBORN, json!({}));
    server.until(Status::Ready).await;
    let asked = Instant::now();
    server.switch(false).await;
    let stopped = server.until(Status::Stopped).await;
    assert_eq!(asked.elapsed().as_secs(), 10);
    assert!(server.run().was_asked_to_end() && server.has_gone());
    assert!(stopped.notice.as_ref().unwrap().contains("was killed"), "{stopped:?}");
    assert!(server.log().contains("did not stop within 10 s of SIGTERM"));
}

#[tokio::test(start_paused = true)]
async fn a_restart_kills_who_ignores_sigterm_after_ten_seconds() {
    // covers: HST-3.5, MGR-26
    let world = World::new();
    let server = world.add_with(STUBBORN, json!({}));
    server.until(Status::Ready).await;
    let asked = Instant::now();
    server.handle.restart().await;
    let ready = server.until(Status::Ready).await;
    assert_eq!(asked.elapsed().as_secs(), 10);
    assert!(ready.notice.is_some(), "the notice outlasts the restart");
    assert_eq!(world.launcher.overlaps(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_starting_is_asked_before_it_is_killed() {
    // covers: HST-3.4
    let world = World::new();
    let server = world.add_with(Manners { script: Script::IsMute, ..STUBBORN }, json!({}));
    server.until_that("has a process", |snapshot| snapshot.pid.is_some()).await;
    let asked = Instant::now();
    world.supervisor.shut_down().await;
    assert!(server.run().was_asked_to_end() && server.has_gone());
    assert_eq!(asked.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_many_takes_one_grace_and_not_their_sum() {
    // covers: HST-3.4, MGR-61
    let world = World::new();
    let mut servers = Vec::new();
    for _ in 0..20 {
        let server = world.add_with(STUBBORN, json!({}));
        server.until(Status::Ready).await;
        servers.push(server);
    }
    let gentle = world.ready().await;
    let waiting = world.ready().await;
    waiting.crash().await;
    let asked = Instant::now();
    world.supervisor.shut_down().await;
    assert_eq!(asked.elapsed().as_secs(), 30, "one grace for all");
    for server in servers.iter().chain([&gentle, &waiting]) {
        assert!(server.has_gone());
        assert_eq!(server.status(), Status::Stopped);
        assert!(
            !server.stored().iter().any(|note| matches!(note, Note::Stopped { .. })),
            "what ran is to run again with the next daemon"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_many_orders_does_not_hold_up_the_end_of_the_others() {
    // covers: HST-3.4
    let world = World::new();
    let busy = world.add_with(STUBBORN, json!({}));
    busy.until(Status::Ready).await;
    let others: Vec<_> = (0..8).map(|_| world.add_with(STUBBORN, json!({}))).collect();
    for other in &others {
        other.until(Status::Ready).await;
    }
    // More orders than its inbox holds, while it is being stopped for ten seconds.
    let orders = async {
        let mut restarts = JoinSet::new();
        let off = busy.switch(false);
        for _ in 0..40 {
            let handle = busy.handle.clone();
            restarts.spawn(async move { handle.restart().await });
        }
        off.await;
        restarts.join_all().await;
    };
    let asked = Instant::now();
    let end = async {
        sleep(Duration::from_secs(1)).await;
        world.supervisor.shut_down().await;
    };
    tokio::join!(orders, end);
    assert_eq!(asked.elapsed().as_secs(), 31);
    assert!(busy.has_gone() && others.iter().all(|other| other.has_gone()));
}

#[tokio::test(start_paused = true)]
async fn who_comes_after_the_end_was_ordered_is_ended_too() {
    let world = World::new();
    let stubborn = world.add_with(STUBBORN, json!({}));
    stubborn.until(Status::Ready).await;
    let late = async {
        sleep(Duration::from_secs(1)).await;
        world.add(Script::Serves)
    };
    let end = timeout(Duration::from_secs(3600), world.supervisor.shut_down());
    let (ended, late) = tokio::join!(end, late);
    ended.expect("it waits for whoever came late");
    assert!(late.has_gone());
    assert_eq!(late.status(), Status::Stopped);
    world.supervisor.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_server_is_gone_with_its_log() {
    let world = World::new();
    let server = world.add_with(DEAF, json!({}));
    let other = world.ready().await;
    server.until(Status::Ready).await;
    server.run().complain("something for the log");
    assert_eq!(world.log_files(), 2);
    world.supervisor.remove(server.id()).await;
    assert!(server.has_gone());
    assert!(world.supervisor.get(server.id()).is_none());
    assert_eq!(world.log_files(), 1);
    assert_eq!(server.told().last(), Some(&Status::Stopped));
    assert!(!server.handle.restart().await, "a handle that is left over does nothing");
    world.supervisor.remove(server.id()).await;
    assert_eq!(other.status(), Status::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_server_can_be_removed_in_every_state() {
    let world = World::new();
    let starting = world.add(Script::IsMute);
    let launching = world.add(Script::IsNeverLaunched);
    let failed = world.add(Script::Exits { code: 1, stderr: "" });
    let off = world.add_with(Manners::good(Script::Serves), json!({"enabled": false}));
    failed.until(Status::Error).await;
    let waiting = world.ready().await;
    waiting.crash().await;
    for server in [&starting, &launching, &failed, &off, &waiting] {
        world.supervisor.remove(server.id()).await;
        assert!(server.has_gone());
    }
    assert!(world.supervisor.list().is_empty());
    assert_eq!(world.log_files(), 0);
}
