//! The body of an answer, which sends its connection home once it was read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cofer_model::{Budget, Charge};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::pool::Home;
use super::transport::TransportError;
use crate::memory::attach;

/// The answer's body. Read to its end, its connection serves the next request; dropped before,
/// the server sees that nobody listens.
#[derive(Debug)]
pub struct Body {
    incoming: Incoming,
    home: Option<Home>,
}

impl Body {
    pub(super) fn new(incoming: Incoming, home: Option<Home>) -> Self {
        let mut body = Self { incoming, home };
        body.go_home_at_the_end();
        body
    }

    fn go_home_at_the_end(&mut self) {
        if self.incoming.is_end_stream()
            && let Some(home) = self.home.take()
        {
            home.go();
        }
    }

    /// The next bytes, none at the end. May be dropped and called again.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// All of it, where it is not longer than `cap`.
    pub async fn collect(self, cap: usize) -> Result<Bytes, TransportError> {
        self.collect_within(cap, None, &Budget::unlimited()).await
    }

    /// All of it, where it is not longer than `cap`, no pause in it is longer than `silence`, and
    /// `memory` has room for it. What comes in one piece, which is the size of a read buffer at
    /// most, is not charged.
    pub async fn collect_within(
        mut self,
        cap: usize,
        silence: Option<Duration>,
        memory: &Arc<Budget>,
    ) -> Result<Bytes, TransportError> {
        let expected = self.incoming.size_hint().lower();
        if expected > cap as u64 {
            return Err(TransportError::TooLarge { cap });
        }
        let mut first = Bytes::new();
        let mut whole = Vec::new();
        let mut charge = Charge::none(memory);
        while let Some(next) = self.chunk_within(silence).await? {
            if first.len().max(whole.len()) + next.len() > cap {
                return Err(TransportError::TooLarge { cap });
            }
            if first.is_empty() && whole.is_empty() {
                // What comes in one piece is not copied.
                first = next;
                continue;
            }
            let length = first.len().max(whole.len()) + next.len();
            if length > whole.capacity() {
                let expected = usize::try_from(expected).unwrap_or(cap);
                let room = expected.max(2 * length).min(cap.max(length));
                if !charge.resize(room) {
                    memory.count_loss();
                    return Err(TransportError::OutOfMemory { limit: memory.limit() });
                }
                whole.reserve_exact(room - whole.len());
            }
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&next);
        }
        Ok(if whole.is_empty() { first } else { attach(charge, whole) })
    }

    /// The next bytes, none at the end, where they come within `silence`.
    pub async fn chunk_within(
        &mut self,
        silence: Option<Duration>,
    ) -> Result<Option<Bytes>, TransportError> {
        match silence {
            None => self.chunk().await,
            Some(limit) => tokio::time::timeout(limit, self.chunk())
                .await
                .unwrap_or(Err(TransportError::Silent(limit))),
        }
    }

    /// The beginning of it, at most `cap` bytes, for a message to a person.
    pub async fn beginning(mut self, cap: usize) -> Bytes {
        let mut start = BytesMut::new();
        while start.len() < cap {
            match self.chunk().await {
                Ok(Some(chunk)) => {
                    start.extend_from_slice(&chunk[..chunk.len().min(cap - start.len())]);
                }
                _ => break,
            }
        }
        start.freeze()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(context));
        match frame {
            Some(Ok(frame)) => {
                self.go_home_at_the_end();
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.home = None;
                Poll::Ready(Some(Err(TransportError::Cut(error))))
            }
            None => {
                if let Some(home) = self.home.take() {
                    home.go();
                }
                Poll::Ready(None)
            }
        }
    }
}
