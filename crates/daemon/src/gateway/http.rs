//! The HTTP side: which requests are let in at all, and how an answer looks on the wire.

use axum::body::Body;
use axum::extract::{FromRef as _, Request};
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use cofer_mcp::{Incoming, Message};
use cofer_model::{DaemonIds, TraceParent};
use percent_encoding::percent_decode_str;
use serde::de::IgnoredAny;

use super::door::Door;
use super::rpc::{self, Answer, Fault, INVALID_REQUEST, PARSE_ERROR, is_id};
use super::stream::{events_response, on_one_line};
use super::{Gateway, hops, legacy, modern};
use crate::api::error::ApiError;
use crate::api::extract::{BodyLimit, read_body};
use crate::app::App;
use crate::json_body::json_around;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// Whether a path is one of the doors: `/mcp`, or `/mcp/NAME`.
pub(crate) fn owns(path: &str) -> bool {
    name_in(path).is_some()
}

/// What a path behind `/mcp` names, nothing at the door of all servers; none where it is no door.
fn name_in(path: &str) -> Option<&str> {
    match path.strip_prefix("/mcp")? {
        "" => Some(""),
        rest => rest.strip_prefix('/').filter(|name| !name.is_empty() && !name.contains('/')),
    }
}

/// A refusal of the daemon's guard, as a JSON-RPC error.
pub(crate) fn respond_refused(refusal: ApiError) -> Response {
    refusal.into_rpc_response(INVALID_REQUEST)
}

/// Answers a request at a door.
pub(crate) async fn answer(app: &App, request: Request) -> Response {
    let door = match find_door(app, request.uri().path()) {
        Ok(door) => door,
        Err(error) => return error.into_rpc_response(INVALID_REQUEST),
    };
    match hops::read(request.headers()) {
        None => answer_at(app, door, request).await.unwrap_or_else(Refusal::into_response),
        Some(hops) => answer_daemon(app, &hops, door, request).await,
    }
}

/// Answers a client that works for another daemon, or for this one.
async fn answer_daemon(app: &App, hops: &DaemonIds, door: Door, request: Request) -> Response {
    let gateway = &app.gateway;
    let answered = match hops::check(hops, gateway.0.daemon_id) {
        Ok(()) => answer_at(app, door.clone(), request).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = answered.unwrap_or_else(Refusal::into_response);
    hops::stamp(&mut response, gateway, &door);
    response
}

async fn answer_at(app: &App, door: Door, request: Request) -> Result<Response, Refusal> {
    let gateway = &app.gateway;
    match request.method().as_str() {
        "POST" => post(app, gateway, door, request).await,
        "GET" => legacy::listen(gateway, &door, request.headers()),
        "DELETE" => legacy::delete(gateway, &door, request.headers()),
        _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this takes POST, GET and DELETE")),
    }
}

fn find_door(app: &App, path: &str) -> Result<Door, ApiError> {
    match name_in(path).unwrap_or_default() {
        "" => Ok(Door::All),
        name => {
            let name = percent_decode_str(name).decode_utf8_lossy();
            app.registry.find(&name).map(Door::One)
        }
    }
}

async fn post(
    app: &App,
    gateway: &Gateway,
    door: Door,
    request: Request,
) -> Result<Response, Refusal> {
    let accepts = Accepts::read(request.headers())?;
    check_content_type(request.headers())?;
    let (headers, body) = split(request);
    let body = match read_body(&headers, body, BodyLimit::from_ref(app)).await {
        Ok(body) => body,
        Err(error) => return Ok(error.into_rpc_response(INVALID_REQUEST)),
    };
    let incoming = Incoming::parse(&body).map_err(|error| unreadable(&body, &error.reason))?;
    drop(body);
    let door = Entrance { door, headers, accepts };
    if modern::is_modern(&door.headers, &incoming) {
        return Box::pin(modern::post(gateway, door, incoming)).await;
    }
    legacy::post(gateway, door, incoming).await
}

fn split(request: Request) -> (HeaderMap, Body) {
    let (parts, body) = request.into_parts();
    (parts.headers, body)
}

/// How a client came in. Let go before its request is worked on, which may take long.
pub(super) struct Entrance {
    pub(super) door: Door,
    pub(super) headers: HeaderMap,
    pub(super) accepts: Accepts,
}

impl Entrance {
    pub(super) fn header(&self, name: &HeaderName) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The span to which the request belongs, where its sender says so.
    pub(super) fn parent(&self) -> Option<TraceParent> {
        trace_parent(&self.headers)
    }

    pub(super) fn manner(&self) -> Manner {
        Manner { accepts: self.accepts, parent: self.parent() }
    }
}

/// What work on a request has to know of how it came in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) accepts: Accepts,
    /// The span to which the request belongs.
    pub(super) parent: Option<TraceParent>,
}

