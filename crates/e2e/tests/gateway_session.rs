//! One server behind `/mcp/NAME` for clients with sessions: everything passes, both ways.

use cofer_e2e::{
    Daemon, Exchange, GatewayClient, OrderLog, eventually, exemplary, kill, pid_of, wayward,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn with_exemplary() -> Daemon {
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    daemon
}

#[tokio::test]
async fn a_client_opens_a_session_uses_it_and_ends_it() {
    // covers: GTW-2
    let daemon = with_exemplary().await;
    let mut client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let opened = &client.opened["result"];
    assert_eq!(opened["serverInfo"]["name"], "exemplary");
    assert_eq!(opened["capabilities"]["resources"]["subscribe"], true);
    assert_eq!(client.session.len(), 32);
    assert_eq!(
        client.call("test_simple_text", json!({})).await,
        "This is a simple text response for testing."
    );
    assert!(client.names("tools", "name").await.contains(&"test_sampling".to_owned()));
    assert_eq!(client.result("ping", json!({})).await, json!({}));
    let old = client.http(Method::POST);
    client.end().await;
    let gone = old
        .header("content-type", "application/json")
        .body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert_eq!(gone.send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_revision_is_one_that_both_know() {
    let daemon = with_exemplary().await;
    for (asked, spoken) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let client = GatewayClient::open_as(&daemon, "/mcp/x", json!({}), asked).await;
        assert_eq!(client.opened["result"]["protocolVersion"], spoken, "{asked}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_in_both_languages() {
    let daemon = with_exemplary().await;
    let client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let ping = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let plain = |path: &str| {
        daemon
            .raw(Method::POST, path)
            .bearer_auth(daemon.token())
            .body(ping)
            .header("content-type", "application/json")
    };
    let cases = [
        ("no token", daemon.raw(Method::POST, "/mcp/x").body(ping), 401, -32600),
        ("foreign origin", plain("/mcp/x").header("origin", "http://evil.example"), 403, -32600),
        ("no such server", plain("/mcp/nobody"), 404, -32600),
        ("no session", plain("/mcp/x"), 400, -32600),
        ("unknown session", plain("/mcp/x").header("mcp-session-id", "x"), 404, -32600),
        ("another door", plain("/mcp").header("mcp-session-id", &client.session), 404, -32600),
        (
            "unknown revision",
            plain("/mcp/x")
                .header("mcp-session-id", &client.session)
                .header("mcp-protocol-version", "1999-01-01"),
            400,
            -32022,
        ),
        ("not JSON", client.post("{\"jsonrpc\":"), 400, -32700),
        ("not JSON-RPC", client.post("{}"), 400, -32600),
        (
            "an id that is none",
            client.post(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#),
            400,
            -32600,
        ),
        ("a batch", client.post(format!("[{ping}]")), 400, -32600),
        ("another verb", client.http(Method::PUT), 405, -32600),
    ];
    for (what, request, status, code) in cases {
        let answer = daemon.send(request).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        let body = answer.json();
        assert_eq!(
            (&body["jsonrpc"], &body["error"]["code"]),
            (&json!("2.0"), &json!(code)),
            "{what}"
        );
        assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{what}");
    }
    for (what, name, value, status) in [
        ("unreadable", "accept", "text/html", 406),
        ("not JSON", "content-type", "text/plain", 415),
    ] {
        let request = client.http(Method::POST).body(ping);
        let request = if name == "accept" {
            request.header("content-type", "application/json")
        } else {
            request
        };
        assert_eq!(daemon.send(request.header(name, value)).await.status, status, "{what}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_alone_is_json_and_else_the_last_event() {
    // covers: GTW-2
    let daemon = with_exemplary().await;
    let mut client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let params = json!({"name": "test_simple_text", "arguments": {}});
    let (_, exchange) = client.ask("tools/call", params.clone()).await;
    assert!(matches!(exchange, Exchange::Json(_)));
    let message = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params});
    let events_only = client
        .http(Method::POST)
        .header("content-type", "application/json")
        .header("accept", "text/event-stream")
        .body(message.to_string());
    let answer = daemon.send(events_only).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    assert!(answer.body.contains("This is a simple text response"), "{}", answer.body);
    let slow = json!({"name": "test_reconnection", "arguments": {}});
    let (id, exchange) = client.ask("tools/call", slow).await;
    let answer = exchange.stream().answer(id).await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("Reconnection"));
}

#[tokio::test]
async fn progress_comes_to_who_asked_for_it_with_its_own_token() {
    // covers: GTW-2
    let daemon = with_exemplary().await;
    let mut one = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let mut two = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let call = |token: Value| json!({"name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": token}});
    let ((id_one, first), (id_two, second)) = tokio::join!(
        one.ask("tools/call", call(json!("same"))),
        two.ask("tools/call", call(json!("same")))
    );
    for (id, exchange) in [(id_one, first), (id_two, second)] {
        let mut messages = exchange.stream();
        messages.answer(id).await;
        let progress: Vec<&Value> =
            messages.passed.iter().map(|message| &message["params"]["progress"]).collect();
        assert_eq!(progress, [0, 50, 100]);
        assert!(messages.passed.iter().all(|message| message["params"]["progressToken"] == "same"));
    }
}

#[tokio::test]
async fn a_stream_that_broke_off_is_gone_on_with_and_the_call_is_not_cancelled() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &[])).await;
    let mut client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let params = json!({"name": "progress", "arguments": {"ms": 3000, "step": 100}, "_meta": {"progressToken": 1}});
    let (id, exchange) = client.ask("tools/call", params).await;
    let mut messages = exchange.stream();
    messages.primed().await;
    messages.method("notifications/progress").await;
    let last = messages.last_event.clone().expect("events have ids");
    drop(messages);
    let mut rest = client.listen(Some(&last)).await;
    let answer = rest.answer(id).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    let seen: Vec<u64> =
        rest.passed.iter().filter_map(|message| message["params"]["progress"].as_u64()).collect();
    let first = last.rsplit('-').next().unwrap().parse::<u64>().unwrap() + 1;
    assert_eq!(seen, (first..=30).collect::<Vec<_>>(), "nothing is lost and nothing comes twice");
    assert_eq!(log.count("cancelled tools/call progress"), 0);
}

