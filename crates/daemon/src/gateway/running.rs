//! One request of a client while a server works on it: what the server says about it waits here
//! until whoever drives the request takes it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use cofer_mcp::{Caller, ClientId, Question, RpcError};
use cofer_model::ServerId;
use tokio::sync::{Notify, oneshot};

use super::rpc::{Fault, INTERNAL};

/// How much a server may say of one request before its client has taken any of it. Beyond that
/// progress and log messages are dropped, and questions refused.
const MAX_RELATED: usize = 1024;

/// What a server says about a request that it works on.
#[derive(Debug)]
pub(super) enum Related {
    /// The params of `notifications/progress`, with the client's own token.
    Progressed(Bytes),
    /// Another notification.
    Told { method: String, params: Option<Bytes> },
    /// It wants to know something.
    Asked(Inquiry),
    /// It does not want to know any more.
    Withdrawn(u64),
}

/// A question to a client, and the way back of its answer. Dropped, it counts as refused.
#[derive(Debug)]
pub(super) struct Inquiry {
    /// What it is called by who may take it back.
    pub(super) origin: Option<u64>,
    pub(super) method: String,
    pub(super) params: Option<Bytes>,
    way_back: WayBack,
}

#[derive(Debug)]
enum WayBack {
    Server(Question),
    Ourselves(oneshot::Sender<Result<Bytes, RpcError>>),
}

impl Inquiry {
    fn of_server(mut question: Question) -> Self {
        Self {
            origin: Some(question.id),
            method: std::mem::take(&mut question.method),
            params: question.params.take(),
            way_back: WayBack::Server(question),
        }
    }

    /// Gives the answer back. Waits while the server does not read.
    pub(super) async fn answer(self, outcome: Result<Bytes, RpcError>) {
        match self.way_back {
            WayBack::Server(question) => question.answer(outcome).await,
            // Who asked may have gone meanwhile.
            WayBack::Ourselves(sender) => drop(sender.send(outcome)),
        }
    }

    pub(super) async fn refuse(self, fault: &Fault) {
        self.answer(Err(fault.to_rpc_error())).await;
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Running {
    client: ClientId,
    /// The server that works on it, once that is known.
    pub(super) server: OnceLock<ServerId>,
    state: Mutex<State>,
    woken: Notify,
}

#[derive(Debug, Default)]
struct State {
    related: VecDeque<Related>,
    is_cancelled: bool,
}

impl Running {
    pub(super) fn new(client: ClientId) -> Self {
        let server = OnceLock::new();
        Self { client, server, state: Mutex::default(), woken: Notify::new() }
    }

    /// What was said longest ago and not taken yet.
    pub(super) fn take(&self) -> Option<Related> {
        self.lock().related.pop_front()
    }

    /// Everything that is asked and not taken yet.
    pub(super) fn take_questions(&self) -> Vec<Inquiry> {
        let mut state = self.lock();
        let (asked, others): (Vec<_>, Vec<_>) = std::mem::take(&mut state.related)
            .into_iter()
            .partition(|related| matches!(related, Related::Asked(_)));
        state.related = others.into();
        let inquiry = |related| match related {
            Related::Asked(inquiry) => Some(inquiry),
            _ => None,
        };
        asked.into_iter().filter_map(inquiry).collect()
    }

    /// Ends when something is there to be taken, or the client wants the answer no more.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// The client wants the answer no more.
    pub(super) fn cancel(&self) {
        self.lock().is_cancelled = true;
        self.woken.notify_one();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Asks the client something for ourselves.
    pub(super) async fn ask(
        &self,
        method: String,
        params: Option<Bytes>,
    ) -> Result<Bytes, RpcError> {
        let (sender, answer) = oneshot::channel();
        let way_back = WayBack::Ourselves(sender);
        self.put(Related::Asked(Inquiry { origin: None, method, params, way_back }));
        answer
            .await
            .unwrap_or_else(|_| Err(RpcError::new(INTERNAL, "the client could not be asked")))
    }

    fn put(&self, related: Related) {
        let mut state = self.lock();
        if state.related.len() >= MAX_RELATED && !matches!(related, Related::Withdrawn(_)) {
            return;
        }
        state.related.push_back(related);
        drop(state);
        self.woken.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller for Running {
    fn client(&self) -> ClientId {
        self.client
    }

    fn progressed(&self, params: Bytes) {
        self.put(Related::Progressed(params));
    }

    fn notified(&self, method: &str, params: Option<&Bytes>) {
        self.put(Related::Told { method: method.to_owned(), params: params.cloned() });
    }

    fn asked(&self, question: Question) {
        self.put(Related::Asked(Inquiry::of_server(question)));
    }

    fn withdrawn(&self, id: u64) {
        self.put(Related::Withdrawn(id));
    }
}
