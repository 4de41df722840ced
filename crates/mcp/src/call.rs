//! One call over a bridge: what is asked, how it went, and what a bridge takes on at all.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_model::Budget;

use crate::caller::Caller;
use crate::message::RpcError;
use crate::pending::Owner;

/// How much a bridge takes on.
#[derive(Debug, Clone)]
pub struct BridgeConfig {
    /// Requests the peer is given at once.
    pub max_in_flight: usize,
    /// Their number once the peer has answered a request while another one was open; none
    /// where the number stays.
    pub raise_to: Option<usize>,
    /// Calls that may wait for their turn.
    pub queue_limit: usize,
    /// Bytes of params that waiting and running calls may hold together.
    pub held_bytes_limit: usize,
    /// The longest message, in either direction.
    pub max_message: usize,
    /// The memory that the peer's messages, and calls to it, may use.
    pub memory: Arc<Budget>,
}

impl Default for BridgeConfig {
    fn default() -> Self {
        Self {
            max_in_flight: 1,
            raise_to: None,
            queue_limit: 512,
            held_bytes_limit: 256 << 20,
            max_message: 64 << 20,
            memory: Budget::unlimited(),
        }
    }
}

/// One call.
#[derive(Clone)]
pub struct Request<'a> {
    /// The JSON-RPC method.
    pub method: &'a str,
    /// Valid JSON, or nothing.
    pub params: Option<Bytes>,
    /// How long the peer may be silent about it.
    pub timeout: Duration,
    /// Whether it goes past the queue: for heartbeats and the handshake.
    pub urgent: bool,
    /// Who asks, where they can be reached while it runs.
    pub caller: Option<Arc<dyn Caller>>,
}

impl<'a> Request<'a> {
    /// A call that waits for its turn.
    pub fn new(method: &'a str, params: Option<Bytes>, timeout: Duration) -> Self {
        Self { method, params, timeout, urgent: false, caller: None }
    }

    /// The same call, past the queue.
    #[must_use]
    pub fn urgent(self) -> Self {
        Self { urgent: true, ..self }
    }

    /// The same call, made by `caller`.
    #[must_use]
    pub fn by(self, caller: Option<Arc<dyn Caller>>) -> Self {
        Self { caller, ..self }
    }

    pub(crate) fn owner(&self) -> Owner {
        match &self.caller {
            Some(caller) => Owner::Caller(Arc::clone(caller)),
            None if self.urgent => Owner::Us,
            None if self.only_looks() => Owner::Onlooker,
            None => Owner::Stranger,
        }
    }

    /// Whether nobody is asked anything for its sake: a list or a subscription of ours.
    pub(crate) fn only_looks(&self) -> bool {
        self.caller.is_none() && only_looks(self.method)
    }
}

/// Whether a request is none for which a server would ask somebody something.
fn only_looks(method: &str) -> bool {
    method.ends_with("/list")
        || matches!(method, "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe")
}

/// How a call went.
#[derive(Debug)]
pub struct Called {
    /// The result as JSON.
    pub result: Result<Bytes, CallError>,
    /// Where the time went.
    pub timing: Timing,
    /// The id under which the peer saw it; none where it never had its turn.
    pub id: Option<u64>,
}

/// Where a call's time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Waiting for its turn.
    pub queue: Duration,
    /// The calls before it, running or waiting, when it began to wait; 0 where it did not.
    pub queue_ahead: usize,
    /// Until it was in the peer's pipe.
    pub write: Duration,
    /// Until the answer began, without `input`.
    pub server: Duration,
    /// While the peer waited for input from the caller's user.
    pub input: Duration,
    /// Until the answer was whole and with its caller.
    pub read: Duration,
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The peer answered an error.
    #[error("the server answered an error: {0}")]
    Rpc(#[source] RpcError),
    /// The peer was silent for too long.
    #[error("the server did not answer within {0:?}")]
    Timeout(Duration),
    /// The call never had its turn, and the peer never saw it.
    #[error("the server was busy with other calls for {0:?}; the call was never sent")]
    QueueTimeout(Duration),
    /// Too many calls wait already.
    #[error("{waiting} calls already wait for the server")]
    Overloaded {
        /// How many.
        waiting: usize,
    },
    /// The memory budget has no room for the request, for the answer, or for a list.
    #[error("the memory limit of {limit} bytes has no room for {what}")]
    OutOfMemory {
        /// The message that was rejected or discarded.
        what: &'static str,
        /// The limit that it did not fit in, in bytes.
        limit: u64,
    },
    /// The request is over the cap.
    #[error("the request has {bytes} bytes, and at most {cap} are let through")]
    RequestTooLarge {
        /// Its size.
        bytes: u64,
        /// The cap.
        cap: u64,
    },
    /// The answer is over the cap.
    #[error("the server's answer has {bytes} bytes, and at most {cap} are let through")]
    AnswerTooLarge {
        /// Its size.
        bytes: u64,
        /// The cap.
        cap: u64,
    },
    /// JSON-RPC params are an object, an array or absent.
    #[error("params are neither an object nor an array")]
    BadParams,
    /// The peer ended before it answered.
    #[error("the server ended before it answered")]
    Disconnected,
}
