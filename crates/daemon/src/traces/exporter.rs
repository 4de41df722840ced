//! Sends spans to the collector, many at once, and tries again where that can help. While it
//! tries, the queue fills, and then spans are lost: nobody waits for the collector.

use std::time::Duration;

use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use cofer_mcp::http::{SetupError, Transport, TransportError, TransportOptions};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::settings::Settings;
use super::{Ended, span};
use crate::metrics::SpanMetrics;

/// How often one batch is sent at most.
const TRIES: u32 = 5;
/// The pause after the first try that failed; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// No collector makes us pause for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the last spans may take when the daemon ends.
const LAST: Duration = Duration::from_secs(3);
/// The longest answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

/// See the module.
pub(super) struct Exporter {
    settings: Settings,
    headers: HeaderMap,
    transport: Transport,
    metrics: SpanMetrics,
    queue: mpsc::Receiver<Ended>,
    /// Whether it was said that spans do not arrive.
    complained: bool,
}

/// Why a batch did not arrive.
#[derive(Debug, thiserror::Error)]
enum Undelivered {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("the collector did not answer within {0:?}")]
    Late(Duration),
    #[error("the collector answered {status}")]
    Refused { status: StatusCode, retry_after: Option<Duration> },
    #[error("the collector took none of the spans")]
    Rejected,
}

