//! Whatever a server says, every caller gets an end, every result is JSON, and the server only
//! ever reads lines of JSON-RPC.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use cofer_mcp::{Bridge, BridgeConfig, CallError, Listener, Request};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

#[derive(Debug, Arbitrary)]
struct Input {
    cap: u16,
    max_in_flight: u8,
    queue_limit: u8,
    calls: Vec<Params>,
    steps: Vec<Step>,
}

/// What a caller sends.
#[derive(Debug, Arbitrary)]
enum Params {
    None,
    Object(String),
    /// As a person writes it: over several lines.
    Pretty(String),
    Meta(u8),
    NotAnObject,
}

/// What the server does next.
#[derive(Debug, Arbitrary)]
enum Step {
    Raw(Vec<u8>),
    Line(Vec<u8>),
    Answer(u8, String),
    Error(u8, String),
    Progress(u8),
    Ask(String),
    Batch(u8, u8),
    Silence,
}

struct Deaf;

impl Listener for Deaf {
    fn notified(&self, _: &str, _: Option<&Bytes>) {}
    fn noise(&self, _: &[u8]) {}
    fn oversized(&self, _: u64) {}
    fn unaffordable(&self, _: u64) {}
}

impl Params {
    fn bytes(&self) -> Option<Bytes> {
        Some(Bytes::from(match self {
            Self::None => return None,
            Self::Object(text) => format!(r#"{{"text":{}}}"#, Value::from(text.as_str())),
            Self::Pretty(text) => {
                format!("{{\n  \"text\":\r\n {}\n}}\n", Value::from(text.as_str()))
            }
            Self::Meta(token) => format!(r#"{{"_meta":{{"progressToken":{token}}},"a":1}}"#),
            Self::NotAnObject => "7".to_owned(),
        }))
    }
}

impl Step {
    fn bytes(&self) -> Vec<u8> {
        let json = |text: &String| Value::from(text.as_str());
        let line = match self {
            Self::Raw(bytes) => return bytes.clone(),
            Self::Line(bytes) => return [bytes, &b"\n"[..]].concat(),
            Self::Answer(id, text) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, json(text))
            }
            Self::Error(id, text) => {
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":{}}}}}"#,
                    json(text)
                )
            }
            Self::Progress(token) => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
            ),
            Self::Ask(id) => {
                format!(r#"{{"jsonrpc":"2.0","id":{},"method":"roots/list"}}"#, json(id))
            }
            Self::Batch(one, two) => {
                format!(
                    r#"[{{"jsonrpc":"2.0","id":{one},"result":1}},{{"jsonrpc":"2.0","id":{two},"result":2}}]"#
                )
            }
            Self::Silence => return Vec::new(),
        };
        (line + "\n").into_bytes()
    }
}

/// The server: says what it has to say, and ends.
async fn speak(mut stdout: DuplexStream, steps: Vec<Step>) {
    for step in steps {
        if matches!(step, Step::Silence) {
            sleep(Duration::from_secs(20)).await;
        }
        // The bridge reads until the end, so that nothing is lost on the way.
        stdout.write_all(&step.bytes()).await.expect("the bridge reads");
    }
}

/// The server's ear: every line is a JSON-RPC message.
async fn listen(mut stdin: DuplexStream) {
    let mut heard = Vec::new();
    stdin.read_to_end(&mut heard).await.expect("a duplex stream does not fail");
    assert!(heard.is_empty() || heard.ends_with(b"\n"), "a message was cut short");
    for line in heard.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).expect("every line is JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
    }
}

async fn converse(input: Input) {
    let (stdout, bridge_stdout) = tokio::io::duplex(256);
    let (bridge_stdin, stdin) = tokio::io::duplex(256);
    let config = BridgeConfig {
        max_in_flight: usize::from(input.max_in_flight % 8) + 1,
        queue_limit: input.queue_limit.into(),
        max_message: input.cap.into(),
        ..BridgeConfig::default()
    };
    let tasks = TaskTracker::new();
    let bridge = Bridge::start(bridge_stdout, bridge_stdin, config, Arc::new(Deaf), &tasks);
    let mut callers = JoinSet::new();
    for params in input.calls.iter().take(32) {
        let bridge = bridge.clone();
        let request = Request::new("any/method", params.bytes(), Duration::from_secs(30));
        callers.spawn(async move { bridge.call(request).await.result });
    }
    let mut server = JoinSet::new();
    server.spawn(speak(stdout, input.steps));
    server.spawn(listen(stdin));
    while let Some(ended) = callers.join_next().await {
        match ended.expect("no caller panics") {
            Ok(result) => drop(serde_json::from_slice::<Value>(&result).expect("a result is JSON")),
            Err(CallError::Timeout(after)) => assert_eq!(after, Duration::from_secs(30)),
            Err(_) => {}
        }
    }
    bridge.close();
    drop(bridge);
    while let Some(ended) = server.join_next().await {
        ended.expect("the server's view holds");
    }
    tasks.close();
    tasks.wait().await;
}

fuzz_target!(|input: Input| {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime");
    // Time is paused, so that a day is over as soon as nobody has anything to do.
    let day = Duration::from_secs(24 * 3600);
    runtime.block_on(async {
        timeout(day, converse(input)).await.expect("every conversation has an end");
    });
});
