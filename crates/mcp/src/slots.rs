//! The places of calls at the peer: as many calls as there are slots are sent, the others wait in
//! the order in which they came.
//!
//! A semaphore with three more properties: the limit changes while calls run, a waiting call has a
//! position, and a slot can be released before its call has ended, while that waits for its user.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

/// The queue of calls to one peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// The calls that the peer is given at once.
    pub limit: usize,
    /// The calls that wait now.
    pub waiting: usize,
    /// The calls that have waited since the connection was opened, without our own lists.
    pub waited: u64,
    /// The longest wait since then, of a call that still waits too.
    pub longest_wait: Duration,
}

#[derive(Debug)]
pub(crate) struct Slots {
    /// Slots that are taken. Changed under the lock only.
    taken: AtomicUsize,
    state: Mutex<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    limit: usize,
    last_id: u64,
    waiters: VecDeque<Waiter>,
    waited: u64,
    longest_wait: Duration,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    counted: bool,
    since: Instant,
    grant: oneshot::Sender<()>,
}

impl Waiter {
    fn waited(&self) -> Duration {
        if self.counted { self.since.elapsed() } else { Duration::ZERO }
    }
}

/// The result of a request for a slot.
pub(crate) enum Acquired {
    /// A slot was free.
    Slot(Slot),
    /// All are taken.
    Waiting(Waiting),
    /// So many calls wait already that no further one may.
    Full {
        /// How many.
        waiting: usize,
    },
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let (waiters, longest_wait) = (VecDeque::new(), Duration::ZERO);
        let state = SlotState { limit, last_id: 0, waiters, waited: 0, longest_wait };
        Arc::new(Self { taken: AtomicUsize::new(0), state: Mutex::new(state) })
    }

    /// Takes a slot, or a place in the queue if that has less than `queue_limit`. Only the wait of a
    /// `counted` call is part of the statistics.
    pub(crate) fn acquire(self: &Arc<Self>, queue_limit: usize, counted: bool) -> Acquired {
        let mut state = self.lock();
        // Whoever waits comes first, also while a slot is free that was not granted yet.
        if state.waiters.is_empty() && self.taken() < state.limit {
            self.taken.fetch_add(1, Ordering::Relaxed);
            return Acquired::Slot(Slot { slots: Arc::clone(self) });
        }
        let ahead = state.waiters.len();
        if ahead >= queue_limit {
            return Acquired::Full { waiting: ahead };
        }
        let (grant, granted) = oneshot::channel();
        state.last_id += 1;
        state.waited += u64::from(counted);
        let id = state.last_id;
        state.waiters.push_back(Waiter { id, counted, since: Instant::now(), grant });
        Acquired::Waiting(Waiting { slots: Arc::clone(self), id, ahead, granted })
    }

    /// Whether a further call would have to wait.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        !state.waiters.is_empty() || self.taken() >= state.limit
    }

    /// How many slots are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Changes the number of slots. Calls that run beyond a lower limit are not affected.
    pub(crate) fn set_limit(&self, limit: usize) {
        let mut state = self.lock();
        state.limit = limit;
        self.grant(&mut state);
    }

    pub(crate) fn status(&self) -> QueueStatus {
        let state = self.lock();
        let first = state.waiters.iter().find(|waiter| waiter.counted);
        let first = first.map_or(Duration::ZERO, Waiter::waited);
        QueueStatus {
            limit: state.limit,
            waiting: state.waiters.len(),
            waited: state.waited,
            longest_wait: state.longest_wait.max(first),
        }
    }

    fn release(&self) {
        let mut state = self.lock();
        self.taken.fetch_sub(1, Ordering::Relaxed);
        self.grant(&mut state);
    }

    /// Gives free slots to those who wait, in their order.
    fn grant(&self, state: &mut SlotState) {
        while self.taken() < state.limit
            && let Some(first) = state.waiters.pop_front()
        {
            state.longest_wait = state.longest_wait.max(first.waited());
            // One that was dropped in the same moment takes none.
            if first.grant.send(()).is_ok() {
                self.taken.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// No code panics while it holds the lock, so that a poisoned state is still whole.
    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place at the peer; dropping it lets the next call go.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.release();
    }
}

/// A place in the queue. As a future it ends with the slot; dropped before, it leaves the queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    slots: Arc<Slots>,
    id: u64,
    /// How many calls waited when this one came.
    pub(crate) ahead: usize,
    granted: oneshot::Receiver<()>,
}

