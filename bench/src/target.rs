//! What is measured: the two limits, Cofer, and the peers, all asked for the same tool call.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{Instant, sleep};

use crate::daemon::Daemon;
use crate::direct::Direct;
use crate::http::{self, Connection};
use crate::message;
use crate::process::{Running, command, free_port};
use crate::sample::Sample;

/// The name of Cofer's row.
pub const COFER: &str = "cofer";
/// The name of the row of Cofer's gateway.
pub const GATEWAY: &str = "cofer gateway";
/// The name of the row of the server's own pipes.
pub const DIRECT: &str = "direct";
/// The name of the row of the handler with no server behind it.
pub const IN_PLACE: &str = "in place";

/// One thing that answers tool calls.
#[derive(Debug)]
pub struct Target {
    /// The row in the table.
    pub name: &'static str,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Pipes(Direct),
    InPlace {
        port: u16,
        running: Running,
    },
    Cofer(Daemon),
    /// With a session for the server of single callers, and one for the other.
    Gateway {
        daemon: Daemon,
        one: String,
        many: String,
    },
    Streamable {
        port: u16,
        session: Option<String>,
        running: Running,
    },
}

impl Target {
    /// The load client on the server's own pipes.
    pub async fn direct(bin: &Path) -> io::Result<Self> {
        Ok(Self { name: DIRECT, way: Way::Pipes(Direct::start(&bin.join("echo-server")).await?) })
    }

    /// A handler with no server behind it.
    pub async fn in_place(bin: &Path) -> io::Result<Self> {
        let mut running = Running::start(command(bin.join("in-place")).stdout(Stdio::piped()))?;
        let stdout = running.child().stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let port = line.trim().parse().map_err(io::Error::other)?;
        Ok(Self { name: IN_PLACE, way: Way::InPlace { port, running } })
    }

    /// The daemon, with one server for single callers and one that takes 64 requests at once.
    pub async fn cofer(bin: &Path) -> io::Result<Self> {
        let daemon = Daemon::start(&bin.join("cofer")).await?;
        daemon.register("one", &bin.join("echo-server"), 1).await?;
        daemon.register("many", &bin.join("echo-server"), 64).await?;
        Ok(Self { name: COFER, way: Way::Cofer(daemon) })
    }

    /// The same daemon, asked at `/mcp/NAME` as an MCP client does.
    pub async fn gateway(bin: &Path) -> io::Result<Self> {
        let daemon = Daemon::start(&bin.join("cofer")).await?;
        daemon.register("one", &bin.join("echo-server"), 1).await?;
        daemon.register("many", &bin.join("echo-server"), 64).await?;
        let one = daemon.open_session("one").await?;
        let many = daemon.open_session("many").await?;
        Ok(Self { name: GATEWAY, way: Way::Gateway { daemon, one, many } })
    }

    /// npm's supergateway.
    pub async fn supergateway(peers: &Path, bin: &Path) -> io::Result<Self> {
        let server = bin.join("echo-server").display().to_string();
        let port = free_port().await?;
        let mut start = command(peers.join("npm/node_modules/.bin/supergateway"));
        start.args(["--stdio", &server, "--outputTransport", "streamableHttp", "--stateful"]);
        start.args(["--logLevel", "none", "--port", &port.to_string()]);
        Self::streamable("supergateway", port, Running::start(&mut start)?).await
    }

    /// npm's mcp-proxy.
    pub async fn mcp_proxy_npm(peers: &Path, bin: &Path) -> io::Result<Self> {
        let port = free_port().await?;
        let mut start = command(peers.join("npm/node_modules/.bin/mcp-proxy"));
        start.args(["--host", "127.0.0.1", "--server", "stream", "--port", &port.to_string()]);
        start.arg("--").arg(bin.join("echo-server"));
        Self::streamable("mcp-proxy (npm)", port, Running::start(&mut start)?).await
    }

    /// PyPI's mcp-proxy.
    pub async fn mcp_proxy_pypi(peers: &Path, bin: &Path) -> io::Result<Self> {
        let port = free_port().await?;
        let mut start = command(peers.join("venv/bin/mcp-proxy"));
        start.args(["--host", "127.0.0.1", "--log-level", "ERROR", "--port", &port.to_string()]);
        start.arg("--").arg(bin.join("echo-server"));
        Self::streamable("mcp-proxy (PyPI)", port, Running::start(&mut start)?).await
    }

    /// Waits until a Streamable HTTP server answers, and opens a session.
    async fn streamable(name: &'static str, port: u16, running: Running) -> io::Result<Self> {
        let begin = Instant::now();
        loop {
            match open_session(port).await {
                Ok(session) => {
                    return Ok(Self { name, way: Way::Streamable { port, session, running } });
                }
                Err(_) if begin.elapsed() < Duration::from_secs(30) => {
                    sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
            }
        }
    }

    /// Tool calls of that size from that many callers for that time.
    pub async fn load(
        &mut self,
        size: usize,
        callers: usize,
        time: Duration,
    ) -> io::Result<Sample> {
        let text = message::text(size);
        let (port, requests) = match &mut self.way {
            Way::Pipes(direct) => return direct.load(size, callers, time).await,
            Way::InPlace { port, .. } => {
                let request = http::post(*port, "/call", &[], &message::call_body(size));
                (*port, vec![request; callers])
            }
            Way::Cofer(daemon) => {
                let server = if callers == 1 { "one" } else { "many" };
                (daemon.port, vec![daemon.call_request(server, &message::call_body(size)); callers])
            }
            Way::Gateway { daemon, one, many } => {
                let (server, session) = if callers == 1 { ("one", one) } else { ("many", many) };
                let request =
                    |id| daemon.gateway_request(server, Some(session), &message::request(id, size));
                (daemon.port, (1..=callers).map(request).collect())
            }
            Way::Streamable { port, session, .. } => {
                // An id of its own per caller: they share a session.
                let ids = 1..=callers;
                (
                    *port,
                    ids.map(|id| {
                        streamable_request(*port, session.as_deref(), &message::request(id, size))
                    })
                    .collect(),
                )
            }
        };
        http::load(port, requests, &text, time).await
    }

    /// Ends what was started for it.
    pub async fn stop(self) -> io::Result<()> {
        match self.way {
            Way::Pipes(direct) => direct.stop().await,
            Way::Cofer(daemon) | Way::Gateway { daemon, .. } => daemon.stop().await,
            Way::InPlace { running, .. } | Way::Streamable { running, .. } => running.kill().await,
        }
    }

    /// The daemon's process, where this is Cofer.
    pub fn daemon_pid(&self) -> Option<u32> {
        match &self.way {
            Way::Cofer(daemon) => Some(daemon.pid()),
            Way::Pipes(_) | Way::InPlace { .. } | Way::Gateway { .. } | Way::Streamable { .. } => {
                None
            }
        }
    }
}

async fn open_session(port: u16) -> io::Result<Option<String>> {
    let mut connection = Connection::open(port).await?;
    connection.call(&streamable_request(port, None, message::INITIALIZE)).await?;
    let session = connection.header("mcp-session-id").map(str::to_owned);
    connection.call(&streamable_request(port, session.as_deref(), message::INITIALIZED)).await?;
    Ok(session)
}

fn streamable_request(port: u16, session: Option<&str>, body: &str) -> Vec<u8> {
    let mut headers = vec![("Accept", "application/json, text/event-stream")];
    if let Some(session) = session {
        headers.push(("Mcp-Session-Id", session));
        headers.push(("MCP-Protocol-Version", "2025-06-18"));
    }
    http::post(port, "/mcp", &headers, body)
}
