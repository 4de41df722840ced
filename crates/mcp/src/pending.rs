//! The requests that wait for an answer. The reader, the writer and every caller share this
//! table; each holds its lock only to look up or change one entry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use cofer_model::Budget;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::caller::{Caller, ClientId};
use crate::memory::build_charged;
use crate::message::RpcError;
use crate::params::with_token;

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The peer answered.
    Answer {
        outcome: Result<Bytes, RpcError>,
        written: Option<Instant>,
        /// When the answer's first bytes came.
        began: Instant,
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
    pub(crate) fn open(&self, owner: Owner) -> Option<Opened> {
        let (sender, reply) = oneshot::channel();
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.last_id += 1;
        let id = state.last_id;
        let entry = Entry { reply: sender, owner, progressed: None, token: None, written: None };
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

    /// Gives request `id` its answer; false where nobody waits for it any more.
    pub(crate) fn answer(&self, id: u64, outcome: Result<Bytes, RpcError>, began: Instant) -> bool {
        let entry = self.lock().entries.remove(&id);
        entry.is_some_and(|entry| {
            entry.reply.send(Reply::Answer { outcome, written: entry.written, began }).is_ok()
        })
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
        let mut newest: Option<(u64, &Arc<dyn Caller>)> = None;
        for (id, entry) in &state.entries {
            match &entry.owner {
                Owner::Us | Owner::Onlooker => {}
                Owner::Stranger => return None,
                Owner::Caller(caller) => match newest {
                    Some((_, other)) if other.client() != caller.client() => return None,
                    Some((other, _)) if other > *id => {}
                    _ => newest = Some((*id, caller)),
                },
            }
        }
        newest.map(|(_, caller)| caller).or(state.standing.as_ref()).cloned()
    }

    /// Takes request `id` out unanswered; false where it had been answered.
    pub(crate) fn abandon(&self, id: u64) -> bool {
        self.lock().entries.remove(&id).is_some()
    }

    /// Whether nobody but ourselves waits for an answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().entries.values().all(|entry| matches!(entry.owner, Owner::Us))
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

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("waiting", &self.len()).finish_non_exhaustive()
    }
}
