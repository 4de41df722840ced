//! A scripted MCP server over HTTP: a test says what each request is answered with, and reads
//! back what was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// What the server saw of one request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) http: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The number of the connection it came on.
    pub(crate) connection: usize,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The JSON-RPC method, or the HTTP one where there is no message.
    pub(crate) fn method(&self) -> String {
        self.json()["method"].as_str().map_or_else(|| self.http.to_string(), str::to_owned)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// A piece of a stream.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    /// The connection breaks.
    Cut,
}

/// What a request is answered with.
pub(crate) enum Reply {
    Full(u16, Vec<(&'static str, String)>, Bytes),
    /// Pieces now, and then the end.
    Events(Vec<(&'static str, String)>, Vec<Piece>),
    /// Pieces as the test sends them; the end when it drops the sender.
    Live(mpsc::UnboundedReceiver<Piece>),
    /// Nothing, ever.
    Silence,
}

/// The answer to `request` with this result, as plain JSON.
pub(crate) fn result(request: &Seen, result: Value) -> Reply {
    let id = &request.json()["id"];
    json(200, serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub(crate) fn json(status: u16, value: Value) -> Reply {
    Reply::Full(
        status,
        vec![("content-type", "application/json; charset=utf-8".to_owned())],
        value.to_string().into(),
    )
}

pub(crate) fn status(status: u16) -> Reply {
    Reply::Full(status, Vec::new(), Bytes::new())
}

/// One event.
pub(crate) fn event(value: &Value) -> Piece {
    Piece::Text(format!("data: {value}\n\n"))
}

pub(crate) fn event_with_id(id: &str, value: &Value) -> Piece {
    Piece::Text(format!("id: {id}\ndata: {value}\n\n"))
}

impl Reply {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Full(_, headers, _) | Self::Events(headers, _) = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// The server, until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: watch::Receiver<Vec<Seen>>,
    closed: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct Shared {
    script: Script,
    seen: Arc<watch::Sender<Vec<Seen>>>,
    closed: Arc<watch::Sender<usize>>,
}

impl Server {
    /// Answers as `script` says.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(script, None).await
    }

    /// The same over TLS; the acceptor's settings say which protocols are spoken.
    pub(crate) async fn start_tls(
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        tls: tokio_rustls::TlsAcceptor,
    ) -> Self {
        Self::start_with(script, Some(tls)).await
    }

    async fn start_with(
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen_sender, seen) = watch::channel(Vec::new());
        let (closed_sender, closed) = watch::channel(0);
        let shared = Shared {
            script: Arc::new(script),
            seen: Arc::new(seen_sender),
            closed: Arc::new(closed_sender),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (shared, tls) = (shared.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, shared, number, false).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                                serve(stream, shared, number, h2).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, seen, closed, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// The requests with this method so far.
    pub(crate) fn seen_of(&self, method: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method() == method).collect()
    }

    /// Waits until `count` requests with this method have come, and gives them.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) -> Vec<Seen> {
        let mut seen = self.seen.clone();
        let come = seen
            .wait_for(|seen| seen.iter().filter(|seen| seen.method() == method).count() >= count);
        if tokio::time::timeout(Duration::from_secs(60), come).await.is_err() {
            panic!("no {count} x {method}: {:?}", self.seen());
        }
        self.seen_of(method)
    }

    /// Waits until `count` streams were closed by the client before their end.
    pub(crate) async fn wait_closed(&self, count: usize) {
        let mut closed = self.closed.clone();
        let waiting = closed.wait_for(|closed| *closed >= count);
        tokio::time::timeout(Duration::from_secs(60), waiting)
            .await
            .expect("a stream is closed")
            .unwrap();
    }
}

async fn serve<S>(stream: S, shared: Shared, connection: usize, h2: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(request, &shared, connection).await) }
    });
    let io = TokioIo::new(stream);
    // A client that breaks off is what some tests are about.
    if h2 {
        let executor = hyper_util::rt::TokioExecutor::new();
        drop(
            hyper::server::conn::http2::Builder::new(executor).serve_connection(io, service).await,
        );
    } else {
        drop(hyper::server::conn::http1::Builder::new().serve_connection(io, service).await);
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: &Shared,
    connection: usize,
) -> Response<Answer> {
    let (head, body) = request.into_parts();
    let seen = Seen {
        http: head.method,
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body: body.collect().await.map(|body| body.to_bytes()).unwrap_or_default(),
        connection,
    };
    shared.seen.send_modify(|all| all.push(seen.clone()));
    let guard = Guard { closed: Arc::clone(&shared.closed), whole: Arc::new(Mutex::new(false)) };
    let (status, headers, body) = match (shared.script)(&seen) {
        Reply::Full(status, headers, body) => {
            let size = Some(body.len() as u64);
            let pieces = if body.is_empty() { VecDeque::new() } else { VecDeque::from([Ok(body)]) };
            (status, headers, Answer { pieces, live: None, guard, size, flushed: false })
        }
        Reply::Events(mut headers, pieces) => {
            headers.push(("content-type", "text/event-stream".to_owned()));
            let pieces = pieces.into_iter().map(piece).collect();
            (200, headers, Answer { pieces, live: None, guard, size: None, flushed: false })
        }
        Reply::Live(live) => {
            let headers = vec![("content-type", "Text/Event-Stream; charset=utf-8".to_owned())];
            (
                200,
                headers,
                Answer {
                    pieces: VecDeque::new(),
                    live: Some(live),
                    guard,
                    size: None,
                    flushed: false,
                },
            )
        }
        Reply::Silence => {
            let _guard = guard;
            std::future::pending().await
        }
    };
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).unwrap()
}

fn piece(piece: Piece) -> Result<Bytes, Broken> {
    match piece {
        Piece::Text(text) => Ok(text.into()),
        Piece::Cut => Err(Broken),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection here")]
pub(crate) struct Broken;

/// Counts answers that their reader did not want to the end.
struct Guard {
    closed: Arc<watch::Sender<usize>>,
    whole: Arc<Mutex<bool>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !*self.whole.lock().unwrap() {
            self.closed.send_modify(|closed| *closed += 1);
        }
    }
}

struct Answer {
    pieces: VecDeque<Result<Bytes, Broken>>,
    live: Option<mpsc::UnboundedReceiver<Piece>>,
    guard: Guard,
    size: Option<u64>,
    flushed: bool,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        // What came before the break is sent first.
        if matches!(self.pieces.front(), Some(Err(_))) && !self.flushed {
            self.flushed = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = match (self.pieces.pop_front(), &mut self.live) {
            (Some(piece), _) => Some(piece),
            (None, Some(live)) => match live.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(next) => next.map(piece),
            },
            (None, None) => None,
        };
        if !matches!(next, Some(Ok(_))) {
            *self.guard.whole.lock().unwrap() = true;
        }
        Poll::Ready(next.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        let done = self.live.is_none() && self.pieces.is_empty();
        if done {
            *self.guard.whole.lock().unwrap() = true;
        }
        done
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.size.map_or_else(http_body::SizeHint::new, http_body::SizeHint::with_exact)
    }
}
