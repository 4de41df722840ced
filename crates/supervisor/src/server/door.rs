//! The port of a server that has no stdio bridge: whether somebody listens there, and whether
//! MCP is spoken over Streamable HTTP. Where it is, the conversation becomes two byte streams
//! in memory, and the rest of the supervisor sees a bridge like every other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cofer_mcp::http::{
    ProxySettings, Remote, Transport, TransportOptions, Unattended, Unsigned, pump,
};
use cofer_mcp::{Bridge, BridgeConfig, HandshakeError, Listener, handshake};
use cofer_model::PeerInfo;
use cofer_runtime::{ByteSink, ByteSource};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::failure::NotReady;
use crate::launch::Door;

/// What errors that are made on this side of the door name as their source.
pub(crate) const SOURCE: &str = "cofer";

/// Where MCP is looked for where nobody said where it is.
const USUAL_PATHS: [&str; 2] = ["/mcp", "/"];
/// The pause between two looks at a port that is closed.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection has to last to count as one.
const LASTING: Duration = Duration::from_millis(200);

/// How long an open port may take to speak MCP before it is taken for one that does not.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// With answers that are no MCP: some servers listen before all of their routes are there.
    refused: Duration,
    /// Without any answer.
    silent: Duration,
}

const PATIENCE: Patience =
    Patience { refused: Duration::from_secs(2), silent: Duration::from_secs(10) };

/// What is on its way between the bridge and the pump.
const BUFFER: usize = 256 * 1024;
/// The bridge has its own time limits; the pump's only ends what the bridge gave up long ago.
const SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// What a conversation needs beside its streams.
#[derive(Clone)]
pub(super) struct Speaking {
    pub(super) config: BridgeConfig,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) tasks: TaskTracker,
}

/// What was found behind a door.
pub(super) enum Found {
    /// A server that speaks MCP at `url`.
    Mcp { talk: HttpTalk, peer: Box<PeerInfo>, url: String },
    /// A port that is open; what is spoken there is between the server and its clients. Where
    /// it is HTTP, it can be asked for a sign of life.
    OpenPort { http: bool },
}

/// A conversation over HTTP. Dropping it ends it.
pub(super) struct HttpTalk {
    pub(super) bridge: Bridge,
    pub(super) hang_up: DropGuard,
}

impl Speaking {
    /// A conversation over two byte streams.
    pub(super) fn over(&self, stdout: ByteSource, stdin: ByteSink) -> Bridge {
        Bridge::start(stdout, stdin, self.config.clone(), Arc::clone(&self.listener), &self.tasks)
    }

    /// A conversation with the server at `url`.
    pub(super) fn over_http(&self, url: &str) -> Result<HttpTalk, HandshakeError> {
        let failed = |reason: String| HandshakeError::Nonsense { method: "initialize", reason };
        // What runs on this machine is never reached through a proxy.
        let proxies = ProxySettings::default();
        let transport = Transport::with_proxies(TransportOptions::default(), proxies);
        let remote = Remote {
            url: url.parse().map_err(|_| failed(format!("`{url}` is no URL")))?,
            headers: Default::default(),
            silence: SILENCE,
            cap: self.config.max_message,
            memory: Arc::clone(&self.config.memory),
            source: SOURCE.to_owned(),
            transport: transport.map_err(|error| failed(error.to_string()))?,
            authorizer: Arc::new(Unsigned),
            attendant: Arc::new(Unattended),
            redactor: Default::default(),
        };
        let (ours, theirs) = duplex(BUFFER);
        let (input, output) = split(theirs);
        let stop = CancellationToken::new();
        self.tasks.spawn(pump(remote, input, output, stop.clone()));
        let (stdout, stdin) = split(ours);
        let bridge = self.over(Box::new(stdout), Box::new(stdin));
        Ok(HttpTalk { bridge, hang_up: stop.drop_guard() })
    }
}

/// Waits until the door is open, and finds out what is behind it.
pub(super) async fn open(
    door: &Door,
    speaking: &Speaking,
    deadline: Instant,
) -> Result<Found, NotReady> {
    let begun = Instant::now();
    if timeout_at(deadline, until_open(door.address)).await.is_err() {
        let waited = begun.elapsed();
        return Err(NotReady::DoorClosed { port: door.port, address: door.address, waited });
    }
    find_mcp(door, speaking, deadline, PATIENCE).await
}

async fn find_mcp(
    door: &Door,
    speaking: &Speaking,
    deadline: Instant,
    patience: Patience,
) -> Result<Found, NotReady> {
    let begun = Instant::now();
    // A port at which MCP is expected has until the end to speak it.
    let (silent, refused) = match door.path {
        Some(_) => (deadline, deadline),
        None => (deadline.min(begun + patience.silent), deadline.min(begun + patience.refused)),
    };
    let mut said = None;
    loop {
        let refusal = match try_paths(door, speaking, silent).await {
            Ok(found) => return Ok(found),
            Err(refusal) => refusal,
        };
        let is_silent = matches!(refusal, HandshakeError::Silent { .. });
        // What it said before tells more than that the end of the wait cut the last attempt off.
        let refusal = said.take().filter(|_| is_silent).unwrap_or(refusal);
        if is_silent || Instant::now() + PAUSE >= refused {
            return match door.path {
                Some(_) => Err(NotReady::Handshake(refusal)),
                None => {
                    let http = timeout(patience.refused, answers_http(door.address)).await;
                    Ok(Found::OpenPort { http: http.unwrap_or(false) })
                }
            };
        }
        said = Some(refusal);
        sleep(PAUSE).await;
    }
}

/// The first path at which MCP is spoken, or why none is.
async fn try_paths(
    door: &Door,
    speaking: &Speaking,
    deadline: Instant,
) -> Result<Found, HandshakeError> {
    let usual = USUAL_PATHS.map(str::to_owned);
    let paths = door.path.as_ref().map_or(&usual[..], std::slice::from_ref);
    let mut refusal = HandshakeError::Ended;
    for path in paths {
        let url = format!("http://{}{path}", door.address);
        let talk = speaking.over_http(&url)?;
        let left = deadline.saturating_duration_since(Instant::now());
        match handshake(&talk.bridge, left).await {
            Ok(peer) => return Ok(Found::Mcp { talk, peer: Box::new(peer), url }),
            // Who says nothing at one path will not say more at another.
            Err(silent @ HandshakeError::Silent { .. }) => return Err(silent),
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

async fn until_open(address: SocketAddr) {
    while !is_open(address).await {
        sleep(PAUSE).await;
    }
}

/// Whether somebody listens there. An engine's forwarder takes every connection, and closes
/// it again where nobody listens behind it: so that a connection has to last to count.
pub(super) async fn is_open(address: SocketAddr) -> bool {
    let Ok(mut connection) = TcpStream::connect(address).await else {
        return false;
    };
    let mut byte = [0];
    match timeout(LASTING, connection.read(&mut byte)).await {
        Ok(Ok(0) | Err(_)) => false,
        Ok(Ok(_)) | Err(_) => true,
    }
}

/// Whether somebody answers HTTP there, whatever the answer.
pub(super) async fn answers_http(address: SocketAddr) -> bool {
    let Ok(mut connection) = TcpStream::connect(address).await else {
        return false;
    };
    let request = format!("HEAD / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut start = [0; 5];
    connection.write_all(request.as_bytes()).await.is_ok()
        && connection.read_exact(&mut start).await.is_ok()
        && start == *b"HTTP/"
}

#[cfg(test)]
#[path = "door_tests.rs"]
mod tests;
