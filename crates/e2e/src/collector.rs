//! A collector of traces that a test holds in its hand: it reads OTLP's JSON as strictly as the
//! protocol is written, keeps what it got, and refuses, hangs, dies and comes back on order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use serde::Deserialize;

use crate::mortal::Mortal;
use crate::wait::eventually;

/// What a request may carry at most.
const LARGEST: usize = 64 * 1024 * 1024;

/// The collector, until it is dropped.
pub struct Collector {
    server: Mortal,
    shared: Arc<Mutex<Shared>>,
}

/// What it does with a request, instead of taking it.
#[derive(Debug, Clone)]
pub enum Instead {
    /// Answers this status with this body, and says that it can be tried again at once.
    Answer(u16, &'static str),
    /// Never answers.
    Hang,
}

/// One request that it took.
#[derive(Debug, Clone)]
pub struct Export {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body as text.
    pub body: String,
    /// Who sent it, as its attributes.
    pub resource: Vec<KeyValue>,
    /// What it has.
    pub spans: Vec<Span>,
}

#[derive(Default)]
struct Shared {
    orders: VecDeque<Instead>,
    requests: usize,
    exports: Vec<Export>,
    problems: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Message {
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceSpans {
    resource: Resource,
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resource {
    attributes: Vec<KeyValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scope {
    name: String,
    version: String,
}

/// One span, as OTLP has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Span {
    /// Its trace, in hexadecimal.
    pub trace_id: String,
    /// Its own id.
    pub span_id: String,
    /// What caused it.
    pub parent_span_id: Option<String>,
    /// W3C's flags, and whether the parent is remote.
    pub flags: u32,
    /// What it is called.
    pub name: String,
    /// Its kind by number.
    pub kind: u8,
    /// When it began: 64 bits, hence a text.
    pub start_time_unix_nano: String,
    /// When it ended.
    pub end_time_unix_nano: String,
    /// What is said of it.
    pub attributes: Vec<KeyValue>,
    /// How it went.
    pub status: Status,
}

/// How a span went.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Status {
    /// 2 is an error; unset where nothing is to be said.
    pub code: Option<u8>,
    /// In words.
    pub message: Option<String>,
}

/// An attribute.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyValue {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: AnyValue,
}

/// A value, of one type.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnyValue {
    /// A text.
    StringValue(String),
    /// 64 bits, hence a text.
    IntValue(String),
    /// A number.
    DoubleValue(f64),
    /// Yes or no.
    BoolValue(bool),
}

impl Span {
    /// The value of an attribute as text.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            AnyValue::StringValue(text) => Some(text),
            other => panic!("{key} is no text but {other:?}"),
        }
    }

    /// The value of an attribute that is a number.
    pub fn number(&self, key: &str) -> f64 {
        match self.value(key).unwrap_or_else(|| panic!("no {key} in {self:?}")) {
            AnyValue::IntValue(text) => text.parse().expect("a number"),
            AnyValue::DoubleValue(number) => *number,
            other => panic!("{key} is no number but {other:?}"),
        }
    }

    /// How long it took, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        let of = |text: &str| text.parse::<u64>().expect("nanoseconds");
        of(&self.end_time_unix_nano) - of(&self.start_time_unix_nano)
    }

    fn value(&self, key: &str) -> Option<&AnyValue> {
        let mut found = self.attributes.iter().filter(|attribute| attribute.key == key);
        let value = found.next().map(|attribute| &attribute.value);
        assert!(found.next().is_none(), "{key} stands there twice");
        value
    }

    /// What the protocol wants and types do not say.
    fn check(&self) -> Result<(), String> {
        let is_id = |text: &str, length: usize| {
            let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            is_hex && text.len() == length && text.bytes().any(|byte| byte != b'0')
        };
        let ids = is_id(&self.trace_id, 32)
            && is_id(&self.span_id, 16)
            && self.parent_span_id.as_deref().is_none_or(|parent| is_id(parent, 16));
        let time = |text: &str| text.parse::<u64>().is_ok_and(|nanos| nanos > 1 << 60);
        let times = time(&self.start_time_unix_nano)
            && time(&self.end_time_unix_nano)
            && self.start_time_unix_nano <= self.end_time_unix_nano;
        let numbers = self.attributes.iter().all(|attribute| match &attribute.value {
            AnyValue::IntValue(text) => text.parse::<i64>().is_ok(),
            _ => !attribute.key.is_empty(),
        });
        let is_good = ids && times && numbers && (1..=5).contains(&self.kind);
        is_good.then_some(()).ok_or_else(|| format!("not a span: {self:?}"))
    }
}