impl Exporter {
    pub(super) fn new(
        settings: Settings,
        metrics: SpanMetrics,
        queue: mpsc::Receiver<Ended>,
    ) -> Result<Self, SetupError> {
        let transport =
            Transport::new(TransportOptions { cacert: settings.certificate.as_deref() })?;
        let mut headers = settings.headers.clone();
        let agent = concat!("cofer/", env!("CARGO_PKG_VERSION"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(agent));
        Ok(Self { settings, headers, transport, metrics, queue, complained: false })
    }

    /// Exports until `ended`, and then what is left, for as long as there is time.
    pub(super) async fn run(mut self, ended: CancellationToken) {
        let out_of_time = async {
            ended.cancelled().await;
            sleep(LAST).await;
        };
        tokio::select! {
            biased;
            () = self.export(&ended) => {}
            () = out_of_time => {
                tracing::warn!("the last spans were lost: the collector was too slow");
            }
        }
    }

    async fn export(&mut self, ended: &CancellationToken) {
        let mut batch = Vec::new();
        while ended.run_until_cancelled(self.gather(&mut batch)).await.is_some() {
            if batch.is_empty() {
                break;
            }
            if self.deliver(&batch, ended).await {
                batch.clear();
            }
        }
        self.queue.close();
        self.send_last(batch).await;
    }

    /// Waits for spans: for as many as are sent at once, or for those that came within the
    /// delay after the first.
    async fn gather(&mut self, batch: &mut Vec<Ended>) {
        let full = self.settings.batch_size;
        if batch.is_empty() {
            self.queue.recv_many(batch, full).await;
        }
        let deadline = Instant::now() + self.settings.delay;
        while batch.len() < full {
            let room = full - batch.len();
            match timeout_at(deadline, self.queue.recv_many(batch, room)).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// Sends a batch, again and again where that can help, and counts what became of it; false
    /// where `ended` came before anything did.
    async fn deliver(&mut self, batch: &[Ended], ended: &CancellationToken) -> bool {
        let body = self.body(batch);
        for tried in 1.. {
            let why = match self.send(body.clone(), batch.len()).await {
                Ok(rejected) => {
                    self.arrived(batch.len() as u64, rejected);
                    return true;
                }
                Err(why) => why,
            };
            self.complain(&why);
            let Some(pause) = pause(&why, tried) else {
                break;
            };
            if ended.run_until_cancelled(sleep(pause)).await.is_none() {
                return false;
            }
        }
        self.metrics.failed.inc_by(batch.len() as u64);
        true
    }

    /// Sends what is left, once: there is no time to try again.
    async fn send_last(&mut self, mut batch: Vec<Ended>) {
        loop {
            let room = self.settings.batch_size - batch.len().min(self.settings.batch_size);
            if room > 0 {
                self.queue.recv_many(&mut batch, room).await;
            }
            if batch.is_empty() {
                return;
            }
            match self.send(self.body(&batch), batch.len()).await {
                Ok(rejected) => self.arrived(batch.len() as u64, rejected),
                Err(why) => {
                    self.metrics.failed.inc_by((batch.len() + self.queue.len()) as u64);
                    return self.complain(&why);
                }
            }
            batch.clear();
        }
    }

    fn body(&self, batch: &[Ended]) -> Bytes {
        span::request(&self.settings.resource, batch).to_string().into()
    }

    /// One try: how many spans of those that arrived were not wanted.
    async fn send(&self, body: Bytes, count: usize) -> Result<u64, Undelivered> {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.settings.endpoint.clone();
        *request.headers_mut() = self.headers.clone();
        let exchange = async {
            let response = self.transport.send(request).await?;
            let (status, retry_after) = (response.status(), retry_after(response.headers()));
            // Read also where it says nothing, so that its connection can be used again.
            let answer = response.into_body().beginning(MAX_ANSWER).await;
            if !status.is_success() {
                return Err(Undelivered::Refused { status, retry_after });
            }
            Ok(rejected(&answer))
        };
        let limit = self.settings.timeout;
        let rejected = timeout(limit, exchange).await.map_err(|_| Undelivered::Late(limit))??;
        if rejected >= count as u64 { Err(Undelivered::Rejected) } else { Ok(rejected) }
    }

    fn arrived(&mut self, count: u64, rejected: u64) {
        self.metrics.exported.inc_by(count - rejected);
        self.metrics.failed.inc_by(rejected);
        if std::mem::take(&mut self.complained) {
            let (failed, dropped) = (self.metrics.failed.get(), self.metrics.dropped.get());
            tracing::info!(failed, dropped, "spans arrive at the collector again");
        }
    }

    /// Says it once, until spans arrive again.
    fn complain(&mut self, why: &Undelivered) {
        if !std::mem::replace(&mut self.complained, true) {
            let (endpoint, cause) = (self.settings.shown_endpoint(), cause(why));
            tracing::warn!(endpoint, error = %why, cause, "spans do not arrive at the collector; calls are not affected");
        }
    }
}

/// How long to wait before the next try; none where there is none.
fn pause(why: &Undelivered, tried: u32) -> Option<Duration> {
    let wanted = match why {
        Undelivered::Rejected => return None,
        Undelivered::Refused { status, retry_after } => match status.as_u16() {
            429 | 502 | 503 | 504 => *retry_after,
            _ => return None,
        },
        Undelivered::Transport(_) | Undelivered::Late(_) => None,
    };
    let doubled = || FIRST_PAUSE * 2_u32.saturating_pow(tried.saturating_sub(1));
    (tried < TRIES).then(|| wanted.unwrap_or_else(doubled).min(LONGEST_PAUSE))
}

/// Whole seconds; a date, which collectors do not send, counts as nothing.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// How many spans a collector did not want, by what it answered.
fn rejected(answer: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let rejected = &answer["partialSuccess"]["rejectedSpans"];
    rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0)
}

/// What is behind a failure, down to the system's own words.
fn cause(why: &Undelivered) -> String {
    let first = std::error::Error::source(why);
    let chain = std::iter::successors(first, |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, retry_after: Option<u64>) -> Undelivered {
        let status = StatusCode::from_u16(status).unwrap();
        Undelivered::Refused { status, retry_after: retry_after.map(Duration::from_secs) }
    }

    #[test]
    fn it_is_tried_again_only_where_that_can_help_and_not_for_ever() {
        let pauses = |why: &Undelivered| -> Vec<Option<u64>> {
            (1..=5).map(|tried| pause(why, tried).map(|pause| pause.as_secs())).collect()
        };
        let doubling = [Some(1), Some(2), Some(4), Some(8), None];
        assert_eq!(pauses(&Undelivered::Late(Duration::ZERO)), doubling);
        assert_eq!(pauses(&refused(503, None)), doubling);
        assert_eq!(pauses(&refused(429, Some(3))), [Some(3), Some(3), Some(3), Some(3), None]);
        assert_eq!(pauses(&refused(503, Some(3600)))[0], Some(30));
        for status in [400, 401, 404, 500] {
            assert_eq!(pauses(&refused(status, Some(1))), [None; 5], "{status}");
        }
        assert_eq!(pauses(&Undelivered::Rejected), [None; 5]);
    }

    #[test]
    fn what_a_collector_did_not_want_is_read_as_a_text_or_as_a_number() {
        for (answer, expected) in [
            ("", 0),
            ("{}", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"errorMessage":"a warning"}}"#, 0),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":4}}"#, 4),
            ("<html>", 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), expected, "{answer}");
        }
    }
}
