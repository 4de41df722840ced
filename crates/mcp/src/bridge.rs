//! Many callers, one peer: gives each request its turn, its id and its deadline, and brings
//! the answer back to whoever asked.
//!
//! ```text
//!  call ──► turn (max_in_flight, bounded queue) ──► outbox ──► peer's stdin
//!    ▲                                                             │
//!    └────── pending table ◄── reader task ◄────── peer's stdout ◄─┘
//! ```
//! Reader and writer, which empties the outbox, are tasks of their own and never wait for each
//! other; a caller who is alone writes itself. A call that is dropped or runs out of time takes
//! its entry out of the table and tells the peer; an answer that comes later finds nobody and is
//! dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cofer_model::{Budget, Charge};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call::{BridgeConfig, CallError, Called, Request, Timing};
use crate::caller::{Caller, ClientId};
use crate::concurrency::Concurrency;
use crate::framing::LineReader;
use crate::list_cache::{ListCache, PageKey};
use crate::outbox::{Closed, Outbox, Stdin};
use crate::outgoing::Outgoing;
use crate::params::{self, Era};
use crate::pending::{Opened, Pending, Reply};
use crate::questions::Questions;
use crate::reader::{Listener, read_messages};
use crate::slots::{Acquired, QueueStatus, Slot, Slots, Waiting};
use crate::unattributed::Unattributed;
use crate::writer::write_messages;

/// Up to this length the params of a call are not charged against the memory budget.
const UNCHARGED: usize = 16 * 1024;
/// Longer than any server runs.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A way to call one peer; clones share it.
#[derive(Debug, Clone)]
pub struct Bridge {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: BridgeConfig,
    era: AtomicBool,
    pub(crate) slots: Arc<Slots>,
    pub(crate) concurrency: Concurrency,
    pub(crate) lists: ListCache,
    held_bytes: AtomicUsize,
    pub(crate) pending: Arc<Pending>,
    pub(crate) questions: Questions,
    pub(crate) unattributed: Unattributed,
    pub(crate) outbox: Outbox,
    /// Asks the writer to end, and so closes the peer's stdin.
    closing: CancellationToken,
    /// Set when the peer's stdout has ended.
    pub(crate) closed: CancellationToken,
    epoch: Instant,
    /// Milliseconds from `epoch` to the last message in either direction.
    last_traffic: AtomicU64,
    /// Whether somebody waits in `sign_of_life`.
    listening_for_life: AtomicBool,
    life: Notify,
}

/// How a call goes on.
enum Turn {
    /// It is sent; past the queue without a slot.
    Sends(Option<Slot>),
    /// The peer is busy, and has sent this page of a list before.
    Cached(Bytes),
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
        let lines = LineReader::within(stdout, config.max_message, &config.memory);
        let stdin = Arc::new(Stdin::new(stdin));
        let (outbox, inbox) = Outbox::new(Arc::clone(&stdin), config.max_in_flight + 256);
        let pending = Arc::new(Pending::default());
        let closing = CancellationToken::new();
        tasks.spawn(write_messages(stdin, inbox, Arc::clone(&pending), closing.clone()));
        let shared = Arc::new(Shared {
            era: AtomicBool::new(false),
            slots: Slots::new(config.max_in_flight),
            concurrency: Concurrency::new(config.raise_to),
            lists: ListCache::default(),
            config,
            held_bytes: AtomicUsize::new(0),
            pending,
            questions: Questions::default(),
            unattributed: Unattributed::default(),
            outbox,
            closing,
            closed: CancellationToken::new(),
            epoch: Instant::now(),
            last_traffic: AtomicU64::new(0),
            listening_for_life: AtomicBool::new(false),
            life: Notify::new(),
        });
        tasks.spawn(read_messages(lines, Arc::clone(&shared), listener));
        Self { shared }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request.
    pub async fn call(&self, request: Request<'_>) -> Called {
        let started = Instant::now();
        let mut marks = Marks::default();
        let result = self.run(request, &mut marks).await;
        Called { result, timing: marks.timing(started, Instant::now()), id: marks.id }
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

    /// For a peer that serves one client alone: what it asks while it works on no request goes
    /// to `caller`.
    pub fn attend(&self, caller: Arc<dyn Caller>) {
        self.shared.pending.attend(caller);
    }

    /// Lets a peer of the 2026-07-28 era tell what `params` name, past the queue and for as long
    /// as the future lives. What it tells goes to the listener.
    pub async fn listen(&self, params: Bytes) -> Result<Bytes, CallError> {
        let request = Request::new("subscriptions/listen", Some(params), FOR_EVER);
        self.call(request.urgent()).await.result
    }

    /// How long nothing has gone either way while nobody else waited for an answer; none while
    /// somebody does.
    pub fn idle_for(&self) -> Option<Duration> {
        let shared = &self.shared;
        shared
            .pending
            .is_idle()
            .then(|| shared.epoch.elapsed().saturating_sub(shared.last_traffic()))
    }

    /// Ends when the peer next says anything.
    pub async fn sign_of_life(&self) {
        let heard = self.shared.life.notified();
        self.shared.listening_for_life.store(true, Ordering::Relaxed);
        heard.await;
    }

    /// Changes how many requests the peer is given at once; see [`BridgeConfig`].
    pub fn set_max_in_flight(&self, limit: usize, raise_to: Option<usize>) {
        self.shared.concurrency.configure(limit, raise_to, &self.shared.slots);
    }

    /// The calls that wait for the peer.
    pub fn queue(&self) -> QueueStatus {
        self.shared.slots.status()
    }

    /// The cheapest request that every peer answers.
    pub fn liveness_method(&self) -> &'static str {
        match self.era() {
            Era::Initialize => "ping",
            // Revision 2026-07-28 has no ping.
            Era::Discover => "server/discover",
        }
    }

