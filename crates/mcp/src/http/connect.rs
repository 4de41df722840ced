//! Opens a connection to an origin: TCP, a tunnel through a proxy where one is set, TLS for
//! https, and then HTTP/2 where the server speaks it, else HTTP/1.1.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Uri;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use super::proxy_env::ProxySettings;
use super::tls::{Tls, TrustError};
use super::transport::{Origin, TransportError};

/// How long a peer may be silent on an open connection before it is asked whether it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(10);
/// How long one address is tried before the next is tried too.
const HEAD_START: Duration = Duration::from_millis(250);
/// The longest answer of a proxy to CONNECT that is read.
const MAX_TUNNEL_HEAD: usize = 16 * 1024;
/// How much of a stream may be under way before we say that we have read it.
const WINDOW: u32 = 2 * 1024 * 1024;

/// What requests are sent on.
#[derive(Debug)]
pub(super) enum Sender {
    /// One request at a time.
    One(http1::SendRequest<Full<Bytes>>),
    /// Any number at a time.
    Many(http2::SendRequest<Full<Bytes>>),
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection to `origin`, which is driven by a task of `tasks`.
pub(super) async fn connect(
    origin: &Origin,
    proxies: &ProxySettings,
    tls: &Tls,
    tasks: &TaskTracker,
) -> Result<Sender, TransportError> {
    if origin.https {
        // On the heap: a plain connection need not carry the room for this.
        return Box::pin(connect_securely(origin, proxies, tls, tasks)).await;
    }
    let stream = tcp(&origin.host, origin.port, origin).await?;
    http1_over(stream, origin, tasks).await
}

async fn connect_securely(
    origin: &Origin,
    proxies: &ProxySettings,
    tls: &Tls,
    tasks: &TaskTracker,
) -> Result<Sender, TransportError> {
    let stream: Box<dyn Stream> = match proxies.on_the_way_to(&origin.host, origin.port) {
        None => Box::new(tcp(&origin.host, origin.port, origin).await?),
        Some(proxy) => tunnel(proxy, origin, tls).await?,
    };
    let stream = secure(stream, origin, tls.config().await).await?;
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        return http2_over(stream, origin, tasks).await;
    }
    http1_over(stream, origin, tasks).await
}

async fn tcp(host: &str, port: u16, origin: &Origin) -> Result<TcpStream, TransportError> {
    let failed = |error: io::Error| TransportError::Connect {
        origin: origin.to_string(),
        source: error.into(),
    };
    let host = host.trim_matches(['[', ']']);
    let addresses = lookup_host((host, port)).await.map_err(failed)?.collect();
    let stream = first_to_answer(in_turns(addresses)).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let keep_alive =
        socket2::TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE_ANSWER);
    // Where it cannot be set, a dead peer is noticed by the time limit alone.
    if let Err(error) = socket2::SockRef::from(&stream).set_tcp_keepalive(&keep_alive) {
        tracing::debug!(%error, "no TCP keep-alive");
    }
    Ok(stream)
}

/// One kind of address after the other, the kind first that the system puts first.
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_kind = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_kind);
    let mut second = second.into_iter();
    let mut turns = Vec::new();
    for address in first {
        turns.push(address);
        turns.extend(second.next());
    }
    turns.extend(second);
    turns
}

