//! Many callers, one peer: gives each request its turn, its id and its deadline, and brings
//! the answer back to whoever asked.
//!
//! ```text
//!  call ──► turn (max_in_flight, bounded queue) ──► writer task ──► peer's stdin
//!    ▲                                                                 │
//!    └────── pending table ◄── reader task ◄────────── peer's stdout ◄─┘
//! ```
//! Reader and writer are tasks of their own and never wait for each other. A call that is
//! dropped or runs out of time takes its entry out of the table and tells the peer; an
//! answer that comes later finds nobody and is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::framing::{Frame, LineReader};
use crate::members::member;
use crate::message::{Incoming, Message, RpcError};
use crate::params::{self, Era};
use crate::pending::{Opened, Pending, Reply};
use crate::writer::{Outgoing, write_messages};

/// How much a bridge takes on.
#[derive(Debug, Clone, Copy)]
pub struct BridgeConfig {
    /// Requests the peer is given at once.
    pub max_in_flight: usize,
    /// Calls that may wait for their turn.
    pub queue_limit: usize,
    /// Bytes of params that waiting and running calls may hold together.
    pub held_bytes_limit: usize,
    /// The longest message, in either direction.
    pub max_message: usize,
}

impl Default for BridgeConfig {
    fn default() -> Self {
        Self {
            max_in_flight: 1,
            queue_limit: 512,
            held_bytes_limit: 256 << 20,
            max_message: 64 << 20,
        }
    }
}

/// Hears what the peer says of its own accord.
pub trait Listener: Send + Sync + 'static {
    /// A notification other than progress.
    fn notified(&self, method: &str, params: Option<&Bytes>);
    /// A line on stdout that is no JSON-RPC message.
    fn noise(&self, line: &[u8]);
    /// A line over the cap.
    fn oversized(&self, bytes: u64);
}

/// One call.
#[derive(Debug, Clone)]
pub struct Request {
    /// The JSON-RPC method.
    pub method: String,
    /// Valid JSON, or nothing.
    pub params: Option<Bytes>,
    /// How long the peer may be silent about it.
    pub timeout: Duration,
    /// Whether it goes past the queue: for heartbeats and the handshake.
    pub urgent: bool,
}

impl Request {
    /// A call that waits for its turn.
    pub fn new(method: impl Into<String>, params: Option<Bytes>, timeout: Duration) -> Self {
        Self { method: method.into(), params, timeout, urgent: false }
    }

    /// The same call, past the queue.
    #[must_use]
    pub fn urgent(self) -> Self {
        Self { urgent: true, ..self }
    }
}

/// How a call went.
#[derive(Debug)]
pub struct Called {
    /// The result as JSON.
    pub result: Result<Bytes, CallError>,
    /// Where the time went.
    pub timing: Timing,
}

/// Where a call's time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Waiting for its turn.
    pub queue: Duration,
    /// Until it was in the peer's pipe.
    pub write: Duration,
    /// Until the answer was there.
    pub server: Duration,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The peer answered an error.
    #[error("the server answered an error: {0}")]
    Rpc(#[source] RpcError),
    /// The peer was silent for too long.
    #[error("the server did not answer within {0:?}")]
    Timeout(Duration),
    /// The call never had its turn, and the peer never saw it.
    #[error("the server was busy with other calls for {0:?}; the call was never sent")]
    QueueTimeout(Duration),
    /// Too many calls wait already.
    #[error("{waiting} calls already wait for the server")]
    Overloaded {
        /// How many.
        waiting: usize,
    },
    /// The request is over the cap.
    #[error("the request has {bytes} bytes, and at most {cap} are let through")]
    RequestTooLarge {
        /// Its size.
        bytes: u64,
        /// The cap.
        cap: u64,
    },
    /// The answer is over the cap.
    #[error("the server's answer has {bytes} bytes, and at most {cap} are let through")]
    AnswerTooLarge {
        /// Its size.
        bytes: u64,
        /// The cap.
        cap: u64,
    },
    /// JSON-RPC params are an object, an array or absent.
    #[error("params are neither an object nor an array")]
    BadParams,
    /// The peer ended before it answered.
    #[error("the server ended before it answered")]
    Disconnected,
}

/// A way to call one peer; clones share it.
#[derive(Debug, Clone)]
pub struct Bridge {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: BridgeConfig,
    era: AtomicBool,
    turns: Semaphore,
    waiting: AtomicUsize,
    held_bytes: AtomicUsize,
    pending: Arc<Pending>,
    outbox: mpsc::Sender<Outgoing>,
    /// Asks the writer to end, and so closes the peer's stdin.
    closing: CancellationToken,
    /// Set when the peer's stdout has ended.
    closed: CancellationToken,
    epoch: Instant,
    /// Milliseconds from `epoch` to the last message in either direction.
    last_traffic: AtomicU64,
    /// Whether somebody waits in `sign_of_life`.
    listening_for_life: AtomicBool,
    life: Notify,
}