    /// Holds the conversation in `era` from now on.
    pub(crate) fn set_era(&self, era: Era) {
        self.shared.era.store(era == Era::Discover, Ordering::Relaxed);
    }

    /// The memory budget of the peer.
    pub(crate) fn memory(&self) -> &Arc<Budget> {
        &self.shared.config.memory
    }

    /// The longest message.
    pub(crate) fn max_message(&self) -> usize {
        self.shared.config.max_message
    }

    /// Keeps no page of the list `method`.
    pub(crate) fn forget_list(&self, method: &str) {
        self.shared.lists.forget(method);
    }

    /// The era in which the conversation is held.
    pub fn era(&self) -> Era {
        if self.shared.era.load(Ordering::Relaxed) { Era::Discover } else { Era::Initialize }
    }

    async fn run(&self, request: Request<'_>, marks: &mut Marks) -> Result<Bytes, CallError> {
        let shared = &self.shared;
        let size = request.params.as_ref().map_or(0, Bytes::len);
        if size > shared.config.max_message {
            return Err(CallError::RequestTooLarge {
                bytes: size as u64,
                cap: shared.config.max_message as u64,
            });
        }
        let _held = shared.hold(size)?;
        let (page, version) = (PageKey::of(&request), shared.lists.version());
        let slot = match self.turn(&request, page.as_ref(), marks).await? {
            Turn::Sends(slot) => slot,
            Turn::Cached(result) => return Ok(result),
        };
        marks.sent = Some(Instant::now());

        let Opened { id, reply } =
            shared.pending.open(request.owner(), slot).ok_or(CallError::Disconnected)?;
        marks.id = Some(id);
        let sent = AtomicBool::new(false);
        let mut ticket = Ticket { shared, id, sent: &sent, reason: "the caller went away" };
        let stamped = params::stamp(request.params, id, self.era()).ok_or(CallError::BadParams)?;
        let message = Outgoing::request(Some(id), request.method, stamped.params.as_ref());
        drop(stamped.params);
        if let Some(token) = stamped.token {
            shared.pending.set_token(id, token);
        }
        let client = request.caller.as_ref().map(|caller| caller.client());

        let answer = async {
            shared.send(id, message).await.map_err(|Closed| CallError::Disconnected)?;
            sent.store(true, Ordering::Relaxed);
            wait_for(reply, &shared.config, marks).await
        };
        let silent = shared.until_silent(id, client, request.timeout);
        let input = tokio::select! {
            biased;
            result = answer => {
                if let (Some(page), Ok(result)) = (page, &result) {
                    shared.lists.put(page, version, result, &shared.config.memory);
                }
                return result;
            }
            input = silent => input,
        };
        marks.input = input;
        ticket.reason = "the request timed out";
        Err(CallError::Timeout(request.timeout))
    }

    /// Waits for a free place at the peer.
    async fn turn(
        &self,
        request: &Request<'_>,
        page: Option<&PageKey>,
        marks: &mut Marks,
    ) -> Result<Turn, CallError> {
        let shared = &self.shared;
        if request.urgent {
            return Ok(Turn::Sends(None));
        }
        if let Some(page) = page.filter(|_| shared.slots.is_full())
            && let Some(result) = shared.lists.get(page)
        {
            return Ok(Turn::Cached(result));
        }
        let running = shared.slots.taken();
        let waiting = match shared.slots.acquire(shared.config.queue_limit, !request.only_looks()) {
            Acquired::Slot(slot) => return Ok(Turn::Sends(Some(slot))),
            Acquired::Waiting(waiting) => waiting,
            Acquired::Full { waiting } => return Err(CallError::Overloaded { waiting }),
        };
        marks.ahead = running.max(1) + waiting.ahead;
        // Boxed: most calls do not wait, and would carry the probe's state with them.
        let slot = Box::pin(self.wait(waiting, request.timeout)).await?;
        Ok(Turn::Sends(Some(slot)))
    }