/// Connects to whichever address answers first. Each has a head start before the next is tried,
/// so that one kind of network that is broken costs little.
async fn first_to_answer(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        match waiting.next() {
            Some(address) => attempts.push(TcpStream::connect(address)),
            None if attempts.is_empty() => return Err(failed),
            None => {}
        }
        tokio::select! {
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            },
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

async fn secure<S: Stream>(
    stream: S,
    origin: &Origin,
    config: Result<Arc<ClientConfig>, TrustError>,
) -> Result<tokio_rustls::client::TlsStream<S>, TransportError> {
    let failed = |source: Box<dyn Error + Send + Sync>| TransportError::Tls {
        origin: origin.to_string(),
        source,
    };
    let name = ServerName::try_from(origin.host.trim_matches(['[', ']']).to_owned())
        .map_err(|error| failed(error.into()))?;
    let config = config.map_err(|error| failed(error.into()))?;
    TlsConnector::from(config).connect(name, stream).await.map_err(|error| failed(error.into()))
}

/// Asks `proxy` for a way to `origin`.
async fn tunnel(
    proxy: &Uri,
    origin: &Origin,
    tls: &Tls,
) -> Result<Box<dyn Stream>, TransportError> {
    let https = proxy.scheme_str() == Some("https");
    let host = proxy.host().unwrap_or_default();
    let port = proxy.port_u16().unwrap_or(if https { 443 } else { 80 });
    let place = Origin { https, host: host.to_owned(), port };
    let stream = tcp(host, port, &place).await?;
    let mut stream: Box<dyn Stream> = if https {
        Box::new(secure(stream, &place, tls.config_for_proxies().await).await?)
    } else {
        Box::new(stream)
    };
    let failed = |source: Box<dyn Error + Send + Sync>| TransportError::Proxy {
        proxy: place.to_string(),
        source,
    };
    let target = format!("{}:{}", origin.host, origin.port);
    let credentials = proxy_credentials(proxy);
    let ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n");
    stream.write_all(ask.as_bytes()).await.map_err(|error| failed(error.into()))?;
    let status = tunnel_status(&mut stream).await.map_err(|error| failed(error.into()))?;
    if !status.split_ascii_whitespace().nth(1).is_some_and(|code| code.starts_with('2')) {
        return Err(failed(format!("it answered `{}`", status.trim_end()).into()));
    }
    Ok(stream)
}

fn proxy_credentials(proxy: &Uri) -> String {
    let authority = proxy.authority().map_or("", |authority| authority.as_str());
    let Some((user, _)) = authority.rsplit_once('@') else {
        return String::new();
    };
    format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(percent_decoded(user)))
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let pair = tail.get(..2).filter(|_| byte == b'%');
        let decoded =
            pair.and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        out.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &tail[2..] } else { tail };
    }
    out
}

/// The first line of the proxy's answer, once its head is read to the end and no further.
async fn tunnel_status(stream: &mut (dyn Stream + '_)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_TUNNEL_HEAD {
            return Err(io::Error::other("its answer has no end"));
        }
        head.push(stream.read_u8().await?);
    }
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

async fn http1_over<S: Stream + 'static>(
    stream: S,
    origin: &Origin,
    tasks: &TaskTracker,
) -> Result<Sender, TransportError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken_handshake(origin, error))?;
    tasks.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection broke");
        }
    });
    Ok(Sender::One(sender))
}

async fn http2_over<S: Stream + 'static>(
    stream: S,
    origin: &Origin,
    tasks: &TaskTracker,
) -> Result<Sender, TransportError> {
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken_handshake(origin, error))?;
    tasks.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection broke");
        }
    });
    Ok(Sender::Many(sender))
}

fn broken_handshake(origin: &Origin, error: hyper::Error) -> TransportError {
    TransportError::Connect { origin: origin.to_string(), source: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_addresses_take_turns() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let found = in_turns(addresses(&["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1"]));
        assert_eq!(found, addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]));
        let found = in_turns(addresses(&["1.1.1.1:1", "[::1]:1", "[::2]:1"]));
        assert_eq!(found, addresses(&["1.1.1.1:1", "[::1]:1", "[::2]:1"]));
    }

    #[tokio::test]
    async fn an_address_where_nobody_listens_costs_nothing() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let bad = "127.0.0.1:1".parse().unwrap();
        assert_eq!(first_to_answer(vec![bad, good]).await.unwrap().peer_addr().unwrap(), good);
        let error = first_to_answer(vec![bad]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(first_to_answer(vec![]).await.is_err());
    }

    #[test]
    fn a_password_for_the_proxy_is_sent_as_it_was_meant() {
        let proxy: Uri = "http://me:p%40ss@proxy:8080".parse().unwrap();
        let expected = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode("me:p@ss"));
        assert_eq!(proxy_credentials(&proxy), expected);
        assert_eq!(proxy_credentials(&"http://proxy:8080".parse().unwrap()), "");
    }
}