#[tokio::test]
async fn a_client_that_saw_less_than_was_sent_gets_all_that_came_after_its_last_event() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let mut client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let params = json!({"name": "progress", "arguments": {"ms": 1000, "step": 100}, "_meta": {"progressToken": 1}});
    let (id, exchange) = client.ask("tools/call", params).await;
    let mut messages = exchange.stream();
    let mut ids = Vec::new();
    for step in 1..=4 {
        let progress = messages.method("notifications/progress").await;
        assert_eq!(progress["params"]["progress"], step);
        ids.push(messages.last_event.clone().expect("events have ids"));
    }
    drop(messages);
    // The first connection took four events; by its own word the client saw one of them, then two.
    for (seen, next) in [(&ids[0], 2), (&ids[1], 3)] {
        let mut rest = client.listen(Some(seen)).await;
        rest.answer(id).await;
        let steps: Vec<_> = rest
            .passed
            .iter()
            .filter_map(|message| message["params"]["progress"].as_u64())
            .collect();
        assert_eq!(steps, (next..=10).collect::<Vec<u64>>(), "behind {seen}");
    }
}

#[tokio::test]
async fn a_client_cancels_by_a_notification_or_by_going_away() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    let mut body = log.wayward("w", &[]);
    body["max_in_flight"] = 4.into();
    daemon.register(&body).await;
    let client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let call = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "sleep", "arguments": {"ms": 60_000}}})
        .to_string()
    };
    let told = async {
        log.wait("receive tools/call sleep", 1).await;
        client.tell("notifications/cancelled", json!({"requestId": 41, "reason": "enough"})).await;
    };
    let json_only = client
        .http(Method::POST)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .body(call(41));
    let (answer, ()) = tokio::join!(daemon.send(json_only), told);
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    log.wait("cancelled tools/call sleep", 1).await;
    let gone = client
        .http(Method::POST)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .body(call(42));
    tokio::select! {
        _ = gone.send() => panic!("it was not to be answered"),
        () = log.wait("receive tools/call sleep", 2) => {}
    }
    log.wait("cancelled tools/call sleep", 2).await;
}

