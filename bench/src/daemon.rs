//! The daemon under measurement: started on an empty data directory, spoken to over its API.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::ChildStdout;
use tokio::time::{Instant, timeout};

use crate::http::{self, Connection};
use crate::message;
use crate::process::{Running, command};

const READY: &str = "cofer: listening on http://127.0.0.1:";

/// A running daemon with a data directory of its own.
#[derive(Debug)]
pub struct Daemon {
    running: Running,
    /// Kept open: a daemon whose reader has gone may not like it.
    _stdout: BufReader<ChildStdout>,
    _data: TempDir,
    token: String,
    /// Where it listens.
    pub port: u16,
    /// From the start of the program to its ready line.
    pub start: Duration,
}

impl Daemon {
    /// Starts it and waits for its ready line.
    pub async fn start(cofer: &Path) -> io::Result<Self> {
        let data = TempDir::with_prefix("cofer-bench-")?;
        let mut serve = command(cofer);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data.path());
        let begin = Instant::now();
        let mut running = Running::start(serve.stdout(Stdio::piped()))?;
        let stdout = running.child().stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        timeout(Duration::from_secs(30), stdout.read_line(&mut line)).await??;
        let start = begin.elapsed();
        let port = line.trim().strip_prefix(READY).and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| io::Error::other(format!("not a ready line: {line:?}")))?;
        let token = std::fs::read_to_string(data.path().join("token"))?.trim().to_owned();
        Ok(Self { running, _stdout: stdout, _data: data, token, port, start })
    }

    /// Registers a stdio server and waits until it is ready.
    pub async fn register(&self, name: &str, program: &Path, max_in_flight: u32) -> io::Result<()> {
        let body =
            json!({"name": name, "command": program, "args": [], "max_in_flight": max_in_flight});
        self.register_as(&body).await
    }

    /// Registers any server and waits until it is ready.
    pub async fn register_as(&self, body: &Value) -> io::Result<()> {
        let server = self.post("/api/v1/mcp/servers?wait=55", &body.to_string()).await?;
        match &server["status"] {
            Value::String(status) if status == "ready" => Ok(()),
            _ => Err(io::Error::other(format!("a server did not become ready: {server}"))),
        }
    }

    /// Switches a server off and waits until it has ended.
    pub async fn disable(&self, name: &str) -> io::Result<()> {
        self.post(&format!("/api/v1/mcp/servers/{name}/disable?wait=30"), "").await?;
        Ok(())
    }

    async fn post(&self, path: &str, body: &str) -> io::Result<Value> {
        let authorization = self.authorization();
        let request = http::post(self.port, path, &[("Authorization", &authorization)], body);
        let mut connection = Connection::open(self.port).await?;
        connection.call(&request).await?;
        Ok(serde_json::from_slice(connection.body())?)
    }

    /// The bytes of `POST …/call`.
    pub fn call_request(&self, server: &str, body: &str) -> Vec<u8> {
        let path = format!("/api/v1/mcp/servers/{server}/call");
        http::post(self.port, &path, &[("Authorization", &self.authorization())], body)
    }

    /// Opens a session with one server at the gateway.
    pub async fn open_session(&self, server: &str) -> io::Result<String> {
        let mut connection = Connection::open(self.port).await?;
        connection.call(&self.gateway_request(server, None, message::INITIALIZE)).await?;
        let session = connection.header("mcp-session-id").map(str::to_owned);
        let session = session.ok_or_else(|| io::Error::other("the gateway named no session"))?;
        let opened = self.gateway_request(server, Some(&session), message::INITIALIZED);
        connection.call(&opened).await?;
        Ok(session)
    }

    /// The bytes of a message to one server at the gateway.
    pub fn gateway_request(&self, server: &str, session: Option<&str>, body: &str) -> Vec<u8> {
        let authorization = self.authorization();
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream"),
            ("Authorization", authorization.as_str()),
        ];
        if let Some(session) = session {
            headers.extend([("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-06-18")]);
        }
        http::post(self.port, &format!("/mcp/{server}"), &headers, body)
    }

    /// The bytes that open a session's stream.
    pub fn listen_request(&self, server: &str, session: &str) -> Vec<u8> {
        let (port, authorization) = (self.port, self.authorization());
        format!(
            "GET /mcp/{server} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\
             Authorization: {authorization}\r\nMcp-Session-Id: {session}\r\n\
             MCP-Protocol-Version: 2025-06-18\r\n\r\n"
        )
        .into_bytes()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(self) -> io::Result<()> {
        self.running.stop().await
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }
}
