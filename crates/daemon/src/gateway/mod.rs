//! The gateway: hosted servers for MCP clients, over Streamable HTTP, in both eras of the
//! protocol. `/mcp` is all servers joined, `/mcp/NAME` is one of them, whole.
//!
//! ```text
//!  http ──► legacy (sessions)  ─┐             ┌─► serve_one ─┐
//!       └─► modern (stateless) ─┴─► drive ──► ┤              ├─► forward ──► upstream
//!                                   running   └─► serve_all ─┘   (eras meet)
//!                                   ▲    catalogue ◄── watch ◄── what servers say unasked
//!           stream ◄── session ◄────┴──────────────────┘
//! ```
//! A request is a future that is driven until it has its answer; what the server says of it
//! meanwhile waits in its `running`. The answer is plain JSON where it comes at once and alone,
//! and else the last event of a stream.

mod asker;
mod capabilities;
mod catalogue;
mod charged;
mod door;
mod drive;
mod forward;
mod headers;
mod held;
mod hops;
mod http;
mod joined;
mod known_lists;
mod legacy;
mod level;
mod listen;
mod lists;
mod modern;
mod open;
mod requests;
mod resource_tools;
mod rounds;
mod rpc;
mod running;
mod serve;
mod serve_all;
mod serve_one;
mod serve_tasks;
mod session;
mod sessions;
mod stored_lists;
mod stream;
mod task_ids;
mod ticker;
mod ui_uris;
mod upstream;
mod urls;
mod watch;
mod watch_stateless;

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::ClientId;
use cofer_model::{Budget, ServerId};
use cofer_store::Store;
use cofer_supervisor::{Memory, ServerHandle, Supervisor};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use catalogue::Catalogue;
use charged::Charged;
use held::HeldCalls;
use level::Level;
use listen::Listeners;
use rpc::text_member;
use session::Session;
use sessions::Sessions;
use ticker::Ticker;
use watch::Watcher;

pub(crate) use http::{answer, owns, respond_refused, trace_parent};
pub(crate) use lists::{List, ListKind};

/// How often is looked for what nobody uses any more.
const SWEEP: Duration = Duration::from_secs(30);

/// The status of a task changed (2025-11-25).
const TASK_STATUS: &str = "notifications/tasks/status";

/// See the module. A cheap clone.
#[derive(Clone)]
pub(crate) struct Gateway(Arc<Parts>);

struct Parts {
    supervisor: Supervisor,
    store: Arc<dyn Store>,
    /// One write of lists at a time: each is a copy of them.
    saving: tokio::sync::Mutex<()>,
    /// By which other daemons recognise this one.
    daemon_id: Uuid,
    memory: Arc<Memory>,
    sessions: Sessions,
    listeners: Listeners,
    watchers: Mutex<HashMap<ServerId, Arc<Watcher>>>,
    catalogue: Catalogue,
    held: HeldCalls,
    tasks: TaskTracker,
    closing: CancellationToken,
    ticker: Ticker,
    last_client: AtomicU64,
}

impl Gateway {
    pub(crate) fn new(
        (supervisor, store): (Supervisor, Arc<dyn Store>),
        daemon_id: Uuid,
        memory: Arc<Memory>,
        closing: CancellationToken,
    ) -> Self {
        let tasks = TaskTracker::new();
        Self(Arc::new(Parts {
            ticker: Ticker::new(tasks.clone(), closing.clone()),
            supervisor,
            store,
            saving: tokio::sync::Mutex::default(),
            daemon_id,
            memory,
            sessions: Sessions::default(),
            listeners: Listeners::default(),
            watchers: Mutex::default(),
            catalogue: Catalogue::default(),
            held: HeldCalls::default(),
            tasks,
            closing,
            last_client: AtomicU64::new(0),
        }))
    }