impl Collector {
    /// Starts it on a free port.
    pub fn start() -> Self {
        let shared = Arc::default();
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        Self { server: Mortal::start(routes), shared }
    }

    /// Starts it again, on the port it had.
    pub fn rise(&mut self) {
        self.server.rise();
    }

    /// Ends it: nobody listens any more.
    pub fn die(&mut self) {
        self.server.die();
    }

    /// Where it is.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// What it does with the next request that no order is for yet.
    pub fn order(&self, order: Instead) {
        self.shared().orders.push_back(order);
    }

    /// How many requests came, taken or not.
    pub fn requests(&self) -> usize {
        self.shared().requests
    }

    /// The requests that it took. Fails where one was not as the protocol wants it.
    pub fn exports(&self) -> Vec<Export> {
        let shared = self.shared();
        assert!(shared.problems.is_empty(), "{:#?}", shared.problems);
        shared.exports.clone()
    }

    /// All spans that it took.
    pub fn spans(&self) -> Vec<Span> {
        self.exports().into_iter().flat_map(|export| export.spans).collect()
    }

    /// Waits for the span of this name.
    pub async fn span(&self, name: &str) -> Span {
        let found = async || self.spans().into_iter().find(|span| span.name == name);
        eventually(&format!("a span {name}"), found).await
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("nobody panics with it")
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST).await.unwrap_or_default();
    let order = {
        let mut shared = shared.lock().expect("nobody panics with it");
        shared.requests += 1;
        shared.orders.pop_front()
    };
    match order {
        Some(Instead::Hang) => std::future::pending().await,
        Some(Instead::Answer(status, body)) if status >= 300 => return reply(status, body),
        _ => {}
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    let read = read(head.method.as_str(), head.uri.path(), head.headers, body);
    let mut shared = shared.lock().expect("nobody panics with it");
    match read {
        Err(problem) => {
            shared.problems.push(problem);
            return reply(400, "{}");
        }
        Ok(export) => shared.exports.push(export),
    }
    match order {
        Some(Instead::Answer(status, body)) => reply(status, body),
        _ => reply(200, r#"{"partialSuccess":{}}"#),
    }
}

fn read(method: &str, path: &str, headers: HeaderMap, body: String) -> Result<Export, String> {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
    if (method, path, kind) != ("POST", "/v1/traces", Some("application/json")) {
        return Err(format!("{method} {path} with {kind:?}"));
    }
    let message: Message =
        serde_json::from_str(&body).map_err(|error| format!("{error} in {body}"))?;
    let [all] = <[ResourceSpans; 1]>::try_from(message.resource_spans)
        .map_err(|all| format!("{} resources", all.len()))?;
    let mut spans = Vec::new();
    for one in all.scope_spans {
        if one.scope.name.is_empty() || one.scope.version.is_empty() {
            return Err(format!("an unnamed scope: {:?}", one.scope));
        }
        spans.extend(one.spans);
    }
    spans.iter().try_for_each(Span::check)?;
    Ok(Export { headers, body, resource: all.resource.attributes, spans })
}

fn reply(status: u16, body: &'static str) -> Response<Body> {
    let reply = Response::builder().status(status).header("content-type", "application/json");
    reply.header("retry-after", "0").body(Body::from(body)).expect("a response")
}
