//! What the peer has asked and nobody has answered yet.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;

use crate::caller::{Caller, ClientId};

/// How many questions of one peer may be open at once.
const LIMIT: usize = 256;

struct Open {
    /// The peer's own id, as JSON.
    peer_id: Bytes,
    client: ClientId,
    /// The request of ours during which it was asked.
    call: Option<u64>,
    caller: Weak<dyn Caller>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    open: HashMap<u64, Open>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Questions {
    state: Mutex<State>,
}

impl Questions {
    /// Takes a question for `caller` in and names it; none where too many are open.
    pub(crate) fn open(
        &self,
        peer_id: Bytes,
        client: ClientId,
        call: Option<u64>,
        caller: Weak<dyn Caller>,
    ) -> Option<u64> {
        let mut state = self.lock();
        if state.open.len() >= LIMIT {
            return None;
        }
        state.last_id += 1;
        let id = state.last_id;
        state.open.insert(id, Open { peer_id, client, call, caller });
        Some(id)
    }

    /// Takes a question out, with its client and call; none where it was taken out before.
    pub(crate) fn settle(&self, id: u64) -> Option<(ClientId, Option<u64>)> {
        self.lock().open.remove(&id).map(|open| (open.client, open.call))
    }

    /// The peer takes its request back: its client and call, where it was open.
    pub(crate) fn withdraw(&self, peer_id: &[u8]) -> Option<(ClientId, Option<u64>)> {
        let withdrawn = {
            let mut state = self.lock();
            let id = state.open.iter().find(|(_, open)| open.peer_id == peer_id).map(|(id, _)| *id);
            id.and_then(|id| Some((id, state.open.remove(&id)?)))
        };
        let (id, open) = withdrawn?;
        if let Some(caller) = open.caller.upgrade() {
            caller.withdrawn(id);
        }
        Some((open.client, open.call))
    }

    /// Whether `client` has yet to answer something.
    pub(crate) fn waits_for(&self, client: ClientId) -> bool {
        self.lock().open.values().any(|open| open.client == client)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").field("open", &self.lock().open.len()).finish_non_exhaustive()
    }
}
