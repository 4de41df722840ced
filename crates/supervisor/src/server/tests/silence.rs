//! The heartbeat: an idle server that falls silent, and one that is only busy.

use std::time::Duration;

use cofer_model::Status;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::puppet::{Manners, Script};
use super::world::{Server, World};

const TOOLS_CALL: &str = "tools/call";

/// A ready server that is asked for a sign of life every 10 s and may take 5 s for it.
async fn watched(world: &World) -> Server<'_> {
    let more = json!({"heartbeat": {"interval_ms": 10_000, "timeout_ms": 5_000}});
    let server = world.add_with(Manners::good(Script::Serves), more);
    server.until(Status::Ready).await;
    server
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_that_falls_silent_is_unresponsive_and_not_restarted() {
    // covers: HST-4.3
    let world = World::new();
    let server = watched(&world).await;
    let begun = Instant::now();
    server.run().fall_silent();
    let snapshot = server.until(Status::Unresponsive).await;
    assert_eq!(begun.elapsed().as_secs_f64().round(), 15.0);
    assert!(snapshot.health_reasons[0].contains("5000 ms"), "{snapshot:?}");
    assert_eq!(snapshot.pid, Some(server.run().pid));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.status(), Status::Unresponsive);
    assert_eq!((server.runs().len(), server.snapshot().restart_count), (1, 0));
    assert_eq!(server.snapshot().health_reasons.len(), 1, "said once");
    assert!(server.log().contains("unresponsive"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_makes_a_silent_server_ready_again() {
    // covers: HST-4.3
    let world = World::new();
    let server = watched(&world).await;
    server.run().fall_silent();
    server.until(Status::Unresponsive).await;
    server.run().wake();
    let snapshot = server.until(Status::Ready).await;
    assert!(snapshot.health_reasons.is_empty());
    use Status::{Ready, Starting, Unresponsive};
    assert_eq!(server.told(), [Starting, Ready, Unresponsive, Ready]);
}

#[tokio::test(start_paused = true)]
async fn any_word_makes_a_silent_server_ready_again_at_once() {
    // covers: HST-4.3
    let world = World::new();
    let server = watched(&world).await;
    server.run().fall_silent();
    server.until(Status::Unresponsive).await;
    let spoken = Instant::now();
    server.run().say();
    server.until(Status::Ready).await;
    assert_eq!(spoken.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_its_heartbeats_stays_ready() {
    let world = World::new();
    let server = watched(&world).await;
    sleep(Duration::from_secs(101)).await;
    assert_eq!(server.run().heard("ping"), 10);
    assert_eq!(server.told(), [Status::Starting, Status::Ready]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_with_a_call_is_not_asked() {
    // covers: HST-4.3
    let world = World::new();
    let server = watched(&world).await;
    let limit = Some(Duration::from_secs(300));
    let call = server.handle.call(TOOLS_CALL, Some(r#"{"name":"hang"}"#.into()), limit);
    call.await.unwrap_err();
    assert_eq!(server.run().heard(TOOLS_CALL), 1);
    assert_eq!(server.run().heard("ping"), 0, "in the five minutes of the call");
    assert_eq!(server.status(), Status::Ready);
    sleep(Duration::from_secs(11)).await;
    assert_eq!(server.run().heard("ping"), 1, "once it is idle again");
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_is_off_asks_nothing() {
    let world = World::new();
    let server = world.ready().await;
    server.run().fall_silent();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(server.run().heard("ping"), 0);
    assert_eq!(server.status(), Status::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_can_be_restarted_and_switched_off() {
    let world = World::new();
    let server = watched(&world).await;
    server.run().fall_silent();
    server.until(Status::Unresponsive).await;
    assert!(server.handle.restart().await);
    assert!(server.snapshot().health_reasons.is_empty());
    server.until(Status::Ready).await;
    server.run().fall_silent();
    server.until(Status::Unresponsive).await;
    server.switch(false).await;
    assert!(server.until(Status::Stopped).await.health_reasons.is_empty());
}