    /// Follows the registrations and ends what nobody uses, until the daemon closes.
    pub(crate) async fn run(self, mut registrations: tokio::sync::watch::Receiver<u64>) {
        let parts = &*self.0;
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            tokio::select! {
                () = parts.closing.cancelled() => return,
                changed = registrations.changed() => match changed {
                    Ok(()) => self.reconcile(),
                    Err(_) => return,
                },
                _ = sweep.tick() => self.sweep(),
            }
        }
    }

    /// Ends the streams of those who only listen, and says so to them.
    pub(crate) fn say_goodbye(&self) {
        self.0.listeners.close(self.memory());
    }

    /// Ends every session; ends when nothing of them is left.
    pub(crate) async fn close(&self) {
        for session in self.0.sessions.all() {
            self.end_session(&session);
        }
        for (_, watcher) in self.watchers().drain() {
            watcher.ended.cancel();
        }
        self.0.held.clear();
        self.save_all_lists().await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    fn new_client(&self) -> ClientId {
        ClientId(self.0.last_client.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Hears what a server says from now on.
    fn watch(&self, handle: &ServerHandle) -> Arc<Watcher> {
        let mut watchers = self.watchers();
        if let Some(watcher) = watchers.get(&handle.id()) {
            return Arc::clone(watcher);
        }
        let watcher = Arc::new(Watcher::new(handle.clone()));
        watchers.insert(handle.id(), Arc::clone(&watcher));
        drop(watchers);
        watcher.begin();
        self.0.tasks.spawn(Arc::clone(&watcher).run(self.clone()));
        watcher
    }

    /// Takes every server that is registered by now into the catalogue.
    fn want_catalogue(&self) {
        let is_new = |handle: &ServerHandle| !self.0.catalogue.has(handle.id());
        if self.0.supervisor.list().iter().any(is_new) {
            self.reconcile();
        }
    }

    /// Brings what is watched in line with what is registered.
    fn reconcile(&self) {
        let is_there = |id| self.0.supervisor.get(id).is_some();
        self.watchers().retain(|id, watcher| {
            let stays = is_there(*id);
            if !stays {
                watcher.ended.cancel();
            }
            stays
        });
        for session in self.0.sessions.all() {
            if let door::Door::One(handle) = &session.opening.door
                && !is_there(handle.id())
            {
                self.end_session(&session);
            }
        }
        self.0.catalogue.retain(is_there);
        for handle in self.0.supervisor.list() {
            if self.0.catalogue.enter(&handle) {
                self.watch(&handle).refresh_all();
            }
        }
        self.rejoin(None);
    }

    /// Joins the lists anew, now that `asked` was asked for its own, and tells those at the door
    /// of all servers what changed.
    fn rejoin(&self, asked: Option<ServerId>) {
        let mut told: Vec<&str> = Vec::new();
        for kind in self.0.catalogue.rejoin(asked) {
            if told.contains(&kind.changed()) {
                continue;
            }
            told.push(kind.changed());
            if let Some(message) = Charged::notification(self.memory(), kind.changed(), None) {
                self.0.sessions.for_each(|session| {
                    if session.opening.door.is_all() {
                        session.tell(&message);
                    }
                });
            }
            self.0.listeners.list_changed(self.memory(), None, kind);
        }
    }

    /// Passes on what a server says of its own accord.
    fn said(&self, watcher: &Watcher, method: &str, params: Option<&Bytes>) {
        let id = watcher.handle.id();
        let notification = || {
            Charged::notification(watcher.handle.memory(), method, params.map(|params| &params[..]))
        };
        match method {
            "notifications/resources/updated" => {
                let Some(uri) = params.and_then(|params| text_member(params, "uri")) else {
                    return;
                };
                let clients = watcher.watchers_of(&uri);
                let spec = watcher.handle.spec();
                let joined = ui_uris::joined_uri(spec.joined_prefix(), &uri);
                let is_watching = |session: &Session| clients.contains(&session.opening.client.0);
                let is_all = |session: &Session| joined.is_some() && session.opening.door.is_all();
                self.tell_sessions(notification, |session| {
                    is_watching(session) && !is_all(session)
                });
                let joined_params = params
                    .and_then(|params| ui_uris::with_joined(params, "uri", spec.joined_prefix()));
                if let Some(params) = &joined_params {
                    let memory = watcher.handle.memory();
                    let notification = || Charged::notification(memory, method, Some(params));
                    self.tell_sessions(notification, |session| {
                        is_watching(session) && is_all(session)
                    });
                }
                let joined = joined.as_deref().unwrap_or(&uri);
                self.0.listeners.updated(watcher.handle.memory(), &clients, &uri, joined);
            }
            "notifications/message" => {
                let level = Level::of_message(params);
                self.tell_sessions(notification, |session| {
                    let is_at = session.opening.door.is_server(id) || session.opening.door.is_all();
                    is_at && hears(session, watcher.level(), level)
                });
            }
            // A client that was told to open a URL by a name at the door of all servers waits too;
            // those whom the id in it tells nothing ignore it.
            "notifications/elicitation/complete" => {
                self.tell_sessions(notification, |session| {
                    session.opening.door.is_server(id) || session.opening.door.is_all()
                });
            }
            TASK_STATUS => {
                self.tell_sessions(notification, |session| session.opening.door.is_server(id));
                let joined = || {
                    let params = params.map(|params| task_ids::join(params.clone(), id));
                    Charged::notification(watcher.handle.memory(), method, params.as_deref())
                };
                self.tell_sessions(joined, |session| session.opening.door.is_all());
            }
            "notifications/subscriptions/acknowledged" => {}
            _ => {
                self.tell_sessions(notification, |session| session.opening.door.is_server(id));
                // Clients of 2026-07-28 use the second connection, whose lists may differ.
                let is_second = watcher.handle.open_stateless().is_some();
                for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                    if kind.changed() == method && !is_second {
                        self.0.listeners.list_changed(watcher.handle.memory(), Some(id), kind);
                    }
                }
            }
        }
    }

    /// What the shared process says is nothing to a session that has one of its own. The message
    /// is made once, and only if a session wants it.
    fn tell_sessions(
        &self,
        notification: impl FnOnce() -> Option<Charged>,
        concerns: impl Fn(&Session) -> bool,
    ) {
        let message = LazyCell::new(notification);
        self.0.sessions.for_each(|session| {
            let has_own = !session.opening.door.is_all() && session.has_own();
            if !has_own
                && concerns(session)
                && let Some(message) = &*message
            {
                session.tell(message);
            }
        });
    }

    /// The budget of messages that are the gateway's own.
    fn memory(&self) -> &Arc<Budget> {
        self.0.memory.clients()
    }

    /// Tells a restarted server again what it was told, in a task of its own.
    fn spawn_restore(&self, id: ServerId) {
        let watcher = self.watchers().get(&id).cloned();
        if let Some(watcher) = watcher {
            self.0.tasks.spawn(async move {
                let ended = watcher.ended.clone();
                ended.run_until_cancelled(watcher.restore()).await;
            });
        }
    }

    fn end_session(&self, session: &Arc<Session>) {
        self.0.sessions.remove(&session.opening.id);
        session.end();
        self.forget_client(session.opening.client.0);
    }

    /// Ends what a client wanted to hear.
    fn forget_client(&self, client: u64) {
        let watchers: Vec<Arc<Watcher>> =
            self.watchers().values().filter(|watcher| watcher.knows(client)).cloned().collect();
        for watcher in watchers {
            self.0.tasks.spawn(async move {
                let ended = watcher.ended.clone();
                ended.run_until_cancelled(watcher.forget_client(client)).await;
            });
        }
    }

    fn sweep(&self) {
        for session in self.0.sessions.idle() {
            tracing::debug!(client = %session.opening.name, "a session ended: nobody used it");
            self.end_session(&session);
        }
        self.0.held.sweep();
    }

    fn watchers(&self) -> MutexGuard<'_, HashMap<ServerId, Arc<Watcher>>> {
        self.0.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a session hears a log message: one that asked for no level hears what the server
/// says by itself, and not what it says only because somebody else asked for more.
fn hears(session: &Session, asked_for: Option<Level>, level: Option<Level>) -> bool {
    let wanted = session.level().or(asked_for.map(|_| Level::INFO));
    match (wanted, level) {
        (Some(wanted), Some(level)) => level >= wanted,
        _ => true,
    }
}
