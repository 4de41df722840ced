//! The server on this process's stdin and stdout, from its first byte to nothing left.

use std::time::Duration;

use rmcp::service::{QuitReason, ServerInitializeError, ServiceExt as _};
use rmcp::transport::io::stdio_pipes;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::tool::CopilotServer;

/// How long the process trees of cancelled requests may take to end.
const DRAINING: Duration = Duration::from_secs(10);

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

/// Serves one client until it closes our stdin or `shutdown` is ready, and then ends whatever
/// still runs. Nothing is looked at or started before the client asks for it.
pub async fn serve(config: Config, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
    let server = CopilotServer::new(config);
    let chat = server.chat();
    let stop = CancellationToken::new();
    let serving = talk(server, stop.clone());
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = shutdown => {
            stop.cancel();
            serving.await
        }
    };
    if tokio::time::timeout(DRAINING, chat.drained()).await.is_err() {
        tracing::warn!("leaving before all processes have ended; their shims go on ending them");
    }
    served
}

async fn talk(server: CopilotServer, stop: CancellationToken) -> Result<(), ServeError> {
    let serving = match server.serve_with_ct(stdio_pipes(), stop.clone()).await {
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
