//! Requests of the revision 2026-07-28: no session, everything in headers, and a stream that
//! ends is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::sleep;

use super::body::Body;
use super::failure::Failure;
use super::headers::{VERSION, describe};
use super::raw::{Kind, Raw, messages, text_member};
use super::request::{Job, is_event_stream};
use super::session::Session;
use super::sse::{Item, Parser};
use super::stream::{Tail, backoff};
use super::transport::TransportError;
use super::wire::{Verdict, Wire};
use crate::members::member;

/// The headers were not those that the server wanted; the request did not run.
const HEADER_MISMATCH: &[u8] = b"-32020";
/// How many pages of tools are read for the sake of their headers.
const MAX_PAGES: usize = 100;
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Numbers the requests that we send for ourselves.
static OWN: AtomicU64 = AtomicU64::new(1);

impl Wire {
    pub(super) async fn forward_modern(
        self: &Arc<Self>,
        job: &Job,
    ) -> Result<Option<Tail>, Failure> {
        let mut refreshed = false;
        loop {
            let headers = self.modern_headers(job);
            let sent = self.post(&job.text, headers, job.is_repeatable(), Some(self.silence));
            match self.judge(sent.await?, false).await? {
                Verdict::Answer(response) => {
                    return self.receive(job, Arc::default(), response).await;
                }
                Verdict::Told(raw) => {
                    let stale = job.method == "tools/call" && !refreshed && is_mismatch(&raw);
                    if stale && Box::pin(self.learn_tools(job)).await.is_ok() {
                        refreshed = true;
                        continue;
                    }
                    self.hand_over(job, &raw, &Session::default()).await;
                    return Ok(None);
                }
                Verdict::SessionLost(failure) => return Err(failure),
            }
        }
    }

    fn modern_headers(&self, job: &Job) -> HeaderMap {
        let mut headers = job.headers();
        headers.extend(job.version.clone().map(|version| (VERSION, version)));
        if job.method == "tools/call"
            && let Some(params) = &job.params
        {
            self.tools.mirror(params, &mut headers);
        }
        headers
    }

