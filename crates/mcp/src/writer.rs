//! Writes messages to the peer, in order, several in one write where they are small.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::outbox::Stdin;
use crate::outgoing::Outgoing;
use crate::pending::Pending;

/// How long a message that is under way may hold up the end.
const LAST_WRITE: Duration = Duration::from_millis(100);
/// How many messages are taken at once.
const BATCH: usize = 64;

/// Writes what comes through `inbox` until it ends, the peer stops reading for good, or
/// `closing` is asked for. A message that is under way then is finished if the peer reads it.
/// Closes the peer's stdin at the end.
pub(crate) async fn write_messages(
    stdin: Arc<Stdin>,
    inbox: mpsc::Receiver<Outgoing>,
    pending: Arc<Pending>,
    closing: CancellationToken,
) {
    write_until_closed(&stdin, inbox, &pending, &closing).await;
    // What a caller has begun is finished too.
    timeout(LAST_WRITE, stdin.write(&[])).await.ok();
    stdin.close().await;
}

async fn write_until_closed(
    stdin: &Stdin,
    mut inbox: mpsc::Receiver<Outgoing>,
    pending: &Pending,
    closing: &CancellationToken,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while closing.run_until_cancelled(inbox.recv_many(&mut batch, BATCH)).await.unwrap_or(0) > 0 {
        // Callers that are ready to send do so first: one write for all of them wakes the
        // peer once. A caller who is alone has nobody to wait for.
        if pending.len() > batch.len() {
            tokio::task::yield_now().await;
        }
        // Not a tuple of both questions: the second takes a message also where the first says no.
        while batch.len() < BATCH
            && let Ok(message) = inbox.try_recv()
        {
            batch.push(message);
        }
        let written = tokio::select! {
            biased;
            written = stdin.write(&batch) => written,
            () = too_long_after(closing) => return,
        };
        if let Err(error) = written {
            tracing::debug!(%error, "the server's stdin is closed");
            return;
        }
        let ids: Vec<u64> = batch.drain(..).filter_map(|message| message.id).collect();
        pending.mark_written(&ids, Instant::now());
    }
}

/// Ends when a peer has had time enough to read what was under way when the end was asked for.
async fn too_long_after(closing: &CancellationToken) {
    closing.cancelled().await;
    sleep(LAST_WRITE).await;
}

/// Writes all of `batch` in its order.
pub(crate) async fn write_batch<W: AsyncWrite + Unpin>(
    sink: &mut W,
    batch: &[Outgoing],
) -> io::Result<()> {
    if let [only] = batch {
        return write_one(sink, only).await;
    }
    for run in batch.chunk_by(|a, b| a.is_small() && b.is_small()) {
        if let [only] = run {
            write_one(sink, only).await?;
        } else {
            let lines =
                run.iter().map(|message| message.head.as_slice()).collect::<Vec<_>>().concat();
            sink.write_all(&lines).await?;
        }
    }
    sink.flush().await
}

async fn write_one<W: AsyncWrite + Unpin>(sink: &mut W, message: &Outgoing) -> io::Result<()> {
    sink.write_all_buf(&mut message.parts()).await?;
    sink.flush().await
}
