//! The lists of all servers, as they were last known, and what they are joined. A server that
//! starts, restarts or is slow is offered with what it last had; one that is off, or failed,
//! is not offered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use cofer_model::{Charge, ServerId, Status};
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
    knowledge: Knowledge,
}

/// How its lists came to be what they are.
#[derive(PartialEq, Eq)]
enum Knowledge {
    /// It is going to be asked.
    NotYet,
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
            self.lock().values_mut().filter(|entry| entry.is_awaited()).for_each(Entry::pass_over);
        }
        self.now()
    }

    /// All that is known once the servers with such names were asked, however long they take to
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

    /// Takes a server in; false where its lists are known already.
    pub(super) fn enter(&self, handle: &ServerHandle) -> bool {
        let knowledge = Knowledge::NotYet;
        let new = || Entry { handle: handle.clone(), lists: Lists::default(), knowledge };
        self.lock().entry(handle.id()).or_insert_with(new).knowledge != Knowledge::Asked
    }

    /// Keeps only these servers.
    pub(super) fn retain(&self, is_there: impl Fn(ServerId) -> bool) {
        self.lock().retain(|id, _| is_there(*id));
    }

    /// Takes a list in, which releases its `charge` when it is replaced.
    pub(super) fn put(
        &self,
        handle: &ServerHandle,
        kind: ListKind,
        (items, charge): (Vec<Listed>, Option<Charge>),
    ) {
        if let Some(entry) = self.lock().get_mut(&handle.id()) {
            entry.lists.set(kind, items, charge);
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
            && is_meant(self.handle.spec().name.as_str())
    }

    fn patience(&self) -> Duration {
        self.handle.spec().call_timeout()
    }

    fn pass_over(&mut self) {
        self.knowledge = Knowledge::NotInTime;
    }

    fn part(&self) -> Option<Part> {
        let part =
            || Part { id: self.handle.id(), spec: self.handle.spec(), lists: self.lists.clone() };
        self.is_offered().then(part)
    }
}
