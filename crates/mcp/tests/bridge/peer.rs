//! The server's side of a bridge, which the test plays itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{Bridge, BridgeConfig, CallError, Listener, Request};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio_util::task::TaskTracker;

/// What the bridge's listener heard.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) noise: Mutex<Vec<String>>,
    pub(super) notified: Mutex<Vec<String>>,
    pub(super) oversized: Mutex<Vec<u64>>,
    pub(super) unaffordable: Mutex<Vec<u64>>,
}

impl Listener for Heard {
    fn notified(&self, method: &str, _params: Option<&Bytes>) {
        self.notified.lock().unwrap().push(method.to_owned());
    }

    fn noise(&self, line: &[u8]) {
        self.noise.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
    }

    fn unaffordable(&self, bytes: u64) {
        self.unaffordable.lock().unwrap().push(bytes);
    }

    fn oversized(&self, bytes: u64) {
        self.oversized.lock().unwrap().push(bytes);
    }
}

/// The server's side of the pipes.
pub(super) struct Peer {
    pub(super) stdin: BufReader<DuplexStream>,
    pub(super) stdout: DuplexStream,
}

impl Peer {
    pub(super) async fn hears(&mut self) -> Value {
        let mut line = String::new();
        within_reason(self.stdin.read_line(&mut line)).await.unwrap();
        assert!(line.ends_with('\n'), "stdin ended: {line:?}");
        serde_json::from_str(&line).unwrap()
    }

    /// Whether something waits to be read, once every other task has had its turn.
    pub(super) async fn hears_nothing(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(1), self.stdin.fill_buf()).await.is_err()
    }

    pub(super) async fn says(&mut self, line: &str) {
        self.stdout.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn answers(&mut self, request: &Value, result: Value) {
        self.says(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
            .await;
    }
}

pub(super) fn bridge_with(config: BridgeConfig) -> (Bridge, Peer, Arc<Heard>) {
    let (our_stdin, peer_stdin) = duplex(64 * 1024);
    let (peer_stdout, our_stdout) = duplex(64 * 1024);
    let heard = Arc::new(Heard::default());
    let tasks = TaskTracker::new();
    let bridge = Bridge::start(
        our_stdout,
        our_stdin,
        config,
        Arc::clone(&heard) as Arc<dyn Listener>,
        &tasks,
    );
    (bridge, Peer { stdin: BufReader::new(peer_stdin), stdout: peer_stdout }, heard)
}

pub(super) fn bridge() -> (Bridge, Peer, Arc<Heard>) {
    bridge_with(BridgeConfig::default())
}

pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// What `waiting` comes to. On paused time what never comes is known at once.
pub(super) async fn within_reason<T>(waiting: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT * 1000, waiting).await.expect("it comes to something")
}

pub(super) fn request(method: &'static str) -> Request<'static> {
    Request::new(method, None, LIMIT)
}

/// A call on a task of its own, so that the test can play the peer meanwhile.
pub(super) fn call(
    bridge: &Bridge,
    request: Request<'static>,
) -> tokio::task::JoinHandle<Result<Bytes, CallError>> {
    let bridge = bridge.clone();
    #[expect(clippy::disallowed_methods, reason = "the test awaits or aborts the handle")]
    tokio::spawn(async move { bridge.call(request).await.result })
}
