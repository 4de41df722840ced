//! The older era's sessions: opened, carried, lost and opened again, and ended.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::Client;
use crate::server::{Piece, Reply, Seen, Server, event, event_with_id, json, result, status};

/// A server whose sessions a test can wipe.
struct Stateful {
    current: Mutex<Option<String>>,
    opened: AtomicUsize,
    /// How a session that is not known is told.
    lost: (u16, &'static str),
    /// What each `initialize` is answered with; the last one again and again.
    capabilities: Vec<Value>,
}

impl Stateful {
    fn new(lost: (u16, &'static str), capabilities: Vec<Value>) -> Arc<Self> {
        Arc::new(Self {
            current: Mutex::default(),
            opened: AtomicUsize::new(0),
            lost,
            capabilities,
        })
    }

    fn wipe(&self) {
        *self.current.lock().unwrap() = None;
    }

    fn answer(&self, seen: &Seen) -> Reply {
        if seen.method() == "initialize" {
            assert_eq!(seen.header("mcp-session-id"), None, "a new session has no id yet");
            let number = self.opened.fetch_add(1, Ordering::SeqCst);
            let id = format!("session-{number}");
            *self.current.lock().unwrap() = Some(id.clone());
            let capabilities = self.capabilities.get(number).or(self.capabilities.last());
            let answer = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities});
            return result(seen, answer).with("mcp-session-id", id);
        }
        if seen.header("mcp-session-id") != self.current.lock().unwrap().as_deref() {
            let (status, body) = self.lost;
            return Reply::Full(status, vec![], body.into());
        }
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-06-18"));
        match (seen.http.as_str(), seen.json().get("id")) {
            ("POST", Some(_)) => result(seen, json!({"session": seen.header("mcp-session-id")})),
            ("POST", None) => status(202),
            ("DELETE", _) => status(200),
            _ => status(405),
        }
    }
}

async fn start(state: &Arc<Stateful>) -> Server {
    let state = Arc::clone(state);
    Server::start(move |seen| state.answer(seen)).await
}

#[tokio::test]
async fn a_session_is_carried_by_everything_and_ended_at_the_end() {
    let state = Stateful::new((404, ""), vec![json!({})]);
    let server = start(&state).await;
    let mut client = Client::of(&server);
    client.open().await;
    assert_eq!(client.ask(1, "tools/list", json!({})).await["result"]["session"], "session-0");
    let initialized = server.wait_for("notifications/initialized", 1).await;
    assert_eq!(initialized[0].header("mcp-session-id"), Some("session-0"));
    server.wait_for("GET", 1).await;
    client.close_input();
    assert!(client.rest().await.is_empty());
    let deletes = server.seen_of("DELETE");
    assert_eq!(deletes.len(), 1);
    assert_eq!(deletes[0].header("mcp-session-id"), Some("session-0"));
    assert_eq!(deletes[0].header("mcp-protocol-version"), Some("2025-06-18"));
}

#[tokio::test]
async fn what_is_asked_early_waits_for_the_session() {
    let state = Stateful::new((404, ""), vec![json!({})]);
    let server = start(&state).await;
    let mut client = Client::of(&server);
    client
        .write(concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            "\n",
        ))
        .await;
    assert_eq!(client.next().await["id"], 0);
    assert_eq!(client.next().await["result"]["session"], "session-0");
    let methods: Vec<String> = server.seen().iter().map(Seen::method).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "GET", "tools/list"]);
}

