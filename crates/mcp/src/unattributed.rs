//! Requests of the peer of which it is not certain yet whose call they belong to.
//!
//! A call that waits for its user releases its slot, and a call of another client runs beside it.
//! A request of the peer names no call. While the first call waits for its user, the request belongs
//! to the other one; once both work, it could belong to either, and waits here until the calls of
//! one client only are left.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// How many requests may wait here.
const LIMIT: usize = 64;

/// A request of the peer.
#[derive(Debug)]
pub(crate) struct PeerRequest {
    /// The peer's own id, as JSON.
    pub(crate) id: Bytes,
    pub(crate) method: String,
    pub(crate) params: Option<Bytes>,
}

#[derive(Debug, Default)]
pub(crate) struct Unattributed {
    /// The length of `requests`, read at the end of each call.
    count: AtomicUsize,
    requests: Mutex<VecDeque<PeerRequest>>,
}

impl Unattributed {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Keeps a request; gives it back if too many are here.
    pub(crate) fn put(&self, request: PeerRequest) -> Result<(), PeerRequest> {
        let mut requests = self.lock();
        if requests.len() >= LIMIT {
            return Err(request);
        }
        requests.push_back(request);
        self.count.store(requests.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes all of them out, oldest first.
    pub(crate) fn take(&self) -> VecDeque<PeerRequest> {
        let mut requests = self.lock();
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut requests)
    }

    /// The peer cancels its request.
    pub(crate) fn withdraw(&self, id: &[u8]) {
        let mut requests = self.lock();
        requests.retain(|request| request.id != id);
        self.count.store(requests.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<PeerRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
