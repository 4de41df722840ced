//! Memory budgets: how many bytes of messages the daemon, and each server in it, may keep.
//!
//! A budget may have a parent; a charge counts in both, or in neither. The counters are changed by
//! compare-and-swap, so that `used` never exceeds `limit`, not even for a moment, and no lock is
//! taken. A [`Charge`] releases its bytes when it is dropped, which ties them to the buffer that it
//! is stored beside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit in bytes and what is charged against it.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
    /// Messages that were rejected or discarded because of the limit.
    losses: AtomicU64,
    parent: Option<Arc<Self>>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Self::with(limit, None)
    }

    /// A budget without a limit, for programs that serve a single peer.
    pub fn unlimited() -> Arc<Self> {
        Self::new(u64::MAX)
    }

    /// A budget of `limit` bytes within this one.
    pub fn child(self: &Arc<Self>, limit: u64) -> Arc<Self> {
        Self::with(limit, Some(Arc::clone(self)))
    }

    fn with(limit: u64, parent: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0), losses: AtomicU64::new(0), parent })
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The bytes that are charged now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether more than half of it, or of a parent, is used: buffers that only improve service,
    /// such as replay buffers, are given up then.
    pub fn is_tight(&self) -> bool {
        self.used() > self.limit / 2 || self.parent.as_ref().is_some_and(|parent| parent.is_tight())
    }

    /// Charges `bytes`; none if that would exceed the limit of this budget or of a parent.
    pub fn try_charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let bytes = bytes as u64;
        self.try_add(bytes).then(|| Charge { budget: Arc::clone(self), bytes })
    }

    /// Counts a message that was rejected or discarded because of the limit.
    pub fn count_loss(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// The messages that were rejected or discarded because of the limit.
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// Resets the count of losses, when the server is started again.
    pub fn forgive(&self) {
        self.losses.store(0, Ordering::Relaxed);
    }

    fn try_add(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        let fits_above = self.parent.as_ref().is_none_or(|parent| parent.try_add(bytes));
        if !fits_above {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits_above
    }

    fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.release(bytes);
        }
    }
}

/// Bytes charged against a budget until this is dropped.
#[derive(Debug)]
pub struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Charge {
    /// Nothing yet, to be changed with [`Charge::resize`].
    pub fn none(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// The charged bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The budget that they are charged against.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Changes the charge to `bytes`. False, and no change, if that would exceed a limit.
    #[must_use]
    pub fn resize(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        if bytes <= self.bytes {
            self.budget.release(self.bytes - bytes);
        } else if !self.budget.try_add(bytes - self.bytes) {
            return false;
        }
        self.bytes = bytes;
        true
    }

    /// Moves the whole charge out and leaves nothing.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let bytes = std::mem::take(&mut self.bytes);
        Self { budget: Arc::clone(&self.budget), bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_charge_that_does_not_fit_above_changes_nothing() {
        let daemon = Budget::new(100);
        let (one, two) = (daemon.child(80), daemon.child(80));
        let held = one.try_charge(60).unwrap();
        assert!(two.try_charge(41).is_none());
        assert_eq!((one.used(), two.used(), daemon.used()), (60, 0, 60));
        assert!(one.try_charge(21).is_none(), "over its own limit");
        drop(held);
        assert_eq!((one.used(), daemon.used()), (0, 0));
        assert!(two.try_charge(80).is_some());
    }

    #[test]
    fn overflowing_sizes_are_rejected() {
        let budget = Budget::unlimited();
        let _held = budget.try_charge(usize::MAX).unwrap();
        assert!(budget.try_charge(usize::MAX).is_none());
    }

    /// One step of a client of the budgets.
    #[derive(Debug, Clone)]
    enum Step {
        Charge { server: usize, bytes: usize },
        Resize { at: usize, bytes: usize },
        Take { at: usize },
        Drop { at: usize },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0usize..3, 0usize..400).prop_map(|(server, bytes)| Step::Charge { server, bytes }),
            (0usize..9, 0usize..400).prop_map(|(at, bytes)| Step::Resize { at, bytes }),
            (0usize..9).prop_map(|at| Step::Take { at }),
            (0usize..9).prop_map(|at| Step::Drop { at }),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        #[test]
        fn used_is_the_sum_of_the_charges_and_never_above_a_limit(
            steps in steps(), daemon_limit in 0u64..900, server_limit in 0u64..500,
        ) {
            let daemon = Budget::new(daemon_limit);
            let servers: Vec<_> = (0..3).map(|_| daemon.child(server_limit)).collect();
            let mut held: Vec<Charge> = Vec::new();
            for step in steps {
                match step {
                    Step::Charge { server, bytes } => held.extend(servers[server].try_charge(bytes)),
                    Step::Resize { at, bytes } => if let Some(charge) = held.get_mut(at) {
                        let before = charge.bytes();
                        let resized = charge.resize(bytes);
                        prop_assert_eq!(charge.bytes(), if resized { bytes as u64 } else { before });
                    },
                    Step::Take { at } => if let Some(charge) = held.get_mut(at) {
                        let moved = charge.take();
                        prop_assert_eq!(charge.bytes(), 0);
                        held.push(moved);
                    },
                    Step::Drop { at } => if at < held.len() { held.remove(at); },
                }
                prop_assert_eq!(daemon.used(), held.iter().map(Charge::bytes).sum::<u64>());
                prop_assert!(daemon.used() <= daemon_limit);
                prop_assert!(servers.iter().all(|server| server.used() <= server_limit));
            }
            held.clear();
            prop_assert_eq!(daemon.used(), 0);
        }
    }

    #[test]
    fn concurrent_charges_never_exceed_the_limit_and_leave_nothing() {
        let daemon = Budget::new(1000);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let server = daemon.child(600);
                let (daemon, over) = (&daemon, &over);
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let held = [server.try_charge(round % 500), server.try_charge(101)];
                        if daemon.used() > 1000 || server.used() > 600 {
                            over.store(true, Ordering::Relaxed);
                        }
                        drop(held);
                    }
                });
            }
        });
        assert!(!over.load(Ordering::Relaxed));
        assert_eq!(daemon.used(), 0);
    }
}
