//! What reaches those who use a server beside its answers: what it says unasked, whether it
//! is there, and a process of one's own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{Caller, ClientId, Question};
use cofer_model::{FailureKind, Status};
use serde_json::json;
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

use super::puppet::{Manners, Script};
use super::world::World;
use crate::server::{Asking, CallFailure, Notice};

const LIMIT: Duration = Duration::from_secs(60);

/// Notes what its server asks, and answers nothing.
struct Asked(mpsc::UnboundedSender<String>);

impl Caller for Asked {
    fn client(&self) -> ClientId {
        ClientId(1)
    }

    fn progressed(&self, _params: Bytes) {}

    fn notified(&self, _method: &str, _params: Option<&Bytes>) {}

    fn asked(&self, question: Question) {
        self.0.send(question.method.clone()).ok();
    }

    fn withdrawn(&self, _question: u64) {}
}

/// The next notice. On paused time one that never comes is known at once.
async fn next(notices: &mut broadcast::Receiver<Arc<Notice>>) -> Notice {
    let next = tokio::time::timeout(LIMIT * 1000, notices.recv()).await;
    Notice::clone(&next.expect("there is a notice").unwrap())
}

fn call(tool: &str) -> Asking<'static> {
    Asking::new("tools/call", Some(json!({"name": tool}).to_string().into()))
}

#[tokio::test(start_paused = true)]
async fn notices_tell_of_its_ups_and_downs_and_what_it_says() {
    let world = World::new();
    let server = world.ready().await;
    let mut notices = server.handle.notices();
    server.run().announce("notifications/tools/list_changed");
    let method = "notifications/tools/list_changed".to_owned();
    assert_eq!(next(&mut notices).await, Notice::Said { method, params: None });
    server.run().utter(r#"{"method":"notifications/resources/updated","params":{"uri":"a:b"}}"#);
    let (method, params) = ("notifications/resources/updated".to_owned(), r#"{"uri":"a:b"}"#);
    assert_eq!(next(&mut notices).await, Notice::Said { method, params: Some(params.into()) });
    server.crash().await;
    server.until(Status::Ready).await;
    assert_eq!(next(&mut notices).await, Notice::Down);
    assert_eq!(next(&mut notices).await, Notice::Up);
    server.switch(false).await;
    server.until(Status::Stopped).await;
    assert_eq!(next(&mut notices).await, Notice::Down);
    server.teach(Manners::good(Script::IsMute));
    server.switch(true).await;
    server.until_that("has a process", |snapshot| snapshot.pid.is_some()).await;
    server.switch(false).await;
    server.until(Status::Stopped).await;
    assert!(notices.is_empty(), "what was not up does not go down");
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
    let asked = Instant::now();
    let refused = mute.handle.ready(Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(asked.elapsed().as_secs(), 1);
    assert!(matches!(refused, CallFailure::NotConnected { status: Status::Starting }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_client_can_have_a_process_of_its_own() {
    // covers: GTW-2
    let world = World::new();
    let server = world.ready().await;
    let initialize = json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}});
    let private = server.handle.open_private(initialize.to_string().into(), None).await.unwrap();
    assert!(private.answer().is_some());
    let runs = server.runs();
    let [shared, own] = &runs[..] else { panic!("not two") };
    assert_ne!(own.spec.name, shared.spec.name);
    assert_eq!(own.all_heard("initialize"), [initialize], "it knows whom it serves");
    let params = Bytes::from_static(br#"{"name":"echo","arguments":{}}"#);
    let asking = Asking { client: Some("me".into()), ..Asking::new("tools/call", Some(params)) };
    private.call_by(asking).await.unwrap();
    assert_eq!(own.heard("tools/call"), 1);
    let call = &world.supervisor.activity().recent(1, Some(server.id()))[0];
    assert_eq!(call.client.as_deref(), Some("me"));
    let (mut notices, notices_for_all) = (private.notices(), server.handle.notices());
    own.announce("notifications/prompts/list_changed");
    assert!(matches!(next(&mut notices).await, Notice::Said { .. }));
    assert!(notices_for_all.is_empty());
    private.end().await;
    assert!(!own.is_there());
    assert_eq!(server.status(), Status::Ready);
}

#[tokio::test(start_paused = true)]
async fn what_a_process_of_ones_own_asks_by_itself_comes_to_its_client() {
    // covers: HST-2.4
    let world = World::new();
    let server = world.ready().await;
    let (sender, mut asked) = mpsc::unbounded_channel();
    let caller: Arc<dyn Caller> = Arc::new(Asked(sender));
    let initialize = Bytes::from_static(br#"{"protocolVersion":"2025-06-18","capabilities":{}}"#);
    let private = server.handle.open_private(initialize, Some(caller)).await.unwrap();
    server.run().utter(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    let asked = tokio::time::timeout(LIMIT, asked.recv()).await.unwrap();
    assert_eq!(asked.as_deref(), Some("roots/list"));
    private.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_of_ones_own_is_run_as_the_server_is_and_harms_it_nowhere() {
    let world = World::new();
    let deaf = Manners { heeds_eof: false, ..Manners::good(Script::Serves) };
    let server = world.add_with(deaf, json!({"max_in_flight": 2}));
    server.until(Status::Ready).await;
    let mut notices = server.handle.notices();
    server.run().utter("not MCP");
    server.run().announce("notifications/prompts/list_changed");
    next(&mut notices).await;
    let private = server.handle.open_private(Bytes::from_static(b"{}"), None).await.unwrap();
    assert_eq!(server.handle.noise_lines(), 1, "the noise of the one that all share");
    server.run().utter(&"x".repeat(super::world::LONGEST_MESSAGE + 1));
    tokio::select! {
        biased;
        ended = private.call_by(call("hang")) => panic!("{ended:?}"),
        answer = private.call_by(call("echo")) => drop(answer.unwrap()),
    }
    assert!(server.log().contains("is over the size cap"), "{}", server.log());
    private.end().await;
    let own = server.run();
    assert!(own.was_asked_to_end() && !own.is_there(), "it is ended gently");
    assert_eq!(server.status(), Status::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_process_of_ones_own_is_not_waited_for_without_end() {
    let world = World::new();
    let server = world.ready().await;
    let limit = server.handle.spec().start_timeout();
    for (script, limit) in
        [(Script::IsMute, limit), (Script::IsNeverLaunched, Duration::from_secs(300))]
    {
        server.teach(Manners::good(script));
        let asked = Instant::now();
        let opened = server.handle.open_private(Bytes::from_static(b"{}"), None).await;
        let failure = opened.err().unwrap();
        assert_eq!(failure.kind, FailureKind::StartTimeout, "{failure:?}");
        assert_eq!(asked.elapsed().as_secs(), limit.as_secs(), "{script:?}");
    }
    assert!(server.runs()[1..].iter().all(|run| !run.is_there()));
}

#[tokio::test(start_paused = true)]
async fn a_process_of_ones_own_that_does_not_start_says_why_and_is_gone() {
    let world = World::new();
    let server = world.ready().await;
    server.teach(Manners::good(Script::Exits { code: 9, stderr: "no key" }));
    let Err(failure) = server.handle.open_private(Bytes::from_static(b"{}"), None).await else {
        panic!("it started");
    };
    assert_eq!((failure.kind, failure.exit_code), (FailureKind::ExitedEarly, Some(9)));
    assert!(failure.stderr.unwrap().contains("no key"));
    let runs = server.runs();
    assert!(!runs.last().unwrap().is_there());
    assert_eq!(server.status(), Status::Ready);
}
