//! The four protocols, spoken by a stand-in that somebody else wrote: `@copilotkit/aimock`.

use std::net::TcpListener;
use std::path::PathBuf;

use cofer_e2e::{Daemon, eventually, follow, plain_client, wayward};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{Seen, go_on};

struct Mock {
    port: u16,
    _child: tokio::process::Child,
    /// Its stdout is read, so that it never waits for somebody to do so.
    _reader: JoinSet<()>,
    _folder: tempfile::TempDir,
}

impl Mock {
    /// Answers `chain` with a tool call, then with what the tool gave, and `hello` with a text.
    async fn start() -> Self {
        let npm = std::env::var_os("COFER_TEST_NPM").map(PathBuf::from).unwrap_or_else(|| {
            panic!("COFER_TEST_NPM is not set: run this under scripts/test, which installs aimock")
        });
        let program = npm.join("node_modules/.bin/llmock");
        let fixtures = json!({"fixtures": [
            {"match": {"userMessage": "chain", "toolResultContains": "forty-two"},
             "response": {"content": "The tool said forty-two."}},
            {"match": {"userMessage": "chain", "hasToolResult": false},
             "response": {"toolCalls": [
                {"name": "way__pid", "arguments": {}},
                {"name": "way__echo", "arguments": {"word": "forty-two"}}]}},
            {"match": {"userMessage": "hello"}, "response": {"content": "Hello there, person!"}},
        ]});
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixtures.json");
        std::fs::write(&file, fixtures.to_string()).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let (number, file) = (port.to_string(), file.to_str().unwrap().to_owned());
        let args = ["-p", number.as_str(), "-f", file.as_str()];
        let (child, mut lines) =
            follow(&program, &args, &[("HOME", folder.path().to_str().unwrap())]);
        let mut reader = JoinSet::new();
        reader.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let client = plain_client();
        let url = format!("http://127.0.0.1:{port}/health");
        eventually("aimock listens", async || client.get(&url).send().await.ok().map(drop)).await;
        Self { port, _child: child, _reader: reader, _folder: folder }
    }
}

async fn speaks(kind: &str, path: &str) {
    let mock = Mock::start().await;
    let daemon = Daemon::start().await;
    daemon.register(&wayward("way", &[])).await;
    let base = format!("http://127.0.0.1:{}{path}", mock.port);
    let body =
        json!({"kind": kind, "base_url": base, "api_key": "test", "default_model": "some-model"});
    let put = daemon.request(reqwest::Method::PUT, "/chat/providers/mock").json(&body);
    daemon.send(put).await.expect(200);
    let seen = Seen::whole(daemon.chat(&json!({"message": "hello"})).await).await;
    assert_eq!((seen.reason(), seen.text().as_str()), ("done", "Hello there, person!"), "{kind}");
    let seen = Seen::whole(daemon.chat(&json!({"message": "chain"})).await).await;
    assert_eq!(seen.reason(), "done", "{kind}: {:#?}", seen.0);
    let cards: Vec<&Value> = seen.all("toolCallFinished");
    assert_eq!(cards.len(), 2, "{kind}: both calls of one step");
    assert!(cards.iter().all(|card| card["status"] == "done"), "{kind}: {cards:?}");
    let echo = cards.iter().find(|card| card["tool"] == "echo").unwrap();
    assert_eq!(echo["result"]["content"][0]["text"], r#"{"word":"forty-two"}"#);
    assert_eq!(seen.text(), "The tool said forty-two.", "{kind}");
    // The stored conversation is one that the provider takes again.
    let more = go_on(&daemon, &seen.conversation(), json!({"message": "hello"})).await;
    assert_eq!((more.reason(), more.text().as_str()), ("done", "Hello there, person!"), "{kind}");
}

#[tokio::test]
async fn openais_protocol_is_spoken() {
    speaks("openai", "/v1").await;
}

#[tokio::test]
async fn anthropics_protocol_is_spoken() {
    speaks("anthropic", "/v1").await;
}

#[tokio::test]
async fn geminis_protocol_is_spoken() {
    speaks("gemini", "/v1beta").await;
}

#[tokio::test]
async fn ollamas_protocol_is_spoken() {
    speaks("ollama", "").await;
}
