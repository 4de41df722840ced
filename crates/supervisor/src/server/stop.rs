//! Asks a server to end: whoever reads its stdin finds it closed, then it gets SIGTERM. What is
//! left of it after that is ended by force, by whoever asked.

use std::time::Duration;

use tokio::time::timeout;

use crate::launch::Running;

/// How long a server may take to notice that its stdin is closed, before it is asked.
const CLOSED_STDIN: Duration = Duration::from_millis(500);

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// By itself, or when it was asked.
    Gently,
    /// It did not end in time.
    ByForce,
}

/// Returns when the server's own process has ended, or its grace has. `reads_stdin` is whether
/// it can have noticed that its stdin was closed.
pub(super) async fn ask_to_end(
    running: &dyn Running,
    reads_stdin: bool,
    grace: Duration,
) -> Stopped {
    if reads_stdin && timeout(CLOSED_STDIN.min(grace), running.exited()).await.is_ok() {
        return Stopped::Gently;
    }
    running.terminate();
    match timeout(grace, running.exited()).await {
        Ok(_) => Stopped::Gently,
        Err(_) => Stopped::ByForce,
    }
}
