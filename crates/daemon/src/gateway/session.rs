//! One client of the older era, from its `initialize` to its end: what it runs, what it is
//! asked, and the streams on which it hears.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{ClientId, RpcError, member};
use cofer_model::{Budget, ServerId, Sharing};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::capabilities::Abilities;
use super::charged::{Charged, overloaded};
use super::door::Door;
use super::level::Level;
use super::rpc::{Fault, INTERNAL};
use super::running::{Inquiry, Running};
use super::stream::EventStream;
use super::upstream::Upstream;

/// Messages, and bytes of them, that wait for a client which listens to no stream.
const MAX_PENDING: usize = 64;
const MAX_PENDING_BYTES: usize = 8 << 20;
/// Questions that a client is asked at once.
const MAX_INQUIRIES: usize = 256;
/// How long a stream is kept after its connection broke.
const STREAM_KEPT: Duration = Duration::from_secs(120);
/// So many streams of one session are kept, before those that are finished are forgotten.
const MAX_STREAMS: usize = 128;
/// The first revision whose clients take an event without data for what it is.
const PRIMED_SINCE: &str = "2025-11-25";

/// What a client said of itself when it came.
pub(super) struct Opening {
    pub(super) id: Arc<str>,
    pub(super) client: ClientId,
    /// What it calls itself.
    pub(super) name: Arc<str>,
    pub(super) door: Door,
    pub(super) version: &'static str,
    /// The params of its `initialize`.
    pub(super) initialize: Bytes,
}

/// See the module.
pub(super) struct Session {
    pub(super) opening: Opening,
    pub(super) abilities: Abilities,
    level: AtomicU8,
    state: Mutex<State>,
    /// The servers that run for this session alone.
    pub(super) own: tokio::sync::Mutex<HashMap<ServerId, Upstream>>,
    pub(super) ended: CancellationToken,
}

struct State {
    running: HashMap<Bytes, Arc<Running>>,
    /// Those whose id a later request has taken, though it was not free yet.
    shadowed: Vec<Arc<Running>>,
    /// Whether the session is over: what begins now ends at once.
    is_over: bool,
    streams: HashMap<u64, Arc<EventStream>>,
    /// Those that no request opened, the newest last.
    general: Vec<Arc<EventStream>>,
    last_stream: u64,
    pending: VecDeque<Charged>,
    inquiries: HashMap<u64, Inquiry>,
    last_inquiry: u64,
    last_used: Instant,
}

impl Session {
    pub(super) fn new(opening: Opening, own: HashMap<ServerId, Upstream>) -> Self {
        let capabilities = member(&opening.initialize, "capabilities").unwrap_or(b"{}");
        let state = State {
            running: HashMap::new(),
            shadowed: Vec::new(),
            is_over: false,
            streams: HashMap::new(),
            general: Vec::new(),
            last_stream: 0,
            pending: VecDeque::new(),
            inquiries: HashMap::new(),
            last_inquiry: 0,
            last_used: Instant::now(),
        };
        Self {
            abilities: Abilities::read(capabilities),
            opening,
            level: AtomicU8::new(0),
            state: Mutex::new(state),
            own: tokio::sync::Mutex::new(own),
            ended: CancellationToken::new(),
        }
    }

    /// The level of log messages that it asked for.
    pub(super) fn level(&self) -> Option<Level> {
        Level::from_u8(self.level.load(Ordering::Relaxed))
    }

    pub(super) fn set_level(&self, level: Level) {
        self.level.store(Level::to_u8(Some(level)), Ordering::Relaxed);
    }

    /// Takes note of a request, so that the client can cancel it by its id, and the session's end
    /// does.
    pub(super) fn begin(self: &Arc<Self>, id: &Bytes) -> RunGuard {
        let running = Arc::new(Running::new(self.opening.client));
        let mut state = self.lock();
        state.last_used = Instant::now();
        let shadowed = state.running.insert(id.clone(), Arc::clone(&running));
        state.shadowed.extend(shadowed);
        if state.is_over {
            running.cancel();
        }
        drop(state);
        RunGuard { session: Arc::clone(self), id: id.clone(), running }
    }