impl Bridge {
    /// Joins callers to the peer behind the two streams; the two tasks run on `tasks`.
    pub fn start<R, W>(
        stdout: R,
        stdin: W,
        config: BridgeConfig,
        listener: Arc<dyn Listener>,
        tasks: &TaskTracker,
    ) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (outbox, inbox) = mpsc::channel(config.max_in_flight + 256);
        let pending = Arc::new(Pending::default());
        let closing = CancellationToken::new();
        tasks.spawn(write_messages(stdin, inbox, Arc::clone(&pending), closing.clone()));
        let shared = Arc::new(Shared {
            config,
            era: AtomicBool::new(false),
            turns: Semaphore::new(config.max_in_flight),
            waiting: AtomicUsize::new(0),
            held_bytes: AtomicUsize::new(0),
            pending,
            outbox,
            closing,
            closed: CancellationToken::new(),
            epoch: Instant::now(),
            last_traffic: AtomicU64::new(0),
            listening_for_life: AtomicBool::new(false),
            life: Notify::new(),
        });
        tasks.spawn(read_messages(
            LineReader::new(stdout, config.max_message),
            Arc::clone(&shared),
            listener,
        ));
        Self { shared }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request.
    pub async fn call(&self, request: Request) -> Called {
        let started = Instant::now();
        let mut marks = Marks { sent: None, written: None };
        let result = self.run(request, &mut marks).await;
        Called { result, timing: marks.timing(started, Instant::now()) }
    }

    /// Tells the peer something; lost where the peer is gone or does not read.
    pub fn notify(&self, method: &str, params: Option<&Bytes>) {
        self.shared.send_or_drop(Outgoing::request(None, method, params));
    }

    /// Closes the peer's stdin.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }

    /// Ends when the peer's stdout has.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// How long nothing has gone either way while no request was waiting; none while one is.
    pub fn idle_for(&self) -> Option<Duration> {
        let shared = &self.shared;
        (shared.pending.len() == 0)
            .then(|| shared.epoch.elapsed().saturating_sub(shared.last_traffic()))
    }

    /// Ends when the peer next says anything.
    pub async fn sign_of_life(&self) {
        let heard = self.shared.life.notified();
        self.shared.listening_for_life.store(true, Ordering::Relaxed);
        heard.await;
    }

    /// Holds the conversation in `era` from now on.
    pub(crate) fn set_era(&self, era: Era) {
        self.shared.era.store(era == Era::Discover, Ordering::Relaxed);
    }

    /// The era in which the conversation is held.
    pub fn era(&self) -> Era {
        if self.shared.era.load(Ordering::Relaxed) { Era::Discover } else { Era::Initialize }
    }

    async fn run(&self, request: Request, marks: &mut Marks) -> Result<Bytes, CallError> {
        let shared = &*self.shared;
        let size = request.params.as_ref().map_or(0, Bytes::len);
        if size > shared.config.max_message {
            return Err(CallError::RequestTooLarge {
                bytes: size as u64,
                cap: shared.config.max_message as u64,
            });
        }
        let _held = shared.hold(size)?;
        let _turn = if request.urgent { None } else { Some(shared.turn(request.timeout).await?) };
        marks.sent = Some(Instant::now());

        let Opened { id, reply } = shared.pending.open().ok_or(CallError::Disconnected)?;
        let sent = AtomicBool::new(false);
        let mut ticket = Ticket { shared, id, sent: &sent, reason: "the caller went away" };
        let stamped = params::stamp(request.params, id, self.era()).ok_or(CallError::BadParams)?;
        let message = Outgoing::request(Some(id), &request.method, stamped.params.as_ref());
        drop(stamped.params);
        let progress = stamped.wants_progress.then(|| shared.pending.watch_progress(id));

        let answer = async {
            shared.outbox.send(message).await.map_err(|_| CallError::Disconnected)?;
            sent.store(true, Ordering::Relaxed);
            wait_for(reply, shared.config.max_message, marks).await
        };
        let deadline = tokio::time::sleep(request.timeout);
        tokio::pin!(answer, deadline);
        loop {
            tokio::select! {
                biased;
                result = &mut answer => return result,
                () = &mut deadline => {
                    // The silence that counts begins with the last sign of progress.
                    let Some(progressed) = progress.as_ref().and_then(|progress| progress.take()) else {
                        ticket.reason = "the request timed out";
                        return Err(CallError::Timeout(request.timeout));
                    };
                    deadline.as_mut().reset(progressed + request.timeout);
                }
            }
        }
    }
}

async fn wait_for(
    reply: oneshot::Receiver<Reply>,
    cap: usize,
    marks: &mut Marks,
) -> Result<Bytes, CallError> {
    match reply.await {
        Ok(Reply::Answer { outcome, written }) => {
            marks.written = written;
            outcome.map_err(CallError::Rpc)
        }
        Ok(Reply::TooLarge { bytes }) => Err(CallError::AnswerTooLarge { bytes, cap: cap as u64 }),
        Ok(Reply::Closed) | Err(_) => Err(CallError::Disconnected),
    }
}

