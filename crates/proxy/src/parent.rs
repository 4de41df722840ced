//! Notices that whoever started us is gone. A client that is killed cannot close our stdin
//! where something between it and us holds the other end open.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How often the parent is looked for where the system cannot tell us.
const LOOK: Duration = Duration::from_millis(500);

/// The process that started us, as long as it is looked up early.
#[derive(Debug, Clone, Copy)]
pub struct Parent(Option<Pid>);

impl Parent {
    /// Our parent now.
    pub fn now() -> Self {
        Self(getppid())
    }

    /// Ends when that process has ended.
    pub(crate) async fn gone(self) {
        match self.0 {
            Some(parent) => gone(parent).await,
            // The parent lives outside of what we can see.
            None => std::future::pending().await,
        }
    }
}

async fn gone(parent: Pid) {
    // Not by a signal at the parent's death, which comes when the thread ends that started us.
    if let Some(handle) = pidfd_open(parent, PidfdFlags::NONBLOCK).ok().and_then(waitable) {
        // Between the two calls the number may have become another's.
        if getppid() == Some(parent) && handle.readable().await.is_err() {
            return std::future::pending().await;
        }
        return;
    }
    while getppid() == Some(parent) {
        tokio::time::sleep(LOOK).await;
    }
}

fn waitable(handle: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the descriptor has to stay the same while it is waited on")]
    // SAFETY: the descriptor is owned by the value that waits on it, and nobody else has it.
    let waitable = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
    waitable.ok()
}
