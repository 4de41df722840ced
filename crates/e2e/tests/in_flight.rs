//! A slow call does not block everything: calls, lists and pings that pass it, and `auto`.

use cofer_e2e::{Daemon, GatewayClient, OrderLog, eventually, exemplary, tool_params};
use serde_json::{Value, json};

#[tokio::test]
async fn a_call_that_waits_for_its_user_lets_other_clients_pass() {
    let daemon = Daemon::start().await;
    let mut spec = exemplary("x", "legacy");
    spec["max_in_flight"] = 1.into();
    daemon.register(&spec).await;
    let able = json!({"elicitation": {}});
    let mut one = GatewayClient::open(&daemon, "/mcp/x", able.clone()).await;
    let mut other = GatewayClient::open(&daemon, "/mcp/x", able).await;
    let call = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let (id, exchange) = one.ask("tools/call", call).await;
    let mut messages = exchange.stream();
    let question = messages.method("elicitation/create").await;
    let text = other.call("test_simple_text", json!({})).await;
    assert_eq!(text, "This is a simple text response for testing.");
    one.reply(&question["id"], json!({"action": "decline"})).await;
    let answer = messages.answer(id).await;
    let text = answer["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("action=decline"), "{answer}");
    let entry = eventually("the call is recorded", async || {
        let page = daemon.get("/activity").await.expect(200);
        let mut calls = page["calls"].as_array().expect("calls").iter();
        calls.find(|call| call["tool"] == "test_elicitation").cloned()
    })
    .await;
    assert!(entry["stages"]["input_ms"].as_f64().expect("a number") > 0.0, "{entry}");
}

#[tokio::test]
async fn lists_and_pings_pass_a_slow_call() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &[])).await;
    let mut single = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let mut joined = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let expected = single.names("tools", "name").await;
    wait_listed(&mut joined).await;
    let pass = async {
        log.wait("receive tools/call hang busy", 1).await;
        assert_eq!(single.names("tools", "name").await, expected);
        assert_eq!(single.result("ping", json!({})).await, json!({}));
        assert!(joined.names("tools", "name").await.contains(&"w__echo".to_owned()));
        let tools = daemon.get("/mcp/servers/w/tools").await.expect(200);
        assert_eq!(tools["total"], expected.len());
    };
    tokio::select! {
        () = hang(&daemon) => panic!("a call that hangs was answered"),
        () = pass => {}
    }
}

#[tokio::test]
async fn auto_gives_a_server_more_once_it_has_answered_beside_a_call() {
    let daemon = Daemon::builder().arg("--default-max-in-flight").arg("auto").start().await;
    let log = OrderLog::new();
    let server = daemon.register(&log.wayward("w", &[])).await;
    assert_eq!(server["max_in_flight"], Value::Null);
    wait_listed(&mut GatewayClient::open(&daemon, "/mcp", json!({})).await).await;
    let pass = async {
        log.wait("receive tools/call hang busy", 1).await;
        daemon.tool("w", "echo", &json!({})).await.expect(200);
    };
    tokio::select! {
        () = hang(&daemon) => panic!("a call that hangs was answered"),
        () = pass => {}
    }
    let server = daemon.server("w").await;
    assert_eq!(in_flight(&server), (&Value::Null, &json!(8)));
    assert!(server["queue"]["waited"].as_u64() >= Some(1), "{server}");
    let page = daemon.get("/activity").await.expect(200);
    let mut calls = page["calls"].as_array().expect("calls").iter();
    let echo = calls.find(|call| call["tool"] == "echo").expect("the call");
    assert!(echo["stages"]["queue_ahead"].as_u64() >= Some(1), "{echo}");
    // The registration overrides the daemon's default, in the running process.
    for (value, effective) in [("2", json!(2)), ("auto", json!(8))] {
        let set = daemon.cli(&["server", "set", "w", "--max-in-flight", value]).await;
        assert_eq!(set.code, Some(0), "{set:?}");
        let changed = daemon.server("w").await;
        assert_eq!(
            (&changed["max_in_flight_effective"], &changed["pid"]),
            (&effective, &server["pid"])
        );
    }
}

/// Waits until the daemon has read the lists of server `w`: a call would delay that.
async fn wait_listed(joined: &mut GatewayClient<'_>) {
    while !joined.names("tools", "name").await.contains(&"w__echo".to_owned()) {
        tokio::task::yield_now().await;
    }
}

/// Keeps server `w` busy until it is dropped.
async fn hang(daemon: &Daemon) {
    let params = tool_params("hang", &json!({"tag": "busy"}));
    let body = json!({"method": "tools/call", "params": params, "timeout_ms": 600_000});
    daemon.post("/mcp/servers/w/call", &body).await;
}

/// The number in the registration, and the one in force.
fn in_flight(server: &Value) -> (&Value, &Value) {
    (&server["max_in_flight"], &server["max_in_flight_effective"])
}
