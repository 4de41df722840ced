//! A request from the client, from its turn to its one answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use tokio::sync::watch;
use tokio::time::Instant;

use super::body::Body;
use super::endpoint_stream::may_be_older;
use super::failure::{Failure, FailureKind, readable};
use super::headers::describe;
use super::raw::{Kind, Raw, canonical, messages};
use super::session::{Opening, Session};
use super::stream::Tail;
use super::wire::{Verdict, Wire};

/// A request and how it is to be sent.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) text: Bytes,
    /// As the client wrote it, and in the one form that all its spellings have.
    pub(super) id: Bytes,
    pub(super) key: Bytes,
    pub(super) method: String,
    pub(super) params: Option<Bytes>,
    /// The revision it names for itself, which makes it one of the newer era.
    pub(super) version: Option<HeaderValue>,
    pub(super) barrier: Barrier,
}

/// What must have been sent before. Passed once the sender of the pair is gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Barrier(pub(super) Option<watch::Receiver<()>>);

impl Barrier {
    pub(super) async fn passed(&self) {
        if let Some(receiver) = &self.0 {
            // It only ever ends.
            while receiver.clone().changed().await.is_ok() {}
        }
    }
}

impl Job {
    pub(super) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    pub(super) fn is_initialize(&self) -> bool {
        !self.is_modern() && self.method == "initialize"
    }

    pub(super) fn is_endless(&self) -> bool {
        self.is_modern() && self.method == "subscriptions/listen"
    }

    /// Whether it only reads, so that its running twice does no harm.
    pub(super) fn is_repeatable(&self) -> bool {
        self.method.ends_with("/list")
            || matches!(
                self.method.as_str(),
                "ping"
                    | "initialize"
                    | "server/discover"
                    | "resources/read"
                    | "prompts/get"
                    | "completion/complete"
                    | "logging/setLevel"
            )
    }

    /// The headers that say what it is.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(8);
        describe(&mut headers, &self.method, self.params.as_ref());
        headers
    }
}

impl Wire {
    /// Carries a request to the server and its answer back, whatever happens.
    pub(super) async fn carry(self: Arc<Self>, job: Job) {
        let began = Instant::now();
        job.barrier.passed().await;
        // One that never ends must not take the place of those that do.
        let slot = if job.is_endless() { None } else { self.slots.acquire().await.ok() };
        let outcome = AssertUnwindSafe(self.forward(&job)).catch_unwind().await;
        drop(slot);
        let ms = began.elapsed().as_millis();
        match outcome {
            Ok(Ok(tail)) => {
                tracing::debug!(method = job.method, ms, "answered");
                if let Some(tail) = tail {
                    Box::pin(self.read_tail(tail, job.is_modern())).await;
                }
            }
            Ok(Err(failure)) => self.fail(&job, failure).await,
            Err(_) => {
                let hint = "this is a bug in cofer: please report it with the lines on stderr.";
                let failure = Failure::new(FailureKind::Protocol, "the request was lost", hint);
                self.fail(&job, failure).await;
            }
        }
    }

    async fn forward(self: &Arc<Self>, job: &Job) -> Result<Option<Tail>, Failure> {
        if job.is_endless() {
            Box::pin(self.forward_listen(job)).await
        } else if job.is_modern() {
            self.forward_modern(job).await
        } else {
            self.forward_legacy(job).await
        }
    }

    /// In the older era a request belongs to a session, and is sent once more where the server
    /// had forgotten that and so did not run it.
    async fn forward_legacy(self: &Arc<Self>, job: &Job) -> Result<Option<Tail>, Failure> {
        let mut renewed = false;
        loop {
            let session =
                if job.is_initialize() { Arc::default() } else { self.sessions.current() };
            let mut headers = job.headers();
            session.stamp(&mut headers);
            let sent = self.post(&job.text, headers, job.is_repeatable(), Some(self.silence));
            let sent = sent.await?;
            if job.is_initialize()
                && self.endpoint.get().is_none()
                && may_be_older(sent.status())
                && Box::pin(self.open_endpoint_stream(job)).await
            {
                continue;
            }
            match self.judge(sent, session.has_id()).await? {
                // The answer comes on the stream of HTTP+SSE.
                Verdict::Answer(response) if self.endpoint.get().is_some() => {
                    drop(response.into_body().beginning(4096).await);
                    return Ok(None);
                }
                Verdict::Answer(response) => return self.receive(job, session, response).await,
                Verdict::Told(raw) => {
                    self.hand_over(job, &raw, &session).await;
                    return Ok(None);
                }
                Verdict::SessionLost(failure) if renewed => return Err(failure),
                Verdict::SessionLost(_) => {
                    self.renew(&session).await?;
                    renewed = true;
                }
            }
        }
    }

