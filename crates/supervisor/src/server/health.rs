//! Tells a silent server from a busy one: an idle server is asked for a sign of life, and
//! whatever it says counts as one.

use std::net::SocketAddr;
use std::time::Duration;

use cofer_mcp::{Bridge, CallError, Request, RpcError};
use cofer_model::HeartbeatSpec;
use tokio::time::{sleep, timeout};

use super::door::{SOURCE, answers_http, is_open};

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
    let heartbeat = bridge.call(heartbeat(bridge, limit));
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

fn heartbeat(bridge: &Bridge, limit: Duration) -> Request<'static> {
    Request::new(bridge.liveness_method(), None, limit).urgent()
}

/// The same for a server behind HTTP, where an error may be our own word for its silence.
pub(super) async fn change_of_http_health(
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
            sleep(interval).await;
        }
        let alive = answers_over_http(bridge, heartbeat.timeout()).await;
        if alive != responsive {
            return alive;
        }
    }
}

async fn answers_over_http(bridge: &Bridge, limit: Duration) -> bool {
    match bridge.call(heartbeat(bridge, limit)).await.result {
        Ok(_) => true,
        Err(CallError::Rpc(error)) => !is_our_own(&error),
        Err(_) => false,
    }
}

/// Whether an error was made on this side of the door.
pub(super) fn is_our_own(error: &RpcError) -> bool {
    let source = error.data.as_ref().and_then(|data| data.get("source"));
    source.and_then(serde_json::Value::as_str) == Some(SOURCE)
}

/// The same for a server of which only the port is known, and perhaps that it speaks HTTP: the
/// kernel takes connections also for a server that hangs.
pub(super) async fn change_of_port(
    address: SocketAddr,
    http: bool,
    heartbeat: HeartbeatSpec,
    responsive: bool,
) -> bool {
    let Some(interval) = heartbeat.interval() else {
        return std::future::pending().await;
    };
    loop {
        sleep(interval).await;
        let look = async {
            match http {
                true => answers_http(address).await,
                false => is_open(address).await,
            }
        };
        let alive = timeout(heartbeat.timeout(), look).await.unwrap_or(false);
        if alive != responsive {
            return alive;
        }
    }
}
