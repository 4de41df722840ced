//! `sharing: per_session`: each session has a process of its own.

use cofer_e2e::{
    Daemon, GatewayClient, OrderLog, alive, eventually, exemplary, stateless, wait_gone, wayward,
};
use reqwest::StatusCode;
use serde_json::json;

async fn pid(client: &mut GatewayClient<'_>, tool: &str) -> u32 {
    client.call(tool, json!({})).await.parse().expect("a pid")
}

#[tokio::test]
async fn each_session_has_a_process_which_ends_with_it() {
    // covers: HST-2.4
    let daemon = Daemon::start().await;
    let mut body = wayward("w", &[]);
    body["sharing"] = "per_session".into();
    let shared = cofer_e2e::pid_of(&daemon.register(&body).await);
    let mut one = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let mut two = GatewayClient::open_as(&daemon, "/mcp/w", json!({}), "2025-06-18").await;
    assert_eq!(two.opened["result"]["protocolVersion"], "2025-06-18", "the server itself answered");
    let (first, second) = (pid(&mut one, "pid").await, pid(&mut two, "pid").await);
    assert!(first != second && first != shared && second != shared);
    assert_eq!(pid(&mut one, "pid").await, first, "it stays the same");
    one.end().await;
    wait_gone(&[first]).await;
    assert!(alive(second));
    let mut joined = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let third = pid(&mut joined, "w__pid").await;
    assert!(third != shared && third != second);
    assert_eq!(pid(&mut joined, "w__pid").await, third);
    joined.end().await;
    wait_gone(&[third]).await;
}

#[tokio::test]
async fn a_process_of_a_session_ends_with_it_whatever_else_the_session_runs() {
    let daemon = Daemon::start().await;
    let mut body = wayward("w", &[]);
    body["sharing"] = "per_session".into();
    daemon.register(&body).await;
    let log = OrderLog::new();
    let mut busy = log.wayward("busy", &[]);
    busy["call_timeout_ms"] = 600_000.into();
    busy["max_in_flight"] = 4.into();
    daemon.register(&busy).await;
    let mut client = GatewayClient::open_as(&daemon, "/mcp", json!({}), "2025-03-26").await;
    let own = pid(&mut client, "w__pid").await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "busy__hang", "arguments": {}}});
    let send = |accept: &str, body: String| {
        let request = client.http(reqwest::Method::POST).header("accept", accept.to_owned());
        daemon.send(request.header("content-type", "application/json").body(body))
    };
    // For a client that reads no stream, one request and several in one body; and a stream.
    let (one, several, stream, ()) = tokio::join!(
        send("application/json", call.to_string()),
        send("application/json", json!([call]).to_string()),
        send("text/event-stream", call.to_string()),
        async {
            log.wait("receive tools/call hang", 3).await;
            let ended = client.http(reqwest::Method::DELETE);
            assert!(daemon.send(ended).await.status < 300);
            wait_gone(&[own]).await;
        }
    );
    assert_eq!((one.status, several.status, stream.status), (202, 202, 200));
}