#[tokio::test]
async fn what_a_server_asks_comes_to_the_client_whose_call_it_works_on() {
    // covers: GTW-2
    let daemon = with_exemplary().await;
    let able = json!({"sampling": {}, "elicitation": {}, "roots": {}});
    let mut asked = GatewayClient::open(&daemon, "/mcp/x", able).await;
    let bystander = GatewayClient::open(&daemon, "/mcp/x", json!({"sampling": {}})).await;
    let mut beside = bystander.listen(None).await;
    let cases = [
        (
            "test_sampling",
            json!({"prompt": "Hi"}),
            "sampling/createMessage",
            json!({"role": "assistant", "content": {"type": "text", "text": "Hello \u{1F469}\u{200D}\u{1F467}"}, "model": "m"}),
            "LLM response: Hello \u{1F469}\u{200D}\u{1F467}",
        ),
        (
            "test_elicitation",
            json!({"message": "Who?"}),
            "elicitation/create",
            json!({"action": "accept", "content": {"response": "me"}}),
            r#"User response: action=accept, content={"response":"me"}"#,
        ),
        (
            "test_input_required_result_list_roots",
            json!({}),
            "roots/list",
            json!({"roots": [{"uri": "file:///x"}]}),
            r#"Found: {"roots":[{"uri":"file:///x"}]}"#,
        ),
    ];
    for (tool, arguments, method, reply, expected) in cases {
        let (id, exchange) =
            asked.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        let mut messages = exchange.stream();
        let question = messages.method(method).await;
        asked.reply(&question["id"], reply).await;
        let answer = messages.answer(id).await;
        assert_eq!(answer["result"]["content"][0]["text"], expected, "{tool}");
    }
    asked.call("test_trigger_tool_change", json!({})).await;
    let first = beside.next().await.expect("the list changed");
    assert_eq!(first["method"], "notifications/tools/list_changed", "it heard nothing else before");
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not_asked() {
    let daemon = with_exemplary().await;
    let mut client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let text = client.call("test_sampling", json!({"prompt": "Hi"})).await;
    assert!(text.contains("did not declare `sampling`"), "{text}");
}

#[tokio::test]
async fn changes_of_a_resource_come_to_those_who_watch_it_also_after_a_restart() {
    // covers: GTW-2
    let daemon = with_exemplary().await;
    let mut watcher = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let mut other = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let uri = json!({"uri": "test://watched-resource"});
    watcher.result("resources/subscribe", uri.clone()).await;
    let mut heard = watcher.listen(None).await;
    let mut not_heard = other.listen(None).await;
    other.call("test_touch_resource", uri.clone()).await;
    let update = heard.method("notifications/resources/updated").await;
    assert_eq!(update["params"], uri);
    kill(pid_of(&daemon.server("x").await));
    daemon
        .wait_server("x", "another process", |server| {
            server["status"] == "ready" && server["restart_count"] == 1
        })
        .await;
    eventually("the subscription is made again", async || {
        other.call("test_touch_resource", uri.clone()).await;
        let told = tokio::time::timeout(std::time::Duration::from_millis(200), heard.next()).await;
        told.ok().flatten().filter(|message| message["method"] == "notifications/resources/updated")
    })
    .await;
    watcher.result("resources/unsubscribe", uri.clone()).await;
    other.call("test_touch_resource", uri).await;
    other.call("test_trigger_prompt_change", json!({})).await;
    not_heard.method("notifications/prompts/list_changed").await;
    let updates = not_heard
        .passed
        .iter()
        .filter(|message| message["method"] == "notifications/resources/updated");
    assert_eq!(updates.count(), 0, "who does not watch it does not hear of it");
}

#[tokio::test]
async fn log_messages_come_from_the_level_on_that_a_client_asked_for() {
    // covers: GTW-2
    let daemon = with_exemplary().await;
    let mut client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let call = json!({"name": "test_tool_with_logging", "arguments": {}});
    let (id, exchange) = client.ask("tools/call", call.clone()).await;
    let mut messages = exchange.stream();
    messages.answer(id).await;
    assert_eq!(messages.passed.len(), 3, "{:?}", messages.passed);
    client.result("logging/setLevel", json!({"level": "error"})).await;
    let (_, exchange) = client.ask("tools/call", call).await;
    assert!(matches!(exchange, Exchange::Json(_)), "nothing was said that it wants to hear");
    let wrong = client.answer("logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(wrong["error"]["code"], -32602);
}

#[tokio::test]
async fn several_messages_in_one_body_are_for_the_revision_that_had_them() {
    let daemon = with_exemplary().await;
    let client = GatewayClient::open_as(&daemon, "/mcp/x", json!({}), "2025-03-26").await;
    let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    let batch = json!([call(1, "test_simple_text"), {"jsonrpc": "2.0", "method": "notifications/x"}, call(2, "test_error_handling")]);
    let answer = daemon
        .send(
            client
                .http(Method::POST)
                .header("content-type", "application/json")
                .header("accept", "application/json")
                .body(batch.to_string()),
        )
        .await;
    let answers = answer.expect(200);
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [1, 2]);
    let streamed = daemon.send(client.post(batch.to_string())).await;
    assert_eq!(streamed.body.matches("\"result\"").count(), 2, "{}", streamed.body);
    let told = client.post(json!([{"jsonrpc": "2.0", "method": "notifications/x"}]).to_string());
    assert_eq!(daemon.send(told).await.status, 202);
}

#[tokio::test]
async fn several_messages_in_one_body_end_with_their_session() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &[])).await;
    let client = GatewayClient::open_as(&daemon, "/mcp/w", json!({}), "2025-03-26").await;
    let call = json!([{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sleep", "arguments": {"ms": 600_000}}}]);
    let batch = client
        .http(Method::POST)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .body(call.to_string());
    let (answer, ()) = tokio::join!(daemon.send(batch), async {
        log.wait("receive tools/call sleep", 1).await;
        assert!(daemon.send(client.http(Method::DELETE)).await.status < 300);
    });
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    log.wait("cancelled tools/call sleep", 1).await;
}

#[tokio::test]
async fn requests_end_with_their_session_two_of_one_id_as_well() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    let mut spec = log.wayward("w", &[]);
    spec["max_in_flight"] = json!(2);
    daemon.register(&spec).await;
    let client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sleep", "arguments": {"ms": 600_000}}});
    let sleep = || {
        let post = client.http(Method::POST).header("content-type", "application/json");
        daemon.send(post.header("accept", "application/json").body(call.to_string()))
    };
    let (first, second, ()) = tokio::join!(sleep(), sleep(), async {
        log.wait("receive tools/call sleep", 2).await;
        assert!(daemon.send(client.http(Method::DELETE)).await.status < 300);
    });
    assert_eq!((first.status, second.status), (202, 202));
    log.wait("cancelled tools/call sleep", 2).await;
}

#[tokio::test]
async fn calls_are_in_the_activity_with_the_name_of_their_client() {
    // covers: GTW-5
    let daemon = with_exemplary().await;
    let mut client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    client.call("test_simple_text", json!({})).await;
    let activity = daemon.get("/activity").await.expect(200);
    let call = activity["calls"]
        .as_array()
        .unwrap()
        .iter()
        .find(|call| call["tool"] == "test_simple_text");
    let call = call.unwrap_or_else(|| panic!("{activity}"));
    assert_eq!((&call["client"], &call["outcome"]), (&json!("e2e-client"), &json!("ok")));
    assert!(call["duration_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{call}");
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_is_starting_and_not_for_one_that_is_off() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    let gate = tempfile::tempdir().unwrap();
    let gate = gate.path().join("open");
    let body = wayward("w", &["--wait-for-file", gate.to_str().unwrap()]);
    daemon.post("/mcp/servers", &body).await.expect(201);
    let opening = GatewayClient::open(&daemon, "/mcp/w", json!({}));
    let (mut client, ()) = tokio::join!(opening, async { std::fs::write(&gate, "").unwrap() });
    assert_eq!(client.call("echo", json!({"a": 1})).await, r#"{"a":1}"#);
    daemon.act("w", "disable").await;
    let answer = client.answer("tools/call", json!({"name": "echo", "arguments": {}})).await;
    assert_eq!(answer["error"]["data"]["kind"], "not_connected", "{answer}");
}

#[tokio::test]
async fn an_open_session_with_its_stream_costs_little() {
    let daemon = with_exemplary().await;
    let kib = || {
        let path = format!("/proc/{}/status", daemon.pid());
        let status = std::fs::read_to_string(path).expect("the daemon runs");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    let mut open = Vec::new();
    for count in 0..350 {
        let client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
        let stream = client.listen(None).await;
        open.push((client, stream, kib()));
        // What the first ones cost is not theirs alone.
        assert!(count < 50 || open[count].2 < open[49].2 + 50 * 300, "{} KiB", open[count].2);
    }
}