impl Shared {
    /// Waits for a free place at the peer.
    async fn turn(&self, timeout: Duration) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(permit) = self.turns.try_acquire() {
            return Ok(permit);
        }
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted { counter: &self.waiting, by: 1 };
        if waiting >= self.config.queue_limit {
            return Err(CallError::Overloaded { waiting });
        }
        tokio::select! {
            permit = tokio::time::timeout(timeout, self.turns.acquire()) => match permit {
                Ok(Ok(permit)) => Ok(permit),
                Ok(Err(_)) => Err(CallError::Disconnected),
                Err(_) => Err(CallError::QueueTimeout(timeout)),
            },
            () = self.closed.cancelled() => Err(CallError::Disconnected),
        }
    }

    /// Counts a call's bytes while it lives. One call alone is always let in.
    fn hold(&self, bytes: usize) -> Result<Counted<'_>, CallError> {
        let before = self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        let held = Counted { counter: &self.held_bytes, by: bytes };
        if before > 0 && before + bytes > self.config.held_bytes_limit {
            return Err(CallError::Overloaded { waiting: self.waiting.load(Ordering::Relaxed) });
        }
        Ok(held)
    }

    /// For what must not wait: a peer that does not read loses it.
    fn send_or_drop(&self, message: Outgoing) {
        if self.outbox.try_send(message).is_err() {
            tracing::debug!("the server does not read its stdin; a message to it was dropped");
        }
    }

    fn heard(&self) {
        self.touch();
        if self.listening_for_life.load(Ordering::Relaxed)
            && self.listening_for_life.swap(false, Ordering::Relaxed)
        {
            self.life.notify_waiters();
        }
    }

    fn touch(&self) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_traffic.store(now, Ordering::Relaxed);
    }

    fn last_traffic(&self) -> Duration {
        Duration::from_millis(self.last_traffic.load(Ordering::Relaxed))
    }

    fn take(&self, message: Message, listener: &dyn Listener) {
        match message {
            Message::Response { id, outcome } => {
                if !id.is_some_and(|id| self.pending.answer(id, outcome)) {
                    tracing::debug!(?id, "an answer came that nobody waits for");
                }
            }
            Message::Notification { method, params } if method == "notifications/progress" => {
                if let Some(id) = params.as_ref().and_then(progress_token) {
                    self.pending.progressed(id);
                }
            }
            Message::Notification { method, params } => listener.notified(&method, params.as_ref()),
            Message::Request { id, method, .. } => self.send_or_drop(answer_to(&id, &method)),
        }
    }
}

/// What the daemon itself answers a server that asks: it is alive, and offers nothing else.
fn answer_to(id: &Bytes, method: &str) -> Outgoing {
    if method == "ping" {
        return Outgoing::response(id, r#""result":{}"#);
    }
    let message = serde_json::Value::from(format!("Method not found: {method}"));
    Outgoing::response(id, &format!(r#""error":{{"code":-32601,"message":{message}}}"#))
}

fn progress_token(params: &Bytes) -> Option<u64> {
    serde_json::from_slice(member(params, "progressToken")?).ok()
}

async fn read_messages<R>(
    mut lines: LineReader<R>,
    shared: Arc<Shared>,
    listener: Arc<dyn Listener>,
) where
    R: AsyncRead + Unpin,
{
    loop {
        match lines.next().await {
            Ok(Some(Frame::Line(line))) => match Incoming::parse(&line) {
                Ok(Incoming::One(message)) => shared.take(message, &*listener),
                Ok(Incoming::Batch(messages)) => {
                    for message in messages {
                        shared.take(message, &*listener);
                    }
                }
                Err(_) => listener.noise(&line),
            },
            Ok(Some(Frame::TooLong { bytes, id, .. })) => {
                listener.oversized(bytes);
                if let Some(id) = id {
                    shared.pending.too_large(id, bytes);
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "the server's stdout cannot be read");
                break;
            }
        }
        shared.heard();
    }
    shared.pending.close();
    shared.closed.cancel();
}

/// Moments of one call.
#[derive(Debug)]
struct Marks {
    sent: Option<Instant>,
    written: Option<Instant>,
}

impl Marks {
    fn timing(&self, started: Instant, ended: Instant) -> Timing {
        let sent = self.sent.unwrap_or(ended);
        let written = self.written.unwrap_or(sent).clamp(sent, ended);
        Timing { queue: sent - started, write: written - sent, server: ended - written }
    }
}

/// Takes what it counted off again.
struct Counted<'a> {
    counter: &'a AtomicUsize,
    by: usize,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.by, Ordering::Relaxed);
    }
}

/// A request's claim on an answer. Where it is dropped before the answer came, a peer that has
/// the request is told.
struct Ticket<'a> {
    shared: &'a Shared,
    id: u64,
    /// Whether the peer can have heard of the request.
    sent: &'a AtomicBool,
    reason: &'static str,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.shared.touch();
        if self.shared.pending.abandon(self.id) && self.sent.load(Ordering::Relaxed) {
            let params =
                Bytes::from(format!(r#"{{"requestId":{},"reason":"{}"}}"#, self.id, self.reason));
            self.shared.send_or_drop(Outgoing::request(
                None,
                "notifications/cancelled",
                Some(&params),
            ));
        }
    }
}
