//! Calls to a server, and the traces they leave.

use std::time::Duration;

use cofer_mcp::CallError;
use cofer_model::{EventKind, Outcome, Status};
use tokio::time::{sleep, timeout};

use super::puppet::Script;
use super::world::{Server, World};
use crate::server::CallFailure;

/// Calls a tool; the puppets have `echo`, `fail`, `hang` and `crash`.
async fn call(server: &Server<'_>, tool: &str) -> Result<bytes::Bytes, CallFailure> {
    let params = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
    server.handle.call("tools/call", Some(params.into()), None).await
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_run_is_not_connected() {
    let world = World::new();
    let server = world.ready().await;
    server.switch(false).await;
    for expected in [Status::Stopping, Status::Stopped] {
        server.until(expected).await;
        let refused = call(&server, "echo").await.unwrap_err();
        match refused {
            CallFailure::NotConnected { status } => assert_eq!(status, expected),
            failure @ (CallFailure::Call(_) | CallFailure::NoMcp) => panic!("{failure}"),
        }
    }
    assert!(server.handle.usage().await.is_none());
    assert!(server.handle.isolation().await.is_none());
    let starting = world.add(Script::IsMute);
    let listed = starting.handle.list("tools/list", "tools").await.unwrap_err();
    assert!(matches!(listed, CallFailure::NotConnected { status: Status::Starting }));
    assert!(world.supervisor.activity().recent(10, None).is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_call_is_in_the_activity_with_its_outcome() {
    // covers: GTW-5
    let world = World::new();
    let server = world.ready().await;
    assert_eq!(call(&server, "echo").await.unwrap(), r#"{"content":[]}"#);
    call(&server, "fail").await.unwrap();
    let unknown = server.handle.call("no/such", None, None).await.unwrap_err();
    assert!(matches!(unknown, CallFailure::Call(CallError::Rpc(error)) if error.code == -32601));
    let timed_out = call(&server, "hang").await.unwrap_err();
    assert!(matches!(timed_out, CallFailure::Call(CallError::Timeout(_))));
    // A caller that goes away.
    timeout(Duration::from_secs(1), call(&server, "hang")).await.unwrap_err();
    let crashed = call(&server, "crash").await.unwrap_err();
    assert!(matches!(crashed, CallFailure::Call(CallError::Disconnected)));

    let mut entries = world.supervisor.activity().recent(10, Some(server.id()));
    entries.reverse();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry.tool.as_deref(), entry.outcome, entry.duration_ms as u64))
        .collect();
    assert_eq!(
        seen,
        [
            (Some("echo"), Outcome::Ok, 0),
            (Some("fail"), Outcome::ToolError, 0),
            (None, Outcome::McpError, 0),
            (Some("hang"), Outcome::Timeout, 30_000),
            (Some("hang"), Outcome::Cancelled, 1000),
            (Some("crash"), Outcome::Disconnected, 0),
        ]
    );
    let observed: Vec<_> =
        world.observer.calls.lock().unwrap().iter().map(|entry| entry.outcome).collect();
    assert_eq!(observed, seen.iter().map(|(_, outcome, _)| *outcome).collect::<Vec<_>>());
    assert_eq!(world.supervisor.activity().recent(2, None).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_is_told_when_it_starts_and_when_it_ends() {
    // covers: GTW-5
    let world = World::new();
    let server = world.ready().await;
    let mut events = world.supervisor.events().subscribe(None).live;
    call(&server, "fail").await.unwrap();
    server.handle.call("ping", None, None).await.unwrap();
    let started = match &events.recv().await.unwrap().kind {
        EventKind::ToolCallStarted(started) => started.clone(),
        other => panic!("{other:?}"),
    };
    let finished = match &events.recv().await.unwrap().kind {
        EventKind::ToolCallFinished(finished) => finished.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((&*started.tool, started.id), ("fail", server.id()));
    assert_eq!((finished.call_id, finished.outcome), (started.call_id, Outcome::ToolError));
    assert!(events.try_recv().is_err(), "only tools are told of");
    let entry = world.supervisor.activity().recent(2, None).pop().unwrap();
    assert_eq!(entry.call_id, started.call_id);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_does_not_restart_the_server() {
    // covers: HST-2.3
    let world = World::new();
    let server = world.ready().await;
    call(&server, "hang").await.unwrap_err();
    call(&server, "echo").await.unwrap();
    assert_eq!((server.runs().len(), server.status()), (1, Status::Ready));
    assert_eq!(server.run().heard("notifications/cancelled"), 1, "it was told");
}

#[tokio::test(start_paused = true)]
async fn the_crash_of_one_server_leaves_the_calls_of_another_alone() {
    // covers: MGR-60
    let world = World::new();
    let (broken, well) = (world.ready().await, world.ready().await);
    let hanging = call(&well, "hang");
    let crash = async {
        sleep(Duration::from_secs(1)).await;
        broken.run().exit(1);
        broken.until(Status::Restarting).await;
        let refused = call(&broken, "echo").await.unwrap_err();
        assert!(matches!(refused, CallFailure::NotConnected { status: Status::Restarting }));
        sleep(Duration::from_secs(5)).await;
    };
    let (hanging, ()) = tokio::join!(hanging, crash);
    let ended = hanging.unwrap_err();
    assert!(matches!(ended, CallFailure::Call(CallError::Timeout(_))), "not by the crash: {ended}");
    call(&well, "echo").await.unwrap();
    assert_eq!(well.told(), [Status::Starting, Status::Ready]);
    call(&broken, "echo").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_ends_with_its_server() {
    let world = World::new();
    let server = world.ready().await;
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        server.switch(false).await;
    };
    let (called, ()) = tokio::join!(call(&server, "hang"), stop);
    assert!(matches!(called.unwrap_err(), CallFailure::Call(CallError::Disconnected)));
}
