//! What a server says of its own accord, for everybody who wants to hear it.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::broadcast;

/// How many notices a slow reader may be behind before it loses the oldest.
const KEPT: usize = 256;

/// Something a server said unasked, or that became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A notification: that a list or a resource changed, or a log message that no single
    /// client's call caused.
    Said {
        /// Its method.
        method: String,
        /// Its params, as they came.
        params: Option<Bytes>,
    },
    /// It is ready; what it offers may differ from before.
    Up,
    /// It is not ready any more.
    Down,
}

/// Where a server's notices go out. A cheap clone.
#[derive(Debug, Clone)]
pub(crate) struct Notices(broadcast::Sender<Arc<Notice>>);

impl Default for Notices {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl Notices {
    /// Tells all who listen.
    pub(crate) fn tell(&self, notice: Notice) {
        if self.0.receiver_count() > 0 {
            // Whoever listened may have gone in the same moment.
            self.0.send(Arc::new(notice)).ok();
        }
    }

    /// Hears everything from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.0.subscribe()
    }
}
