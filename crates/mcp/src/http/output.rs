//! The way back to the client: one writer, one message a line, several in one write.

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::outgoing::Outgoing;
use crate::writer::write_batch;

/// How many messages may wait for the client to read.
const QUEUE: usize = 256;
/// How many are taken at once.
const BATCH: usize = 64;

/// Where messages for the client go.
#[derive(Debug)]
pub(super) struct Output {
    queue: mpsc::Sender<Outgoing>,
    /// Set off when nobody reads any more.
    pub(super) gone: CancellationToken,
}

/// The messages that wait to be written.
pub(super) struct Queue(mpsc::Receiver<Outgoing>, CancellationToken);

impl Output {
    pub(super) fn new() -> (Self, Queue) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let gone = CancellationToken::new();
        (Self { queue: sender, gone: gone.clone() }, Queue(receiver, gone))
    }

    /// Writes `line`, after what was given before; waits where the client reads slowly.
    pub(super) async fn send(&self, line: Bytes) {
        // Where nobody reads, the end is near and has its own way of being told.
        self.queue.send(Outgoing::line(line)).await.unwrap_or_default();
    }
}

impl Queue {
    /// Writes until `done` is set off and nothing waits, or the client is gone. `more` tells
    /// whether other answers are under way.
    pub(super) async fn write<W: AsyncWrite + Unpin>(
        mut self,
        mut sink: W,
        done: CancellationToken,
        more: impl Fn() -> bool,
    ) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let taken = done.run_until_cancelled(self.0.recv_many(&mut batch, BATCH)).await;
            if taken == Some(0) {
                return;
            }
            // Answers that are ready are written with this one: the client wakes once for all.
            if more() {
                tokio::task::yield_now().await;
            }
            while batch.len() < BATCH
                && let Ok(message) = self.0.try_recv()
            {
                batch.push(message);
            }
            if batch.is_empty() {
                return;
            }
            if let Err(error) = write_batch(&mut sink, &batch).await {
                tracing::debug!(%error, "the client reads no more");
                self.1.cancel();
                return;
            }
            batch.clear();
        }
    }
}
