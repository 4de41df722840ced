//! Polls a future again at once where it wakes itself while it is polled.
//!
//! An HTTP connection does so twice for each request with a body. Left to the scheduler, each
//! time wakes another thread of the runtime, which finds nothing to do: in a call of a tool that
//! costs more than all that is computed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often it is polled before others have their turn.
const ROUNDS: usize = 8;

/// Nobody polls: who rings wakes the task.
const IDLE: u8 = 0;
/// It is being polled: who rings is noticed when that is over.
const POLLING: u8 = 1;
/// Somebody rang meanwhile.
const RUNG: u8 = 2;

/// See the module. One for one future.
pub(crate) struct Inline {
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Default)]
struct Bell {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Inline {
    pub(crate) fn new() -> Self {
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        Self { bell, waker }
    }

    /// Polls `future` for the task of `context`.
    pub(crate) fn poll<F: Future>(
        &self,
        context: &Context<'_>,
        mut future: Pin<&mut F>,
    ) -> Poll<F::Output> {
        let bell = &*self.bell;
        bell.task.register(context.waker());
        for _ in 0..ROUNDS {
            bell.state.store(POLLING, Ordering::Release);
            let polled = future.as_mut().poll(&mut Context::from_waker(&self.waker));
            let rung = bell.state.swap(IDLE, Ordering::AcqRel) == RUNG;
            if polled.is_ready() || !rung {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let ring = |state| (state != IDLE).then_some(RUNG);
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, ring).is_err() {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes itself `times`, and ends then.
    fn restless(times: usize) -> impl Future<Output = usize> {
        let mut polled = 0;
        poll_fn(move |context| {
            if polled == times {
                return Poll::Ready(polled);
            }
            polled += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    #[test]
    fn who_wakes_itself_is_polled_again_and_the_task_not_woken() {
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut future = pin!(restless(2));
        let polled = Inline::new().poll(&Context::from_waker(&waker), future.as_mut());
        assert_eq!((polled, counter.0.load(Ordering::Relaxed)), (Poll::Ready(2), 0));
    }

    #[test]
    fn who_never_rests_lets_others_have_their_turn() {
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut future = pin!(restless(ROUNDS + 1));
        let inline = Inline::new();
        assert!(inline.poll(&Context::from_waker(&waker), future.as_mut()).is_pending());
        assert_eq!(counter.0.load(Ordering::Relaxed), 1, "it asks for another turn");
        let polled = inline.poll(&Context::from_waker(&waker), future.as_mut());
        assert_eq!(polled, Poll::Ready(ROUNDS + 1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_is_woken_from_elsewhere_is_polled_again() {
        for _ in 0..1000 {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let mut receiver = pin!(receiver);
            let inline = Inline::new();
            let mut tasks = tokio::task::JoinSet::new();
            tasks.spawn(async move { sender.send(7).unwrap() });
            let heard = poll_fn(|context| inline.poll(context, receiver.as_mut())).await;
            assert_eq!(heard, Ok(7));
        }
    }
}