#[tokio::test]
async fn a_process_of_ones_own_asks_and_tells_its_own_client() {
    // covers: HST-2.4
    let daemon = Daemon::start().await;
    let mut body = exemplary("x", "legacy");
    body["sharing"] = "per_session".into();
    daemon.register(&body).await;
    let mut one = GatewayClient::open(&daemon, "/mcp/x", json!({"sampling": {}})).await;
    let mut two = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let mut heard = one.listen(None).await;
    let mut beside = two.listen(None).await;
    let call = json!({"name": "test_sampling", "arguments": {"prompt": "Hi"}});
    let (id, exchange) = one.ask("tools/call", call).await;
    let mut messages = exchange.stream();
    let question = messages.method("sampling/createMessage").await;
    let reply =
        json!({"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"});
    one.reply(&question["id"], reply).await;
    assert_eq!(messages.answer(id).await["result"]["content"][0]["text"], "LLM response: Hello");
    let uri = json!({"uri": "test://watched-resource"});
    one.result("resources/subscribe", uri.clone()).await;
    two.call("test_touch_resource", uri.clone()).await;
    one.call("test_touch_resource", uri.clone()).await;
    assert_eq!(heard.method("notifications/resources/updated").await["params"], uri);
    two.call("test_trigger_tool_change", json!({})).await;
    let first = beside.next().await.expect("its own list changed");
    assert_eq!(first["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn processes_of_sessions_end_with_the_daemon() {
    // covers: HST-2.4
    let mut daemon = Daemon::start().await;
    let mut body = wayward("w", &["--ignore-sigterm", "--ignore-stdin-eof"]);
    body["sharing"] = "per_session".into();
    daemon.register(&body).await;
    let own = {
        let mut client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
        pid(&mut client, "pid").await
    };
    assert!(daemon.terminate().await.success());
    wait_gone(&[own]).await;
}

#[tokio::test]
async fn a_server_that_does_not_start_for_a_session_says_why() {
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let needed = folder.path().join("needed");
    std::fs::write(&needed, "").unwrap();
    let mut body = wayward("w", &["--require-file", needed.to_str().unwrap()]);
    body["sharing"] = "per_session".into();
    daemon.register(&body).await;
    std::fs::remove_file(&needed).unwrap();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let request =
        daemon.raw(reqwest::Method::POST, "/mcp/w").bearer_auth(daemon.token()).json(&message);
    let answer = daemon.send(request).await;
    assert_eq!(answer.status, StatusCode::OK);
    let error = &answer.json()["error"];
    assert!(error["message"].as_str().unwrap().contains("exit"), "{error}");
    assert!(!answer.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn what_a_process_of_ones_own_asks_by_itself_comes_to_its_client() {
    // covers: HST-2.4
    let daemon = Daemon::start().await;
    let mut body = exemplary("x", "legacy");
    body["sharing"] = "per_session".into();
    daemon.register(&body).await;
    let mut client = GatewayClient::open(&daemon, "/mcp/x", json!({"roots": {}})).await;
    let mut heard = client.listen(None).await;
    let question = heard.method("roots/list").await;
    let roots = json!({"roots": [{"uri": "file:///home/me"}]});
    client.reply(&question["id"], roots.clone()).await;
    eventually("the server knows the roots", async || {
        let known = client.call("test_known_roots", json!({})).await;
        let known: serde_json::Value = serde_json::from_str(&known).expect("it is JSON");
        (known == roots).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_client_without_sessions_is_told_that_this_server_wants_one() {
    let daemon = Daemon::start().await;
    let mut body = wayward("w", &[]);
    body["sharing"] = "per_session".into();
    daemon.register(&body).await;
    daemon.register(&exemplary("x", "legacy")).await;
    for method in ["server/discover", "tools/list", "tools/call"] {
        let params = json!({"name": "pid", "arguments": {}});
        let (status, exchange) = stateless(&daemon, "/mcp/w", method, params, json!({})).await;
        let error = &exchange.json()["error"];
        assert_eq!((status, &error["code"]), (400, &json!(-32022)), "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains("per_session"), "{error}");
        let supported = error["data"]["supported"].as_array().unwrap();
        assert!(supported.contains(&json!("2025-11-25")), "{error}");
        assert!(!supported.contains(&json!("2026-07-28")), "{error}");
    }
    let call = async |tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        let (status, exchange) = stateless(&daemon, "/mcp", "tools/call", params, json!({})).await;
        (status, exchange.json())
    };
    let (status, refused) = call("w__pid").await;
    let error = &refused["error"];
    assert_eq!((status, &error["data"]["source"]), (200, &json!("cofer")), "{refused}");
    assert!(error["message"].as_str().unwrap().contains("per_session"), "{error}");
    assert!(error["data"]["hint"].as_str().unwrap().contains("earlier revision"), "{error}");
    let (_, served) = call("x__test_simple_text").await;
    assert!(served["result"]["content"].is_array(), "the others serve it: {served}");
    let activity = daemon.get("/activity").await.expect(200);
    let calls = activity["calls"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["server"] != "w"), "the shared process saw nothing");
}

/// Sends `initialize` and returns the answer with the session's id, if one was opened.
async fn initialize(daemon: &Daemon) -> (serde_json::Value, Option<String>) {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let request =
        daemon.raw(reqwest::Method::POST, "/mcp/w").bearer_auth(daemon.token()).json(&message);
    let answer = daemon.send(request).await;
    let session = answer.headers.get("mcp-session-id");
    let session = session.map(|id| id.to_str().expect("an id is text").to_owned());
    (answer.json(), session)
}

#[tokio::test]
async fn concurrent_sessions_do_not_exceed_the_cap_of_private_processes() {
    // The private processes start only once all requests are in, as none passes before the file
    // exists: a check that is not also a reservation lets every one of them through.
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (gate, pids) = (folder.path().join("gate"), folder.path().join("pids"));
    std::fs::write(&gate, "").unwrap();
    let paths = [&gate, &pids].map(|path| path.to_str().unwrap());
    let mut body = wayward("w", &["--wait-for-file", paths[0], "--pid-file", paths[1]]);
    body["sharing"] = "per_session".into();
    body["start_timeout_ms"] = 300_000.into();
    daemon.register(&body).await;
    std::fs::remove_file(&gate).unwrap();
    let started = || std::fs::read_to_string(&pids).unwrap().lines().count() - 1;
    let opening = futures_util::future::join_all((0..80).map(|_| initialize(&daemon)));
    let (opened, ()) = tokio::join!(opening, async {
        eventually("64 private processes have started", async || (started() >= 64).then_some(()))
            .await;
        std::fs::write(&gate, "").unwrap();
    });
    assert_eq!(started(), 64);
    let sessions: Vec<&String> = opened.iter().filter_map(|(_, id)| id.as_ref()).collect();
    assert_eq!(sessions.len(), 64);
    let refused = opened.iter().filter(|(_, id)| id.is_none());
    for (answer, _) in refused {
        assert_eq!(answer["error"]["data"]["kind"], "overloaded", "{answer}");
    }
    // The end of a session frees its place.
    let end = daemon.raw(reqwest::Method::DELETE, "/mcp/w").bearer_auth(daemon.token());
    assert!(daemon.send(end.header("mcp-session-id", sessions[0])).await.status < 300);
    eventually("a session ends and another opens", async || initialize(&daemon).await.1).await;
}
