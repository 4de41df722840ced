//! Sends HTTP requests over connections that are kept and used again.
//!
//! A request that never left is sent again on a new connection by itself: that a server closed
//! a connection while nothing was under way is no failure. One that may have arrived is not.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::Full;
use tokio_util::task::TaskTracker;

use super::body::Body;
use super::connect::{Sender, connect};
use super::pool::{Home, Pool, announced_idle};
use super::proxy_env::{ProxyError, ProxySettings};
use super::tls::{CaError, Tls};

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
    /// The memory budget has no room for the answer.
    #[error("the memory limit of {limit} bytes has no room for the answer")]
    OutOfMemory {
        /// The limit, in bytes.
        limit: u64,
    },
}

impl TransportError {
    /// Whether nobody listens where the request was to go.
    pub fn is_nobody_there(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::ConnectTimeout { .. })
    }

    /// Whether the server certainly saw nothing of the request.
    pub fn never_sent(&self) -> bool {
        !matches!(
            self,
            Self::Broken { .. }
                | Self::Cut(_)
                | Self::Silent(_)
                | Self::TooLarge { .. }
                | Self::OutOfMemory { .. }
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
    pool: Arc<Pool>,
    /// The connections, each driven by a task that ends with it.
    tasks: TaskTracker,
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
        let shared = Shared { tls, proxies, pool: Arc::default(), tasks: TaskTracker::new() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sends `request`, whose URI is absolute, and waits for the head of its answer. There is no
    /// time limit but the one on connecting: the caller knows how long it wants to wait.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let origin = Origin::of(request.uri())
            .ok_or_else(|| TransportError::Url(request.uri().to_string()))?;
        let mut request = request.map(Full::new);
        while let Some(sender) = self.shared.pool.take(&origin).await {
            match self.send_on(sender, request, &origin).await? {
                Sent::Answer(response) => return Ok(response),
                Sent::NeverLeft(back) => request = back,
            }
        }
        // On the heap: most requests find a connection and need not carry the room for this.
        let sender = Box::pin(self.connect(&origin)).await?;
        if let Sender::Many(many) = &sender {
            self.shared.pool.share(&origin, many.clone());
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
                    pool: Arc::clone(&self.shared.pool),
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

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}
