//! The way of a message to the peer's stdin: straight into it where nobody else is about to
//! write, and through the writer's queue otherwise.
//!
//! The straight way is for a caller who is alone: its message is with the peer before the caller
//! has done anything else. Where several call at once, the writer puts their messages together.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, mpsc};

use crate::outgoing::Outgoing;
use crate::writer::write_batch;

/// Where callers put their messages.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Outgoing>,
    stdin: Arc<Stdin>,
}

/// The peer takes no more messages.
#[derive(Debug)]
pub(crate) struct Closed;

impl Outbox {
    /// An outbox for `stdin`, and the queue of its writer, which has room for `capacity` messages.
    pub(crate) fn new(stdin: Arc<Stdin>, capacity: usize) -> (Self, mpsc::Receiver<Outgoing>) {
        let (queue, inbox) = mpsc::channel(capacity);
        (Self { queue, stdin }, inbox)
    }

    /// Puts a message into the queue; waits while that is full.
    pub(crate) async fn send(&self, message: Outgoing) -> Result<(), Closed> {
        let place = self.queue.reserve().await.map_err(|_| Closed)?;
        self.put(place, message);
        Ok(())
    }

    /// Puts a message into the queue; false where that is full or the peer is gone.
    pub(crate) fn try_send(&self, message: Outgoing) -> bool {
        self.queue.try_reserve().map(|place| self.put(place, message)).is_ok()
    }

    /// Sends the message of a caller who is alone. True where it is with the peer already.
    pub(crate) async fn send_alone(&self, message: Outgoing) -> Result<bool, Closed> {
        match poll_fn(|context| Poll::Ready(self.stdin.begin(context, &message))).await {
            Begun::Whole => Ok(true),
            // Where the queue is full meanwhile, the writer is at work and finishes it as well.
            Begun::Part => {
                self.try_send(Outgoing::begun(message.id));
                Ok(false)
            }
            Begun::Not => self.send(message).await.map(|()| false),
        }
    }

    fn put(&self, place: mpsc::Permit<'_, Outgoing>, message: Outgoing) {
        self.stdin.queued.fetch_add(1, Ordering::Release);
        place.send(message);
    }
}

/// How far a message came at once.
#[derive(Debug, PartialEq, Eq)]
enum Begun {
    Whole,
    /// Its rest is what is written next, whoever writes.
    Part,
    Not,
}

/// The peer's stdin. Who holds its lock writes.
pub(crate) struct Stdin {
    /// The messages that are in the queue or on their way from there.
    queued: AtomicUsize,
    open: Mutex<Open>,
}

struct Open {
    /// None once it is closed.
    sink: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// The rest of a message of which the peer has the beginning.
    rest: Vec<u8>,
}

impl Stdin {
    pub(crate) fn new(sink: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let open = Open { sink: Some(Box::new(sink)), rest: Vec::new() };
        Self { queued: AtomicUsize::new(0), open: Mutex::new(open) }
    }

    /// Writes what a queue brought, in its order, after what was begun before.
    pub(crate) async fn write(&self, batch: &[Outgoing]) -> io::Result<()> {
        let mut open = self.open.lock().await;
        let Open { sink: Some(sink), rest } = &mut *open else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        if !rest.is_empty() {
            sink.write_all(rest).await?;
            rest.clear();
        }
        write_batch(sink, batch).await?;
        self.queued.fetch_sub(batch.len(), Ordering::Release);
        Ok(())
    }

    /// Closes it, which the peer notices.
    pub(crate) async fn close(&self) {
        self.open.lock().await.sink = None;
    }

