//! The work on one request, by the door at which it came in.
//!
//! Its future is boxed, and moved, for each request. What is seldom awaited on the way is boxed
//! by itself, so that a call of a tool does not carry the room for everything else.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use cofer_mcp::{Caller, MODERN};
use cofer_model::{Budget, ErrorKind, ServerId, ServerName, Sharing};
use cofer_supervisor::{Notice, ServerHandle};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::asker::{Asker, AskerEra};
use super::charged::Charged;
use super::door::Door;
use super::drive::Work;
use super::requests::message;
use super::rpc::{self, Answer, Fault};
use super::running::Running;
use super::session::Session;
use super::sessions::MAX_PRIVATE;
use super::upstream::Upstream;
use super::{Gateway, TASK_STATUS, serve_all, serve_one, task_ids};

/// The work on a request. It begins when it is first polled.
pub(super) fn work(gateway: &Gateway, asker: Asker, method: String, params: Option<Bytes>) -> Work {
    let gateway = gateway.clone();
    Box::pin(async move { serve(&gateway, &asker, &method, params).await })
}

async fn serve(gateway: &Gateway, asker: &Asker, method: &str, params: Option<Bytes>) -> Answer {
    let _vote = LevelVote::cast(gateway, asker).await;
    match &asker.door {
        Door::One(handle) => serve_one::serve(gateway, asker, handle, method, params).await,
        Door::All => Box::pin(serve_all::serve(gateway, asker, method, params)).await,
    }
}

/// What a request of the newer era wants to hear of the log, for as long as it runs.
struct LevelVote {
    gateway: Gateway,
    client: u64,
}

impl LevelVote {
    async fn cast(gateway: &Gateway, asker: &Asker) -> Option<Self> {
        let (AskerEra::Stateless(stateless), Door::One(handle)) = (&asker.era, &asker.door) else {
            return None;
        };
        let level = stateless.level?;
        // A server that speaks the stateless protocol reads the level in the request itself.
        if Box::pin(Upstream::shared(handle.clone()).stateless()).await.is_some() {
            return None;
        }
        let client = stateless.client.0;
        let vote = Self { gateway: gateway.clone(), client };
        let watcher = gateway.watch(handle);
        if let Err(fault) = Box::pin(watcher.set_level(client, Some(level))).await {
            tracing::debug!(code = fault.code(), "a server did not take a log level");
        }
        Some(vote)
    }
}

impl Drop for LevelVote {
    fn drop(&mut self) {
        self.gateway.forget_client(self.client);
    }
}

/// The process that serves this client: the shared one, or the one of its session.
pub(super) async fn upstream(
    gateway: &Gateway,
    asker: &Asker,
    handle: &ServerHandle,
) -> Result<Upstream, Fault> {
    gateway.0.held.make_way(handle.id());
    // Set once: a request goes to one server, or to several in turn of which the first counts.
    asker.running.server.set(handle.id()).unwrap_or_default();
    asker.running.memory.set(Arc::clone(handle.memory())).unwrap_or_default();
    let spec = handle.spec();
    match (&asker.era, spec.sharing) {
        (_, Sharing::Shared) => Ok(Upstream::shared(handle.clone())),
        (AskerEra::Session(session), Sharing::PerSession) => {
            Box::pin(own_upstream(gateway, session, handle)).await
        }
        (AskerEra::Stateless(_), Sharing::PerSession) => {
            let hint = "connect with an earlier revision, or register it with `sharing: shared`";
            Err(Fault::ours(ErrorKind::Conflict, no_session(&spec.name), Some(hint)))
        }
    }
}

/// Why a client without a session is not served by a server that wants one: the shared process
/// is what its owner did not want, and one for each request would forget what it was told.
pub(super) fn no_session(name: &ServerName) -> String {
    format!(
        "server “{name}” has a process for each session (`sharing: per_session`), and clients of {MODERN} have no sessions"
    )
}

