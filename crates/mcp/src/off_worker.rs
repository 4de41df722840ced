//! Work on large messages without occupying a worker thread of the runtime.
//!
//! Parsing, copying or unmapping 30 MiB takes milliseconds. On a worker thread the other tasks in
//! its queue wait for that long, so that one server with large messages would delay the calls to
//! all others. `block_in_place` passes the worker's queue to another thread first.

use tokio::runtime::{Handle, RuntimeFlavor};

/// From this size on the hand-over to another thread is short against the work.
const LARGE: usize = 2 << 20;

/// Runs `work` on a message of `bytes` bytes.
pub(crate) fn off_worker<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes >= LARGE && is_on_worker() { tokio::task::block_in_place(work) } else { work() }
}

/// `block_in_place` panics on a runtime of one thread.
fn is_on_worker() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio_util::task::TaskTracker;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_during_work_on_a_large_message() {
        let (sender, receiver) = mpsc::channel();
        let tasks = TaskTracker::new();
        let other = tasks.clone();
        let working = tasks.spawn(async move {
            // Queued behind this task on the only worker.
            other.spawn(async move { sender.send(()) });
            off_worker(LARGE, || receiver.recv_timeout(Duration::from_secs(30)))
        });
        assert_eq!(working.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn on_one_thread_it_runs_where_it_is() {
        assert_eq!(off_worker(LARGE, || 1), 1);
    }

    #[test]
    fn without_a_runtime_it_runs_where_it_is() {
        assert_eq!(off_worker(LARGE, || 1), 1);
    }
}
