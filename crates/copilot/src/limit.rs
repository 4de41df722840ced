//! The one limit over everything a request does, and the client's right to end it sooner.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Why a request is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its time is over.
    Deadline,
    /// The client does not want the answer any more, or is gone.
    Cancelled,
}

/// When a request has to be over.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    deadline: Instant,
    span: Duration,
    cancelled: CancellationToken,
}

impl Limit {
    /// `span` from now, or until `cancelled`.
    pub(crate) fn new(span: Duration, cancelled: CancellationToken) -> Self {
        Self { deadline: Instant::now() + span, span, cancelled }
    }

    pub(crate) fn span(&self) -> Duration {
        self.span
    }

    /// Waits until the request has to stop.
    pub(crate) async fn reached(&self) -> Stop {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Stop::Cancelled,
            () = sleep_until(self.deadline) => Stop::Deadline,
        }
    }

    /// What `work` gives, unless the limit comes first.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            stop = self.reached() => Err(stop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_over_all_that_is_done_one_after_the_other() {
        // covers: COP-009
        let started = Instant::now();
        let limit = Limit::new(crate::LONGEST, CancellationToken::new());
        let first = limit.within(tokio::time::sleep(Duration::from_secs(20))).await;
        assert_eq!(first, Ok(()));
        let second = limit.within(tokio::time::sleep(Duration::from_secs(20))).await;
        assert_eq!(second, Err(Stop::Deadline));
        assert_eq!(started.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_end_it_sooner() {
        let cancelled = CancellationToken::new();
        let limit = Limit::new(crate::LONGEST, cancelled.clone());
        cancelled.cancel();
        assert_eq!(limit.within(std::future::pending::<()>()).await, Err(Stop::Cancelled));
    }
}