async fn own_upstream(
    gateway: &Gateway,
    session: &Arc<Session>,
    handle: &ServerHandle,
) -> Result<Upstream, Fault> {
    let mut own = session.own.lock().await;
    if let Some(upstream) = own.get(&handle.id()).filter(|upstream| upstream.is_alive()) {
        return Ok(upstream.clone());
    }
    // Releases the slot of a process that has exited, before one for its successor is reserved.
    own.remove(&handle.id());
    let standing = Arc::new(Running::new(session.opening.client));
    let initialize = session.opening.initialize.clone();
    let upstream = open_own(gateway, handle, initialize, &standing).await?;
    if session.ended.is_cancelled() {
        return Err(Fault::new(rpc::INTERNAL, "the session has ended"));
    }
    own.insert(handle.id(), upstream.clone());
    drop(own);
    pass_on(gateway, session, &upstream, standing);
    Ok(upstream)
}

/// Starts a process for one client alone. What it asks while it works on no request of the
/// client's waits in `standing`.
pub(super) async fn open_own(
    gateway: &Gateway,
    handle: &ServerHandle,
    initialize: Bytes,
    standing: &Arc<Running>,
) -> Result<Upstream, Fault> {
    let name = handle.spec().name.to_string();
    if !handle.spec().enabled {
        return Err(Fault::not_connected(&name, handle.snapshot().status));
    }
    let Some(slot) = gateway.0.sessions.reserve_private() else {
        let message = format!("{MAX_PRIVATE} per-session server processes are running, the limit");
        let hint = "end a session, or register the server with `sharing: shared`";
        return Err(Fault::ours(ErrorKind::Overloaded, message, Some(hint)));
    };
    let caller = Arc::clone(standing) as Arc<dyn Caller>;
    match handle.open_private(initialize, Some(caller)).await {
        Ok(server) => Ok(Upstream::own(handle.clone(), server, slot)),
        Err(failure) => {
            let message =
                format!("server “{name}” did not start for this session: {}", failure.message);
            Err(Fault::ours(ErrorKind::NotConnected, message, Some(&failure.hint)))
        }
    }
}

/// Tells a session what its own process says of its own accord, and asks it what that asks
/// while it works on no request.
pub(super) fn pass_on(
    gateway: &Gateway,
    session: &Arc<Session>,
    upstream: &Upstream,
    standing: Arc<Running>,
) {
    let ended = session.ended.clone();
    let memory = Arc::clone(upstream.handle().memory());
    standing.memory.set(Arc::clone(&memory)).unwrap_or_default();
    let told =
        tell(Arc::downgrade(session), upstream.notices(), Arc::clone(&memory), upstream.id());
    let asked = ask(Arc::downgrade(session), standing, memory);
    let both = async move { tokio::join!(told, asked) };
    gateway.0.tasks.spawn(async move { ended.run_until_cancelled(both).await });
}

async fn tell(
    session: Weak<Session>,
    mut notices: broadcast::Receiver<Arc<Notice>>,
    memory: Arc<Budget>,
    server: ServerId,
) {
    loop {
        let notice = match notices.recv().await {
            Ok(notice) => notice,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let (Notice::Said { method, params }, Some(session)) = (&*notice, session.upgrade()) else {
            continue;
        };
        let is_all = session.opening.door.is_all();
        // At the door of all servers, what a list is comes from the shared process.
        if is_all && method.ends_with("/list_changed") {
            continue;
        }
        let params = match params {
            Some(params) if is_all && method == TASK_STATUS => {
                Some(task_ids::join(params.clone(), server))
            }
            params => params.clone(),
        };
        if let Some(message) = Charged::notification(&memory, method, params.as_deref()) {
            session.tell(&message);
        }
    }
}

async fn ask(session: Weak<Session>, standing: Arc<Running>, memory: Arc<Budget>) {
    loop {
        standing.woken().await;
        while let Some(related) = standing.take() {
            let Some(session) = session.upgrade() else {
                return;
            };
            if let Some((message, _)) = message(&session, related, &memory).await {
                session.tell(&message);
            }
        }
    }
}
