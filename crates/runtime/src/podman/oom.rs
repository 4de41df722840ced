//! The kernel's kills for memory, seen when they happen. What it has counted goes with the
//! cgroup, and with version 2 systemd removes that as soon as it is empty: mostly before
//! anybody who waits for the container's end can read it.

use std::future::pending;
use std::os::fd::{AsRawFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::cgroup::Cgroup;

/// Returns when something in the cgroup was killed because its memory was used up; never where
/// the kernel does not tell of it.
pub(crate) async fn killed(cgroup: &Cgroup) {
    match cgroup.memory_events().map(OwnedFd::from).and_then(changes) {
        Some(changes) => told(&changes, || cgroup.oom_kills()).await,
        None => pending().await,
    }
}

/// Looks at the count now and whenever the file is said to have changed.
async fn told<F: AsRawFd>(changes: &AsyncFd<F>, count: impl Fn() -> Option<u64>) {
    loop {
        if count().is_some_and(|kills| kills > 0) {
            return;
        }
        match changes.ready(Interest::PRIORITY).await {
            Ok(mut change) => change.clear_ready(),
            Err(_) => pending().await,
        }
    }
}

/// A file of the kernel's, whose changes are urgent news.
fn changes<F: AsRawFd + Into<OwnedFd>>(file: F) -> Option<AsyncFd<F>> {
    #[expect(unsafe_code, reason = "the descriptor has to stay the same while it is waited on")]
    // SAFETY: what owns a descriptor keeps it open and the same for as long as it lives.
    let changes = unsafe { AsyncFd::register_with_interest(file, Interest::PRIORITY) };
    changes.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::net::{SendFlags, send};

    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

    /// Two ends between which urgent news can be sent, as the kernel sends them for its files.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[tokio::test]
    async fn a_kill_is_seen_when_the_kernel_tells_of_it() {
        let (near, far) = pair();
        let changes = changes(far).unwrap();
        let (kills, looks) = (AtomicU64::new(0), AtomicU64::new(0));
        let count = || {
            looks.fetch_add(1, Ordering::Relaxed);
            Some(kills.load(Ordering::Relaxed))
        };
        let mut seen = std::pin::pin!(told(&changes, count));
        // Nothing yet, and a change that is none of it.
        for expected in [1, 2] {
            let start = tokio::time::Instant::now();
            while looks.load(Ordering::Relaxed) < expected {
                assert!(start.elapsed() < PATIENCE, "it does not look");
                tokio::select! {
                    biased;
                    () = &mut seen => panic!("nothing was killed"),
                    () = tokio::task::yield_now() => {}
                }
            }
            send(&near, b"!", SendFlags::OOB).unwrap();
        }
        kills.store(1, Ordering::Relaxed);
        send(&near, b"!", SendFlags::OOB).unwrap();
        tokio::time::timeout(PATIENCE, seen).await.unwrap();
    }

    #[tokio::test]
    async fn one_that_was_before_the_watch_is_seen_too() {
        let (_near, far) = pair();
        told(&changes(far).unwrap(), || Some(1)).await;
    }
}