    /// The client wants the answer to a request no more.
    pub(super) fn cancel(&self, id: &[u8]) {
        let running = self.lock().running.get(id).cloned();
        if let Some(running) = running {
            running.cancel();
        }
    }

    /// A new stream for one request.
    pub(super) fn open_stream(&self) -> Arc<EventStream> {
        let mut state = self.lock();
        if state.streams.len() >= MAX_STREAMS {
            // Their answers were sent long ago, by the measure of so busy a client.
            state.streams.retain(|_, stream| !stream.is_finished() || stream.is_attached());
        }
        state.last_stream += 1;
        let stream = Arc::new(EventStream::new(state.last_stream));
        state.streams.insert(stream.id, Arc::clone(&stream));
        stream
    }

    /// A new stream for what belongs to no request, with what waited for one.
    pub(super) fn open_general(&self) -> Arc<EventStream> {
        let stream = self.open_stream();
        let mut state = self.lock();
        state.last_used = Instant::now();
        state.general.push(Arc::clone(&stream));
        for message in std::mem::take(&mut state.pending) {
            stream.push(message, true);
        }
        stream
    }

    /// The stream to which an event belongs.
    pub(super) fn stream(&self, id: u64) -> Option<Arc<EventStream>> {
        let mut state = self.lock();
        state.last_used = Instant::now();
        let stream = state.streams.get(&id).cloned()?;
        if state.general.iter().any(|general| general.id == id) {
            for message in std::mem::take(&mut state.pending) {
                stream.push(message, true);
            }
        }
        Some(stream)
    }

    /// Whether streams begin with an event that has an id and no data.
    pub(super) fn is_primed(&self) -> bool {
        self.opening.version >= PRIMED_SINCE
    }

    /// Sends a message that belongs to no request, on one stream, now or when there is one.
    pub(super) fn tell(&self, message: &Charged) {
        let mut state = self.lock();
        let open = state.general.iter().rev().find(|stream| stream.is_attached());
        if let Some(stream) = open {
            stream.push(message.clone(), true);
            return;
        }
        state.wait(message.clone());
    }

    /// Whether a client listens on a stream that belongs to no request.
    pub(super) fn listens(&self) -> bool {
        self.lock().general.iter().any(|stream| stream.is_attached())
    }

    /// Keeps a server's request until the client answers it, and makes the request to be sent. If
    /// the client cannot be asked, or `memory` has no room, the server's request is refused.
    pub(super) async fn ask(&self, inquiry: Inquiry, memory: &Arc<Budget>) -> Option<Charged> {
        if let Some(fault) = self.abilities.lacks(&inquiry.method, inquiry.params.as_deref()) {
            match inquiry.default_answer() {
                Some(answer) => inquiry.answer(Ok(answer)).await,
                None => inquiry.refuse(&fault).await,
            }
            return None;
        }
        match self.keep(inquiry, memory) {
            Ok(request) => Some(request),
            Err((inquiry, fault)) => {
                inquiry.refuse(&fault).await;
                None
            }
        }
    }

    fn keep(
        &self,
        mut inquiry: Inquiry,
        memory: &Arc<Budget>,
    ) -> Result<Charged, (Box<Inquiry>, Fault)> {
        let mut state = self.lock();
        if state.inquiries.len() >= MAX_INQUIRIES {
            let fault = Fault::new(INTERNAL, "the client is asked too much at once");
            return Err((Box::new(inquiry), fault));
        }
        let id = state.last_inquiry + 1;
        let params = inquiry.params.take();
        let request = Charged::request(memory, id, &inquiry.method, params.as_deref());
        let Some(request) = request else {
            return Err((Box::new(inquiry), overloaded(memory, "the request to the client")));
        };
        state.last_inquiry = id;
        state.inquiries.insert(id, inquiry);
        Ok(request)
    }

    /// The client answers a question.
    pub(super) async fn answered(&self, id: Option<u64>, outcome: Result<Bytes, RpcError>) {
        match id.and_then(|id| self.take_inquiry(id)) {
            Some(inquiry) => inquiry.answer(outcome).await,
            None => tracing::debug!(?id, "a client answered what it was not asked"),
        }
    }

    fn take_inquiry(&self, id: u64) -> Option<Inquiry> {
        let mut state = self.lock();
        state.last_used = Instant::now();
        state.inquiries.remove(&id)
    }

