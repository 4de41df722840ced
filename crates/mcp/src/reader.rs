//! Reads what the peer says and brings each message to whom it is meant for: an answer to
//! its caller, progress and log messages too, a question to the client that caused it, and
//! everything else to the listener.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncRead;
use tokio::time::Instant;

use crate::bridge::Shared;
use crate::caller::{Caller, ClientId, Question, answer_with};
use crate::framing::{Frame, LineReader};
use crate::members::member;
use crate::message::{Incoming, Message, RpcError};
use crate::off_worker::off_worker;
use crate::pending::Addressee;
use crate::unattributed::PeerRequest;

/// Hears what the peer says of its own accord.
pub trait Listener: Send + Sync + 'static {
    /// A notification other than progress.
    fn notified(&self, method: &str, params: Option<&Bytes>);
    /// A line on stdout that is no JSON-RPC message.
    fn noise(&self, line: &[u8]);
    /// A line over the cap.
    fn oversized(&self, bytes: u64);
    /// A line for which the memory budget had no room.
    fn unaffordable(&self, bytes: u64);
}

impl Shared {
    fn take_line(self: &Arc<Self>, line: Bytes, began: Instant, listener: &dyn Listener) {
        match Incoming::parse(&line) {
            Ok(Incoming::One(message)) => self.take(message, began, listener),
            Ok(Incoming::Batch(messages)) => {
                for message in messages {
                    self.take(message, began, listener);
                }
            }
            Err(_) => listener.noise(&line),
        }
    }

    fn take(self: &Arc<Self>, message: Message, began: Instant, listener: &dyn Listener) {
        match message {
            Message::Response { id, outcome } => {
                let Some(id) = id else {
                    return tracing::debug!("an answer without an id that we could have given");
                };
                let watch = self.concurrency.is_watched();
                let answered = self.pending.answer(id, outcome, began, watch);
                if answered.overlaps {
                    self.concurrency.observed(&self.slots);
                }
                if !answered.is_expected {
                    tracing::debug!(?id, "an answer came that nobody waits for");
                }
            }
            Message::Notification { method, params } if method == "notifications/progress" => {
                if let Some(params) = &params
                    && let Some(id) = progress_token(params)
                {
                    self.pending.progressed(id, params, &self.config.memory);
                }
            }
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                if let Some(id) = params.as_ref().and_then(|params| member(params, "requestId")) {
                    self.unattributed.withdraw(id);
                    if let Some((client, call)) = self.questions.withdraw(id) {
                        self.input_ended(client, call);
                    }
                }
            }
            Message::Notification { method, params } if method == "notifications/message" => {
                match self.pending.only_caller() {
                    Some(caller) => {
                        // Silence is what a timeout measures, and this is a word of the call's.
                        self.pending.progress_of(caller.client());
                        caller.notified(&method, params.as_ref());
                    }
                    None => listener.notified(&method, params.as_ref()),
                }
            }
            Message::Notification { method, params } => {
                self.lists.notified(&method);
                listener.notified(&method, params.as_ref());
            }
            Message::Request { id, method, .. } if method == "ping" => {
                self.send_or_drop(answer_with(&id, &Ok(Bytes::from_static(b"{}"))));
            }
            Message::Request { id, method, params } => {
                self.asked(PeerRequest { id, method, params });
            }
        }
    }

    /// Brings a request of the peer's to the client that it is meant for, where that is certain.
    fn asked(self: &Arc<Self>, request: PeerRequest) {
        let (id, outcome) = match self.pending.addressee() {
            Addressee::Client { call, caller } => {
                let id = request.id.clone();
                match self.ask(&caller, call, request) {
                    Ok(()) => return,
                    Err(refusal) => (id, Err(refusal)),
                }
            }
            Addressee::Uncertain => match self.unattributed.put(request) {
                Ok(()) => return,
                Err(request) => (request.id, Err(too_many_open())),
            },
            Addressee::Nobody => {
                let outcome = answer_for_nobody(&request.method);
                (request.id, outcome)
            }
        };
        self.send_or_drop(answer_with(&id, &outcome));
    }

    fn ask(
        self: &Arc<Self>,
        caller: &Arc<dyn Caller>,
        call: Option<u64>,
        request: PeerRequest,
    ) -> Result<(), RpcError> {
        let PeerRequest { id, method, params } = request;
        let open = self.questions.open(id.clone(), caller.client(), call, Arc::downgrade(caller));
        let question = open.ok_or_else(too_many_open)?;
        if let Some(call) = call {
            self.pending.input_begins(call);
        }
        caller.asked(Question::new(Arc::clone(self), question, id, method, params));
        Ok(())
    }

    /// A call has ended: requests of the peer may now be certain to belong to another.
    pub(crate) fn attribute(self: &Arc<Self>) {
        if !self.unattributed.is_empty() {
            for request in self.unattributed.take() {
                self.asked(request);
            }
        }
    }

    fn input_ended(&self, client: ClientId, call: Option<u64>) {
        if let Some(call) = call {
            self.pending.input_ends(call);
        }
        self.pending.progress_of(client);
    }

    /// Answers a request of the peer's that was not kept.
    fn reject(&self, id: &Bytes, reason: String) {
        self.send_or_drop(answer_with(id, &Err(RpcError::new(-32603, reason))));
    }

    /// A question has its answer, which gives its asker new time; false where it was taken back.
    pub(crate) fn settle(&self, question: u64) -> bool {
        let Some((client, call)) = self.questions.settle(question) else {
            return false;
        };
        self.input_ended(client, call);
        true
    }
}

fn too_many_open() -> RpcError {
    RpcError::new(-32603, "too many requests to the client are open already")
}

/// What the daemon itself answers, where no client is there to be asked or several could be
/// meant: it has no roots, and nobody who could decide anything.
fn answer_for_nobody(method: &str) -> Result<Bytes, RpcError> {
    match method {
        "roots/list" => Ok(Bytes::from_static(br#"{"roots":[]}"#)),
        "sampling/createMessage" | "elicitation/create" => Err(RpcError::new(
            -32603,
            format!(
                "`{method}` cannot be brought to a client: no single client's calls are running on this server"
            ),
        )),
        _ => Err(RpcError::new(-32601, format!("Method not found: {method}"))),
    }
}

fn progress_token(params: &Bytes) -> Option<u64> {
    serde_json::from_slice(member(params, "progressToken")?).ok()
}

pub(crate) async fn read_messages<R>(
    mut lines: LineReader<R>,
    shared: Arc<Shared>,
    listener: Arc<dyn Listener>,
) where
    R: AsyncRead + Unpin,
{
    loop {
        match lines.next().await {
            Ok(Some(Frame::Line(line))) => {
                off_worker(line.len(), || shared.take_line(line, lines.began(), &*listener));
            }
            Ok(Some(Frame::TooLong { bytes, id, request })) => {
                listener.oversized(bytes);
                let reason = format!("the request has {bytes} bytes, over the cap");
                match request {
                    Some(request) => shared.reject(&request, reason),
                    None => drop(id.map(|id| shared.pending.too_large(id, bytes))),
                }
            }
            Ok(Some(Frame::Unaffordable { bytes, id, request })) => {
                shared.config.memory.count_loss();
                listener.unaffordable(bytes);
                let reason = format!("no memory left for the request of {bytes} bytes");
                match request {
                    Some(request) => shared.reject(&request, reason),
                    None => drop(id.map(|id| shared.pending.out_of_memory(id))),
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "the server's stdout cannot be read");
                break;
            }
        }
        shared.heard();
    }
    shared.pending.close();
    shared.closed.cancel();
}
