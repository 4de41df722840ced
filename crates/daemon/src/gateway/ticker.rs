//! Tells who waits that some time has passed, with one timer for all of them.
//!
//! Of the requests that wait here nearly all are answered long before. A timer of its own for
//! each of them would wake the runtime's driver each time, which costs more than all else that a
//! session does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How much later than wanted somebody hears of it, at most.
const TICK: Duration = Duration::from_millis(250);

/// See the module. A cheap clone.
#[derive(Clone)]
pub(super) struct Ticker(Arc<Parts>);

struct Parts {
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Whether a tick is on its way.
    is_set: AtomicBool,
    ticked: Notify,
}

impl Ticker {
    /// Ticks run on `tasks`, and there are none after `closing`.
    pub(super) fn new(tasks: TaskTracker, closing: CancellationToken) -> Self {
        let ticked = Notify::new();
        Self(Arc::new(Parts { tasks, closing, is_set: AtomicBool::new(false), ticked }))
    }

    /// Ends when `time` has passed, or a little later, and not at all once the daemon closes.
    pub(super) async fn after(&self, time: Duration) {
        let due = Instant::now() + time;
        loop {
            // In this order: a tick that is on its way after this is heard.
            let ticked = self.0.ticked.notified();
            self.set();
            ticked.await;
            if Instant::now() >= due {
                return;
            }
        }
    }

    fn set(&self) {
        let parts = &self.0;
        // Read first: of many requests one sets it.
        if parts.is_set.load(Ordering::Acquire)
            || parts.closing.is_cancelled()
            || parts.is_set.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let ticker = Arc::clone(parts);
        parts.tasks.spawn(async move {
            ticker.closing.run_until_cancelled(sleep(TICK)).await;
            ticker.is_set.store(false, Ordering::Release);
            ticker.ticked.notify_waiters();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;

    fn ticker() -> (Ticker, TaskTracker) {
        let tasks = TaskTracker::new();
        (Ticker::new(tasks.clone(), CancellationToken::new()), tasks)
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_the_time_has_passed_and_not_much_later() {
        let (ticker, _) = ticker();
        let wanted = Duration::from_secs(1);
        for late in [0, 100, 249] {
            sleep(Duration::from_millis(late)).await;
            let began = Instant::now();
            ticker.after(wanted).await;
            let took = began.elapsed();
            assert!((wanted..=wanted + TICK * 2).contains(&took), "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_share_one_timer_and_nobody_leaves_one_behind() {
        let (ticker, tasks) = ticker();
        let waiting = join_all((0..100).map(|_| ticker.after(Duration::from_millis(100))));
        tokio::pin!(waiting);
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        assert_eq!(tasks.len(), 1);
        waiting.await;
        tasks.close();
        tasks.wait().await;
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_tick_when_the_daemon_closes() {
        let (ticker, tasks) = ticker();
        let waiting = ticker.after(Duration::from_secs(1));
        tokio::pin!(waiting);
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        ticker.0.closing.cancel();
        tasks.close();
        let began = Instant::now();
        tasks.wait().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        let late = tokio::time::timeout(Duration::from_secs(9), waiting).await;
        assert!(late.is_err(), "an answer that comes now is still given as it is");
        assert_eq!(tasks.len(), 0, "and it sets no more ticks");
    }
}