    async fn wait(&self, waiting: Waiting, timeout: Duration) -> Result<Slot, CallError> {
        tokio::select! {
            biased;
            slot = tokio::time::timeout(timeout, waiting) => {
                slot.map_err(|_| CallError::QueueTimeout(timeout))
            }
            () = self.shared.closed.cancelled() => Err(CallError::Disconnected),
            () = self.shared.concurrency.probe(self) => Err(CallError::Disconnected),
        }
    }
}

async fn wait_for(
    reply: oneshot::Receiver<Reply>,
    config: &BridgeConfig,
    marks: &mut Marks,
) -> Result<Bytes, CallError> {
    match reply.await {
        Ok(Reply::Answer { outcome, written, began, input }) => {
            marks.input = input;
            marks.written = written;
            marks.began = Some(began);
            outcome.map_err(CallError::Rpc)
        }
        Ok(Reply::TooLarge { bytes }) => {
            Err(CallError::AnswerTooLarge { bytes, cap: config.max_message as u64 })
        }
        Ok(Reply::OutOfMemory) => Err(CallError::OutOfMemory {
            what: "the server's answer",
            limit: config.memory.limit(),
        }),
        Ok(Reply::Closed) | Err(_) => Err(CallError::Disconnected),
    }
}

impl Shared {
    /// Ends when the peer was silent about request `id` for `timeout`, with the time in which it
    /// waited for the user of `client`, which is no silence of the peer's.
    async fn until_silent(&self, id: u64, client: Option<ClientId>, timeout: Duration) -> Duration {
        let mut deadline = Instant::now() + timeout;
        loop {
            tokio::time::sleep_until(deadline).await;
            let waits = client.is_some_and(|client| self.questions.waits_for(client));
            if waits || !self.unattributed.is_empty() {
                deadline = Instant::now() + timeout;
                continue;
            }
            // The silence that counts begins with the last sign of progress.
            match self.pending.take_progress(id) {
                Some(progressed) => deadline = progressed + timeout,
                None => return self.pending.input_of(id),
            }
        }
    }

    /// Counts a call's bytes while it lives. One call alone is always let in, as far as the memory
    /// budget has room for it. Small params are not charged, for the sake of the calls' speed:
    /// `max_in_flight` and `queue_limit` bound their number.
    fn hold(&self, bytes: usize) -> Result<Held<'_>, CallError> {
        let before = self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        let counted = Counted { counter: &self.held_bytes, by: bytes };
        if before > 0 && before + bytes > self.config.held_bytes_limit {
            return Err(CallError::Overloaded { waiting: self.slots.status().waiting });
        }
        if bytes <= UNCHARGED {
            return Ok(Held { _counted: counted, _charge: None });
        }
        let memory = &self.config.memory;
        let charge = memory.try_charge(bytes).ok_or_else(|| {
            memory.count_loss();
            CallError::OutOfMemory { what: "the request", limit: memory.limit() }
        })?;
        Ok(Held { _counted: counted, _charge: Some(charge) })
    }

    /// Sends request `id`; waits while the peer does not read.
    async fn send(&self, id: u64, message: Outgoing) -> Result<(), Closed> {
        if self.slots.taken() > 1 {
            return self.outbox.send(message).await;
        }
        // Written in one go, it is with the peer, which may run before this goes on.
        let written = Instant::now();
        if self.outbox.send_alone(message).await? {
            self.pending.mark_written(&[id], written);
        }
        Ok(())
    }

    /// For what must not wait: a peer that does not read loses it.
    pub(crate) fn send_or_drop(&self, message: Outgoing) {
        if !self.outbox.try_send(message) {
            tracing::debug!("the server does not read its stdin; a message to it was dropped");
        }
    }

    pub(crate) fn heard(&self) {
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
}

/// Moments of one call.
#[derive(Debug, Default)]
struct Marks {
    id: Option<u64>,
    sent: Option<Instant>,
    written: Option<Instant>,
    began: Option<Instant>,
    ahead: usize,
    input: Duration,
}

impl Marks {
    fn timing(&self, started: Instant, ended: Instant) -> Timing {
        let sent = self.sent.unwrap_or(ended);
        let written = self.written.unwrap_or(sent).clamp(sent, ended);
        let began = self.began.unwrap_or(ended).clamp(written, ended);
        Timing {
            queue: sent - started,
            queue_ahead: self.ahead,
            write: written - sent,
            server: (began - written).saturating_sub(self.input),
            input: self.input,
            read: ended - began,
        }
    }
}

/// The bytes of a call's params.
struct Held<'a> {
    _counted: Counted<'a>,
    _charge: Option<Charge>,
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
    shared: &'a Arc<Shared>,
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
        self.shared.attribute();
    }
}
