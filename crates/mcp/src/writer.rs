//! Writes messages to the peer, in order, several in one write where they are small.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::pending::Pending;

/// Up to here a payload is copied beside its envelope; above, it is written from where it is.
const SMALL: usize = 16 * 1024;
/// How long a message that is under way may hold up the end.
const LAST_WRITE: Duration = Duration::from_millis(100);
/// How many messages are taken at once.
const BATCH: usize = 64;

/// One message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Our request's id, where it is one.
    id: Option<u64>,
    head: Vec<u8>,
    body: Bytes,
    tail: &'static [u8],
}

impl Outgoing {
    /// A request, or a notification where it has no id.
    pub(crate) fn request(id: Option<u64>, method: &str, params: Option<&Bytes>) -> Self {
        let mut head = Vec::with_capacity(
            64 + method.len() + params.map_or(0, |params| params.len().min(SMALL)),
        );
        head.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        if let Some(id) = id {
            head.extend_from_slice(format!(r#""id":{id},"#).as_bytes());
        }
        head.extend_from_slice(br#""method":"#);
        head.extend_from_slice(serde_json::Value::from(method).to_string().as_bytes());
        if let Some(params) = params {
            head.extend_from_slice(br#","params":"#);
            return Self::with_payload(id, head, params);
        }
        head.extend_from_slice(b"}\n");
        Self { id, head, body: Bytes::new(), tail: b"" }
    }

    /// The answer to a request of the peer's; `member` is `result` or `error`.
    pub(crate) fn response(id: &Bytes, member: &str, payload: &Bytes) -> Self {
        let mut head = br#"{"jsonrpc":"2.0","id":"#.to_vec();
        head.extend_from_slice(id);
        head.extend_from_slice(format!(r#","{member}":"#).as_bytes());
        Self::with_payload(None, head, payload)
    }

    /// A message that is written as it is.
    pub(crate) fn line(text: Bytes) -> Self {
        if text.len() > SMALL {
            return Self { id: None, head: Vec::new(), body: text, tail: b"\n" };
        }
        let mut head = Vec::with_capacity(text.len() + 1);
        head.extend_from_slice(&text);
        head.push(b'\n');
        Self { id: None, head, body: Bytes::new(), tail: b"" }
    }

    fn with_payload(id: Option<u64>, mut head: Vec<u8>, payload: &Bytes) -> Self {
        if payload.len() > SMALL {
            return Self { id, head, body: payload.clone(), tail: b"}\n" };
        }
        head.extend_from_slice(payload);
        head.extend_from_slice(b"}\n");
        Self { id, head, body: Bytes::new(), tail: b"" }
    }

    fn is_small(&self) -> bool {
        self.body.is_empty()
    }
}

/// Writes what comes through `inbox` until it ends, the peer stops reading for good, or
/// `closing` is asked for. A message that is under way then is finished if the peer reads it.
/// Returning drops `sink`, which closes the peer's stdin.
pub(crate) async fn write_messages<W>(
    mut sink: W,
    mut inbox: mpsc::Receiver<Outgoing>,
    pending: Arc<Pending>,
    closing: CancellationToken,
) where
    W: AsyncWrite + Unpin,
{
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
            written = write_batch(&mut sink, &batch) => written,
            () = too_long_after(&closing) => return,
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
    let mut parts = message.head.as_slice().chain(&message.body[..]).chain(message.tail);
    sink.write_all_buf(&mut parts).await?;
    sink.flush().await
}