    /// Writes as much of a small message as goes without waiting, where nobody is before it.
    fn begin(&self, context: &mut Context<'_>, message: &Outgoing) -> Begun {
        if !message.is_small() {
            return Begun::Not;
        }
        let Ok(mut open) = self.open.try_lock() else {
            return Begun::Not;
        };
        let Open { sink: Some(sink), rest } = &mut *open else {
            return Begun::Not;
        };
        // What is queued comes first, and what was begun has a place in the queue.
        if self.queued.load(Ordering::Acquire) > 0 || !rest.is_empty() {
            return Begun::Not;
        }
        // An error is the writer's to see: it gets the same one.
        let Poll::Ready(Ok(written)) = Pin::new(&mut *sink).poll_write(context, &message.head)
        else {
            return Begun::Not;
        };
        rest.extend_from_slice(&message.head[written..]);
        let is_flushed = Pin::new(sink).poll_flush(context).is_ready();
        if rest.is_empty() && is_flushed { Begun::Whole } else { Begun::Part }
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").field("queued", &self.queued).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::write_messages;
    use bytes::Bytes;
    use tokio::io::{AsyncReadExt as _, DuplexStream};
    use tokio_util::sync::CancellationToken;

    fn line(text: &'static str) -> Outgoing {
        Outgoing::line(Bytes::from_static(text.as_bytes()))
    }

    /// A peer whose pipe holds `room` bytes.
    fn peer(room: usize) -> (DuplexStream, Arc<Stdin>, Outbox, mpsc::Receiver<Outgoing>) {
        let (sink, source) = tokio::io::duplex(room);
        let stdin = Arc::new(Stdin::new(sink));
        let (outbox, inbox) = Outbox::new(Arc::clone(&stdin), 8);
        (source, stdin, outbox, inbox)
    }

    /// What the peer reads until its stdin is closed, after the writer has written its queue.
    async fn rest_of(
        mut source: DuplexStream,
        stdin: &Stdin,
        mut inbox: mpsc::Receiver<Outgoing>,
    ) -> String {
        let write = async {
            while let Ok(message) = inbox.try_recv() {
                stdin.write(&[message]).await.unwrap();
            }
            stdin.close().await;
        };
        let mut text = String::new();
        let (_, read) = tokio::join!(write, source.read_to_string(&mut text));
        read.unwrap();
        text
    }

    #[tokio::test]
    async fn who_is_alone_writes_at_once() {
        let (source, stdin, outbox, mut inbox) = peer(64);
        assert!(outbox.send_alone(line("one")).await.unwrap());
        assert!(inbox.try_recv().is_err(), "nothing is left for the writer");
        assert_eq!(rest_of(source, &stdin, inbox).await, "one\n");
    }

    #[tokio::test]
    async fn what_is_queued_comes_first() {
        let (source, stdin, outbox, mut inbox) = peer(64);
        assert!(outbox.try_send(line("one")));
        assert!(!outbox.send_alone(line("two")).await.unwrap());
        // On its way from the queue to the peer it is still before all others.
        let first = inbox.try_recv().unwrap();
        assert!(!outbox.send_alone(line("three")).await.unwrap());
        stdin.write(&[first]).await.unwrap();
        assert_eq!(rest_of(source, &stdin, inbox).await, "one\ntwo\nthree\n");
    }

    #[tokio::test]
    async fn a_message_that_was_begun_is_finished_before_the_next() {
        let (source, stdin, outbox, inbox) = peer(4);
        assert!(!outbox.send_alone(line("a long one")).await.unwrap());
        assert!(!outbox.send_alone(line("another")).await.unwrap());
        assert!(outbox.try_send(line("third")));
        assert_eq!(rest_of(source, &stdin, inbox).await, "a long one\nanother\nthird\n");
    }

    #[tokio::test]
    async fn after_the_writer_has_caught_up_the_straight_way_is_open_again() {
        let (mut source, stdin, outbox, mut inbox) = peer(64);
        assert!(outbox.try_send(line("one")));
        stdin.write(&[inbox.try_recv().unwrap()]).await.unwrap();
        assert!(outbox.send_alone(line("two")).await.unwrap());
        let mut text = [0; 8];
        source.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"one\ntwo\n");
    }

    #[tokio::test]
    async fn a_message_that_was_begun_is_finished_before_the_end() {
        let (mut source, stdin, outbox, inbox) = peer(4);
        assert!(!outbox.send_alone(line("a long one")).await.unwrap());
        let closing = CancellationToken::new();
        closing.cancel();
        let mut text = String::new();
        let writing = write_messages(stdin, inbox, Arc::default(), closing);
        let (_, read) = tokio::join!(writing, source.read_to_string(&mut text));
        read.unwrap();
        assert_eq!(text, "a long one\n");
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_takes_nothing() {
        let (source, stdin, outbox, inbox) = peer(64);
        stdin.close().await;
        drop((source, inbox));
        assert!(outbox.send_alone(line("one")).await.is_err());
        assert!(!outbox.try_send(line("two")));
    }
}
