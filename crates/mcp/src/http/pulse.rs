//! Makes time limits cheap. A timer that is due before all others wakes the whole runtime when it
//! is set, which costs each request two system calls. While requests come, one timer is always
//! due sooner than theirs, and setting theirs costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::wire::Wire;

/// How often it beats while there is something to do.
const BEAT: Duration = Duration::from_secs(1);

/// Whether the timer runs.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// A request came since the last beat.
    busy: AtomicBool,
    asleep: AtomicBool,
    wake: Notify,
}

impl Pulse {
    /// A request comes.
    pub(super) fn quicken(&self) {
        self.busy.store(true, Ordering::Relaxed);
        if self.asleep.swap(false, Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }
}

impl Wire {
    /// Beats while requests come, and rests while none do.
    pub(super) async fn beat(self: Arc<Self>) {
        let pulse = &self.pulse;
        loop {
            sleep(BEAT).await;
            if !pulse.busy.swap(false, Ordering::Relaxed) {
                pulse.asleep.store(true, Ordering::Relaxed);
                pulse.wake.notified().await;
            }
        }
    }
}
