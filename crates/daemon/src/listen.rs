//! Serves HTTP on a listener, a task for each connection, until the daemon closes.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection_io::{WatchedRequest, WatchedStream, watch_response};
use crate::connections::{Connection, Connections};
use crate::front::Front;
use crate::inline::Inline;
use crate::reserve::Reserve;

/// The pause after `accept` failed for a reason of the daemon or the machine.
const PAUSE: Duration = Duration::from_millis(100);

/// Ends some time after `closing`: requests in flight are answered first.
pub(crate) async fn serve(
    listener: TcpListener,
    front: Front,
    connections: Connections,
    closing: CancellationToken,
) {
    let tasks = TaskTracker::new();
    let mut reserve = Reserve::new();
    while let Some(accepted) = closing.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                reserve.refill();
                // Small responses are sent at once; a socket that refuses the option still works.
                stream.set_nodelay(true).ok();
                if let Some(connection) = connections.admit() {
                    tasks.spawn(serve_connection(stream, connection, front.clone()));
                }
            }
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => recover(&error, &mut reserve, &connections).await,
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Makes the next `accept` possible, or waits until it may be.
async fn recover(error: &io::Error, reserve: &mut Reserve, connections: &Connections) {
    match cofer_runtime::out_of_files(error) {
        Some(limit) if reserve.release(error, &limit) => return,
        Some(_) => drop(connections.close_one()),
        None => tracing::error!(%error, "a connection could not be accepted"),
    }
    tokio::time::sleep(PAUSE).await;
}

async fn serve_connection<S>(stream: S, connection: Connection, front: Front)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(WatchedStream::new(stream, connection.state().clone()));
    let answer = service_fn(|request| answer(request, &connection, front.clone()));
    let mut served = pin!(http1::Builder::new().serve_connection(stream, answer));
    let inline = Inline::new();
    let result = tokio::select! {
        result = poll_fn(|context| inline.poll(context, served.as_mut())) => result,
        () = connection.closing() => {
            if connection.is_closed() {
                return;
            }
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = result {
        tracing::trace!(%error, "a connection ended");
    }
}

async fn answer(
    request: Request<Incoming>,
    connection: &Connection,
    front: Front,
) -> Result<Response, Infallible> {
    let state = connection.state();
    if !state.begin_request() {
        // The connection was closed for being idle while this request arrived; its task is about
        // to end, and the client sees the close as it would have without the request.
        std::future::pending::<()>().await;
    }
    let request = request.map(|body| Body::new(WatchedRequest::new(body, state.clone())));
    let response = front.answer(request, connection).await;
    Ok(watch_response(response, state))
}
