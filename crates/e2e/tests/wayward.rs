//! `wayward` itself, on its own pipes: a fixture that does not do what it says proves nothing.

use cofer_e2e::{
    Peer, alive, eventually, is_session_leader, kill, pids_in, plain_client, processes_with,
    signal, wait_gone,
};
use rustix::process::Signal;
use serde_json::{Value, json};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

#[tokio::test]
async fn it_is_a_good_server_by_default() {
    let mut peer = Peer::start(&["--resources", "120"]);
    let answer = peer.ask(INITIALIZE).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answer["result"]["serverInfo"]["name"], "wayward");
    let ping = peer.ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(ping, serde_json::json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    let unknown = peer.ask(r#"{"jsonrpc":"2.0","id":3,"method":"no/such"}"#).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let page = peer.ask(r#"{"jsonrpc":"2.0","id":4,"method":"resources/list"}"#).await;
    assert_eq!(page["result"]["nextCursor"], "50");
    let last = peer
        .ask(r#"{"jsonrpc":"2.0","id":5,"method":"resources/list","params":{"cursor":"100"}}"#)
        .await;
    assert_eq!(last["result"]["resources"].as_array().unwrap().len(), 20);
    assert!(last["result"].get("nextCursor").is_none());
    peer.close();
    assert_eq!(peer.ended().await, Some(0));
}

#[tokio::test]
async fn raw_params_come_back_byte_for_byte() {
    let mut peer = Peer::start(&[]);
    let params = r#"{"b":1,"a":1.0e400,"b":2, "s":"\ud800\u0041", "n":123456789012345678901}"#;
    peer.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo/raw","params":{params}}}"#))
        .await;
    assert_eq!(peer.line().await, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{params}}}"#));
}

#[tokio::test]
async fn a_modern_server_wants_its_meta() {
    let mut peer = Peer::start(&["--era", "modern"]);
    assert_eq!(peer.ask(INITIALIZE).await["error"]["code"], -32601);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    assert_eq!(peer.ask(bare).await["error"]["code"], -32602);
    for method in ["server/discover", "tools/list"] {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{meta}}}}}"#);
        assert_eq!(peer.ask(&request).await["result"]["resultType"], "complete", "{method}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_the_order_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("order");
    let mut peer = Peer::start(&["--log-order", log.to_str().unwrap()]);
    peer.send(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":60000,"tag":"x"}}}"#).await;
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#)
        .await;
    let expected =
        ["receive tools/call sleep x", "cancelled tools/call sleep x", "drop tools/call sleep x"];
    eventually("the order log tells it", async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        (text.lines().collect::<Vec<_>>() == expected).then_some(())
    })
    .await;
    assert_eq!(peer.ask(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#).await["id"], 8);
}

#[tokio::test]
async fn grandchildren_outlive_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut peer = Peer::start(&["--grandchildren", "--pids-file", pids.to_str().unwrap()]);
    peer.ask(INITIALIZE).await;
    let [grandchild] = pids_in(&pids)[..] else { panic!("one grandchild is written down") };
    kill(peer.pid());
    peer.ended().await;
    signal(grandchild, Signal::TERM);
    assert!(alive(grandchild) && is_session_leader(grandchild));
    kill(grandchild);
    wait_gone(&[grandchild]).await;
}

#[tokio::test]
async fn it_ignores_what_it_is_told_to_ignore() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("order");
    let flags = ["--ignore-sigterm", "--ignore-stdin-eof", "--log-order", log.to_str().unwrap()];
    let mut peer = Peer::start(&flags);
    peer.ask(INITIALIZE).await;
    signal(peer.pid(), Signal::TERM);
    peer.close();
    eventually("both are seen", async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        (text.contains("sigterm\n") && text.contains("eof\n")).then_some(())
    })
    .await;
    assert!(alive(peer.pid()));
}

