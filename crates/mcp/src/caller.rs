//! Who makes a call, and how a server reaches them while it runs: its progress, its log
//! messages, and what it asks of them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::bridge::Shared;
use crate::message::RpcError;
use crate::outgoing::Outgoing;

/// Which client a call is made for: calls of one client have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(pub u64);

/// Who makes a call. All of it is called by the task that reads the server's stdout, so that
/// none of it may wait.
pub trait Caller: Send + Sync + 'static {
    /// For whom the call is made.
    fn client(&self) -> ClientId;
    /// Progress of this call: the notification's params, with the caller's own token.
    fn progressed(&self, params: Bytes);
    /// A log message of the server's, which speaks of this client's calls.
    fn notified(&self, method: &str, params: Option<&Bytes>);
    /// The server asks the client something.
    fn asked(&self, question: Question);
    /// The server takes back what it asked.
    fn withdrawn(&self, question: u64);
}

/// A request of the server's to a client. Dropped without an answer it is refused.
pub struct Question {
    /// Names it among the questions of its server.
    pub id: u64,
    /// What is asked.
    pub method: String,
    /// With what.
    pub params: Option<Bytes>,
    answer: Option<AnswerTo>,
}

/// Where an answer goes.
struct AnswerTo {
    shared: Arc<Shared>,
    /// The server's own id, as JSON.
    id: Bytes,
}

impl Question {
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: u64,
        peer_id: Bytes,
        method: String,
        params: Option<Bytes>,
    ) -> Self {
        let answer = Some(AnswerTo { shared, id: peer_id });
        Self { id, method, params, answer }
    }

    /// Gives the server its answer. Waits while the server does not read.
    pub async fn answer(mut self, outcome: Result<Bytes, RpcError>) {
        if let Some(AnswerTo { shared, id }) = self.answer.take() {
            // One that the server took back is answered no more.
            if !shared.settle(self.id) {
                return;
            }
            let message = answer_with(&id, &outcome);
            // A server that is gone waits for no answer.
            shared.outbox.send(message).await.ok();
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(AnswerTo { shared, id }) = self.answer.take() {
            let refusal = RpcError::new(-32603, "the client went away before it answered");
            if shared.settle(self.id) {
                shared.send_or_drop(answer_with(&id, &Err(refusal)));
            }
        }
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// The answer to the peer's request `id`.
pub(crate) fn answer_with(id: &Bytes, outcome: &Result<Bytes, RpcError>) -> Outgoing {
    match outcome {
        Ok(result) => Outgoing::response(id, "result", result),
        Err(error) => Outgoing::response(id, "error", &error.to_json()),
    }
}
