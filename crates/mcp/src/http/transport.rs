//! Sends HTTP requests over connections that are kept and used again.
//!
//! A request that never left is sent again on a new connection by itself: that a server closed
//! a connection while nothing was under way is no failure. One that may have arrived is not.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http::header::{HOST, HeaderValue};
use http::{HeaderMap, Request, Response, Uri};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::connect::{Sender, connect};
use super::proxy_env::{ProxyError, ProxySettings};
use super::tls::{CaError, Tls};

/// How long a connection may lie unused and still be trusted: one that is asked now and then
/// whether it lives, and one that is not.
const IDLE_MANY: Duration = Duration::from_secs(300);
const IDLE_ONE: Duration = Duration::from_secs(60);
/// How far the two clocks may drift apart while nobody slept.
const DRIFT: Duration = Duration::from_secs(10);
/// How many unused connections to one origin are kept.
const MAX_IDLE: usize = 256;
/// How long opening a connection may take, all of it.
const CONNECT: Duration = Duration::from_secs(10);

/// An HTTP client. A clone is another handle on the same connections.
#[derive(Debug, Clone)]
pub struct Transport {
    shared: Arc<Shared>,
}

/// How connections are opened.
#[derive(Debug, Default, Clone, Copy)]
pub struct TransportOptions<'a> {
    /// A PEM file of certificates that are trusted beside the system's.
    pub cacert: Option<&'a Path>,
}

