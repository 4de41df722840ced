//! An MCP client at the other end of a pump.

use std::sync::Arc;
use std::time::Duration;

use cofer_mcp::http::{
    Authorizer, ProxySettings, Remote, Transport, TransportOptions, Unattended, Unsigned, pump,
};
use cofer_mcp::{Frame, LineReader};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::server::Server;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    input: Option<DuplexStream>,
    output: LineReader<DuplexStream>,
    pub(crate) stop: CancellationToken,
    tasks: JoinSet<()>,
}

/// Where to, with nothing special about it.
pub(crate) fn remote(url: &str) -> Remote {
    let transport =
        Transport::with_proxies(TransportOptions::default(), ProxySettings::default()).unwrap();
    Remote {
        url: url.parse().unwrap(),
        headers: http::HeaderMap::new(),
        silence: PATIENCE,
        cap: 64 << 20,
        memory: cofer_model::Budget::unlimited(),
        source: "cofer-proxy".to_owned(),
        transport,
        authorizer: Arc::new(Unsigned),
        attendant: Arc::new(Unattended),
        redactor: Default::default(),
    }
}

pub(crate) fn signed(url: &str, authorizer: Arc<dyn Authorizer>) -> Remote {
    Remote { authorizer, ..remote(url) }
}

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        Self::start(remote(&server.url()))
    }

    pub(crate) fn start(remote: Remote) -> Self {
        let (input, pump_input) = tokio::io::duplex(64 * 1024);
        let (pump_output, output) = tokio::io::duplex(64 * 1024);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(pump(remote, pump_input, pump_output, stop.clone()));
        Self { input: Some(input), output: LineReader::new(output, 256 << 20), stop, tasks }
    }

    pub(crate) async fn write(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    /// The next line, as it is.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let next = tokio::time::timeout(PATIENCE, self.output.next());
        match next.await.expect("the pump says something").unwrap()? {
            Frame::Line(line) => Some(String::from_utf8(line.to_vec()).unwrap()),
            Frame::TooLong { .. } | Frame::Unaffordable { .. } => panic!("a line that long"),
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = self.line().await.expect("the pump is still there");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    }

    /// Sends a request and reads its answer, which must be the next thing said.
    pub(crate) async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id = id.into();
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Opens the conversation as clients of the older era do.
    pub(crate) async fn open(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = self.ask(0, "initialize", params).await;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        answer
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Everything that is still said, once the pump has ended.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(line) = self.line().await {
            all.push(serde_json::from_str(&line).unwrap());
        }
        let ended = tokio::time::timeout(PATIENCE, self.tasks.join_next());
        ended.await.expect("the pump ends").expect("there is one").unwrap();
        all
    }

    /// Closes the output, asks once more, and tells whether the pump ends over it.
    pub(crate) async fn hang_up(self) -> bool {
        let Self { input, output, mut tasks, .. } = self;
        drop(output);
        let mut input = input.expect("the input is open");
        input.write_all(b"{\"id\":99,\"method\":\"x\"}\n").await.unwrap();
        tokio::time::timeout(PATIENCE, tasks.join_next()).await.is_ok()
    }

    /// Asserts that nothing more is said: a question that is answered comes first.
    pub(crate) async fn nothing_before(&mut self, id: u64) {
        let answer = self.ask(id, "ping", json!({})).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
}

/// A request of the newer era.
pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}
