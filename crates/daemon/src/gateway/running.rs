//! One request of a client while a server works on it: what the server says about it waits here
//! until whoever drives the request takes it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use cofer_mcp::{Caller, ClientId, Question, RpcError};
use cofer_model::{Budget, Charge, ServerId};
use tokio::sync::{Notify, oneshot};

use super::rpc::{Fault, INTERNAL};

/// Messages, and bytes of them, about one request that its client has not taken yet. At the limit
/// the oldest notifications are dropped; if there are none, the new message is dropped, which
/// refuses a request of the server. A message alone is always kept.
const MAX_RELATED: usize = 1024;
const MAX_RELATED_BYTES: usize = 8 << 20;

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

    /// The answer for a client that cannot be asked, if there is one that is true of it: a client
    /// without the capability has no roots. Servers ask because the shared connection declares
    /// what any of its clients may have; an error would fail the tool call of a client that the
    /// server would not have asked on a connection of its own.
    pub(super) fn default_answer(&self) -> Option<Bytes> {
        (self.method == "roots/list").then(|| Bytes::from_static(br#"{"roots":[]}"#))
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
    /// The memory of that server.
    pub(super) memory: OnceLock<Arc<Budget>>,
    state: Mutex<State>,
    woken: Notify,
}

#[derive(Debug, Default)]
struct State {
    related: VecDeque<Entry>,
    /// The bytes of `related`.
    bytes: usize,
    is_cancelled: bool,
}

/// A message in the mailbox.
#[derive(Debug)]
struct Entry {
    related: Related,
    _charge: Option<Charge>,
}

/// What an entry costs besides the bytes of a message.
const ENTRY: usize = 256;
/// Larger messages carry a charge of their own, from where they were read.
const CHARGED_ALREADY: usize = 16 * 1024;

impl Related {
    fn len(&self) -> usize {
        let params = match self {
            Self::Progressed(params) => Some(params),
            Self::Told { params, .. } | Self::Asked(Inquiry { params, .. }) => params.as_ref(),
            Self::Withdrawn(_) => None,
        };
        params.map_or(0, Bytes::len)
    }

    fn is_notification(&self) -> bool {
        matches!(self, Self::Progressed(_) | Self::Told { .. })
    }
}

impl State {
    /// Takes a message in, and gives back what is lost for it.
    fn put(&mut self, related: Related, memory: Option<&Arc<Budget>>) -> Vec<Related> {
        let mut lost = Vec::new();
        let length = related.len();
        let is_withdrawal = matches!(related, Related::Withdrawn(_));
        while !is_withdrawal && !self.related.is_empty() && !self.has_room(length) {
            let oldest = self.related.iter().position(|entry| entry.related.is_notification());
            let Some(dropped) = oldest.and_then(|at| self.related.remove(at)) else {
                lost.push(related);
                return lost;
            };
            self.bytes -= dropped.related.len();
            lost.push(dropped.related);
        }
        let uncharged = Some(length).filter(|length| *length <= CHARGED_ALREADY).unwrap_or(0);
        let charge = memory.map(|memory| memory.try_charge(uncharged + ENTRY));
        if matches!(charge, Some(None)) && !is_withdrawal {
            lost.push(related);
            return lost;
        }
        self.bytes += length;
        self.related.push_back(Entry { related, _charge: charge.flatten() });
        lost
    }

    fn has_room(&self, length: usize) -> bool {
        self.related.len() < MAX_RELATED && self.bytes + length <= MAX_RELATED_BYTES
    }
}

impl Running {
    pub(super) fn new(client: ClientId) -> Self {
        let (server, memory) = (OnceLock::new(), OnceLock::new());
        Self { client, server, memory, state: Mutex::default(), woken: Notify::new() }
    }

    /// What was said longest ago and not taken yet.
    pub(super) fn take(&self) -> Option<Related> {
        let mut state = self.lock();
        let related = state.related.pop_front()?.related;
        state.bytes -= related.len();
        Some(related)
    }

    /// Everything that is asked and not taken yet.
    pub(super) fn take_questions(&self) -> Vec<Inquiry> {
        let mut state = self.lock();
        let (asked, others): (Vec<_>, Vec<_>) = std::mem::take(&mut state.related)
            .into_iter()
            .partition(|entry| matches!(entry.related, Related::Asked(_)));
        state.bytes = others.iter().map(|entry| entry.related.len()).sum();
        state.related = others.into();
        let inquiry = |entry: Entry| match entry.related {
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
        let memory = self.memory.get();
        let mut state = self.lock();
        let lost = state.put(related, memory);
        drop(state);
        if let Some(memory) = memory {
            for _ in &lost {
                memory.count_loss();
            }
        }
        // Dropped behind the lock: a request that is dropped sends its refusal.
        drop(lost);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(size: usize) -> Related {
        Related::Told { method: "x".to_owned(), params: Some(Bytes::from(vec![b'x'; size])) }
    }

    fn asked(size: usize) -> Related {
        let (sender, _) = oneshot::channel();
        let params = Some(Bytes::from(vec![b'x'; size]));
        let way_back = WayBack::Ourselves(sender);
        Related::Asked(Inquiry { origin: None, method: "y".to_owned(), params, way_back })
    }

    #[test]
    fn the_oldest_notifications_make_room_and_requests_stay() {
        let running = Running::new(ClientId(1));
        let memory = Budget::new(10_000);
        running.memory.set(Arc::clone(&memory)).unwrap();
        running.put(asked(1));
        running.put(told(MAX_RELATED_BYTES - 1));
        running.put(told(7));
        assert_eq!(memory.losses(), 1);
        running.put(asked(MAX_RELATED_BYTES));
        assert_eq!(memory.losses(), 3, "the notification, and the request for which nothing fits");
        assert!(matches!(running.take(), Some(Related::Asked(_))));
        assert!(running.take().is_none());
        running.put(told(2 * MAX_RELATED_BYTES));
        assert!(running.take().is_some(), "one alone is kept");
    }

    proptest! {
        /// The bound in bytes: of a mailbox, whatever a server sends and its client takes.
        #[test]
        fn a_mailbox_is_bounded_in_bytes(
            steps in prop::collection::vec((0u8..4, prop_oneof![0usize..3 << 20, 0usize..20_000]), 1..80),
            limit in 0u64..300_000,
        ) {
            let running = Running::new(ClientId(1));
            let memory = Budget::new(limit);
            running.memory.set(Arc::clone(&memory)).unwrap();
            for (step, size) in steps {
                match step {
                    0 => drop(running.take()),
                    1 => running.put(asked(size)),
                    2 => running.put(told(size)),
                    _ => drop(running.take_questions()),
                }
                let state = running.lock();
                let bytes: usize = state.related.iter().map(|entry| entry.related.len()).sum();
                prop_assert_eq!(bytes, state.bytes);
                prop_assert!(bytes <= MAX_RELATED_BYTES && state.related.len() <= MAX_RELATED);
                let small = |size: &usize| *size <= CHARGED_ALREADY;
                let small = state.related.iter().map(|entry| entry.related.len()).filter(small);
                let uncharged = small.sum::<usize>() + ENTRY * state.related.len();
                prop_assert_eq!(memory.used(), uncharged as u64);
                prop_assert!(memory.used() <= limit);
            }
            drop(running);
            prop_assert_eq!(memory.used(), 0);
        }
    }
}
