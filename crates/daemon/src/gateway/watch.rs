//! Hears one server for all of its clients: passes on what it says of its own accord to those
//! whom it concerns, and tells it what they want to hear together: the lowest level of log
//! messages, and each resource that somebody watches, once. Both are told again to a server
//! that was restarted.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::http::MirroredArguments;
use cofer_mcp::{CallError, Era, Listing};
use cofer_supervisor::{CallFailure, Notice, ServerHandle};
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::catalogue::Put;
use super::level::Level;
use super::lists::{List, ListKind, catalogue_bytes};
use super::rpc::{Answer, Fault, METHOD_NOT_FOUND};
use super::upstream::Upstream;
use super::watch_stateless::StatelessWatch;

/// How long a server that is starting is waited for before its lists are asked.
const START: Duration = Duration::from_secs(24 * 60 * 60);
/// The pause before a subscription that a server ended is made again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
/// All lists, for a server that is new or was restarted.
const ALL_LISTS: u8 = 0b1111;
/// Only whether the server is there.
const STATUS: u8 = 0b1_0000;
/// The lists may differ from those of an earlier process, which no notification announces.
const RESTARTED: u8 = 0b10_0000;

/// See the module.
pub(super) struct Watcher {
    pub(super) handle: ServerHandle,
    state: Mutex<State>,
    /// One change of what the server is told at a time.
    changing: tokio::sync::Mutex<()>,
    /// The lists that are to be asked again.
    dirty: AtomicU8,
    refresh: Notify,
    /// How often lists were marked, and up to which mark they are known.
    marks: AtomicU64,
    known: AtomicU64,
    /// What a server of the newer era is to tell has changed.
    relisten: Notify,
    /// The arguments of its tools that are carried by headers.
    pub(super) mirrored: MirroredArguments,
    /// Subscriptions at its second connection.
    pub(super) stateless: StatelessWatch,
    pub(super) ended: CancellationToken,
}

#[derive(Default)]
struct State {
    levels: HashMap<u64, Level>,
    level: Option<Level>,
    watched: HashMap<String, HashSet<u64>>,
}

impl Watcher {
    pub(super) fn new(handle: ServerHandle) -> Self {
        Self {
            handle,
            state: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            dirty: AtomicU8::new(0),
            refresh: Notify::new(),
            marks: AtomicU64::new(0),
            known: AtomicU64::new(0),
            relisten: Notify::new(),
            mirrored: MirroredArguments::default(),
            stateless: StatelessWatch::default(),
            ended: CancellationToken::new(),
        }
    }

    /// Runs until it is ended.
    pub(super) async fn run(self: Arc<Self>, gateway: Gateway) {
        let notices = self.handle.notices();
        let work = async {
            tokio::join!(
                self.hear(notices, &gateway),
                self.keep_lists(&gateway),
                self.listen(),
                self.stateless.run(&self.handle, &gateway),
            );
        };
        self.ended.run_until_cancelled(work).await;
    }

    /// Asks for all lists again.
    pub(super) fn refresh_all(&self) {
        self.mark(ALL_LISTS | RESTARTED);
    }

    /// Whether the server announced no change since its lists were read.
    pub(super) fn is_current(&self) -> bool {
        self.known.load(Ordering::Acquire) == self.marks.load(Ordering::Acquire)
    }

    /// The lowest level that somebody wants to hear; none while nobody asked for any.
    pub(super) fn level(&self) -> Option<Level> {
        self.lock().level
    }

    /// Whom an update of this resource concerns.
    pub(super) fn watchers_of(&self, uri: &str) -> HashSet<u64> {
        let state = self.lock();
        let watched = state.watched.iter().filter(|(watched, _)| is_within(uri, watched));
        watched.flat_map(|(_, clients)| clients.iter().copied()).collect()
    }

    /// A client wants to hear log messages from this level on, or none any more.
    pub(super) async fn set_level(&self, client: u64, level: Option<Level>) -> Result<(), Fault> {
        let _one_at_a_time = self.changing.lock().await;
        let upstream = Upstream::shared(self.handle.clone());
        let era = upstream.ready().await?;
        let wanted = {
            let mut state = self.lock();
            match level {
                Some(level) => drop(state.levels.insert(client, level)),
                None => drop(state.levels.remove(&client)),
            }
            state.levels.values().min().copied()
        };
        let Some(wanted) = wanted.filter(|wanted| self.level() != Some(*wanted)) else {
            return Ok(());
        };
        if era == Era::Initialize {
            tell_level(&upstream, wanted).await?;
        }
        self.lock().level = Some(wanted);
        Ok(())
    }