impl Future for Waiting {
    type Output = Slot;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Slot> {
        match Pin::new(&mut self.granted).poll(context) {
            Poll::Ready(Ok(())) => Poll::Ready(Slot { slots: Arc::clone(&self.slots) }),
            // The sender is in the queue of `slots`, which this keeps alive.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // From here on a grant fails; one that was sent before, and not taken, is given back.
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            return self.slots.release();
        }
        let mut state = self.slots.lock();
        if let Some(at) = state.waiters.iter().position(|waiter| waiter.id == self.id)
            && let Some(left) = state.waiters.remove(at)
        {
            state.longest_wait = state.longest_wait.max(left.waited());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn slot(slots: &Arc<Slots>) -> Slot {
        match slots.acquire(8, true) {
            Acquired::Slot(slot) => slot,
            _ => panic!("no slot is free"),
        }
    }

    fn waiting(slots: &Arc<Slots>) -> Waiting {
        match slots.acquire(8, true) {
            Acquired::Waiting(waiting) => waiting,
            _ => panic!("it does not wait"),
        }
    }

    #[tokio::test]
    async fn slots_are_granted_in_the_order_of_the_queue() {
        let slots = Slots::new(1);
        let first = slot(&slots);
        let (mut second, mut third) = (waiting(&slots), waiting(&slots));
        assert_eq!((second.ahead, third.ahead), (0, 1));
        drop(first);
        assert!((&mut third).now_or_never().is_none());
        let second = (&mut second).now_or_never().unwrap();
        assert!(third.now_or_never().is_none(), "one at a time");
        drop(second);
        assert_eq!(slots.taken(), 0);
    }

    #[tokio::test]
    async fn one_that_leaves_the_queue_takes_no_slot() {
        let slots = Slots::new(1);
        let first = slot(&slots);
        let (second, third) = (waiting(&slots), waiting(&slots));
        drop(second);
        assert_eq!(slots.status().waiting, 1);
        drop(first);
        // Granted, and dropped before it was polled.
        assert_eq!(slots.taken(), 1);
        drop(third);
        assert_eq!((slots.taken(), slots.status().waiting, slots.status().waited), (0, 0, 2));
    }

    #[tokio::test]
    async fn a_higher_limit_lets_those_who_wait_go() {
        let slots = Slots::new(1);
        let first = slot(&slots);
        let waiting = [waiting(&slots), waiting(&slots), waiting(&slots)];
        slots.set_limit(3);
        let [second, third, fourth] = waiting.map(futures_util::FutureExt::now_or_never);
        assert!(second.is_some() && third.is_some() && fourth.is_none());
        slots.set_limit(1);
        drop((first, second));
        assert!(matches!(slots.acquire(8, true), Acquired::Waiting(_)), "the third still runs");
        drop(third);
        drop(slot(&slots));
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_wait_is_of_those_who_wait_too() {
        let slots = Slots::new(1);
        let first = slot(&slots);
        let _second = waiting(&slots);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(slots.status().longest_wait, Duration::from_secs(3));
        drop(first);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(slots.status().longest_wait, Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_of_a_request_of_ours_is_not_counted() {
        let slots = Slots::new(1);
        let first = slot(&slots);
        let Acquired::Waiting(second) = slots.acquire(8, false) else { panic!("it does not wait") };
        tokio::time::advance(Duration::from_secs(3)).await;
        let waits = QueueStatus { limit: 1, waiting: 1, ..QueueStatus::default() };
        assert_eq!(slots.status(), waits);
        drop((first, second));
        assert_eq!(slots.status(), QueueStatus { waiting: 0, ..waits });
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let slots = Slots::new(0);
        let _waiting = waiting(&slots);
        assert!(matches!(slots.acquire(1, true), Acquired::Full { waiting: 1 }));
    }
}
