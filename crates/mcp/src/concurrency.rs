//! Whether a peer works on several requests at once, found out while it is used.
//!
//! Proof is an answer to a request while an older one is open. Where calls queue, a waiting call
//! sends a request that costs nothing (`ping`) to get that proof: a peer that reads one request
//! after the other answers it too late.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::bridge::Bridge;
use crate::call::Request;
use crate::slots::Slots;

/// How long a call waits before it probes: behind a fast call none is needed.
const BEFORE_PROBE: Duration = Duration::from_millis(50);
/// The pause between two probes of a peer that did not answer the first.
const BETWEEN_PROBES: Duration = Duration::from_secs(30);
/// How long a probe may take. It ends with the wait of its call at the latest.
const PROBE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Concurrency {
    /// The slots of a peer that works on several requests; 0 where their number is fixed.
    raise_to: AtomicUsize,
    /// Whether it was seen to.
    is_proven: AtomicBool,
    epoch: Instant,
    /// The earliest time of the next probe, in milliseconds from `epoch`.
    next_probe: AtomicU64,
}

impl Concurrency {
    pub(crate) fn new(raise_to: Option<usize>) -> Self {
        Self {
            raise_to: AtomicUsize::new(raise_to.unwrap_or(0)),
            is_proven: AtomicBool::new(false),
            epoch: Instant::now(),
            next_probe: AtomicU64::new(0),
        }
    }

    /// Whether a proof would change anything.
    pub(crate) fn is_watched(&self) -> bool {
        self.raise_to.load(Ordering::Relaxed) > 0 && !self.is_proven.load(Ordering::Relaxed)
    }

    /// The peer has answered a request while another one was open.
    pub(crate) fn observed(&self, slots: &Slots) {
        self.is_proven.store(true, Ordering::Relaxed);
        let raise_to = self.raise_to.load(Ordering::Relaxed);
        if raise_to > 0 {
            slots.set_limit(raise_to);
        }
    }

    /// Changes the number of slots; an earlier proof holds.
    pub(crate) fn configure(&self, limit: usize, raise_to: Option<usize>, slots: &Slots) {
        self.raise_to.store(raise_to.unwrap_or(0), Ordering::Relaxed);
        let proven = raise_to.filter(|_| self.is_proven.load(Ordering::Relaxed));
        slots.set_limit(proven.unwrap_or(limit));
    }

    /// Probes the peer if a proof would change anything. Never ends: the answer is observed where
    /// it is read.
    pub(crate) async fn probe(&self, bridge: &Bridge) {
        if self.is_watched() {
            sleep(BEFORE_PROBE).await;
        }
        // Decided only now: a short wait must not use up the probe of a longer one.
        if self.is_watched() && self.is_due() {
            let probe = Request::new(bridge.liveness_method(), None, PROBE).urgent();
            drop(bridge.call(probe).await);
        }
        std::future::pending::<()>().await;
    }

    /// Whether it is time for a probe, which is then the caller's to make.
    fn is_due(&self) -> bool {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        let next = self.next_probe.load(Ordering::Relaxed);
        let after = now.saturating_add(BETWEEN_PROBES.as_millis() as u64);
        let swap =
            || self.next_probe.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed);
        now >= next && swap().is_ok()
    }
}