    /// A client wants to hear of a resource's changes.
    pub(super) async fn subscribe(&self, client: u64, uri: &str) -> Answer {
        let _one_at_a_time = self.changing.lock().await;
        let upstream = Upstream::shared(self.handle.clone());
        let era = upstream.ready().await?;
        if self.lock().watched.contains_key(uri) {
            self.lock().watched.entry(uri.to_owned()).or_default().insert(client);
            return Ok(Bytes::from_static(b"{}"));
        }
        let answer = match era {
            Era::Initialize => upstream.call("resources/subscribe", uri_params(uri), None).await?,
            Era::Discover => Bytes::from_static(b"{}"),
        };
        self.lock().watched.entry(uri.to_owned()).or_default().insert(client);
        self.relisten.notify_one();
        Ok(answer)
    }

    /// A client does not want to any more.
    pub(super) async fn unsubscribe(&self, client: u64, uri: &str) -> Answer {
        let _one_at_a_time = self.changing.lock().await;
        if !self.forget(client, uri) {
            return Ok(Bytes::from_static(b"{}"));
        }
        self.relisten.notify_one();
        let upstream = Upstream::shared(self.handle.clone());
        match upstream.ready().await? {
            Era::Initialize => upstream.call("resources/unsubscribe", uri_params(uri), None).await,
            Era::Discover => Ok(Bytes::from_static(b"{}")),
        }
    }

    /// Whether the client was the last one to watch the resource.
    fn forget(&self, client: u64, uri: &str) -> bool {
        let mut state = self.lock();
        let Some(clients) = state.watched.get_mut(uri) else {
            return false;
        };
        clients.remove(&client);
        let is_last = clients.is_empty();
        if is_last {
            state.watched.remove(uri);
        }
        is_last
    }

    /// Whether it wants to hear anything for the client.
    pub(super) fn knows(&self, client: u64) -> bool {
        let state = self.lock();
        state.levels.contains_key(&client)
            || state.watched.values().any(|clients| clients.contains(&client))
            || self.stateless.knows(client)
    }

    /// A client is gone.
    pub(super) async fn forget_client(&self, client: u64) {
        self.stateless.forget_client(client);
        let uris: Vec<String> = {
            let mut state = self.lock();
            state.levels.remove(&client);
            let watched = state.watched.iter().filter(|(_, clients)| clients.contains(&client));
            watched.map(|(uri, _)| uri.clone()).collect()
        };
        for uri in uris {
            if let Err(fault) = self.unsubscribe(client, &uri).await {
                tracing::debug!(uri, code = fault.code(), "a subscription could not be ended");
            }
        }
    }