    /// The answer to `tools/list` as the client may see it.
    pub(super) fn without_bad_tools(&self, job: &Job, result: &Bytes, text: Bytes) -> Bytes {
        let first = job.params.as_ref().is_none_or(|params| member(params, "cursor").is_none());
        let Some(shown) = self.tools.learn(result, first) else {
            return text;
        };
        let whole = [br#"{"jsonrpc":"2.0","id":"#, &job.id[..], br#","result":"#, &shown, b"}"];
        whole.concat().into()
    }

    /// Asks for the tools on our own behalf, with what `job` says of its client.
    async fn learn_tools(&self, job: &Job) -> Result<(), Failure> {
        let meta = job.params.as_ref().and_then(|params| member(params, "_meta"));
        let meta: serde_json::Value =
            meta.and_then(|meta| serde_json::from_slice(meta).ok()).unwrap_or_default();
        let mut cursor: Option<String> = None;
        for page in 0..MAX_PAGES {
            let mut params = serde_json::json!({"_meta": meta});
            if let Some(meta) = params["_meta"].as_object_mut() {
                meta.remove("progressToken");
            }
            if let Some(cursor) = &cursor {
                params["cursor"] = cursor.as_str().into();
            }
            let id = format!("cofer-{}", OWN.fetch_add(1, Ordering::Relaxed));
            let ask = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params});
            let result = self.ask_for_ourselves(ask.to_string().into(), job).await?;
            self.tools.learn(&result, page == 0);
            cursor = text_member(&result, "nextCursor");
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn ask_for_ourselves(&self, text: Bytes, job: &Job) -> Result<Bytes, Failure> {
        let mut headers = HeaderMap::new();
        describe(&mut headers, "tools/list", None);
        headers.extend(job.version.clone().map(|version| (VERSION, version)));
        let sent = self.post(&text, headers, true, Some(self.silence)).await?;
        let Verdict::Answer(response) = self.judge(sent, false).await? else {
            return Err(Failure::cut(None));
        };
        let (head, mut body) = response.into_parts();
        if !is_event_stream(&head.headers) {
            let text = body.collect_within(self.cap, Some(self.silence), &self.memory).await?;
            return result_in(&text).ok_or_else(|| Failure::cut(None));
        }
        let mut parser = Parser::new(self.cap, &self.memory);
        while let Some(chunk) = body.chunk_within(Some(self.silence)).await? {
            parser.push(chunk);
            while let Some(item) = parser.next() {
                if let Item::Message(data) = item
                    && let Some(result) = result_in(&data)
                {
                    return Ok(result);
                }
            }
        }
        Err(Failure::cut(None))
    }

    /// A subscription lives until one side ends it: where the connection does, it is asked for
    /// again, and the client notices nothing.
    pub(super) async fn forward_listen(
        self: &Arc<Self>,
        job: &Job,
    ) -> Result<Option<Tail>, Failure> {
        let mut acknowledged = false;
        let mut attempt = 0;
        loop {
            let cause = match self.listen_once(job, &mut acknowledged).await {
                Ok(Listened::Answered) => return Ok(None),
                Ok(Listened::Dropped { cause, any }) => {
                    attempt = if any { 0 } else { attempt };
                    Failure::cut(cause.as_ref())
                }
                // A connection that cannot be made now may be later; a refusal is an answer.
                Err(failure) if acknowledged && is_passing(&failure) => failure,
                Err(failure) => return Err(failure),
            };
            if !acknowledged {
                return Err(cause);
            }
            tracing::debug!(%cause, "a subscription broke off: asking for it again");
            sleep(backoff(attempt)).await;
            attempt += 1;
        }
    }

    async fn listen_once(&self, job: &Job, acknowledged: &mut bool) -> Result<Listened, Failure> {
        let sent = self.post(&job.text, self.modern_headers(job), true, None).await?;
        let response = match self.judge(sent, false).await? {
            Verdict::Answer(response) => response,
            Verdict::Told(raw) => {
                self.hand_over(job, &raw, &Session::default()).await;
                return Ok(Listened::Answered);
            }
            Verdict::SessionLost(failure) => return Err(failure),
        };
        let (head, body) = response.into_parts();
        if is_event_stream(&head.headers) {
            return self.listen_to(job, body, acknowledged).await;
        }
        let text = body.collect_within(self.cap, Some(self.silence), &self.memory).await?;
        let answered = self.deliver(&text, Some((job, &Session::default())), true).await;
        if answered { Ok(Listened::Answered) } else { Err(Failure::cut(None)) }
    }

    async fn listen_to(
        &self,
        job: &Job,
        mut body: Body,
        acknowledged: &mut bool,
    ) -> Result<Listened, Failure> {
        let mut parser = Parser::new(self.cap, &self.memory);
        let again = *acknowledged;
        let mut any = false;
        let cause = loop {
            match body.chunk().await {
                Ok(Some(chunk)) => parser.push(chunk),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
            any = true;
            while let Some(item) = parser.next() {
                let data = self.message(item)?;
                let is_first_word = is_acknowledgement(&data);
                *acknowledged |= is_first_word;
                if is_first_word && again {
                    continue;
                }
                if self.deliver(&data, Some((job, &Session::default())), true).await {
                    return Ok(Listened::Answered);
                }
            }
        };
        Ok(Listened::Dropped { cause, any })
    }
}

/// How a subscription's stream ended.
enum Listened {
    Answered,
    Dropped { cause: Option<TransportError>, any: bool },
}

fn is_passing(failure: &Failure) -> bool {
    use super::failure::FailureKind::{Connect, Timeout};
    matches!(failure.kind, Connect | Timeout)
        || matches!(failure.http_status, Some(408 | 429 | 500 | 502..=599))
}

fn is_acknowledgement(data: &Bytes) -> bool {
    memchr::memmem::find(data, b"acknowledged").is_some()
        && matches!(Raw::read(data.clone()), Ok(Raw { kind: Kind::Notification { method, .. }, .. }) if method == ACKNOWLEDGED)
}

fn is_mismatch(raw: &Raw) -> bool {
    let Kind::Response { error: Some(error), .. } = &raw.kind else {
        return false;
    };
    member(error, "code") == Some(HEADER_MISMATCH)
}

fn result_in(text: &Bytes) -> Option<Bytes> {
    messages(text).ok()?.into_iter().flatten().find_map(|raw| match raw.kind {
        Kind::Response { result, .. } => result,
        _ => None,
    })
}
