//! Returns memory to the system after bursts of large messages.

use std::time::Duration;

use cofer_model::Budget;
use cofer_runtime::{resident_memory, trim_heap};

/// How often the resident memory is read.
const INTERVAL: Duration = Duration::from_secs(5);
/// The same while there is nothing to be returned.
const LONGEST: Duration = Duration::from_secs(20);
/// What may be resident and free before it is returned.
const SLACK: u64 = 32 << 20;

/// Runs until it is dropped.
pub(crate) async fn keep_trimmed(memory: std::sync::Arc<Budget>) {
    let floor = unused(&memory);
    let mut pause = INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let before = unused(&memory);
        if before <= floor.saturating_add(SLACK) {
            pause = INTERVAL;
            continue;
        }
        // A thread that may block: an arena is locked while it is trimmed.
        if tokio::task::spawn_blocking(trim_heap).await.is_err() {
            return;
        }
        let returned = before.saturating_sub(unused(&memory));
        tracing::debug!(returned, "returned free memory to the system");
        // What is in use, such as many servers' lists, cannot be returned.
        pause = if returned < SLACK / 4 { (2 * pause).min(LONGEST) } else { INTERVAL };
    }
}

/// The resident memory that is not charged: the daemon itself, and what its heap keeps.
fn unused(memory: &Budget) -> u64 {
    resident_memory().unwrap_or(0).saturating_sub(memory.used())
}