    /// A server takes a question back: the notification to be sent.
    pub(super) fn withdraw(&self, origin: u64, memory: &Arc<Budget>) -> Option<Charged> {
        let mut state = self.lock();
        let found = state.inquiries.iter().find(|(_, inquiry)| inquiry.origin == Some(origin));
        let id = *found?.0;
        state.inquiries.remove(&id);
        let params =
            format!(r#"{{"requestId":{id},"reason":"the server takes its question back"}}"#);
        Charged::notification(memory, "notifications/cancelled", Some(params.as_bytes()))
    }

    pub(super) fn touch(&self) {
        self.lock().last_used = Instant::now();
    }

    /// How long nothing has happened in it; none while it runs or hears something.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        let state = self.lock();
        let is_heard = state.streams.values().any(|stream| stream.is_attached());
        let runs = !state.running.is_empty() || !state.shadowed.is_empty();
        (!runs && !is_heard).then(|| state.last_used.elapsed())
    }

    /// Whether servers run for it alone.
    pub(super) fn has_own(&self) -> bool {
        match &self.opening.door {
            Door::One(handle) => handle.spec().sharing == Sharing::PerSession,
            Door::All => self.own.try_lock().is_ok_and(|own| !own.is_empty()),
        }
    }

    /// Forgets streams to which nobody came back.
    pub(super) fn sweep(&self) {
        let mut state = self.lock();
        let is_stale = |stream: &EventStream, is_general: bool| {
            let may_end = is_general || stream.is_finished();
            may_end && stream.abandoned_for().is_some_and(|time| time > STREAM_KEPT)
        };
        let mut unsent = Vec::new();
        let State { streams, general, .. } = &mut *state;
        general.retain(|stream| {
            let stale = is_stale(stream, true);
            if stale {
                streams.remove(&stream.id);
                unsent.extend(stream.take_unsent());
            }
            !stale
        });
        streams.retain(|_, stream| !is_stale(stream, false));
        streams.shrink_to_fit();
        for message in unsent {
            state.wait(message);
        }
    }

    /// Ends everything that it runs. Whoever works on its requests sees that and lets go of it;
    /// with the last of them the servers end that run for it alone.
    pub(super) fn end(&self) {
        self.ended.cancel();
        let mut state = self.lock();
        let inquiries = std::mem::take(&mut state.inquiries);
        let streams = std::mem::take(&mut state.streams);
        state.general.clear();
        state.is_over = true;
        for running in state.running.values().chain(&state.shadowed) {
            running.cancel();
        }
        drop(state);
        drop(inquiries);
        for stream in streams.values() {
            stream.finish();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps a message for a client that has no stream. At the limit the oldest message of the
    /// same server is dropped, or the oldest of all if there is none.
    fn wait(&mut self, message: Charged) {
        let is_same = |other: &Charged| other.bytes() == message.bytes();
        // Twice the same says no more than once: that a list changed, or a resource.
        if self.pending.iter().any(is_same) {
            return;
        }
        if message.len() > MAX_PENDING_BYTES {
            return message.count_loss();
        }
        let bytes = |pending: &VecDeque<Charged>| pending.iter().map(Charged::len).sum::<usize>();
        while self.pending.len() >= MAX_PENDING
            || bytes(&self.pending) + message.len() > MAX_PENDING_BYTES
        {
            let is_own = |other: &Charged| Arc::ptr_eq(other.memory(), message.memory());
            let oldest = self.pending.iter().position(is_own).unwrap_or(0);
            match self.pending.remove(oldest) {
                Some(lost) => lost.count_loss(),
                None => break,
            }
        }
        self.pending.push_back(message);
    }
}

/// A request's place among those that its client can cancel.
pub(super) struct RunGuard {
    session: Arc<Session>,
    id: Bytes,
    pub(super) running: Arc<Running>,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.last_used = Instant::now();
        if state.running.get(&self.id).is_some_and(|known| Arc::ptr_eq(known, &self.running)) {
            state.running.remove(&self.id);
        } else {
            state.shadowed.retain(|other| !Arc::ptr_eq(other, &self.running));
        }
    }
}
