//! Tells a client that gave a token what the CLI has said so far, while it is speaking.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::time::sleep;

use crate::launcher::Output;

/// No reader sees more than ten changes a second.
const INTERVAL: Duration = Duration::from_millis(100);

/// The most of the output that a message repeats: its end.
const LONGEST_MESSAGE: usize = 4 * 1024;

/// Runs until it is dropped, or the client cannot be told any more. The progress is the number
/// of bytes on stdout, the message what they say.
pub(crate) async fn report(output: &Output, peer: &Peer<RoleServer>, token: ProgressToken) {
    let mut seen = output.stdout.watch();
    while seen.changed().await.is_ok() {
        #[expect(clippy::cast_precision_loss, reason = "output is far shorter than 2^52 bytes")]
        let progress = *seen.borrow_and_update() as f64;
        let said = ProgressNotificationParam::new(token.clone(), progress)
            .with_message(output.stdout.tail(LONGEST_MESSAGE));
        if let Err(error) = peer.notify_progress(said).await {
            tracing::debug!(%error, "the client could not be told of progress");
            break;
        }
        sleep(INTERVAL).await;
    }
}