#[tokio::test]
async fn it_ends_as_ordered() {
    assert_eq!(Peer::start(&["--exit-at-start", "9"]).ended().await, Some(9));
    assert_eq!(Peer::start(&["--no-such-flag"]).ended().await, Some(2));
    let mut peer = Peer::start(&["--crash-after", "1"]);
    peer.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pid"}}"#).await;
    assert_eq!(peer.ended().await, Some(1));
}

/// The text of a tool's answer.
async fn tool(peer: &mut Peer, name: &str, arguments: Value) -> (String, bool) {
    let params = json!({"name": name, "arguments": arguments});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let answer = peer.ask(&request.to_string()).await;
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    (text.to_owned(), answer["result"]["isError"] == true)
}

#[tokio::test]
async fn it_tries_what_the_machine_allows() {
    let folder = tempfile::tempdir().unwrap();
    let mut peer = Peer::start(&[]);
    let (path, missing) = (folder.path().join("file"), folder.path().join("no/file"));
    let wrote = tool(&mut peer, "write", json!({"path": path, "text": "kept"})).await;
    assert_eq!(wrote, ("written".to_owned(), false));
    let read = tool(&mut peer, "read", json!({"path": path})).await;
    assert_eq!(read, ("kept".to_owned(), false));
    assert!(tool(&mut peer, "read", json!({"path": missing})).await.1);
    let filled = tool(&mut peer, "fill", json!({"path": path, "n": 3_000_000})).await.0;
    assert_eq!(filled, r#"{"written":3000000}"#);
    assert_eq!(path.metadata().unwrap().len(), 3_000_000);
    let refused = tool(&mut peer, "fill", json!({"path": "/dev/full", "n": 3})).await.0;
    assert!(refused.contains("error") && refused.contains(r#""written":0"#), "{refused}");
    let ran = tool(&mut peer, "run", json!({"argv": ["sh", "-c", "echo said; exit 7"]})).await.0;
    assert_eq!(ran, r#"{"code":7,"output":"said\n"}"#);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = json!({"to": listener.local_addr().unwrap().to_string()});
    assert_eq!(tool(&mut peer, "connect", to.clone()).await.0, "connected");
    drop(listener);
    assert!(tool(&mut peer, "connect", to).await.1);
}

#[tokio::test]
async fn its_forks_live_on() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mark = pids.to_str().unwrap();
    let mut peer = Peer::start(&["--pids-file", mark]);
    let told = tool(&mut peer, "forks", json!({"n": 3})).await.0;
    let forks: Vec<u32> =
        processes_with(mark).into_iter().filter(|pid| *pid != peer.pid()).collect();
    for pid in &forks {
        kill(*pid);
    }
    wait_gone(&forks).await;
    assert_eq!(forks.len(), 3);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told, json!({"started": 3, "error": null}));
}

#[tokio::test]
async fn over_http_it_keeps_a_session() {
    for stream in [false, true] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let number = port.to_string();
        let flags = ["--http", number.as_str(), "--http-stream"];
        let _peer = Peer::start(&flags[..if stream { 3 } else { 2 }]);
        let url = format!("http://127.0.0.1:{port}/mcp");
        let client = plain_client();
        let post = |body: &'static str| client.post(&url).body(body);
        let opened = eventually("it listens", async || post(INITIALIZE).send().await.ok()).await;
        let session = opened.headers()["mcp-session-id"].clone();
        let text = opened.text().await.unwrap();
        assert_eq!(text.starts_with("event: message\ndata: {"), stream, "{text}");
        assert!(text.contains(r#""name":"wayward""#), "{text}");
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        assert_eq!(post(ping).send().await.unwrap().status(), 400);
        let foreign = post(ping).header("mcp-session-id", "another").send().await.unwrap();
        assert_eq!(foreign.status(), 404);
        let pong = post(ping).header("mcp-session-id", &session).send().await.unwrap();
        assert!(pong.text().await.unwrap().contains(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#));
        let told = post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let told = told.header("mcp-session-id", &session).send().await.unwrap();
        assert_eq!(told.status(), 202);
    }
}
