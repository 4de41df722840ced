//! A stream of events that answers a request: read in order, resumed where it can be.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method, Response};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::body::Body;
use super::client::Outbound;
use super::failure::Failure;
use super::headers::{EVENTS, LAST_EVENT};
use super::request::{Job, is_event_stream};
use super::session::Session;
use super::sse::{Item, Parser};
use super::transport::TransportError;
use super::wire::{Wire, session_lost};

/// How long a stream is listened to after its answer, while nothing comes.
const TAIL: Duration = Duration::from_secs(5);
/// The waits between attempts to reach the server again.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What is left of a stream behind its answer.
#[derive(Debug)]
pub(super) struct Tail {
    parser: Parser,
    body: Body,
}

/// How reading a stream ended.
enum End {
    Answered,
    /// Without the answer: in order, or broken off.
    Early(Option<TransportError>),
}

impl Wire {
    /// Reads the stream that answers `job`. In the older era, one that breaks off is resumed
    /// behind its last event, where events have ids.
    pub(super) async fn read_stream(
        self: &Arc<Self>,
        job: &Job,
        session: Arc<Session>,
        mut body: Body,
    ) -> Result<Tail, Failure> {
        let mut parser = Parser::new(self.cap, &self.memory);
        let mut empty_in_a_row = 0;
        loop {
            let (end, any) = self.read_events(&mut parser, &mut body, job, &session).await?;
            let End::Early(cause) = end else {
                return Ok(Tail { parser, body });
            };
            if job.is_modern() || parser.last_id().is_none() {
                return Err(Failure::cut(cause.as_ref()));
            }
            empty_in_a_row = if any { 0 } else { empty_in_a_row + 1 };
            tracing::debug!(method = job.method, "the stream ended early: resuming it");
            body = self.resume(&parser, &session, empty_in_a_row, cause.as_ref()).await?;
            parser.begin_stream();
        }
    }

    /// Reads until the answer or the end, and tells whether anything came.
    async fn read_events(
        &self,
        parser: &mut Parser,
        body: &mut Body,
        job: &Job,
        session: &Session,
    ) -> Result<(End, bool), Failure> {
        let mut any = false;
        loop {
            while let Some(item) = parser.next() {
                let data = self.message(item)?;
                if self.deliver(&data, Some((job, session)), job.is_modern()).await {
                    return Ok((End::Answered, true));
                }
            }
            let chunk = tokio::select! {
                chunk = body.chunk_within(Some(self.silence)) => chunk,
                () = session.lost.cancelled() => return Err(session_lost()),
            };
            match chunk {
                Ok(Some(chunk)) => {
                    any = true;
                    parser.push(chunk);
                }
                Ok(None) => return Ok((End::Early(None), any)),
                Err(error @ TransportError::Silent(_)) => return Err(error.into()),
                Err(error) => return Ok((End::Early(Some(error)), any)),
            }
        }
    }

    /// The message in an event, or why it was not kept.
    pub(super) fn message(&self, item: Item) -> Result<Bytes, Failure> {
        match item {
            Item::Message(data) | Item::Endpoint(data) => Ok(data),
            Item::TooLarge => Err(Failure::too_large("an event of the server's", self.cap)),
            Item::Unaffordable => {
                Err(Failure::out_of_memory("an event of the server's", self.memory.limit()))
            }
        }
    }

    /// Opens the stream again behind its last event, as long as the server may be silent.
    async fn resume(
        &self,
        parser: &Parser,
        session: &Session,
        empty_in_a_row: u32,
        cause: Option<&TransportError>,
    ) -> Result<Body, Failure> {
        let cut = || Failure::cut(cause);
        let mut wait = parser.retry().unwrap_or_else(|| backoff(empty_in_a_row));
        // What the server itself asks us to wait is not its silence.
        let deadline = Instant::now() + wait + self.silence;
        let mut attempt = empty_in_a_row;
        loop {
            tokio::select! {
                () = sleep(wait) => {}
                () = session.lost.cancelled() => return Err(session_lost()),
            }
            let opened = self.open_stream(session, parser.last_id().map(|id| &id[..]));
            let opened =
                timeout_at(deadline, opened).await.map_err(|_| Failure::silent(self.silence))?;
            match opened.map(|response| (response.status().as_u16(), response)) {
                Ok((200, response)) if is_event_stream(response.headers()) => {
                    return Ok(response.into_body());
                }
                Ok((404, _)) if session.has_id() => return Err(session_lost()),
                Ok((408 | 429 | 500.., _)) => tracing::debug!("the stream cannot be resumed now"),
                Ok((401 | 403, response)) => {
                    return Err(self.judge(response, false).await.err().unwrap_or_else(cut));
                }
                Ok(_) => return Err(cut()),
                Err(failure) => {
                    let failure = self.told("", failure);
                    tracing::debug!(%failure, "the stream cannot be resumed now");
                }
            }
            attempt += 1;
            wait = backoff(attempt);
            if Instant::now() + wait >= deadline {
                return Err(cut());
            }
        }
    }

    /// Asks for a stream of the server's, behind the event `last`.
    pub(super) async fn open_stream(
        &self,
        session: &Session,
        last: Option<&[u8]>,
    ) -> Result<Response<Body>, Failure> {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(ACCEPT, EVENTS);
        session.stamp(&mut headers);
        if let Some(id) = last.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            headers.insert(LAST_EVENT, id);
        }
        let body = Bytes::new();
        self.client
            .exchange(&Outbound { method: Method::GET, headers, body, repeatable: true, to: None })
            .await
    }

    /// Reads on behind the answer, for what else the server says and so that its connection can
    /// be used again.
    pub(super) async fn read_tail(&self, tail: Tail, modern: bool) {
        let Tail { mut parser, mut body } = tail;
        loop {
            while let Some(item) = parser.next() {
                if let Item::Message(data) = item {
                    self.deliver(&data, None, modern).await;
                }
            }
            match timeout(TAIL, body.chunk()).await {
                Ok(Ok(Some(chunk))) => parser.push(chunk),
                _ => return,
            }
        }
    }
}

/// How long to wait before the next attempt: longer each time, and never all at once.
pub(super) fn backoff(attempt: u32) -> Duration {
    let full = FIRST_WAIT.saturating_mul(1 << attempt.min(10)).min(LONGEST_WAIT);
    // The keys of a fresh hasher are random enough to spread clients that lost one server.
    let dice = RandomState::new().hash_one(attempt) % 1000;
    full / 2 + full.mul_f64(dice as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_are_spread() {
        for attempt in [0, 1, 5, 20, u32::MAX] {
            let full = FIRST_WAIT.saturating_mul(1 << attempt.min(10)).min(LONGEST_WAIT);
            let wait = backoff(attempt);
            assert!(wait >= full / 2 && wait <= full, "{attempt}: {wait:?}");
        }
        let waits: std::collections::BTreeSet<Duration> = (0..20).map(|_| backoff(9)).collect();
        assert!(waits.len() > 1);
    }
}
