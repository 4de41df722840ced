//! The memory budgets of the daemon: one for everything, and within it one for each server, one for
//! the bodies of clients' requests, and a fixed part for the flight recorder.
//!
//! The daemon's budget limits the bytes of messages that are kept. Each buffer is bounded in number
//! too; ARCHITECTURE.md has the table of all buffers with both bounds. What is not charged, because
//! it is small and on the path of every call, is bounded by number alone: messages of at most 16 KiB
//! of calls that are in flight, and the read buffer of 64 KiB of each server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofer_model::{Budget, Charge, ServerId};

/// The most that the flight recorder keeps.
const RECORDER: u64 = 64 << 20;

/// See the module.
#[derive(Debug)]
pub struct Memory {
    daemon: Arc<Budget>,
    /// The limit of each server, and of all request bodies together.
    share: u64,
    clients: Arc<Budget>,
    servers: Mutex<HashMap<ServerId, Arc<Budget>>>,
    recorder: Option<Charge>,
}

impl Memory {
    /// Budgets that together have `limit` bytes, for messages of at most `max_message` bytes.
    pub fn new(limit: u64, max_message: usize) -> Arc<Self> {
        let daemon = Budget::new(limit);
        let share = share(limit, max_message);
        let recorder = daemon.try_charge(usize::try_from(RECORDER.min(share / 4)).unwrap_or(0));
        let clients = daemon.child(share);
        Arc::new(Self { daemon, share, clients, servers: Mutex::default(), recorder })
    }

    /// The budget of everything.
    pub fn daemon(&self) -> &Arc<Budget> {
        &self.daemon
    }

    /// The budget of request bodies, and of messages that are made for clients.
    pub fn clients(&self) -> &Arc<Budget> {
        &self.clients
    }

    /// The budget of a server, the same one for as long as the server is registered.
    pub fn server(&self, id: ServerId) -> Arc<Budget> {
        let new = || self.daemon.child(self.share);
        Arc::clone(self.servers().entry(id).or_insert_with(new))
    }

    /// A server is removed. Whatever still holds a part of its budget keeps it until it is dropped.
    pub(crate) fn remove(&self, id: ServerId) {
        self.servers().remove(&id);
    }

    /// How many bytes the flight recorder may keep.
    pub(crate) fn recorder_bytes(&self) -> usize {
        let bytes = self.recorder.as_ref().map_or(0, Charge::bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<ServerId, Arc<Budget>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one server may use of `limit` bytes: an eighth, but enough for four of the largest messages
/// (a request, its answer, and a copy of each for a client of the other protocol revision), and
/// never more than half, so that one server leaves room for the others.
fn share(limit: u64, max_message: usize) -> u64 {
    (limit / 8).max(4 * max_message as u64).min(limit / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn one_server_cannot_take_what_others_need() {
        const MIB: u64 = 1 << 20;
        for (limit, message, expected) in [
            (64 << 10, 64 * MIB, 8 << 10),
            (1024, 64 * MIB, 256),
            (256, 64 * MIB, 128),
            (256, MIB, 32),
        ] {
            let message = usize::try_from(message).unwrap();
            assert_eq!(share(limit * MIB, message), expected * MIB, "{limit} MiB");
        }
        let memory = Memory::new(256 * MIB, 64 << 20);
        let (one, two) = (
            memory.server(ServerId(Uuid::from_u128(1))),
            memory.server(ServerId(Uuid::from_u128(2))),
        );
        let mut held = Vec::new();
        while let Some(charge) = one.try_charge(1 << 20) {
            held.push(charge);
        }
        assert!(two.try_charge(64 << 20).is_some());
        assert!(memory.daemon().used() <= 256 * MIB);
        assert_eq!(memory.recorder_bytes(), 32 << 20);
    }

    #[test]
    fn a_server_that_is_registered_again_starts_from_nothing() {
        let memory = Memory::new(1 << 30, 1 << 20);
        let id = ServerId(Uuid::from_u128(1));
        let held = memory.server(id).try_charge(100).unwrap();
        assert_eq!(memory.server(id).used(), 100);
        memory.remove(id);
        assert_eq!(memory.server(id).used(), 0);
        let before = memory.daemon().used();
        drop(held);
        assert_eq!(memory.daemon().used(), before - 100);
    }
}
