//! What reaches those who use a server beside its answers: what it says unasked, whether it
//! is there, and a process of one's own.

use std::time::Duration;

use bytes::Bytes;
use cofer_model::{FailureKind, Status};

use super::puppet::Script;
use super::world::World;
use crate::server::{Asking, CallFailure, Notice};

const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn notices_tell_of_its_ups_and_downs_and_what_it_says() {
    let world = World::new();
    let server = world.ready().await;
    let mut notices = server.handle.notices();
    server.run().announce("notifications/tools/list_changed");
    let said = notices.recv().await.unwrap();
    let method = "notifications/tools/list_changed".to_owned();
    assert_eq!(*said, Notice::Said { method, params: None });
    server.crash().await;
    server.until(Status::Ready).await;
    assert_eq!(*notices.recv().await.unwrap(), Notice::Down);
    assert_eq!(*notices.recv().await.unwrap(), Notice::Up);
    server.switch(false).await;
    server.until(Status::Stopped).await;
    assert_eq!(*notices.recv().await.unwrap(), Notice::Down);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_server_goes_on_when_it_is_there_or_will_not_be() {
    let world = World::new();
    let server = world.add(Script::Serves);
    server.handle.ready(LIMIT).await.unwrap();
    assert!(server.handle.peer().is_some());
    server.crash().await;
    server.handle.ready(LIMIT).await.unwrap();
    assert_eq!(server.status(), Status::Ready);
    let broken = world.add(Script::Exits { code: 3, stderr: "no" });
    let refused = broken.handle.ready(LIMIT).await.unwrap_err();
    assert!(matches!(refused, CallFailure::NotConnected { status: Status::Error }), "{refused}");
    let mute = world.add(Script::IsMute);
    let refused = mute.handle.ready(Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(refused, CallFailure::NotConnected { status: Status::Starting }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_client_can_have_a_process_of_its_own() {
    // covers: GTW-2
    let world = World::new();
    let server = world.ready().await;
    let initialize = Bytes::from_static(br#"{"protocolVersion":"2025-06-18","capabilities":{}}"#);
    let private = server.handle.open_private(initialize, None).await.unwrap();
    assert!(private.answer().is_some());
    let runs = server.runs();
    let [shared, own] = &runs[..] else { panic!("not two") };
    assert_ne!(own.spec.name, shared.spec.name);
    let params = Bytes::from_static(br#"{"name":"echo","arguments":{}}"#);
    let asking = Asking { client: Some("me".into()), ..Asking::new("tools/call", Some(params)) };
    private.call_by(asking).await.unwrap();
    assert_eq!(own.heard("tools/call"), 1);
    let call = &world.supervisor.activity().recent(1, Some(server.id()))[0];
    assert_eq!(call.client.as_deref(), Some("me"));
    let mut notices = private.notices();
    own.announce("notifications/prompts/list_changed");
    assert!(matches!(&*notices.recv().await.unwrap(), Notice::Said { .. }));
    private.end().await;
    assert!(!own.is_there());
    assert_eq!(server.status(), Status::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_process_of_ones_own_that_does_not_start_says_why_and_is_gone() {
    let world = World::new();
    let server = world.ready().await;
    server.teach(super::puppet::Manners::good(Script::Exits { code: 9, stderr: "no key" }));
    let Err(failure) = server.handle.open_private(Bytes::from_static(b"{}"), None).await else {
        panic!("it started");
    };
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::ExitedEarly, Some(9)));
    assert!(failure.stderr.unwrap().contains("no key"));
    let runs = server.runs();
    assert!(!runs.last().unwrap().is_there());
    assert_eq!(server.status(), Status::Ready);
}
