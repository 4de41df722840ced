//! What is different with containers: an image that is fetched first, an engine that may be
//! away, and an end of which the engine knows more than the exit says.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cofer_model::{EventKind, FailureKind, Status};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::fakes::{FETCHING, Note};
use super::puppet::{Manners, Script};
use super::world::{Server, World};
use crate::launch::Explanation;
use crate::server::driver::LAUNCH;

fn image() -> Value {
    json!({"command": null, "image": "localhost/puppet"})
}

fn container(world: &World) -> Server<'_> {
    world.add_with(Manners::good(Script::Serves), image())
}

fn lose_engine(world: &World, lost: bool) {
    world.launcher.engine_is_away.store(lost, Ordering::Relaxed);
}

fn progress(world: &World) -> Vec<String> {
    let events = world.supervisor.events().subscribe(Some(0)).backlog;
    let told = events.iter().filter_map(|event| match &event.kind {
        EventKind::Preparing(preparing) => Some(preparing.message.clone()),
        _ => None,
    });
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn an_image_is_fetched_for_as_long_as_that_takes_and_then_the_start_begins() {
    // covers: HST-1.1
    let world = World::new();
    let begun = Instant::now();
    let server = container(&world);
    let preparing = |snapshot: &crate::Snapshot| snapshot.preparing.is_some();
    let snapshot = server.until_that("prepares", preparing).await;
    assert_eq!(snapshot.status, Status::Starting);
    assert_eq!(snapshot.preparing.as_deref(), Some("fetching the image"));
    let ready = server.until(Status::Ready).await;
    assert!(begun.elapsed() > FETCHING, "far more than the start timeout");
    assert_eq!(ready.preparing, None);
    let facts = server.handle.facts().unwrap();
    assert_eq!(facts.image_digest.as_deref(), Some("sha256:puppet"));
    assert!(facts.container_id.is_some());
    assert_eq!(server.told(), [Status::Starting, Status::Ready]);
    assert_eq!(progress(&world), ["fetching the image", "fetching the image: half of it"]);
    let log = server.log();
    assert!(log.contains("fetching the image\nprepared in 3600.0 s\nstarting"), "{log}");
    server.crash().await;
    server.until(Status::Ready).await;
    assert_eq!(progress(&world).len(), 2, "what is here is not fetched again");
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_image_is_fetched_can_be_switched_off() {
    let world = World::new();
    let server = container(&world);
    sleep(Duration::from_secs(5)).await;
    server.switch(false).await;
    let stopped = server.until(Status::Stopped).await;
    assert_eq!(stopped.preparing, None);
    assert!(server.runs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_never_ends_is_given_up() {
    let world = World::new();
    let begun = Instant::now();
    let server = world.add(Script::IsNeverLaunched);
    let failure = server.until(Status::Error).await.failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::StartTimeout);
    assert_eq!(begun.elapsed().as_secs(), LAUNCH.as_secs());
}

#[tokio::test(start_paused = true)]
async fn without_an_engine_a_container_waits_in_error_and_stays_switched_on() {
    let world = World::new();
    lose_engine(&world, true);
    let process = world.ready().await;
    let server = container(&world);
    let waiting = server.until(Status::Error).await;
    let failure = waiting.failure.clone().unwrap();
    assert_eq!(failure.kind, FailureKind::EngineUnavailable);
    assert!(waiting.spec.enabled && waiting.next_restart_at.is_some());
    sleep(Duration::from_secs(600)).await;
    assert!(world.launcher.looks.load(Ordering::Relaxed) >= 60, "it looks again and again");
    assert_eq!(server.told(), [Status::Starting, Status::Error], "and tells it once");
    assert!(server.stored().is_empty(), "the next daemon looks for itself");
    assert_eq!(process.status(), Status::Ready, "nobody else is touched");
}

#[tokio::test(start_paused = true)]
async fn when_the_engine_is_back_so_are_its_servers() {
    let world = World::new();
    lose_engine(&world, true);
    let servers = [container(&world), container(&world)];
    for server in &servers {
        server.until(Status::Error).await;
    }
    sleep(Duration::from_secs(3600)).await;
    lose_engine(&world, false);
    let back = Instant::now();
    for server in &servers {
        server.until(Status::Starting).await;
        assert!(back.elapsed() <= Duration::from_secs(10));
    }
    for server in &servers {
        let ready = server.until(Status::Ready).await;
        assert!(ready.failure.is_none() && ready.next_restart_at.is_none());
        let told = [Status::Starting, Status::Error, Status::Starting, Status::Ready];
        assert_eq!(server.told(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_the_engine_is_away_is_no_reason_to_give_up() {
    // covers: HST-3.2
    let world = World::new();
    let server = container(&world);
    server.until(Status::Ready).await;
    lose_engine(&world, true);
    server.run().exit(1);
    let waiting = server.until(Status::Error).await;
    assert!(waiting.spec.enabled && server.has_gone());
    lose_engine(&world, false);
    server.until(Status::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_engine_heeds_the_switch() {
    let world = World::new();
    lose_engine(&world, true);
    let server = container(&world);
    server.until(Status::Error).await;
    server.patch(json!({"description": "words"})).await;
    assert_eq!(server.status(), Status::Error, "words change nothing");
    let looks = world.launcher.looks.load(Ordering::Relaxed);
    server.switch(true).await;
    server.until(Status::Error).await;
    let told = [Status::Starting, Status::Error, Status::Starting, Status::Error];
    assert_eq!(server.told(), told, "the switch means: now");
    assert_eq!(world.launcher.looks.load(Ordering::Relaxed), looks, "by trying, not by looking");
    server.switch(false).await;
    assert_eq!(server.until(Status::Stopped).await.next_restart_at, None);
    assert_eq!(server.stored(), [Note::Stopped { told: Status::Error }]);
    lose_engine(&world, false);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(server.status(), Status::Stopped);
}

#[tokio::test(start_paused = true)]
async fn what_the_engine_knows_of_an_end_is_told() {
    // covers: HST-5.2
    let world = World::new();
    let server = container(&world);
    server.until(Status::Ready).await;
    *server.run().explanation.lock().unwrap() = Some(Explanation {
        kind: FailureKind::OutOfMemory,
        message: "it used more than its 512M of memory".to_owned(),
        hint: "raise the limit".to_owned(),
    });
    server.run().complain("allocating");
    // The line has to be through before the end.
    sleep(Duration::from_secs(1)).await;
    server.run().exit(137);
    let failure = server.until(Status::Restarting).await.failure.clone().unwrap();
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::OutOfMemory, Some(137)));
    assert_eq!(failure.message, "it used more than its 512M of memory");
    assert_eq!(failure.stderr.as_deref(), Some("allocating"));
}

#[tokio::test(start_paused = true)]
async fn a_busy_engine_has_the_time_to_say_how_a_container_ended() {
    // covers: HST-3.2
    let world = World::new();
    let server = container(&world);
    server.until(Status::Ready).await;
    let run = server.run();
    run.has_ended.store(true, Ordering::Relaxed);
    run.close_stdout();
    sleep(Duration::from_secs(20)).await;
    run.exit(41);
    let failure = server.until(Status::Restarting).await.failure.clone().unwrap();
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::Crashed, Some(41)));
}
