//! The requests that wait for an answer. The reader, the writer and every caller share this
//! table; each holds its lock only to look up or change one entry.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_model::Budget;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::caller::{Caller, ClientId};
use crate::memory::build_charged;
use crate::message::RpcError;
use crate::params::with_token;
use crate::slots::Slot;

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The peer answered.
    Answer {
        outcome: Result<Bytes, RpcError>,
        written: Option<Instant>,
        /// When the answer's first bytes came.
        began: Instant,
        /// How long the peer waited for the caller's user.
        input: Duration,
    },
    /// The peer's answer was over the cap.
    TooLarge { bytes: u64 },
    /// The memory budget had no room for the peer's answer.
    OutOfMemory,
    /// The peer is gone.
    Closed,
}

struct Entry {
    reply: oneshot::Sender<Reply>,
    owner: Owner,
    /// When there last was progress that nobody took note of.
    progressed: Option<Instant>,
    /// The caller's own progress token, as JSON.
    token: Option<Bytes>,
    written: Option<Instant>,
    /// None for a request past the queue, and for one that has waited for its user.
    slot: Option<Slot>,
    input: InputWait,
}

/// The time in which a peer waits for input from a caller's user.
#[derive(Debug, Default)]
struct InputWait {
    /// Requests of the peer that the user has not answered.
    open: u32,
    since: Option<Instant>,
    total: Duration,
}

impl InputWait {
    fn begin(&mut self) {
        self.open += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn end(&mut self) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0
            && let Some(since) = self.since.take()
        {
            self.total += since.elapsed();
        }
    }

    fn total(&self) -> Duration {
        self.total + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// For whom a request of the peer is meant.
pub(crate) enum Addressee {
    /// For a client, whose call it belongs to if it has any.
    Client { call: Option<u64>, caller: Arc<dyn Caller> },
    /// For a client that is not certain until another one's call has ended.
    Uncertain,
    /// For nobody who can be reached.
    Nobody,
}

/// Whether an answer came while an older request was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    /// Whether somebody waited for it.
    pub(crate) is_expected: bool,
    pub(crate) overlaps: bool,
}

/// For whom a request is made.
#[derive(Clone)]
pub(crate) enum Owner {
    /// For ourselves: a heartbeat, the handshake.
    Us,
    /// To know what the peer has or to hear of it: a list, a subscription. Nobody is asked
    /// anything for its sake.
    Onlooker,
    /// For somebody who cannot be asked anything.
    Stranger,
    /// For somebody who can.
    Caller(Arc<dyn Caller>),
}

#[derive(Default)]
struct State {
    last_id: u64,
    closed: bool,
    /// Who is asked where no request waits for an answer.
    standing: Option<Arc<dyn Caller>>,
    entries: HashMap<u64, Entry>,
}

impl Entry {
    /// Takes note of progress, where somebody asked for it or can be asked.
    fn touch(&mut self) {
        if self.token.is_some() || matches!(self.owner, Owner::Caller(_)) {
            self.progressed = Some(Instant::now());
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
}

/// A request's place in the table.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: u64,
    pub(crate) reply: oneshot::Receiver<Reply>,
}

impl Pending {
    /// Gives a request an id and a place, or none where the peer is gone.
    pub(crate) fn open(&self, owner: Owner, slot: Option<Slot>) -> Option<Opened> {
        let (sender, reply) = oneshot::channel();
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.last_id += 1;
        let id = state.last_id;
        let (progressed, token, written, input) = (None, None, None, InputWait::default());
        let entry = Entry { reply: sender, owner, progressed, token, written, slot, input };
        state.entries.insert(id, entry);
        Some(Opened { id, reply })
    }

    /// Somebody may be asked also while nobody waits for an answer.
    pub(crate) fn attend(&self, caller: Arc<dyn Caller>) {
        self.lock().standing = Some(caller);
    }

    /// The caller of request `id` asked for progress, by this token.
    pub(crate) fn set_token(&self, id: u64, token: Bytes) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            entry.token = Some(token);
        }
    }

