//! The lists of all servers, as they were last known, and what they are joined. A server that
//! starts, restarts or is slow is offered with what it last had, also in an earlier daemon
//! (`stored_lists`); one that is off, or failed, is not offered. Lists of another configuration
//! of the server are dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use cofer_model::{CallSource, Charge, PeerInfo, ServerId, Status};
use cofer_supervisor::ServerHandle;
use tokio::sync::watch;

use super::joined::{Joined, Part};
use super::lists::{List, ListKind, Lists};

/// How long somebody who asks for a list waits for servers whose lists are not known yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Catalogue {
    joined: ArcSwap<Joined>,
    entries: Mutex<HashMap<ServerId, Entry>>,
    /// Counts how often something changed.
    changes: watch::Sender<u64>,
}

struct Entry {
    handle: ServerHandle,
    known: Known,
    knowledge: Knowledge,
    /// Counts the changes of `known`, and those that the store has.
    changes: u64,
    saved: u64,
}

/// All that is known of one server. A cheap clone.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// The digest of the configuration that it ran with.
    pub(super) digest: String,
    pub(super) peer: Option<Arc<PeerInfo>>,
    pub(super) lists: Lists,
    /// The memory of a peer that was read from the store: the peer of a running server is its driver's.
    pub(super) charge: Option<Arc<Charge>>,
}

/// The effect of a list that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It is equal to the known one, or of another configuration.
    Ignored,
    New,
    Replaced,
}

