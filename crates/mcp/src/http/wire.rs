//! What all tasks of one pump share, and the sending of a message as one POST.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_model::{Budget, DAEMONS_HEADER, DAEMONS_NOTIFICATION, DaemonIds, HOPS_HEADER, Redactor};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

use super::attendant::{Attendant, Trouble};
use super::body::Body;
use super::client::{Client, Outbound};
use super::failure::{Failure, FailureKind, error_response, readable};
use super::headers::{ANY_ANSWER, JSON};
use super::in_flight::InFlight;
use super::output::Output;
use super::pulse::Pulse;
use super::pump::Remote;
use super::raw::{Kind, Raw};
use super::session::Sessions;
use super::tools::MirroredArguments;
use crate::members::member;

/// How many requests are with the server at a time; each may hold a connection.
const MAX_AT_ONCE: usize = 256;
/// How much of an answer is read that is no success.
const MAX_ERROR: usize = 1024 * 1024;

/// The shared state of one pump.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) client: Client,
    pub(super) attendant: Arc<dyn Attendant>,
    redactor: Redactor,
    /// What errors of our own name as their source.
    pub(super) source: String,
    /// The longest silence of a server that owes an answer.
    pub(super) silence: Duration,
    pub(super) cap: usize,
    pub(super) memory: Arc<Budget>,
    pub(super) output: Output,
    pub(super) in_flight: InFlight,
    pub(super) sessions: Sessions,
    pub(super) tools: MirroredArguments,
    pub(super) slots: Semaphore,
    /// The revision that a client without sessions named last.
    pub(super) modern: Mutex<Option<HeaderValue>>,
    /// The task that listens to the server's own stream.
    pub(super) listener: Mutex<Option<AbortHandle>>,
    pub(super) pulse: Pulse,
    /// The URL for POSTs of a server that speaks HTTP+SSE.
    pub(super) endpoint: OnceLock<Uri>,
    /// The daemons behind the server, as last reported; none where nobody wants to know.
    daemons: Option<Mutex<DaemonIds>>,
    tasks: Mutex<JoinSet<()>>,
    ending: AtomicBool,
}

/// What the head of an answer means.
pub(super) enum Verdict {
    /// The answer to what was asked.
    Answer(Response<Body>),
    /// No success, but the server says why in its own JSON-RPC error.
    Told(Raw),
    /// The server does not know the session: the request did not run.
    SessionLost(Failure),
}

impl Wire {
    pub(super) fn new(remote: Remote, output: Output) -> Self {
        let Remote { silence, cap, memory, source, attendant, redactor, .. } = remote;
        let Remote { url, headers, transport, authorizer, .. } = remote;
        let daemons = headers.contains_key(HOPS_HEADER).then(Mutex::default);
        let client = Client::new(transport, authorizer, Arc::clone(&attendant), url, headers);
        Self {
            client,
            attendant,
            redactor,
            source,
            silence,
            cap,
            memory,
            output,
            in_flight: InFlight::default(),
            sessions: Sessions::default(),
            tools: MirroredArguments::default(),
            slots: Semaphore::new(MAX_AT_ONCE),
            modern: Mutex::default(),
            listener: Mutex::default(),
            pulse: Pulse::default(),
            endpoint: OnceLock::new(),
            daemons,
            tasks: Mutex::default(),
            ending: AtomicBool::new(false),
        }
    }

    /// Starts a task that ends with the pump.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    /// Ends all tasks.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Whether the pump is about to end, and failures are of its own making.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Sends one message and waits for the head of the answer, no longer than `limit`.
    pub(super) async fn post(
        &self,
        text: &Bytes,
        mut headers: HeaderMap,
        repeatable: bool,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, Failure> {
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, ANY_ANSWER);
        // Repeating a POST of HTTP+SSE could bring two answers on the stream.
        let to = self.endpoint.get().cloned();
        let repeatable = repeatable && to.is_none();
        let body = text.clone();
        let out = Outbound { to, method: Method::POST, headers, body, repeatable };
        let exchange = self.client.exchange(&out);
        let response = match limit {
            None => exchange.await,
            Some(limit) => tokio::time::timeout(limit, exchange)
                .await
                .unwrap_or_else(|_| Err(Failure::silent(limit))),
        }?;
        self.report_daemons(response.headers()).await;
        Ok(response)
    }

    /// Tells the hosting daemon which daemons are behind the server, if that has changed, before the
    /// response itself: it must not offer the tools of a list that leads back to it.
    async fn report_daemons(&self, headers: &HeaderMap) {
        let Some(known) = &self.daemons else { return };
        let listed = headers.get(DAEMONS_HEADER).and_then(|value| value.to_str().ok());
        let listed = listed.map(DaemonIds::parse).unwrap_or_default();
        let line = {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if *known == listed {
                return;
            }
            let params = serde_json::json!({"daemons": listed.to_string()});
            *known = listed;
            serde_json::json!({"jsonrpc": "2.0", "method": DAEMONS_NOTIFICATION, "params": params})
        };
        self.output.send(Bytes::from(line.to_string())).await;
    }

    /// Looks at the head of an answer, and at the body of one that is no success. `in_session`
    /// says that the request carried a session's id.
    pub(super) async fn judge(
        &self,
        response: Response<Body>,
        in_session: bool,
    ) -> Result<Verdict, Failure> {
        let status = response.status();
        if status.is_success() {
            return Ok(Verdict::Answer(response));
        }
        let (head, body) = response.into_parts();
        let reading = body.beginning(MAX_ERROR);
        let body = tokio::time::timeout(self.silence, reading).await.unwrap_or_default();
        if in_session && names_a_lost_session(status, &body) {
            return Ok(Verdict::SessionLost(Failure {
                http_status: Some(status.as_u16()),
                body: readable(&body),
                ..session_lost()
            }));
        }
        if let Ok(raw) = Raw::read(body.clone())
            && is_rpc_error(&raw)
            // Whoever is not let in has to know that first; the server's words go with it.
            && !matches!(status.as_u16(), 401 | 403)
        {
            return Ok(Verdict::Told(raw));
        }
        Err(self.refused(status, &head.headers, &body))
    }