#[tokio::test]
async fn nothing_is_asked_before_the_servers_own_stream_is_open() {
    for _ in 0..20 {
        let state = Stateful::new((404, ""), vec![json!({})]);
        let (stream, held) = mpsc::unbounded_channel();
        let held = Mutex::new(Some(held));
        let is_open = Arc::new(AtomicBool::new(false));
        let server = Server::start(move |seen| match seen.method().as_str() {
            "GET" => {
                is_open.store(true, Ordering::Relaxed);
                Reply::Live(held.lock().unwrap().take().unwrap())
            }
            // As many servers do: what nobody listens to yet is not said again.
            "tools/call" if is_open.load(Ordering::Relaxed) => {
                stream.send(event(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}))).unwrap();
                state.answer(seen)
            }
            _ => state.answer(seen),
        })
        .await;
        let mut client = Client::of(&server);
        client.open().await;
        client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})).await;
        let heard = [client.next().await, client.next().await];
        assert!(heard.iter().any(|message| message["method"] == "ping"), "{heard:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_never_answered_holds_up_nothing_for_long() {
    let state = Stateful::new((404, ""), vec![json!({})]);
    let server = Server::start(move |seen| match seen.method().as_str() {
        "GET" => Reply::Silence,
        _ => state.answer(seen),
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    assert_eq!(client.ask(1, "tools/list", json!({})).await["result"]["session"], "session-0");
}

#[tokio::test]
async fn a_lost_session_is_opened_again_once_and_the_client_notices_nothing() {
    for lost in [
        (404, ""),
        (
            404,
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
        ),
        (
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
        ),
        (401, "Unauthorized: Session not found"),
    ] {
        let state = Stateful::new(lost, vec![json!({"tools": {}})]);
        let server = start(&state).await;
        let mut client = Client::of(&server);
        client.open().await;
        server.wait_for("GET", 1).await;
        state.wipe();
        let asked: String = (1..=20)
            .map(|id| {
                format!(
                    "{}\n",
                    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"n": id}})
                )
            })
            .collect();
        client.write(&asked).await;
        for _ in 0..20 {
            assert_eq!(client.next().await["result"]["session"], "session-1", "{lost:?}");
        }
        let opened = server.seen_of("initialize");
        assert_eq!(opened.len(), 2, "once for all who noticed");
        assert_eq!(opened[0].body, opened[1].body, "as the client said it");
        assert_eq!(server.seen_of("notifications/initialized").len(), 2);
        client.close_input();
        assert!(client.rest().await.is_empty(), "nothing of it is told");
    }
}

