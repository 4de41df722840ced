//! HTTP+SSE, the transport of revision 2024-11-05: one GET stream names, in its first event
//! `endpoint`, the URL for POSTs, and brings every answer. A POST is answered with 202.
//!
//! It is tried if POST of `initialize` is answered with 400, 404 or 405, as the specification's
//! section on backwards compatibility has it.

use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Method, StatusCode, Uri};
use tokio::time::timeout;

use super::body::Body;
use super::client::{Outbound, same_origin};
use super::failure::{Failure, FailureKind};
use super::request::{Job, is_event_stream};
use super::session::Session;
use super::sse::{Item, Parser};
use super::wire::Wire;

/// How long the stream may take to name the endpoint.
const ENDPOINT: Duration = Duration::from_secs(10);
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Whether a server that answers `initialize` so may speak the older transport.
pub(super) fn may_be_older(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 404 | 405)
}

impl Wire {
    /// Opens the stream and waits for its endpoint, to which all later POSTs go. False if the server
    /// has no such stream.
    pub(super) async fn open_endpoint_stream(self: &Arc<Self>, initialize: &Job) -> bool {
        let Ok(Some((endpoint, parser, body))) = timeout(ENDPOINT, self.find_endpoint()).await
        else {
            return false;
        };
        tracing::debug!(%endpoint, "the server speaks HTTP+SSE");
        if self.endpoint.set(endpoint).is_err() {
            return true;
        }
        let reading = Arc::clone(self).read_endpoint_stream(initialize.clone(), parser, body);
        let listener = self.spawn(reading);
        self.listen_by(listener);
        true
    }

    async fn find_endpoint(&self) -> Option<(Uri, Parser, Body)> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, EVENT_STREAM);
        let out = Outbound { method: Method::GET, headers, ..Outbound::default() };
        let response = self.client.exchange(&out).await.ok()?;
        if response.status() != StatusCode::OK || !is_event_stream(response.headers()) {
            return None;
        }
        let mut body = response.into_body();
        let mut parser = Parser::new(self.cap, &self.memory).with_endpoint();
        while let Ok(Some(chunk)) = body.chunk().await {
            parser.push(chunk);
            if let Some(item) = parser.next() {
                let Item::Endpoint(data) = item else { return None };
                let endpoint = same_origin(&self.client.url(), std::str::from_utf8(&data).ok()?);
                if endpoint.is_none() {
                    tracing::warn!("the server's `endpoint` is not on its own origin");
                }
                return Some((endpoint?, parser, body));
            }
        }
        None
    }

    /// Passes on every message until the stream ends, with which the server is lost.
    async fn read_endpoint_stream(
        self: Arc<Self>,
        initialize: Job,
        mut parser: Parser,
        mut body: Body,
    ) {
        let session = Session::default();
        let mut opening = Some((&initialize, &session));
        loop {
            while let Some(item) = parser.next() {
                match item {
                    Item::Message(data) => {
                        if self.deliver(&data, opening, false).await {
                            opening = None;
                        }
                    }
                    Item::Endpoint(_) => tracing::debug!("the server named its endpoint again"),
                    Item::TooLarge | Item::Unaffordable => {
                        tracing::warn!(cap = self.cap, "an event of the server was discarded");
                    }
                }
            }
            match body.chunk().await {
                Ok(Some(chunk)) => parser.push(chunk),
                Ok(None) | Err(_) => break,
            }
        }
        self.lose_endpoint_stream().await;
    }

    /// Answers cannot come any more: every request fails, and the attendant learns of it as of a
    /// heartbeat that failed.
    async fn lose_endpoint_stream(&self) {
        if self.is_ending() {
            return;
        }
        let failure = Failure::new(
            FailureKind::Session,
            "the event stream of the server (HTTP+SSE) ended",
            "the session ended with it; requests under way may have run. Look at the server's log.",
        );
        let failure = self.told("ping", failure);
        for entry in self.in_flight.take_all() {
            self.output.send(failure.response(&entry.id, &self.source)).await;
        }
    }
}