    /// When there last was progress of request `id`, where there was any since this was last asked.
    pub(crate) fn take_progress(&self, id: u64) -> Option<Instant> {
        self.lock().entries.get_mut(&id)?.progressed.take()
    }

    /// Notes when requests were in the peer's pipe.
    pub(crate) fn mark_written(&self, ids: &[u64], at: Instant) {
        let mut state = self.lock();
        for id in ids {
            if let Some(entry) = state.entries.get_mut(id) {
                entry.written = Some(at);
            }
        }
    }

    /// Gives request `id` its answer, and its slot to the next one. Looks for older requests only
    /// if `watch` is set: that takes longer the more are open.
    pub(crate) fn answer(
        &self,
        id: u64,
        outcome: Result<Bytes, RpcError>,
        began: Instant,
        watch: bool,
    ) -> Answered {
        let mut state = self.lock();
        let entry = state.entries.remove(&id);
        let is_older = |(other, entry): (&u64, &Entry)| {
            *other < id && entry.written.is_some() && !matches!(entry.owner, Owner::Us)
        };
        let overlaps = watch && entry.is_some() && state.entries.iter().any(is_older);
        drop(state);
        let is_expected = entry.is_some_and(|entry| {
            let Entry { reply, written, input, .. } = entry;
            reply.send(Reply::Answer { outcome, written, began, input: input.total() }).is_ok()
        });
        Answered { is_expected, overlaps }
    }

    /// The peer waits for the user of request `id`, which releases its slot for others.
    pub(crate) fn input_begins(&self, id: u64) {
        let slot = self.lock().entries.get_mut(&id).and_then(|entry| {
            entry.input.begin();
            entry.slot.take()
        });
        // Behind the lock: the next call takes it.
        drop(slot);
    }

    /// The user of request `id` has answered, or the peer does not want it any more.
    pub(crate) fn input_ends(&self, id: u64) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            entry.input.end();
        }
    }

    /// How long the peer has waited for the user of request `id`.
    pub(crate) fn input_of(&self, id: u64) -> Duration {
        self.lock().entries.get(&id).map_or(Duration::ZERO, |entry| entry.input.total())
    }

    /// Tells request `id` that its answer was too large; false where nobody waits for it.
    pub(crate) fn too_large(&self, id: u64, bytes: u64) -> bool {
        let entry = self.lock().entries.remove(&id);
        entry.is_some_and(|entry| entry.reply.send(Reply::TooLarge { bytes }).is_ok())
    }

    /// Fails request `id`, whose answer was discarded for lack of memory.
    pub(crate) fn out_of_memory(&self, id: u64) {
        if let Some(entry) = self.lock().entries.remove(&id) {
            // The caller may have gone in the same moment.
            entry.reply.send(Reply::OutOfMemory).ok();
        }
    }

    /// Notes progress of request `id` and passes it to its caller, as far as `memory` has room.
    pub(crate) fn progressed(&self, id: u64, params: &Bytes, memory: &Arc<Budget>) {
        let told = {
            let mut state = self.lock();
            let Some(entry) = state.entries.get_mut(&id) else {
                return;
            };
            entry.touch();
            match (&entry.owner, &entry.token) {
                (Owner::Caller(caller), Some(token)) => Some((Arc::clone(caller), token.clone())),
                _ => None,
            }
        };
        if let Some((caller, token)) = told {
            // The copy with the caller's token outlives the line, and may be as large.
            let length = params.len() + token.len();
            let copy = build_charged(memory, length, || with_token(params, &token));
            if let Some(params) = copy {
                caller.progressed(params);
            }
        }
    }

    /// Counts as progress of all requests of a client.
    pub(crate) fn progress_of(&self, client: ClientId) {
        for entry in self.lock().entries.values_mut() {
            if matches!(&entry.owner, Owner::Caller(caller) if caller.client() == client) {
                entry.touch();
            }
        }
    }

    /// Who has made every request that waits for an answer; none where it is not one client.
    pub(crate) fn only_caller(&self) -> Option<Arc<dyn Caller>> {
        let state = self.lock();
        match only_client(state.entries.iter()) {
            Ok(Some((_, caller))) => Some(Arc::clone(caller)),
            Ok(None) => state.standing.clone(),
            Err(Several) => None,
        }
    }

    /// For whom a request of the peer is meant that came now.
    pub(crate) fn addressee(&self) -> Addressee {
        let state = self.lock();
        match only_client(state.entries.iter()) {
            Ok(Some((id, caller))) => {
                Addressee::Client { call: Some(id), caller: Arc::clone(caller) }
            }
            Ok(None) => match &state.standing {
                Some(caller) => Addressee::Client { call: None, caller: Arc::clone(caller) },
                None => Addressee::Nobody,
            },
            Err(Several) => addressee_among_several(&state.entries),
        }
    }

    /// Takes request `id` out unanswered; false where it had been answered.
    pub(crate) fn abandon(&self, id: u64) -> bool {
        self.lock().entries.remove(&id).is_some()
    }

    /// Whether nobody but ourselves waits for an answer: heartbeats and our own lists. A server that
    /// hangs on a list would otherwise not be found silent before the time limit of the list.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().entries.values().all(|entry| matches!(entry.owner, Owner::Us | Owner::Onlooker))
    }

    /// How many requests wait for an answer.
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// The peer is gone: everybody who waits is told, and nobody waits any more.
    pub(crate) fn close(&self) {
        let entries = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.entries)
        };
        for (_, entry) in entries {
            // The caller may have gone in the same moment: then there is nobody to tell.
            entry.reply.send(Reply::Closed).ok();
        }
    }

    /// No code panics while it holds the lock, so that a poisoned table is still whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests of several clients, or of one that cannot be reached, are open.
