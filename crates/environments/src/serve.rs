//! The server on this process's stdin and stdout, from its first byte to nothing left.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt as _};
use rmcp::transport::io::stdio_pipes;
use tokio_util::sync::CancellationToken;

use crate::environments::Environments;
use crate::settings::Settings;
use crate::tool::Server;

/// How long deleting may take after the client has gone; the next server goes on with the rest.
const DRAINING: Duration = Duration::from_secs(5);

/// Why the server could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client began in a way that is no MCP.
    #[error("could not begin to talk MCP with the client")]
    Handshake(#[source] Box<ServerInitializeError>),
    /// The serving task came to grief.
    #[error("the server broke off")]
    Broken(#[source] tokio::task::JoinError),
}

/// Serves one client until it closes our stdin or `shutdown` is ready. Commands in the foreground
/// end with it; environments and their background commands go on.
pub async fn serve(
    settings: Settings,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let environments = Arc::new(Environments::new(settings));
    // `podman info` takes a fifth of a second: asked for ahead, the first environment does not wait
    // for it. An error is returned by the tool that needs it.
    let ahead = Arc::clone(&environments);
    environments.readers.spawn(async move { drop(ahead.podman.info().await) });
    let stop = CancellationToken::new();
    let serving = talk(Server::new(Arc::clone(&environments)), stop.clone());
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = shutdown => {
            stop.cancel();
            serving.await
        }
    };
    if tokio::time::timeout(DRAINING, environments.settled()).await.is_err() {
        tracing::info!("leaving before everything that was set aside is deleted");
    }
    served
}

async fn talk(server: Server, stop: CancellationToken) -> Result<(), ServeError> {
    let serving = match Box::pin(server.serve_with_ct(stdio_pipes(), stop.clone())).await {
        Ok(serving) => serving,
        // A client that leaves before it has said anything has that right.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(ServeError::Handshake(Box::new(error))),
    };
    match serving.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Broken(error)),
        Ok(_) => Ok(()),
    }
}
