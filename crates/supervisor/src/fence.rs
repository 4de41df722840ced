//! Whether servers may run. Raised when the daemon has lost the right to run them: then every
//! process has to end within a bounded time, and none may start.

use std::sync::Arc;
use std::time::Duration;

use cofer_model::Failure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;

/// How long a server is given to end by itself once the fence is raised.
pub(crate) const FENCE_GRACE: Duration = Duration::from_secs(3);

/// More processes of single sessions than any machine can run.
const SESSIONS: u32 = 1 << 20;

/// A cheap clone.
#[derive(Clone)]
pub(crate) struct Fence {
    raised: watch::Sender<Option<Failure>>,
    /// One permit for each process of a single session, held until it is gone.
    sessions: Arc<Semaphore>,
}

impl Default for Fence {
    fn default() -> Self {
        let sessions = Arc::new(Semaphore::new(SESSIONS as usize));
        Self { raised: watch::Sender::new(None), sessions }
    }
}

impl Fence {
    /// Why nothing may run; none where it may.
    pub(crate) fn reason(&self) -> Option<Failure> {
        self.raised.borrow().clone()
    }

    pub(crate) fn raise(&self, reason: Failure) {
        self.raised.send_replace(Some(reason));
    }

    pub(crate) fn lower(&self) {
        self.raised.send_replace(None);
    }

    /// Ends with the reason as soon as the fence is raised.
    pub(crate) async fn raised(&self) -> Failure {
        let mut raised = self.raised.subscribe();
        match raised.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            // The sender lives in `self`.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Ends when a server that is being stopped has no time left, whatever its own grace is.
    pub(crate) async fn out_of_time(&self) {
        self.raised().await;
        sleep(FENCE_GRACE).await;
    }

    /// Counts one process of a single session.
    pub(crate) async fn session(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.sessions).acquire_owned().await.ok()
    }

    /// Ends when no process of a single session is left.
    pub(crate) async fn sessions_gone(&self) {
        drop(self.sessions.acquire_many(SESSIONS).await);
    }
}
