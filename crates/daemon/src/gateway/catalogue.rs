//! The lists of all servers, as they were last known, and what they are joined. A server that
//! starts, restarts or is slow is offered with what it last had; one that is off, or failed,
//! is not offered.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use cofer_model::{ServerId, Status};
use cofer_supervisor::ServerHandle;
use tokio::sync::watch;

use super::joined::{Joined, Part};
use super::lists::{ListKind, Listed, Lists};

/// How long somebody who asks for a list waits for servers whose lists are not known yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Catalogue {
    joined: ArcSwap<Joined>,
    entries: Mutex<HashMap<ServerId, Entry>>,
    /// Whether anybody has ever asked, and how often something changed since.
    wanted: watch::Sender<bool>,
    changes: watch::Sender<u64>,
}

struct Entry {
    handle: ServerHandle,
    lists: Lists,
    /// Whether it was asked, or is not waited for any more.
    is_known: bool,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            joined: ArcSwap::from_pointee(Joined::build(&[])),
            entries: Mutex::default(),
            wanted: watch::Sender::new(false),
            changes: watch::Sender::new(0),
        }
    }
}

impl Catalogue {
    /// All that is known now.
    pub(super) fn now(&self) -> Arc<Joined> {
        self.joined.load_full()
    }

    /// Ends when somebody wants to see it.
    pub(super) async fn wanted(&self) {
        // The sender lives as long as this does.
        self.wanted.subscribe().wait_for(|wanted| *wanted).await.map(drop).unwrap_or_default();
    }

    /// Whether somebody ever wanted to see it.
    pub(super) fn is_wanted(&self) -> bool {
        *self.wanted.borrow()
    }

    /// Says that somebody wants to see it; true for the first one.
    pub(super) fn want(&self) -> bool {
        !self.wanted.send_replace(true)
    }

    /// All that is known once every server was asked, or did not answer for a while.
    pub(super) async fn complete(&self) -> Arc<Joined> {
        let mut changes = self.changes.subscribe();
        let all_known = changes.wait_for(|_| !self.lock().values().any(Entry::is_awaited));
        if tokio::time::timeout(PATIENCE, all_known).await.is_err() {
            // Those are not waited for again until they are asked again.
            self.lock().values_mut().for_each(|entry| entry.is_known = true);
        }
        self.now()
    }

    /// Takes a server in; false where it was in already.
    pub(super) fn enter(&self, handle: &ServerHandle) -> bool {
        let entry = Entry { handle: handle.clone(), lists: Lists::default(), is_known: false };
        match self.lock().entry(handle.id()) {
            MapEntry::Occupied(_) => false,
            MapEntry::Vacant(vacant) => {
                vacant.insert(entry);
                true
            }
        }
    }

    /// Keeps only these servers.
    pub(super) fn retain(&self, is_there: impl Fn(ServerId) -> bool) {
        self.lock().retain(|id, _| is_there(*id));
    }

    pub(super) fn put(&self, handle: &ServerHandle, kind: ListKind, items: Vec<Listed>) {
        if let Some(entry) = self.lock().get_mut(&handle.id()) {
            entry.lists.set(kind, items);
        }
    }

    /// A server was asked, whatever came of it.
    pub(super) fn settled(&self, handle: &ServerHandle) {
        if let Some(entry) = self.lock().get_mut(&handle.id()) {
            entry.is_known = true;
        }
    }

    /// Joins what is known anew, and tells which lists are not what they were.
    pub(super) fn rejoin(&self) -> Vec<ListKind> {
        // Held until the result is stored: an older one must not replace a newer one.
        let entries = self.lock();
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

    /// Whether a server of this name may have tools that are not known yet.
    pub(super) fn may_know(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let entries = self.lock();
        entries
            .values()
            .any(|entry| entry.is_awaited() && is_meant(entry.handle.spec().name.as_str()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is_offered(&self) -> bool {
        let off = [Status::Error, Status::Stopped];
        self.handle.spec().enabled && !off.contains(&self.handle.snapshot().status)
    }

    fn is_awaited(&self) -> bool {
        !self.is_known && self.is_offered()
    }

    fn part(&self) -> Option<Part> {
        let part =
            || Part { id: self.handle.id(), spec: self.handle.spec(), lists: self.lists.clone() };
        self.is_offered().then(part)
    }
}
