//! The bytes of a connection, watched for progress: what is sent, and the bodies of requests and
//! responses. `connections` decides by it which connection is idle.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connections::ConnectionState;

/// A stream that reports each successful write.
pub(crate) struct WatchedStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
}

impl<S> WatchedStream<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state }
    }

    fn sent(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.state.progress();
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.sent(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The body of a request. A handler that waits for more of it is closed if nothing comes.
pub(crate) struct WatchedRequest {
    body: Incoming,
    state: Arc<ConnectionState>,
}

impl WatchedRequest {
    pub(crate) fn new(body: Incoming, state: Arc<ConnectionState>) -> Self {
        Self { body, state }
    }
}

impl http_body::Body for WatchedRequest {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.state.progress();
        }
        self.state.set_reading_body(polled.is_pending());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedRequest {
    fn drop(&mut self) {
        self.state.set_reading_body(false);
    }
}

/// Ends the request once the response is complete: at once where its length is known, as then only
/// sending is left, and at the end of the body where it is a stream.
pub(crate) fn watch_response(response: Response, state: &Arc<ConnectionState>) -> Response {
    if response.body().size_hint().exact().is_some() {
        state.end_request();
        return response;
    }
    let state = Arc::clone(state);
    response.map(|body| Body::new(WatchedResponse { body, state }))
}

/// The body of a response without a known length. Its connection is busy until it ends.
struct WatchedResponse {
    body: Body,
    state: Arc<ConnectionState>,
}

impl http_body::Body for WatchedResponse {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedResponse {
    fn drop(&mut self) {
        self.state.end_request();
    }
}