    /// An answer that is no success and has no JSON-RPC error in it.
    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        let principal = self.client.principal();
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let (kind, hint) = match status.as_u16() {
            401 => (FailureKind::Auth, self.client.advice(401).unwrap_or_else(unsigned)),
            403 => (FailureKind::Forbidden, self.client.advice(403).unwrap_or_else(unsigned)),
            300..=399 => (FailureKind::Http, elsewhere(text(LOCATION))),
            404 => (FailureKind::Http, "nothing is served there: check the path of the URL, which often is /mcp.".to_owned()),
            405 => (FailureKind::Http, "the URL takes no MCP messages: check its path, which often is /mcp.".to_owned()),
            429 | 503 => (FailureKind::Http, try_again(text(RETRY_AFTER))),
            400..=499 => (FailureKind::Http, "the server refused the request; its words are in `body`.".to_owned()),
            _ => (FailureKind::Http, "the server failed; it was not sent again, because it may have run. Look at the server's log.".to_owned()),
        };
        let message = match kind {
            FailureKind::Auth => "the server did not accept who we are (HTTP 401)".to_owned(),
            FailureKind::Forbidden => match &principal {
                Some(who) => format!("{who} may not use this server (HTTP 403)"),
                None => "the server does not let us in (HTTP 403)".to_owned(),
            },
            _ => format!("the server answered HTTP {status}"),
        };
        Failure {
            http_status: Some(status.as_u16()),
            body: readable(body),
            ..Failure::new(kind, message, hint)
        }
    }

    /// What is told of a failure: known secrets are no part of it. The attendant hears it too.
    pub(super) fn told(&self, method: &str, failure: Failure) -> Failure {
        let mut failure = Failure {
            body: failure.body.map(|body| self.redactor.redact(body).into_owned()),
            ..failure
        };
        let trouble = Trouble::from(&failure);
        if let Some(hint) = self.attendant.advice(&trouble) {
            failure.hint = hint;
        }
        self.attendant.failed(method, &trouble);
        failure
    }

    /// Tells the client that a line of its was none.
    pub(super) async fn complain(&self, id: Option<&Bytes>, code: i64, message: &str) {
        let null = Bytes::from_static(b"null");
        let modern = self.modern_version().is_some() && self.sessions.opening().is_none();
        // The newer revision leaves out an id that is not known; the older ones write null.
        let id = id.or_else(|| (!modern).then_some(&null));
        self.output.send(error_response(id, code, message, None)).await;
    }

    pub(super) fn modern_version(&self) -> Option<HeaderValue> {
        self.modern.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts the task `listener` in the place of the one before it, which ends.
    pub(super) fn listen_by(self: &Arc<Self>, listener: AbortHandle) {
        let mut place = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = place.replace(listener) {
            before.abort();
        }
    }
}

/// Whether it is the protocol's own error: other APIs, too, call theirs `error`.
fn is_rpc_error(raw: &Raw) -> bool {
    let Kind::Response { error: Some(error), .. } = &raw.kind else {
        return false;
    };
    let code = member(error, "code").and_then(|code| serde_json::from_slice(code).ok());
    code.is_some_and(|code: serde_json::Number| code.is_i64())
}

pub(super) fn session_lost() -> Failure {
    Failure::new(
        FailureKind::Session,
        "the server forgot the session while this request was under way",
        "it was not sent again, because it may have run; ask again. The session is opened anew by itself.",
    )
}

/// 404 says so by the protocol; some servers say it in words with another status.
fn names_a_lost_session(status: StatusCode, body: &[u8]) -> bool {
    if status == StatusCode::NOT_FOUND {
        return true;
    }
    let words = String::from_utf8_lossy(&body[..body.len().min(4096)]).to_ascii_lowercase();
    match status.as_u16() {
        400 => [
            "no valid session",
            "missing session",
            "session not found",
            "invalid session",
            "unknown session",
            "session expired",
        ]
        .iter()
        .any(|phrase| words.contains(phrase)),
        401 => words.contains("session not found"),
        _ => false,
    }
}

fn unsigned() -> String {
    "the server wants to know who asks; check what is sent to it as proof.".to_owned()
}

fn elsewhere(location: Option<&str>) -> String {
    match location {
        Some(place) => format!(
            "the server sends us to {place}, where our token does not go; if that is right, use it as the URL."
        ),
        None => "the server sends us elsewhere and does not say where.".to_owned(),
    }
}

fn try_again(after: Option<&str>) -> String {
    match after {
        Some(when) => {
            format!("the server has too much to do; try again after {when} (its Retry-After).")
        }
        None => "the server has too much to do or is starting; try again later.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_session_is_known_by_its_status_or_by_its_words() {
        let lost = |status: u16, body: &str| {
            names_a_lost_session(StatusCode::from_u16(status).unwrap(), body.as_bytes())
        };
        assert!(lost(404, ""));
        assert!(lost(400, r#"{"error":{"message":"Bad Request: No valid session ID provided"}}"#));
        assert!(lost(401, "Unauthorized: Session not found"));
        assert!(
            !lost(400, "Invalid params")
                && !lost(401, "bad token")
                && !lost(500, "session not found")
        );
    }
}
