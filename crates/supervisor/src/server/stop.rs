//! Ends a server, gently first: its stdin is closed, then it is asked by SIGTERM, then it
//! and everything it started is killed.

use std::time::Duration;

use cofer_mcp::Bridge;
use tokio::time::timeout;

use crate::launch::Running;

/// How long a server may take to notice that its stdin is closed, before it is asked.
const CLOSED_STDIN: Duration = Duration::from_millis(500);

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// By itself, or when it was asked.
    Gently,
    /// It had to be killed.
    ByForce,
}

/// Returns when nothing of the server is left.
pub(super) async fn stop(running: &dyn Running, bridge: &Bridge, grace: Duration) -> Stopped {
    bridge.close();
    let mut how = Stopped::Gently;
    if timeout(CLOSED_STDIN.min(grace), running.exited()).await.is_err() {
        running.terminate();
        if timeout(grace, running.exited()).await.is_err() {
            how = Stopped::ByForce;
        }
    }
    running.kill();
    running.gone().await;
    how
}
