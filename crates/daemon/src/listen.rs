//! Answers HTTP on a listener, a task for each connection, until it is told to close.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::front::Front;
use crate::inline::Inline;

/// The pause after a connection could not be taken for a reason that is not its own: too many
/// files are open, as a rule.
const BREATHER: Duration = Duration::from_millis(100);

/// Ends some time after `closing`: requests that are under way are answered first.
pub(crate) async fn serve(listener: TcpListener, front: Front, closing: CancellationToken) {
    let connections = TaskTracker::new();
    while let Some(accepted) = closing.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(attend(stream, front.clone(), closing.clone()));
            }
            Err(error) if is_its_own(&error) => {}
            Err(error) => {
                tracing::error!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

fn is_its_own(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn attend(stream: TcpStream, front: Front, closing: CancellationToken) {
    // Small answers go out at once; a connection that cannot be told so still works.
    stream.set_nodelay(true).ok();
    let answer = service_fn(move |request: Request<Incoming>| {
        let answered = front.clone().answer(request.map(Body::new));
        answered.map(Ok::<_, Infallible>)
    });
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    let inline = Inline::new();
    let served = tokio::select! {
        served = poll_fn(|context| inline.poll(context, connection.as_mut())) => served,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::trace!(%error, "a connection ended");
    }
}
