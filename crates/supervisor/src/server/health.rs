//! Tells a silent server from a busy one: an idle server is asked for a sign of life, and
//! whatever it says counts as one.

use std::time::Duration;

use cofer_mcp::{Bridge, CallError, Era, Request};
use cofer_model::HeartbeatSpec;
use tokio::time::sleep;

/// Ends with the new state when a responsive server falls silent, or a silent one speaks.
pub(super) async fn change_of_health(
    bridge: &Bridge,
    heartbeat: HeartbeatSpec,
    responsive: bool,
) -> bool {
    let Some(interval) = heartbeat.interval() else {
        return std::future::pending().await;
    };
    loop {
        if responsive {
            idle_for(bridge, interval).await;
        } else {
            tokio::select! {
                () = bridge.sign_of_life() => return true,
                () = sleep(interval) => {}
            }
        }
        let alive = answers(bridge, heartbeat.timeout()).await;
        if alive != responsive {
            return alive;
        }
    }
}

/// Waits until nothing was asked and nothing was said for `interval`.
async fn idle_for(bridge: &Bridge, interval: Duration) {
    loop {
        match bridge.idle_for() {
            Some(idle) if idle >= interval => return,
            Some(idle) => sleep(interval - idle).await,
            None => sleep(interval).await,
        }
    }
}

/// Asks for a sign of life; any word counts as one, an error too.
async fn answers(bridge: &Bridge, limit: Duration) -> bool {
    let method = match bridge.era() {
        Era::Initialize => "ping",
        // The modern revision has no ping; this is the cheapest thing every server answers.
        Era::Discover => "server/discover",
    };
    let heartbeat = bridge.call(Request::new(method, None, limit).urgent());
    tokio::select! {
        biased;
        () = bridge.sign_of_life() => true,
        called = heartbeat => match called.result {
            Ok(_) | Err(CallError::Rpc(_)) => true,
            // The end of the server is told by its exit, not by its silence.
            Err(CallError::Disconnected) => std::future::pending().await,
            Err(_) => false,
        },
    }
}