#[tokio::test]
async fn other_abilities_after_the_loss_are_told_as_changed_lists() {
    let state =
        Stateful::new((404, ""), vec![json!({"tools": {}}), json!({"tools": {}, "prompts": {}})]);
    let server = start(&state).await;
    let mut client = Client::of(&server);
    client.open().await;
    server.wait_for("notifications/initialized", 1).await;
    state.wipe();
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(client.next().await["method"], "notifications/prompts/list_changed");
    assert_eq!(client.next().await["id"], 1);
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_again_is_an_error_and_tried_anew_next_time() {
    let down = Arc::new(Mutex::new(false));
    let state = Stateful::new((404, ""), vec![json!({})]);
    let (inner, is_down) = (Arc::clone(&state), Arc::clone(&down));
    let server = Server::start(move |seen| {
        if *is_down.lock().unwrap() && seen.method() == "initialize" {
            return json(
                200,
                json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -1, "message": "not now"}}),
            );
        }
        inner.answer(seen)
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    client.ask(1, "tools/list", json!({})).await;
    state.wipe();
    *down.lock().unwrap() = true;
    let error = client.ask(2, "tools/list", json!({})).await;
    assert_eq!(error["error"]["data"]["kind"], "session", "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("not now"));
    *down.lock().unwrap() = false;
    assert_eq!(client.ask(3, "tools/list", json!({})).await["result"]["session"], "session-1");
}

#[tokio::test]
async fn a_server_that_forgets_every_session_at_once_is_not_asked_without_end() {
    let state = Stateful::new((404, ""), vec![json!({})]);
    let inner = Arc::clone(&state);
    let server = Server::start(move |seen| {
        let answer = inner.answer(seen);
        inner.wipe();
        answer
    })
    .await;
    let mut client = Client::of(&server);
    client.ask(0, "initialize", json!({})).await;
    let error = client.ask(1, "tools/call", json!({})).await;
    assert_eq!(error["error"]["data"]["kind"], "session", "{error}");
    assert_eq!(server.seen_of("tools/call").len(), 2, "and once more in a new session");
}

#[tokio::test]
async fn what_streams_in_a_lost_session_is_failed_and_not_run_again() {
    let (stream, held) = mpsc::unbounded_channel();
    let held = Mutex::new(Some(held));
    let state = Stateful::new((404, ""), vec![json!({})]);
    let inner = Arc::clone(&state);
    let server = Server::start(move |seen| match seen.method().as_str() {
        "tools/call" => Reply::Live(held.lock().unwrap().take().unwrap()),
        _ => inner.answer(seen),
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    client.send(json!({"jsonrpc": "2.0", "id": "long", "method": "tools/call"})).await;
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress"});
    stream.send(event(&progress)).unwrap();
    assert_eq!(client.next().await, progress);
    state.wipe();
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    let mut answers = [client.next().await, client.next().await];
    answers.sort_by_key(|answer| answer["id"] == "long");
    assert_eq!(answers[0]["result"]["session"], "session-1");
    assert_eq!(answers[1]["error"]["data"]["kind"], "session", "{}", answers[1]);
    assert_eq!(server.seen_of("tools/call").len(), 1);
}

#[tokio::test]
async fn the_servers_own_stream_is_heard_and_opened_again_behind_its_last_event() {
    let streams = Arc::new(Mutex::new(Vec::new()));
    let (first, held) = mpsc::unbounded_channel();
    let (second, again) = mpsc::unbounded_channel();
    streams.lock().unwrap().extend([again, held]);
    let state = Stateful::new((404, ""), vec![json!({})]);
    let server = Server::start(move |seen| match seen.method().as_str() {
        "GET" => streams.lock().unwrap().pop().map_or(status(405), Reply::Live),
        _ => state.answer(seen),
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    let told =
        |n: u64| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"n": n}});
    first.send(Piece::Text("retry: 10\n\n".to_owned())).unwrap();
    first.send(event_with_id("e1", &told(1))).unwrap();
    assert_eq!(client.next().await, told(1));
    first.send(Piece::Cut).unwrap();
    let gets = server.wait_for("GET", 2).await;
    assert_eq!(gets[0].header("mcp-session-id"), Some("session-0"));
    assert_eq!(gets[0].header("last-event-id"), None);
    assert_eq!(gets[1].header("last-event-id"), Some("e1"));
    second.send(event(&told(2))).unwrap();
    assert_eq!(client.next().await, told(2));
    // 405 ends it for good.
    drop(second);
    server.wait_for("GET", 3).await;
    client.nothing_before(5).await;
    assert_eq!(server.seen_of("GET").len(), 3);
}

#[tokio::test]
async fn cookies_come_back_with_every_request() {
    let server = Server::start(|seen| match seen.method().as_str() {
        "initialize" => result(seen, json!({"protocolVersion": "2025-06-18"}))
            .with("set-cookie", "GAESA=inst-1; Path=/; Secure"),
        _ if seen.json().get("id").is_some() => result(seen, json!({})),
        _ => status(405),
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    client.ask(1, "tools/list", json!({})).await;
    let later = server.wait_for("tools/list", 1).await;
    assert_eq!(later[0].header("cookie"), Some("GAESA=inst-1"));
    assert_eq!(server.seen_of("initialize")[0].header("cookie"), None);
}

#[tokio::test]
async fn a_refused_initialize_opens_nothing() {
    let server = Server::start(|seen| match seen.method().as_str() {
        "initialize" => json(400, json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"]}}})),
        _ => status(404),
    })
    .await;
    let mut client = Client::of(&server);
    let error = client.ask(0, "initialize", json!({})).await;
    assert_eq!(error["error"]["data"]["supported"], json!(["2026-07-28"]), "as the server said it");
    let error = client.ask(1, "tools/list", json!({})).await;
    assert_eq!(error["error"]["data"]["http_status"], 404);
    assert_eq!(error["error"]["data"]["kind"], "http");
    client.close_input();
    client.rest().await;
    assert_eq!(server.seen_of("DELETE").len(), 0);
    assert_eq!(server.seen_of("initialize").len(), 1);
}