    /// Reads the answer to a request, in whichever form it comes.
    pub(super) async fn receive(
        self: &Arc<Self>,
        job: &Job,
        session: Arc<Session>,
        response: Response<Body>,
    ) -> Result<Option<Tail>, Failure> {
        let (head, body) = response.into_parts();
        // The answer to `initialize` names the session that it opens.
        let session =
            if job.is_initialize() { Arc::new(Session::begun(&head.headers)) } else { session };
        if is_event_stream(&head.headers) {
            return Box::pin(self.read_stream(job, session, body)).await.map(Some);
        }
        let text = body.collect_within(self.cap, Some(self.silence), &self.memory).await?;
        if self.deliver(&text, Some((job, &session)), job.is_modern()).await {
            return Ok(None);
        }
        Err(no_answer(head.status, &head.headers, &text))
    }

    /// Passes on what the server sent, and tells whether the answer to `asked` was in it.
    pub(super) async fn deliver(
        &self,
        text: &Bytes,
        asked: Option<(&Job, &Session)>,
        modern: bool,
    ) -> bool {
        let mut answered = false;
        for read in messages(text).unwrap_or_default() {
            let Ok(raw) = read else {
                tracing::warn!(
                    bytes = text.len(),
                    "the server sent something that is no JSON-RPC message"
                );
                continue;
            };
            match &raw.kind {
                Kind::Response { id, .. } => {
                    let key = id.as_ref().map(canonical);
                    match asked.filter(|(job, _)| key.as_ref().is_none_or(|key| *key == job.key)) {
                        Some((job, session)) => {
                            self.hand_over(job, &raw, session).await;
                            answered = true;
                        }
                        None => self.hand_to_another(key, &raw).await,
                    }
                }
                Kind::Request { method, .. } if modern => {
                    tracing::warn!(
                        method,
                        "the server asks something, which its revision does not allow"
                    );
                }
                Kind::Request { .. } | Kind::Notification { .. } => {
                    self.output.send(raw.text).await;
                }
            }
        }
        answered
    }

    /// Gives the client the answer to `job`, unless it is not waiting for it any more.
    pub(super) async fn hand_over(&self, job: &Job, raw: &Raw, session: &Session) {
        let Kind::Response { id, result, .. } = &raw.kind else {
            return;
        };
        let mut text = if id.is_some() { raw.text.clone() } else { raw.with_id(&job.id) };
        if let Some(result) = result {
            if job.is_initialize() {
                let opening = Opening {
                    initialize: job.text.clone(),
                    id: job.key.clone(),
                    initialized: None,
                };
                self.sessions.open(session, result, opening);
            } else if job.is_modern() && job.method == "tools/list" {
                text = self.without_bad_tools(job, result, text);
            }
        }
        if self.in_flight.take(&job.key).is_some() {
            self.output.send(text).await;
        } else {
            tracing::debug!(method = job.method, "an answer came that nobody waits for");
        }
    }

    /// An answer on a stream that was not opened for it. Odd, but whoever asked may have it.
    async fn hand_to_another(&self, key: Option<Bytes>, raw: &Raw) {
        match key.and_then(|key| self.in_flight.take(&key)) {
            Some(_) => self.output.send(raw.text.clone()).await,
            None => tracing::debug!("an answer came that nobody waits for"),
        }
    }

    async fn fail(self: &Arc<Self>, job: &Job, failure: Failure) {
        if self.in_flight.take(&job.key).is_none() || self.is_ending() {
            tracing::debug!(method = job.method, %failure, "it failed after it was given up");
            return;
        }
        let failure = self.told(&job.method, failure);
        tracing::warn!(
            method = job.method,
            kind = ?failure.kind,
            http_status = failure.http_status,
            body = failure.body,
            "{failure}"
        );
        let given_up = matches!(failure.kind, FailureKind::Timeout | FailureKind::TooLarge);
        if given_up && !job.is_modern() && !job.is_initialize() {
            self.tell_given_up(&job.id, &failure.message);
        }
        self.output.send(failure.response(&job.id, &self.source)).await;
    }
}

pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    content_type(headers).is_some_and(|kind| kind == "text/event-stream")
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// A success that holds no answer.
fn no_answer(status: StatusCode, headers: &HeaderMap, text: &[u8]) -> Failure {
    let kind = content_type(headers).unwrap_or_else(|| "no content type".to_owned());
    let message = if text.is_empty() {
        format!("the server answered HTTP {status} without an answer in it")
    } else {
        format!(
            "the server answered HTTP {status} with something ({kind}) that is no answer to the request"
        )
    };
    let hint = "check that the URL is that of an MCP server, with its path.";
    Failure {
        http_status: Some(status.as_u16()),
        body: readable(text),
        ..Failure::new(FailureKind::Protocol, message, hint)
    }
}
