//! Keeps the ownership of the database, and acts on its loss: a daemon that can no longer renew
//! its lease stops its servers before the lease expires, since another daemon may start them then.
//! It starts them again once it has acquired the database under a new epoch.
//!
//! ```text
//!  0 s                  8 s        11 s                15 s
//!  last renewal sent    servers    those that did      lease expires:
//!                       stopped    not stop killed     another daemon may take over
//! ```

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofer_model::{Failure, FailureKind};
use cofer_store::{Ownership, StoreError};
use tokio::time::{Instant, sleep, timeout_at};

/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(2);
/// How long before the end of the lease the servers are stopped.
const FENCE: Duration = Duration::from_secs(7);
/// The pause after a renewal failed.
const RETRY: Duration = Duration::from_millis(250);
/// The pause between two attempts to acquire the database again.
const REACQUIRE: Duration = Duration::from_secs(1);

/// The servers of the daemon.
#[async_trait]
pub(crate) trait Fenced: Send + Sync {
    /// Stops them all; ends when none runs.
    async fn suspend(&self, reason: Failure);
    /// Starts them as the store has them now.
    async fn resume(&self) -> Result<(), StoreError>;
}

/// Runs for as long as the daemon has servers. `renewed` is when the ownership was acquired.
pub(crate) async fn keep(store: Arc<dyn Ownership>, servers: impl Fenced, mut renewed: Instant) {
    let Some(lease) = store.lease() else {
        return;
    };
    loop {
        let lost = hold(&*store, lease, renewed).await;
        // From here on nothing is written: calls that hang would delay the drivers.
        store.fence();
        let reason = failure(&lost);
        tracing::error!(target: "MCP", reason = reason.message, "ownership of the database lost: stopping all servers");
        let begun = Instant::now();
        servers.suspend(reason).await;
        let took = begun.elapsed();
        if took >= FENCE {
            tracing::error!(target: "MCP", ?took, "servers outlived the lease: another daemon may have started them already");
        }
        renewed = regain(&*store, &servers).await;
    }
}

/// Renews the lease until it is lost; ends early enough to stop the servers within it.
async fn hold(store: &dyn Ownership, lease: Duration, mut renewed: Instant) -> StoreError {
    loop {
        match timeout_at(renewed + lease - FENCE, renew(store)).await {
            Ok(Ok(sent)) => renewed = sent,
            Ok(Err(lost)) => return lost,
            Err(_) => {
                let reason = "its lease could not be renewed in time".to_owned();
                return StoreError::NotOwner { place: "its database".to_owned(), reason };
            }
        }
        sleep(RENEWAL).await;
    }
}

/// Tries until it works, and returns when the renewal was sent: the database counts from a later
/// moment, so that this daemon's lease ends before the one that others see.
async fn renew(store: &dyn Ownership) -> Result<Instant, StoreError> {
    let mut failing = false;
    loop {
        let sent = Instant::now();
        match store.renew().await {
            Ok(()) => {
                if failing {
                    tracing::info!(target: "MCP", "the ownership of the database is renewed again");
                }
                return Ok(sent);
            }
            Err(error @ (StoreError::NotOwner { .. } | StoreError::Closed)) => return Err(error),
            Err(error) => {
                if !failing {
                    tracing::warn!(target: "MCP", %error, "the ownership of the database could not be renewed");
                }
                failing = true;
                sleep(RETRY).await;
            }
        }
    }
}

/// Waits until the database is this daemon's again, and starts the servers.
async fn regain(store: &dyn Ownership, servers: &impl Fenced) -> Instant {
    let mut waiting = None;
    loop {
        let sent = Instant::now();
        match store.acquire().await {
            // Until the servers are resumed nothing runs, so that a failure here changes nothing.
            Ok(()) => match servers.resume().await {
                Ok(()) => {
                    tracing::info!(target: "MCP", "ownership of the database regained: starting the servers");
                    return sent;
                }
                Err(error) => {
                    tracing::error!(target: "MCP", %error, "the servers could not be read");
                }
            },
            Err(error) => {
                let text = error.to_string();
                if waiting.as_ref() != Some(&text) {
                    tracing::warn!(target: "MCP", %error, "waiting for the database; all servers are stopped");
                    waiting = Some(text);
                }
            }
        }
        sleep(REACQUIRE).await;
    }
}

fn failure(lost: &StoreError) -> Failure {
    let hint = "it starts again by itself once this daemon owns its database again; \
                the daemon's log names the cause";
    Failure {
        kind: FailureKind::StoreUnavailable,
        message: format!("stopped by the daemon: {lost}"),
        hint: hint.to_owned(),
        exit_code: None,
        signal: None,
        stderr: None,
    }
}

#[cfg(test)]
#[path = "ownership_tests.rs"]
mod tests;
