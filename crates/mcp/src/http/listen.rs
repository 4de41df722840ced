//! The server's own stream of the older era: what it says without having been asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::body::Body;
use super::request::is_event_stream;
use super::session::Session;
use super::sse::{Item, Parser};
use super::stream::backoff;
use super::wire::Wire;

/// A stream that held this long was a good one, also where nothing came.
const HELD: Duration = Duration::from_secs(10);

/// What became of the attempt to open the stream.
enum Opened {
    Stream(Body),
    /// The server has none.
    Never,
    /// The server does not know the session.
    SessionLost,
    Later,
}

impl Wire {
    /// Listens until the session ends, the server has no such stream, or the pump ends. Drops
    /// `answered` when it is known whether there is such a stream.
    pub(super) async fn hear(
        self: Arc<Self>,
        session: Arc<Session>,
        answered: oneshot::Sender<()>,
    ) {
        let mut answered = Some(answered);
        let mut parser = Parser::new(self.cap, &self.memory);
        let mut attempt = 0;
        let mut opened_before = false;
        loop {
            let opened = self.try_open(&session, &parser).await;
            drop(answered.take());
            match opened {
                Opened::Stream(body) => {
                    opened_before = true;
                    let began = Instant::now();
                    let any = self.hear_stream(&mut parser, body).await;
                    attempt = if any || began.elapsed() >= HELD { 0 } else { attempt + 1 };
                }
                Opened::Never => {
                    self.sessions.no_stream.store(true, Ordering::Relaxed);
                    return;
                }
                // A server that never knew the session here has no such stream.
                Opened::SessionLost if !opened_before => return,
                Opened::SessionLost => {
                    // The new session's listener takes this one's place.
                    if let Err(failure) = self.renew(&session).await {
                        tracing::warn!("{failure}");
                    }
                    return;
                }
                Opened::Later => attempt += 1,
            }
            sleep(parser.retry().unwrap_or_else(|| backoff(attempt))).await;
            parser.begin_stream();
        }
    }

    async fn try_open(&self, session: &Session, parser: &Parser) -> Opened {
        let response = match self.open_stream(session, parser.last_id().map(|id| &id[..])).await {
            Ok(response) => response,
            Err(failure) => {
                let failure = self.told("", failure);
                tracing::debug!(%failure, "the server's own stream cannot be opened now");
                return Opened::Later;
            }
        };
        let status = response.status().as_u16();
        tracing::debug!(status, "asked for the server's own stream");
        match status {
            200 if is_event_stream(response.headers()) => Opened::Stream(response.into_body()),
            404 if session.has_id() => Opened::SessionLost,
            401 | 403 | 408 | 425 | 429 | 500 | 502..=599 => Opened::Later,
            _ => Opened::Never,
        }
    }

    /// Passes on what comes, and tells whether anything did.
    async fn hear_stream(&self, parser: &mut Parser, mut body: Body) -> bool {
        let mut any = false;
        while let Ok(Some(chunk)) = body.chunk().await {
            any = true;
            parser.push(chunk);
            while let Some(item) = parser.next() {
                match item {
                    Item::Message(data) => {
                        self.deliver(&data, None, false).await;
                    }
                    Item::Endpoint(_) => {}
                    Item::Unaffordable => {
                        tracing::warn!("an event of the server was discarded: no memory left");
                    }
                    Item::TooLarge => {
                        tracing::warn!(
                            cap = self.cap,
                            "the server said something over the cap, which is passed over"
                        );
                    }
                }
            }
        }
        any
    }
}
