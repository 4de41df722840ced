//! A small MCP server over Streamable HTTP that a test holds in its hand: it forgets sessions,
//! refuses, dies and comes back on order, and tells what it was asked.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, Response};
use serde_json::{Value, json};

use crate::mortal::Mortal;

const SESSION: &str = "mcp-session-id";
/// What a request may carry at most.
const LARGEST: usize = 64 * 1024 * 1024;

/// The server, until it is dropped.
pub struct Upstream {
    server: Mortal,
    shared: Arc<Mutex<Shared>>,
}

/// One request, as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The JSON-RPC method, or the HTTP one where there is no message.
    pub method: String,
    /// Its headers.
    pub headers: HeaderMap,
}

#[derive(Default)]
struct Shared {
    sessions: BTreeSet<String>,
    made: u64,
    modern: bool,
    bearer: Option<String>,
    forced: Option<(u16, String)>,
    asked: Vec<Asked>,
}

impl Upstream {
    /// Starts it on a free port.
    pub fn start() -> Self {
        let shared = Arc::default();
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        Self { server: Mortal::start(routes), shared }
    }

    /// Starts it again, on the port it had, without any of its sessions.
    pub fn rise(&mut self) {
        self.forget_sessions();
        self.server.rise();
    }

    /// Ends it in the middle of everything: connections break, nobody listens.
    pub fn die(&mut self) {
        self.server.die();
    }

    /// Where it speaks MCP.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.base())
    }

    /// Where it is, without a path.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// From now on it knows none of its sessions.
    pub fn forget_sessions(&self) {
        self.shared().sessions.clear();
    }

    /// From now on it wants this bearer token.
    pub fn want_bearer(&self, token: Option<&str>) {
        self.shared().bearer = token.map(str::to_owned);
    }

    /// From now on it speaks the revision that has no sessions, and only that.
    pub fn speak_modern(&self) {
        self.shared().modern = true;
    }

    /// From now on it answers everything with this status and body; none takes that back.
    pub fn answer_with(&self, forced: Option<(u16, &str)>) {
        self.shared().forced = forced.map(|(status, body)| (status, body.to_owned()));
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared().asked.clone()
    }

    /// How often it was asked this.
    pub fn count(&self, method: &str) -> usize {
        self.shared().asked.iter().filter(|asked| asked.method == method).count()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("nobody panics with it")
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, LARGEST).await.unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let mut shared = shared.lock().expect("nobody panics with it");
    let method = message["method"].as_str().unwrap_or(head.method.as_str()).to_owned();
    shared.asked.push(Asked { method, headers: head.headers.clone() });
    if let Some((status, body)) = &shared.forced {
        return reply(*status, "text/html", body.clone());
    }
    let given = text(&head.headers, "authorization").unwrap_or("nothing");
    if let Some(token) = &shared.bearer
        && head.uri.path() != "/healthz"
        && given != format!("Bearer {token}")
    {
        return reply(401, "text/plain", format!("unknown: {given}"));
    }
    match head.method {
        // So that it can stand in for a daemon.
        Method::GET if head.uri.path() == "/healthz" => reply(200, "application/json", "{}"),
        Method::POST if head.uri.path() == "/mcp" => shared.converse(&head.headers, &message),
        Method::DELETE => {
            let id = text(&head.headers, SESSION).unwrap_or_default();
            reply(if shared.sessions.remove(id) { 200 } else { 404 }, "text/plain", "")
        }
        Method::OPTIONS => reply(204, "text/plain", ""),
        Method::POST => reply(404, "text/plain", "nothing here"),
        _ => reply(405, "text/plain", ""),
    }
}

impl Shared {
    fn converse(&mut self, headers: &HeaderMap, message: &Value) -> Response<Body> {
        let method = message["method"].as_str().unwrap_or_default();
        if self.modern {
            return match modern(headers, method) {
                true => rpc(message, result(method, message)),
                false => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    let id = &message["id"];
                    let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                    reply(400, "application/json", answer.to_string())
                }
            };
        }
        if method == "initialize" {
            self.made += 1;
            let id = format!("session-{}", self.made);
            let mut answer = rpc(message, result(method, message));
            answer.headers_mut().insert(SESSION, id.parse().expect("a header"));
            self.sessions.insert(id);
            return answer;
        }
        if !text(headers, SESSION).is_some_and(|id| self.sessions.contains(id)) {
            return reply(404, "text/plain", "no such session");
        }
        match message.get("id") {
            Some(_) => rpc(message, result(method, message)),
            None => reply(202, "text/plain", ""),
        }
    }
}

/// Whether a request is one of the revision without sessions.
fn modern(headers: &HeaderMap, method: &str) -> bool {
    text(headers, "mcp-protocol-version") == Some("2026-07-28")
        && text(headers, "mcp-method") == Some(method)
}

fn result(method: &str, message: &Value) -> Value {
    let info = json!({"name": "upstream", "version": "1"});
    match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info,
        }),
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info,
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        }),
        "tools/list" => json!({
            "tools": [{"name": "echo", "inputSchema": {"type": "object"}}],
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        }),
        "tools/call" => {
            let said = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
            json!({"content": [{"type": "text", "text": said}], "resultType": "complete"})
        }
        _ => json!({}),
    }
}

fn rpc(message: &Value, result: Value) -> Response<Body> {
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    reply(200, "application/json", answer.to_string())
}

fn reply(status: u16, kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let reply = Response::builder().status(status).header("content-type", kind);
    reply.body(Body::from(body.into())).expect("a response")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