/// Why there is no transport.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file of certificates.
    #[error(transparent)]
    Ca(#[from] CaError),
    /// The proxy variables.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The URL names no host that could be asked.
    #[error("`{0}` is not an http or https URL with a host")]
    Url(String),
    /// The server's address was not found, or nobody listens there.
    #[error("could not connect to {origin}")]
    Connect {
        /// Where to.
        origin: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Nothing came of it in time.
    #[error("could not connect to {origin} within {} s", CONNECT.as_secs())]
    ConnectTimeout {
        /// Where to.
        origin: String,
    },
    /// The server could not prove who it is, or no common way to speak was found.
    #[error("could not open a TLS connection to {origin}")]
    Tls {
        /// Where to.
        origin: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The proxy on the way refused.
    #[error("the proxy {proxy} did not open the way")]
    Proxy {
        /// Which proxy.
        proxy: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The request may have arrived; its answer did not.
    #[error("the connection to {origin} broke before the answer")]
    Broken {
        /// Where to.
        origin: String,
        /// Why.
        source: hyper::Error,
    },
    /// The answer began and broke off.
    #[error("the answer broke off")]
    Cut(#[source] hyper::Error),
    /// The answer began and then nothing more came.
    #[error("the server was silent for {0:?}")]
    Silent(Duration),
    /// The answer is longer than the reader wants.
    #[error("the answer has more than {cap} bytes")]
    TooLarge {
        /// What the reader wanted at most.
        cap: usize,
    },
}

impl TransportError {
    /// Whether the server certainly saw nothing of the request.
    pub fn never_sent(&self) -> bool {
        !matches!(
            self,
            Self::Broken { .. } | Self::Cut(_) | Self::Silent(_) | Self::TooLarge { .. }
        )
    }
}

/// Where a connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) https: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Origin {
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let https = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = uri.host().filter(|host| !host.is_empty())?.to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        Some(Self { https, host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, usual) = if self.https { ("https", 443) } else { ("http", 80) };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == usual { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

#[derive(Debug)]
struct Shared {
    tls: Tls,
    proxies: ProxySettings,
    kept: Mutex<HashMap<Origin, Kept>>,
    /// The connections, each driven by a task that ends with it.
    tasks: TaskTracker,
}

/// The open connections to one origin, each with until when it is trusted.
#[derive(Debug, Default)]
struct Kept {
    idle: Vec<(http1::SendRequest<Full<Bytes>>, Trust)>,
    many: Option<(http2::SendRequest<Full<Bytes>>, Trust)>,
}

/// When a connection was last used, and how long it is trusted from then on.
#[derive(Debug, Clone, Copy)]
struct Trust {
    wall: SystemTime,
    since: Instant,
    limit: Duration,
}

impl Trust {
    fn from_now(limit: Duration) -> Self {
        Self { wall: SystemTime::now(), since: Instant::now(), limit }
    }

    /// Not where this machine slept meanwhile: one clock stood still then, the other did not,
    /// and the connections are dead.
    fn holds(&self) -> bool {
        let age = self.since.elapsed();
        let by_the_wall = SystemTime::now().duration_since(self.wall).unwrap_or(Duration::MAX);
        age < self.limit && by_the_wall < age.saturating_add(DRIFT)
    }
}

impl Transport {
    /// Connects directly or through the proxies of the environment.
    pub fn new(options: TransportOptions<'_>) -> Result<Self, SetupError> {
        Self::with_proxies(options, ProxySettings::from_env()?)
    }

    /// Connects through the given proxies.
    pub fn with_proxies(
        options: TransportOptions<'_>,
        proxies: ProxySettings,
    ) -> Result<Self, SetupError> {
        let tls = options.cacert.map(Tls::trusting).transpose()?.unwrap_or_default();
        let shared = Shared { tls, proxies, kept: Mutex::default(), tasks: TaskTracker::new() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sends `request`, whose URI is absolute, and waits for the head of its answer. There is no
    /// time limit but the one on connecting: the caller knows how long it wants to wait.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let origin = Origin::of(request.uri())
            .ok_or_else(|| TransportError::Url(request.uri().to_string()))?;
        let mut request = request.map(Full::new);
        while let Some(sender) = self.shared.take(&origin).await {
            match self.send_on(sender, request, &origin).await? {
                Sent::Answer(response) => return Ok(response),
                Sent::NeverLeft(back) => request = back,
            }
        }
        // On the heap: most requests find a connection and need not carry the room for this.
        let sender = Box::pin(self.connect(&origin)).await?;
        if let Sender::Many(many) = &sender {
            self.shared.share(&origin, many.clone());
        }
        match self.send_on(sender, request, &origin).await? {
            Sent::Answer(response) => Ok(response),
            Sent::NeverLeft(_) => Err(TransportError::Connect {
                origin: origin.to_string(),
                source: "the server closed the new connection at once".into(),
            }),
        }
    }

    async fn connect(&self, origin: &Origin) -> Result<Sender, TransportError> {
        let shared = &*self.shared;
        let opened = connect(origin, &shared.proxies, &shared.tls, &shared.tasks);
        tokio::time::timeout(CONNECT, opened)
            .await
            .map_err(|_| TransportError::ConnectTimeout { origin: origin.to_string() })?
    }

    async fn send_on(
        &self,
        sender: Sender,
        request: Request<Full<Bytes>>,
        origin: &Origin,
    ) -> Result<Sent, TransportError> {
        let (answer, one) = match sender {
            Sender::One(mut sender) => {
                let answer = sender.try_send_request(to_origin_form(request)).await;
                (answer, Some(sender))
            }
            Sender::Many(mut sender) => (sender.try_send_request(request).await, None),
        };
        match answer {
            Ok(response) => {
                let limit = announced_idle(response.headers());
                let home = one.map(|sender| Home {
                    sender,
                    origin: origin.clone(),
                    shared: Arc::clone(&self.shared),
                    limit,
                });
                Ok(Sent::Answer(response.map(|incoming| Body::new(incoming, home))))
            }
            Err(mut error) => match error.take_message() {
                Some(request) => Ok(Sent::NeverLeft(to_absolute_form(request, origin))),
                None => Err(TransportError::Broken {
                    origin: origin.to_string(),
                    source: error.into_error(),
                }),
            },
        }
    }
}

enum Sent {
    Answer(Response<Body>),
    NeverLeft(Request<Full<Bytes>>),
}

/// HTTP/1.1 names the host in a header and the path in the first line.
fn to_origin_form(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    if let Some(authority) = request.uri().authority()
        && !request.headers().contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(without_user(authority.as_str()))
    {
        request.headers_mut().insert(HOST, host);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    if let Ok(path) = Uri::try_from(path) {
        *request.uri_mut() = path;
    }
    request
}

/// Undoes `to_origin_form` for a request that comes back.
fn to_absolute_form(mut request: Request<Full<Bytes>>, origin: &Origin) -> Request<Full<Bytes>> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    if let Ok(uri) = Uri::try_from(format!("{origin}{path}")) {
        *request.uri_mut() = uri;
    }
    request.headers_mut().remove(HOST);
    request
}

/// How long the server keeps an unused connection, by its own word, less the time that a
/// request may be under way when it closes it.
fn announced_idle(headers: &HeaderMap) -> Duration {
    let announced = headers.get("keep-alive").and_then(|value| value.to_str().ok());
    let seconds = announced.and_then(|text| {
        let timeout = text.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
        timeout.trim().parse().ok()
    });
    seconds.map_or(IDLE_ONE, |seconds: u64| {
        IDLE_ONE.min(Duration::from_secs(seconds).saturating_sub(Duration::from_secs(1)))
    })
}

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, HashMap<Origin, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An open connection that can take a request now.
    async fn take(&self, origin: &Origin) -> Option<Sender> {
        loop {
            match self.take_any(origin)? {
                Sender::One(mut sender) => {
                    if sender.ready().await.is_ok() {
                        return Some(Sender::One(sender));
                    }
                }
                Sender::Many(mut sender) => {
                    if sender.ready().await.is_ok() {
                        return Some(Sender::Many(sender));
                    }
                    self.forget(origin);
                }
            }
        }
    }

    fn take_any(&self, origin: &Origin) -> Option<Sender> {
        let mut kept = self.kept();
        let kept = kept.get_mut(origin)?;
        if let Some((many, trust)) = &mut kept.many {
            if !many.is_closed() && trust.holds() {
                *trust = Trust::from_now(IDLE_MANY);
                return Some(Sender::Many(many.clone()));
            }
            kept.many = None;
        }
        while let Some((sender, trust)) = kept.idle.pop() {
            if !sender.is_closed() && trust.holds() {
                return Some(Sender::One(sender));
            }
        }
        None
    }

    fn share(&self, origin: &Origin, sender: http2::SendRequest<Full<Bytes>>) {
        let mut kept = self.kept();
        let kept = kept.entry(origin.clone()).or_default();
        kept.many = Some((sender, Trust::from_now(IDLE_MANY)));
    }

    fn forget(&self, origin: &Origin) {
        if let Some(kept) = self.kept().get_mut(origin) {
            kept.many = None;
        }
    }

    fn give_back(&self, home: Home) {
        let mut kept = self.kept();
        let kept = kept.entry(home.origin).or_default();
        if kept.idle.len() < MAX_IDLE {
            kept.idle.push((home.sender, Trust::from_now(home.limit)));
        }
    }
}

/// Where an HTTP/1.1 connection goes once its answer has been read.
#[derive(Debug)]
struct Home {
    sender: http1::SendRequest<Full<Bytes>>,
    origin: Origin,
    shared: Arc<Shared>,
    /// How long it is trusted there.
    limit: Duration,
}

impl Home {
    fn go(self) {
        let shared = Arc::clone(&self.shared);
        shared.give_back(self);
    }
}

/// The answer's body. Read to its end, its connection serves the next request; dropped before,
/// the server sees that nobody listens.
#[derive(Debug)]
pub struct Body {
    incoming: Incoming,
    home: Option<Home>,
}

impl Body {
    fn new(incoming: Incoming, home: Option<Home>) -> Self {
        let mut body = Self { incoming, home };
        body.go_home_at_the_end();
        body
    }

    fn go_home_at_the_end(&mut self) {
        if self.incoming.is_end_stream()
            && let Some(home) = self.home.take()
        {
            home.go();
        }
    }

    /// The next bytes, none at the end. May be dropped and called again.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, TransportError> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// All of it, where it is not longer than `cap`.
    pub async fn collect(self, cap: usize) -> Result<Bytes, TransportError> {
        self.collect_within(cap, None).await
    }

    /// All of it, where it is not longer than `cap` and no pause in it is longer than `silence`.
    pub async fn collect_within(
        mut self,
        cap: usize,
        silence: Option<Duration>,
    ) -> Result<Bytes, TransportError> {
        let expected = self.incoming.size_hint().lower();
        if expected > cap as u64 {
            return Err(TransportError::TooLarge { cap });
        }
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        while let Some(next) = self.chunk_within(silence).await? {
            if first.len().max(whole.len()) + next.len() > cap {
                return Err(TransportError::TooLarge { cap });
            }
            if first.is_empty() && whole.is_empty() {
                // What comes in one piece is not copied.
                first = next;
                continue;
            }
            if whole.is_empty() {
                let expected = usize::try_from(expected).unwrap_or(cap);
                whole.reserve(expected.max(2 * (first.len() + next.len())));
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&next);
        }
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }

    /// The next bytes, none at the end, where they come within `silence`.
    pub async fn chunk_within(
        &mut self,
        silence: Option<Duration>,
    ) -> Result<Option<Bytes>, TransportError> {
        match silence {
            None => self.chunk().await,
            Some(limit) => tokio::time::timeout(limit, self.chunk())
                .await
                .unwrap_or(Err(TransportError::Silent(limit))),
        }
    }

    /// The beginning of it, at most `cap` bytes, for a message to a person.
    pub async fn beginning(mut self, cap: usize) -> Bytes {
        let mut start = BytesMut::new();
        while start.len() < cap {
            match self.chunk().await {
                Ok(Some(chunk)) => {
                    start.extend_from_slice(&chunk[..chunk.len().min(cap - start.len())]);
                }
                _ => break,
            }
        }
        start.freeze()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(context));
        match frame {
            Some(Ok(frame)) => {
                self.go_home_at_the_end();
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.home = None;
                Poll::Ready(Some(Err(TransportError::Cut(error))))
            }
            None => {
                if let Some(home) = self.home.take() {
                    home.go();
                }
                Poll::Ready(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(age: Duration, by_the_wall: Duration) -> Trust {
        Trust {
            wall: SystemTime::now() - by_the_wall,
            since: Instant::now() - age,
            limit: IDLE_ONE,
        }
    }

    #[tokio::test]
    async fn connections_that_are_old_or_slept_through_are_not_trusted() {
        let second = Duration::from_secs(1);
        assert!(trust(second, second).holds());
        assert!(!trust(IDLE_ONE + second, IDLE_ONE + second).holds(), "too old");
        assert!(!trust(second, Duration::from_secs(3600)).holds(), "the machine slept");
        let mut early = trust(second, second);
        early.wall = SystemTime::now() + Duration::from_secs(60);
        assert!(!early.holds(), "the clock was set back");
    }

    #[test]
    fn a_server_that_says_how_long_it_waits_is_believed() {
        let idle = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("keep-alive", HeaderValue::from_static(text));
            announced_idle(&headers)
        };
        assert_eq!(idle("timeout=5, max=100"), Duration::from_secs(4));
        assert_eq!(idle("timeout=0"), Duration::ZERO);
        assert_eq!(idle("timeout=9999"), IDLE_ONE);
        assert_eq!(idle("max=100"), IDLE_ONE);
        assert_eq!(announced_idle(&HeaderMap::new()), IDLE_ONE);
    }
}