    async fn hear(
        &self,
        mut notices: tokio::sync::broadcast::Receiver<Arc<Notice>>,
        gateway: &Gateway,
    ) {
        loop {
            match notices.recv().await {
                Ok(notice) => match &*notice {
                    Notice::Said { method, params } => {
                        self.mark_changed(method);
                        gateway.said(self, method, params.as_ref());
                    }
                    Notice::Up => {
                        self.refresh_all();
                        self.relisten.notify_one();
                        gateway.spawn_restore(self.handle.id());
                    }
                    Notice::Down => self.mark(STATUS),
                },
                // What was missed may have been that something changed.
                Err(RecvError::Lagged(_)) => {
                    self.mark(ALL_LISTS);
                    for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                        gateway.said(self, kind.changed(), None);
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Tells a server that was restarted what it was told before.
    pub(super) async fn restore(&self) {
        let _one_at_a_time = self.changing.lock().await;
        let upstream = Upstream::shared(self.handle.clone());
        if !matches!(upstream.ready().await, Ok(Era::Initialize)) {
            return;
        }
        let (level, uris) = {
            let state = self.lock();
            (state.level, state.watched.keys().cloned().collect::<Vec<_>>())
        };
        if let Some(level) = level
            && let Err(fault) = tell_level(&upstream, level).await
        {
            tracing::debug!(code = fault.code(), "a restarted server did not take its log level");
        }
        for uri in uris {
            let again = upstream.call("resources/subscribe", uri_params(&uri), None).await;
            if let Err(fault) = again {
                tracing::warn!(target: "MCP", server = %upstream.name(), uri, code = fault.code(), "a restarted server does not take a subscription again");
            }
        }
    }

    fn mark_changed(&self, method: &str) {
        for kind in ListKind::ALL {
            if kind.changed() == method {
                self.mark(kind.bit());
            }
        }
    }

    fn mark(&self, bits: u8) {
        self.marks.fetch_add(1, Ordering::Release);
        self.dirty.fetch_or(bits, Ordering::Relaxed);
        self.refresh.notify_one();
    }

    /// Keeps the catalogue's lists of this server as the server has them, and the store's.
    async fn keep_lists(&self, gateway: &Gateway) {
        let id = self.handle.id();
        loop {
            self.refresh.notified().await;
            let marks = self.marks.load(Ordering::Acquire);
            let bits = self.dirty.swap(0, Ordering::Relaxed);
            if bits & ALL_LISTS == 0 {
                self.handle.settled(START).await;
                gateway.rejoin(None);
                self.known.store(marks, Ordering::Release);
                continue;
            }
            let is_there = self.handle.ready(START).await.is_ok();
            if is_there {
                self.read_lists(gateway, bits).await;
            }
            gateway.rejoin(is_there.then_some(id));
            self.known.store(marks, Ordering::Release);
            gateway.save_lists(id).await;
        }
    }

    async fn read_lists(&self, gateway: &Gateway, bits: u8) {
        let (id, digest) = (self.handle.id(), self.handle.spec().run_digest());
        let mut changed: Vec<&str> = Vec::new();
        for kind in ListKind::ALL.into_iter().filter(|kind| bits & kind.bit() != 0) {
            if let Some(list) = self.fetch(kind).await
                && gateway.catalogue().put(id, &digest, kind, list) == Put::Replaced
                && !changed.contains(&kind.changed())
            {
                changed.push(kind.changed());
            }
        }
        if let Some(peer) = self.handle.peer() {
            gateway.catalogue().meet(id, &digest, peer);
        }
        if bits & RESTARTED != 0 {
            for method in changed {
                gateway.said(self, method, None);
            }
        }
    }

    async fn fetch(&self, kind: ListKind) -> Option<List> {
        // The word of who the server is comes a moment after the first call gets through.
        let peer = self.handle.settled(START).await.peer.clone()?;
        if peer.capabilities.get(kind.capability()).is_none() {
            return Some(List::default());
        }
        match self.handle.list(kind.method(), kind.key()).await {
            Ok(listing) => self.accept(kind, listing),
            // Templates have no capability of their own, so that a server may well not know them.
            Err(CallFailure::Call(CallError::Rpc(error))) if error.code == METHOD_NOT_FOUND => {
                Some(List::default())
            }
            Err(error) => {
                let server = self.handle.spec().name.to_string();
                tracing::warn!(target: "MCP", server, list = kind.method(), %error, "a server's list could not be had; what it last was is offered");
                None
            }
        }
    }

    /// The list as the catalogue has it; none if it has no room in the server's memory.
    pub(super) fn accept(&self, kind: ListKind, listing: Listing) -> Option<List> {
        let Listing { items, mut charge } = listing;
        if !charge.resize(catalogue_bytes(&items)) {
            self.handle.memory().count_loss();
            tracing::warn!(target: "MCP", server = %self.handle.spec().name, list = kind.method(), "a server's list has no room in its memory; what it last was is offered");
            return None;
        }
        if kind == ListKind::Tools {
            self.mirrored.learn_items(&items);
        }
        Some(List::read(kind, items, Some(charge)))
    }

    /// A server of the newer era tells only what it was asked to tell.
    async fn listen(&self) {
        loop {
            self.relisten.notified().await;
            while self.handle.era() == Some(Era::Discover) {
                let uris: Vec<String> = self.lock().watched.keys().cloned().collect();
                let filter = json!({"toolsListChanged": true, "promptsListChanged": true,
                    "resourcesListChanged": true, "resourceSubscriptions": uris});
                let params = Bytes::from(json!({"notifications": filter}).to_string());
                tokio::select! {
                    ended = self.handle.listen(params) => {
                        tracing::debug!(ended = ended.is_ok(), "a server ended its subscription");
                        tokio::time::sleep(LISTEN_AGAIN).await;
                    }
                    () = self.relisten.notified() => {}
                }
            }
        }
    }

    /// Begins to listen to a server that is up already.
    pub(super) fn begin(&self) {
        self.relisten.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an update of `uri` is one of the `watched` resource, or of one below it.
pub(super) fn is_within(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn tell_level(upstream: &Upstream, level: Level) -> Answer {
    let params = Bytes::from(json!({"level": level.name()}).to_string());
    upstream.call("logging/setLevel", Some(params), None).await
}

fn uri_params(uri: &str) -> Option<Bytes> {
    Some(Bytes::from(json!({"uri": uri}).to_string()))
}