/// How its lists came to be what they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    /// It is going to be asked.
    NotYet,
    /// It is going to be asked, and was by an earlier daemon.
    Stored,
    /// It was not asked in time: who wants all lists waits for it no more.
    NotInTime,
    /// It was asked, whatever it answered.
    Asked,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            joined: ArcSwap::from_pointee(Joined::build(&[])),
            entries: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl Catalogue {
    /// All that is known now.
    pub(super) fn now(&self) -> Arc<Joined> {
        self.joined.load_full()
    }

    /// All that is known once every server was asked, or did not answer for a while.
    pub(super) async fn complete(&self) -> Arc<Joined> {
        let mut changes = self.changes.subscribe();
        let all_known = changes.wait_for(|_| !self.lock().values().any(Entry::is_awaited));
        if tokio::time::timeout(PATIENCE, all_known).await.is_err() {
            self.lock().values_mut().filter(|entry| entry.is_awaited()).for_each(Entry::pass_over);
        }
        self.now()
    }

    /// All that is known once the servers with such prefixes were asked, however long they take to
    /// start, within what a call may take.
    pub(super) async fn complete_for(&self, is_meant: impl Fn(&str) -> bool) -> Arc<Joined> {
        let mut changes = self.changes.subscribe();
        let patience = self
            .lock()
            .values()
            .filter(|entry| entry.is_unasked(&is_meant))
            .map(Entry::patience)
            .max();
        if let Some(patience) = patience {
            let known = changes
                .wait_for(|_| !self.lock().values().any(|entry| entry.is_unasked(&is_meant)));
            // What is known by then is the answer.
            drop(tokio::time::timeout(patience, known).await);
        }
        self.now()
    }

    /// Takes a server in, and drops the lists of another configuration; false if the server was
    /// asked for its lists.
    pub(super) fn enter(&self, handle: &ServerHandle) -> bool {
        let digest = handle.spec().run_digest();
        let mut entries = self.lock();
        let entry =
            entries.entry(handle.id()).or_insert_with(|| Entry::new(handle, Known::default()));
        if entry.known.digest != digest {
            *entry = Entry::new(handle, Known { digest, ..Known::default() });
        }
        entry.knowledge != Knowledge::Asked
    }

    /// Takes a server in with what an earlier daemon knew of it.
    pub(super) fn restore(&self, handle: &ServerHandle, known: Known) {
        let entry = Entry { knowledge: Knowledge::Stored, ..Entry::new(handle, known) };
        self.lock().entry(handle.id()).or_insert(entry);
    }

    /// Keeps only these servers.
    pub(super) fn retain(&self, is_there: impl Fn(ServerId) -> bool) {
        self.lock().retain(|id, _| is_there(*id));
    }

    /// Takes a list in that was read under the configuration `digest`. An equal list stays as it is.
    pub(super) fn put(&self, id: ServerId, digest: &str, kind: ListKind, list: List) -> Put {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&id).filter(|entry| entry.known.digest == digest) else {
            return Put::Ignored;
        };
        let before = entry.known.lists.known(kind);
        if before.is_some_and(|before| before.raw_items().eq(list.raw_items())) {
            return Put::Ignored;
        }
        let put = if before.is_some() { Put::Replaced } else { Put::New };
        entry.known.lists.set(kind, list);
        entry.changes += 1;
        put
    }

    /// Takes in whom the server said it is.
    pub(super) fn meet(&self, id: ServerId, digest: &str, peer: Arc<PeerInfo>) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(&id).filter(|entry| entry.known.digest == digest) {
            entry.changes += u64::from(entry.known.peer.as_ref() != Some(&peer));
            entry.known.peer = Some(peer);
            entry.known.charge = None;
        }
    }

    /// All that is known of a server that is offered, and whether it was asked by this daemon. None
    /// if its configuration was changed and `enter` was not called since.
    pub(super) fn known(&self, id: ServerId) -> Option<(Known, bool)> {
        let entries = self.lock();
        let entry = entries.get(&id).filter(|entry| entry.is_offered())?;
        if entry.known.digest != entry.handle.spec().run_digest() {
            return None;
        }
        Some((entry.known.clone(), entry.knowledge == Knowledge::Asked))
    }

    /// The servers of which the store has not the last lists.
    pub(super) fn unsaved_servers(&self) -> Vec<ServerId> {
        let entries = self.lock();
        entries.iter().filter(|(_, entry)| entry.is_unsaved()).map(|(id, _)| *id).collect()
    }

    /// All that is known of a server if the store has something else, with the count of changes.
    pub(super) fn unsaved(&self, id: ServerId) -> Option<(Known, u64)> {
        let entries = self.lock();
        let entry = entries.get(&id).filter(|entry| entry.is_unsaved())?;
        Some((entry.known.clone(), entry.changes))
    }

    /// The store has the lists of a server as they were after so many changes.
    pub(super) fn set_saved(&self, id: ServerId, changes: u64) {
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.saved = changes;
        }
    }

    /// Joins what is known anew, now that `asked` was asked, and tells which lists are not what
    /// they were.
    pub(super) fn rejoin(&self, asked: Option<ServerId>) -> Vec<ListKind> {
        // Held until the result is stored: an older one must not replace a newer one, and who
        // sees that a server was asked finds its lists joined.
        let mut entries = self.lock();
        if let Some(entry) = asked.and_then(|id| entries.get_mut(&id)) {
            entry.knowledge = Knowledge::Asked;
        }
        let mut parts: Vec<Part> = entries.values().filter_map(Entry::part).collect();
        parts.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        let next = Arc::new(Joined::build(&parts));
        let before = self.joined.swap(Arc::clone(&next));
        drop(entries);
        for (server, name) in next.clashes.difference(&before.clashes) {
            tracing::info!(target: "MCP", server, name, "another server offers the same: that one's is offered");
        }
        self.changes.send_modify(|count| *count += 1);
        next.differs(&before)
    }

    /// Whether the server is in.
    pub(super) fn has(&self, id: ServerId) -> bool {
        self.lock().contains_key(&id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn new(handle: &ServerHandle, known: Known) -> Self {
        let handle = handle.clone();
        Self { handle, known, knowledge: Knowledge::NotYet, changes: 0, saved: 0 }
    }

    fn is_unsaved(&self) -> bool {
        self.changes != self.saved && self.known.peer.is_some()
    }

    fn is_offered(&self) -> bool {
        let off = [Status::Error, Status::Stopped];
        self.handle.spec().enabled && !off.contains(&self.handle.snapshot().status)
    }

    fn is_awaited(&self) -> bool {
        self.knowledge == Knowledge::NotYet && self.is_offered()
    }

    fn is_unasked(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        self.knowledge != Knowledge::Asked
            && self.is_offered()
            && is_meant(self.handle.spec().joined_prefix())
    }

    fn patience(&self) -> Duration {
        self.handle.spec().call_timeout(CallSource::Gateway)
    }

    fn pass_over(&mut self) {
        self.knowledge = Knowledge::NotInTime;
    }

    fn part(&self) -> Option<Part> {
        let (id, spec) = (self.handle.id(), self.handle.spec());
        self.is_offered().then(|| Part { id, spec, lists: self.known.lists.clone() })
    }
}
