//! Tells a client that gave a token that a call goes on, and what its command says.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::time::{Instant, sleep};

use crate::run::Output;

/// Quick calls need no progress, and no client more of it than this.
const INTERVAL: Duration = Duration::from_millis(500);

/// A client that hears nothing for longer may give up.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// The most of the output that a message repeats: its end.
const LONGEST_MESSAGE: usize = 2 * 1024;

/// Runs until it is dropped, or the client cannot be told any more.
pub(crate) async fn report(output: &Output, peer: &Peer<RoleServer>, token: ProgressToken) {
    let started = Instant::now();
    let (mut told, mut last) = (0, started);
    loop {
        sleep(INTERVAL).await;
        let said = output.stdout.total() + output.stderr.total();
        if said == told && last.elapsed() < SIGN_OF_LIFE {
            continue;
        }
        (told, last) = (said, Instant::now());
        // Grows with every message, as it has to.
        let progress = started.elapsed().as_secs_f64();
        let message = output.end(LONGEST_MESSAGE);
        let param = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
        if let Err(error) = peer.notify_progress(param).await {
            tracing::debug!(%error, "the client could not be told of progress");
            return;
        }
    }
}
