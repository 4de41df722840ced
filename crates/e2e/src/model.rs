//! A model server of our own, which speaks OpenAI's protocol and does what a test orders: it
//! streams, calls tools in pieces, refuses, breaks off, and hangs.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::wait::eventually;

/// What is answered to one request.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    /// A whole body, or the data of a stream's events.
    body: Result<String, Vec<Value>>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    Cut,
    Hang,
}

impl Reply {
    /// A text, streamed in these pieces.
    pub fn text(pieces: &[&str]) -> Self {
        let chunk = |piece: &&str| delta(&json!({"content": piece}), None);
        let mut events: Vec<Value> = pieces.iter().map(chunk).collect();
        events.push(delta(&json!({}), Some("stop")));
        events.push(json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}));
        Self::stream(events)
    }

    /// Tool calls, each in pieces as providers send them: the name, then the arguments three
    /// characters at a time, those of several calls interleaved.
    pub fn calls(calls: &[(&str, Value)]) -> Self {
        Self::raw_calls(
            &calls
                .iter()
                .map(|(name, arguments)| (*name, arguments.to_string()))
                .collect::<Vec<_>>(),
        )
    }

    /// The same with arguments that need not be JSON.
    pub fn raw_calls(calls: &[(&str, String)]) -> Self {
        let call = |index: usize, call: Value| {
            delta(&json!({"tool_calls": [with(call, "index", json!(index))]}), None)
        };
        let mut events = Vec::new();
        for (index, (name, _)) in calls.iter().enumerate() {
            let function = json!({"name": name, "arguments": ""});
            events.push(call(index, json!({"id": format!("call_{}", uuid::Uuid::new_v4().simple()), "type": "function", "function": function})));
        }
        let pieces: Vec<Vec<String>> =
            calls.iter().map(|(_, arguments)| in_threes(arguments)).collect();
        for turn in 0..pieces.iter().map(Vec::len).max().unwrap_or(0) {
            for (index, pieces) in pieces.iter().enumerate() {
                if let Some(piece) = pieces.get(turn) {
                    events.push(call(index, json!({"function": {"arguments": piece}})));
                }
            }
        }
        events.push(delta(&json!({}), Some("tool_calls")));
        Self::stream(events)
    }

    /// A refusal.
    pub fn status(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: Ok(body.to_string()), end: End::Done }
    }

    /// The same with one more header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same, with one more event in the stream, in place of its end.
    pub fn then(mut self, event: Value) -> Self {
        if let Err(events) = &mut self.body {
            events.truncate(events.len().saturating_sub(2));
            events.push(event);
        }
        self
    }

    /// The same, but the connection breaks before the end.
    pub fn cut(self) -> Self {
        Self { end: End::Cut, ..self }
    }

    /// The same, but the stream never ends.
    pub fn hang(self) -> Self {
        Self { end: End::Hang, ..self }
    }

    fn stream(events: Vec<Value>) -> Self {
        Self { status: 200, headers: Vec::new(), body: Err(events), end: End::Done }
    }
}

fn delta(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "x", "object": "chat.completion.chunk", "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn with(mut value: Value, key: &str, member: Value) -> Value {
    value[key] = member;
    value
}

fn in_threes(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(3).map(|piece| piece.iter().collect()).collect()
}

/// A model server that runs. It ends when it is dropped.
#[derive(Debug)]
pub struct FakeModel {
    base: String,
    state: Arc<Script>,
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Script {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Value>>,
    keys: Mutex<Vec<String>>,
    open: AtomicUsize,
}

impl FakeModel {
    /// Answers with these replies one after the other, and with the last one for ever.
    pub async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let state = Arc::new(Script::default());
        *state.replies.lock().expect("nobody panics with it") = replies.into_iter().collect();
        let routes = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(models))
            .with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, routes).await.unwrap_or_default() });
        Self { base, state, _task: task }
    }

    /// What `OPENAI_BASE_URL` is to be.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().expect("nobody panics with it").clone()
    }

    /// What stood in their `Authorization`.
    pub fn keys(&self) -> Vec<String> {
        self.state.keys.lock().expect("nobody panics with it").clone()
    }

    /// Waits until no stream is open any more.
    pub async fn wait_let_go(&self) {
        eventually("the model is let go", async || {
            (self.state.open.load(Ordering::SeqCst) == 0).then_some(())
        })
        .await;
    }
}

async fn models() -> axum::Json<Value> {
    axum::Json(json!({"object": "list", "data": [{"id": "scripted"}, {"id": "another"}]}))
}

async fn complete(State(script): State<Arc<Script>>, headers: HeaderMap, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or_default();
    script.requests.lock().expect("nobody panics with it").push(body);
    let key = headers.get(header::AUTHORIZATION).and_then(|key| key.to_str().ok());
    script.keys.lock().expect("nobody panics with it").push(key.unwrap_or_default().to_owned());
    let reply = {
        let mut replies = script.replies.lock().expect("nobody panics with it");
        let last = replies.front().cloned().expect("a script has a reply");
        if replies.len() > 1 {
            replies.pop_front();
        }
        last
    };
    answer(script, reply)
}

fn answer(script: Arc<Script>, reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).expect("a status");
    let (kind, body) = match reply.body {
        Ok(body) => ("application/json", Body::from(body)),
        Err(events) => ("text/event-stream", stream_body(script, events, reply.end)),
    };
    let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
    for (name, value) in reply.headers {
        response.headers_mut().insert(name, value.parse().expect("a header"));
    }
    response
}

/// Counts a stream while it is open.
struct Open(Arc<Script>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn stream_body(script: Arc<Script>, events: Vec<Value>, end: End) -> Body {
    script.open.fetch_add(1, Ordering::SeqCst);
    let open = Open(script);
    let mut frames: Vec<io::Result<String>> =
        events.iter().map(|event| Ok(format!("data: {event}\n\n"))).collect();
    match end {
        End::Done => frames.push(Ok("data: [DONE]\n\n".to_owned())),
        End::Cut => frames.push(Err(io::Error::other("cut as ordered"))),
        End::Hang => {}
    }
    // Each frame is a piece of its own on the wire, with a breath between them.
    let paced = stream::iter(frames).then(async |frame| {
        tokio::task::yield_now().await;
        frame
    });
    let endless = stream::pending().take(if end == End::Hang { 1 } else { 0 });
    let whole = paced.chain(endless).map(move |frame| {
        let _open = &open;
        frame
    });
    Body::from_stream(whole)
}