struct Several;

/// A request and its caller.
type CallOf<'a> = (u64, &'a Arc<dyn Caller>);

/// The newest request of the only client that has made any of `entries`.
fn only_client<'a>(
    entries: impl Iterator<Item = (&'a u64, &'a Entry)>,
) -> Result<Option<CallOf<'a>>, Several> {
    let mut newest: Option<CallOf<'a>> = None;
    let mut has_stranger = false;
    for (id, entry) in entries {
        match &entry.owner {
            Owner::Us | Owner::Onlooker => {}
            Owner::Stranger => has_stranger = true,
            Owner::Caller(caller) => match newest {
                Some((_, other)) if other.client() != caller.client() => return Err(Several),
                Some((other, _)) if other > *id => {}
                _ => newest = Some((*id, caller)),
            },
        }
    }
    if has_stranger { Err(Several) } else { Ok(newest) }
}

/// A call that waits for its user is taken to make no further request: without that, one user who
/// is away would keep the requests of all other clients waiting.
fn addressee_among_several(entries: &HashMap<u64, Entry>) -> Addressee {
    let is_working = |(_, entry): &(&u64, &Entry)| entry.input.open == 0;
    match only_client(entries.iter().filter(is_working)) {
        Ok(Some((id, caller))) if is_caused_by_release(entries) => {
            Addressee::Client { call: Some(id), caller: Arc::clone(caller) }
        }
        // Several clients at once are what the server is configured for, unless one of them is
        // there only because its call released its slot.
        _ if is_caused_by_release(entries) => Addressee::Uncertain,
        _ => Addressee::Nobody,
    }
}

/// Whether requests of several clients are open only because one has released its slot.
fn is_caused_by_release(entries: &HashMap<u64, Entry>) -> bool {
    let (mut has_released, mut with_slot) = (false, HashSet::new());
    for entry in entries.values() {
        let client = match &entry.owner {
            Owner::Us | Owner::Onlooker => continue,
            Owner::Stranger => None,
            Owner::Caller(caller) => Some(caller.client()),
        };
        match entry.slot {
            Some(_) => drop(with_slot.insert(client)),
            None => has_released |= client.is_some(),
        }
    }
    has_released && with_slot.len() < 2
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("waiting", &self.len()).finish_non_exhaustive()
    }
}