/// The span that an HTTP request belongs to.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    TraceParent::parse(header(headers, &TRACE_PARENT)?)
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// What a client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Reads `Accept`; a client that does not say takes anything.
    fn read(headers: &HeaderMap) -> Result<Self, Refusal> {
        let mut accepts = Self { json: false, events: false };
        let mut is_given = false;
        for value in headers.get_all(ACCEPT) {
            is_given = true;
            let text = value.to_str().unwrap_or_default();
            for kind in text.split(',') {
                let kind = kind.split(';').next().unwrap_or_default().trim();
                let is = |name: &str| kind.eq_ignore_ascii_case(name);
                accepts.json |= is("*/*") || is("application/*") || is("application/json");
                accepts.events |= is("*/*") || is("text/*") || is("text/event-stream");
            }
        }
        if !is_given {
            return Ok(Self { json: true, events: true });
        }
        if accepts.json || accepts.events {
            return Ok(accepts);
        }
        let message = "`Accept` has neither application/json nor text/event-stream";
        Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message))
    }

    pub(super) fn read_events(headers: &HeaderMap) -> Result<(), Refusal> {
        if Self::read(headers)?.events {
            return Ok(());
        }
        Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "`Accept` has no text/event-stream"))
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = header(headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "`Content-Type` is not application/json";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
}

fn unreadable(body: &Bytes, reason: &str) -> Refusal {
    let is_json = serde_json::from_slice::<IgnoredAny>(body).is_ok();
    let (code, message) = if is_json {
        (INVALID_REQUEST, format!("the body is not a JSON-RPC message: {reason}"))
    } else {
        (PARSE_ERROR, format!("the body is not JSON: {reason}"))
    };
    Refusal { status: StatusCode::BAD_REQUEST, fault: Fault::new(code, message), id: None }
}

/// Why a request is not served: an HTTP status, and a JSON-RPC error that says more.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) fault: Fault,
    pub(super) id: Option<Bytes>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, fault: Fault::new(INVALID_REQUEST, message), id: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    #[must_use]
    pub(super) fn to(mut self, id: &Bytes) -> Self {
        self.id = is_id(id).then(|| id.clone());
        self
    }

    fn into_response(self) -> Response {
        let body = match &self.id {
            Some(id) => rpc::response(id, &Err(self.fault)),
            None => rpc::orphan_error(&self.fault),
        };
        let mut response = json_response(Body::from(body));
        *response.status_mut() = self.status;
        response
    }
}

/// The id of a message that is a request, where it is one that can be an id.
pub(super) fn check_id(message: &Message) -> Result<(), Refusal> {
    match message {
        Message::Request { id, .. } if !is_id(id) => {
            Err(Refusal::bad_request("the id of the request is neither a string nor a number"))
        }
        _ => Ok(()),
    }
}

/// Nothing more to say.
pub(super) fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// An answer that came at once, in the form that the client reads.
pub(super) fn respond(id: &Bytes, answer: Answer, accepts: Accepts) -> Response {
    if !accepts.json {
        let event = event(rpc::response(id, &answer));
        return events_response(Body::from(event));
    }
    let (status, body) = match answer {
        Ok(result) => (StatusCode::OK, json_around(&rpc::response_head(id, "result"), result)),
        Err(fault) => {
            let status = fault.http_status().unwrap_or(StatusCode::OK);
            (status, json_around(&rpc::response_head(id, "error"), fault.json().clone()))
        }
    };
    let mut response = json_response(body);
    *response.status_mut() = status;
    response
}

pub(super) fn json_response(body: Body) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// A message as an event without an id.
pub(super) fn event(message: Bytes) -> Bytes {
    [b"data: ", &on_one_line(message)[..], b"\n\n"].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(values: &[&str]) -> Option<(bool, bool)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, value.parse().unwrap());
        }
        Accepts::read(&headers).ok().map(|accepts| (accepts.json, accepts.events))
    }

    #[test]
    fn a_client_says_what_it_can_read() {
        assert_eq!(accepts(&["application/json, text/event-stream"]), Some((true, true)));
        assert_eq!(accepts(&["application/json", "text/event-stream"]), Some((true, true)));
        assert_eq!(accepts(&["Application/JSON;q=0.9"]), Some((true, false)));
        assert_eq!(accepts(&["text/event-stream"]), Some((false, true)));
        assert_eq!(accepts(&["*/*"]), Some((true, true)));
        assert_eq!(accepts(&[]), Some((true, true)));
        assert_eq!(accepts(&["text/html"]), None);
    }

    #[test]
    fn a_door_is_mcp_with_at_most_a_name() {
        assert_eq!(name_in("/mcp"), Some(""));
        assert_eq!(name_in("/mcp/fs"), Some("fs"));
        for path in ["/mcp/", "/mcp/fs/", "/mcp/fs/x", "/mcpx", "/api/v1/mcp", "/"] {
            assert_eq!(name_in(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_not_json_and_what_is_not_rpc_have_codes_of_their_own() {
        let code =
            |body: &'static str| unreadable(&Bytes::from_static(body.as_bytes()), "x").fault.code();
        assert_eq!(code("{"), PARSE_ERROR);
        assert_eq!(code("{}"), INVALID_REQUEST);
        assert_eq!(code("5"), INVALID_REQUEST);
    }
}
