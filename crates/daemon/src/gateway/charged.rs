//! A message that waits for a client, charged to the server that sent it. Clones share the charge,
//! as they share the bytes.

use std::sync::Arc;

use bytes::Bytes;
use cofer_mcp::build_charged;
use cofer_model::{Budget, ErrorKind};

use super::rpc::{self, Answer, Fault};
use super::stream::on_one_line;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Charged {
    bytes: Bytes,
    memory: Arc<Budget>,
}

impl Charged {
    /// A notification of the server that `memory` belongs to; none, and counted, if there is no
    /// memory for it.
    pub(super) fn notification(
        memory: &Arc<Budget>,
        method: &str,
        params: Option<&[u8]>,
    ) -> Option<Self> {
        let length = method.len() + params.map_or(0, <[u8]>::len);
        Self::build(memory, length, || rpc::notification(method, params))
    }

    /// A request to the client.
    pub(super) fn request(
        memory: &Arc<Budget>,
        id: u64,
        method: &str,
        params: Option<&[u8]>,
    ) -> Option<Self> {
        let length = method.len() + params.map_or(0, <[u8]>::len);
        Self::build(memory, length, || rpc::request(id, method, params))
    }

    /// The answer to request `id`; an error if there is no memory for it.
    pub(super) fn response(memory: &Arc<Budget>, id: &[u8], answer: &Answer) -> Self {
        let length = match answer {
            Ok(result) => result.len(),
            Err(fault) => fault.json().len(),
        };
        Self::build(memory, length, || rpc::response(id, answer)).unwrap_or_else(|| {
            let bytes = rpc::response(id, &Err(overloaded(memory, "the answer")));
            Self { bytes, memory: Arc::clone(memory) }
        })
    }

    fn build(memory: &Arc<Budget>, length: usize, build: impl FnOnce() -> Bytes) -> Option<Self> {
        let bytes = build_charged(memory, length, || on_one_line(build()))?;
        Some(Self { bytes, memory: Arc::clone(memory) })
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The budget of the server that sent it.
    pub(super) fn memory(&self) -> &Arc<Budget> {
        &self.memory
    }

    /// Counts it as discarded.
    pub(super) fn count_loss(&self) {
        self.memory.count_loss();
    }
}

/// The error for a message that has no room in the memory of its server.
pub(super) fn overloaded(memory: &Budget, what: &str) -> Fault {
    let limit = memory.limit();
    let message = format!("the server's memory limit of {limit} bytes has no room for {what}");
    let hint = "ask for less at once, or raise `--max-memory` of `cofer serve`";
    Fault::ours(ErrorKind::Overloaded, message, Some(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_memory_becomes_an_error_and_a_notification_is_lost() {
        let memory = Budget::new(10_000);
        let held = memory.try_charge(9_500).unwrap();
        let large = Bytes::from(vec![b'1'; 1000]);
        assert!(Charged::notification(&memory, "x", Some(&large)).is_none());
        let answer = Charged::response(&memory, b"7", &Ok(large.clone()));
        assert!(answer.bytes().starts_with(br#"{"jsonrpc":"2.0","id":7,"error""#));
        assert_eq!(memory.losses(), 2);
        drop(held);
        let answer = Charged::response(&memory, b"7", &Ok(large));
        let copy = answer.clone();
        assert!(memory.used() >= 1000 && memory.used() < 2000, "charged once");
        drop((answer, copy));
        assert_eq!(memory.used(), 0);
    }
}
