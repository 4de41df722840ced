//! All servers behind `/mcp`: one list, names of their own, and one bad server harms only itself.

use cofer_e2e::{Daemon, GatewayClient, eventually, exemplary, kill, pid_of, wayward};
use serde_json::{Value, json};

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

#[tokio::test]
async fn every_server_is_in_the_lists_and_calls_go_where_the_name_leads() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    daemon.register(&exemplary("Modern One", "modern")).await;
    daemon.register(&wayward("w", &["--resources", "2"])).await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    assert_eq!(client.opened["result"]["serverInfo"]["name"], "cofer");
    assert!(
        client.opened["result"]["instructions"]
            .as_str()
            .unwrap()
            .contains("# w\nAsk it to misbehave.")
    );
    let tools = client.names("tools", "name").await;
    assert!(has(&tools, "x__test_simple_text") && has(&tools, "w__echo"), "{tools:?}");
    let modern =
        tools.iter().find(|name| name.starts_with("Modern_One__test_simple_text--")).unwrap();
    assert!(tools.iter().all(|name| name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))));
    assert_eq!(client.call("w__echo", json!({"a": 1})).await, r#"{"a":1}"#);
    let simple = "This is a simple text response for testing.";
    assert_eq!(client.call("x__test_simple_text", json!({})).await, simple);
    assert_eq!(client.call(modern, json!({})).await, simple);
    let prompts = client.names("prompts", "name").await;
    assert!(has(&prompts, "x__test_simple_prompt"), "{prompts:?}");
    let prompt = client.result("prompts/get", json!({"name": "x__test_simple_prompt"})).await;
    assert_eq!(prompt["messages"][0]["content"]["text"], "This is a simple prompt for testing.");
    let resources = client.names("resources", "uri").await;
    assert!(has(&resources, "wayward:///resource/0") && has(&resources, "test://static-text"));
    let uri = |uri: &str| json!({"uri": uri});
    let read = client.result("resources/read", uri("wayward:///resource/0")).await;
    assert_eq!(read["contents"][0]["uri"], "wayward:///resource/0");
    let filled = client.result("resources/read", uri("test://template/7/data")).await;
    assert!(filled["contents"][0]["text"].as_str().unwrap().contains("Data for ID: 7"));
    let reference = json!({"ref": {"type": "ref/prompt", "name": "x__test_prompt_with_arguments"}, "argument": {"name": "arg1", "value": "pa"}});
    let completed = client.result("completion/complete", reference).await;
    assert_eq!(completed["completion"]["values"][0], "paris");
    for (method, params, code) in [
        ("tools/call", json!({"name": "x__nothing", "arguments": {}}), -32602),
        ("prompts/get", json!({"name": "nothing"}), -32602),
        ("resources/read", uri("nowhere://x"), -32002),
        ("else/where", json!({}), -32601),
    ] {
        assert_eq!(client.answer(method, params).await["error"]["code"], code, "{method}");
    }
}

#[tokio::test]
async fn progress_questions_and_subscriptions_work_where_servers_are_joined() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    daemon.register(&wayward("w", &[])).await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({"elicitation": {}})).await;
    let call = json!({"name": "x__test_elicitation", "arguments": {"message": "Who?"}});
    let (id, exchange) = client.ask("tools/call", call).await;
    let mut messages = exchange.stream();
    let question = messages.method("elicitation/create").await;
    client.reply(&question["id"], json!({"action": "decline"})).await;
    let answer = messages.answer(id).await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("action=decline"));
    let call = json!({"name": "w__progress", "arguments": {"ms": 300, "step": 100}, "_meta": {"progressToken": "t"}});
    let (id, exchange) = client.ask("tools/call", call).await;
    let mut messages = exchange.stream();
    messages.answer(id).await;
    assert_eq!(messages.passed.len(), 3, "{:?}", messages.passed);
    let uri = json!({"uri": "test://watched-resource"});
    client.result("resources/subscribe", uri.clone()).await;
    let mut heard = client.listen(None).await;
    client.call("x__test_touch_resource", uri.clone()).await;
    assert_eq!(heard.method("notifications/resources/updated").await["params"], uri);
}

#[tokio::test]
async fn a_bad_server_harms_only_itself() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    daemon.register(&wayward("good", &[])).await;
    daemon.register(&wayward("endless", &["--endless-pages"])).await;
    let dead = wayward("dead", &["--exit-at-start", "3"]);
    daemon.post("/mcp/servers?wait=30", &dead).await.expect(201);
    let starting = wayward("starting", &["--hang-at-start"]);
    daemon.post("/mcp/servers", &starting).await.expect(201);
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let tools = client.names("tools", "name").await;
    assert!(has(&tools, "good__echo"), "{tools:?}");
    assert!(
        !tools.iter().any(|name| name.starts_with("dead")
            || name.starts_with("endless")
            || name.starts_with("starting")),
        "{tools:?}"
    );
    assert_eq!(client.call("good__echo", json!({})).await, "{}");
}

#[tokio::test]
async fn a_prefix_stands_in_place_of_the_name_and_is_used_once() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    let mut named = wayward("A Server With A Long Name", &[]);
    named["prefix"] = json!("w");
    daemon.register(&named).await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    assert!(has(&client.names("tools", "name").await, "w__echo"));
    assert_eq!(client.call("w__echo", json!({"a": 1})).await, r#"{"a":1}"#);
    let path = "/mcp/servers/A%20Server%20With%20A%20Long%20Name";
    let before = daemon.get(path).await.expect(200);
    assert_eq!(before["prefix"], "w");
    for (mut other, field) in [(wayward("other", &[]), "prefix"), (wayward("w", &[]), "name")] {
        if field == "prefix" {
            other["prefix"] = json!("w");
        }
        let refused = daemon.post("/mcp/servers", &other).await.expect(409);
        assert_eq!(refused["error"]["kind"], "conflict");
        assert_eq!(refused["error"]["details"]["fields"][0]["field"], field, "{refused}");
        let checked = daemon.post("/mcp/validate", &other).await.expect(200);
        assert_eq!(checked["errors"][0]["field"], field, "{checked}");
    }
    let mut heard = client.listen(None).await;
    daemon.patch(path, &json!({"prefix": "v"})).await.expect(200);
    heard.method("notifications/tools/list_changed").await;
    assert!(has(&client.names("tools", "name").await, "v__echo"));
    let after = daemon.get(path).await.expect(200);
    assert_eq!(after["pid"], before["pid"], "a prefix needs no new process");
}

#[tokio::test]
async fn lists_follow_what_is_registered_and_what_servers_say() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    client.names("tools", "name").await;
    let mut heard = client.listen(None).await;
    daemon.register(&wayward("later", &[])).await;
    heard.method("notifications/tools/list_changed").await;
    assert!(has(&client.names("tools", "name").await, "later__echo"));
    daemon.act("later", "disable").await;
    eventually("a server that is off is not offered", async || {
        let tools = client.names("tools", "name").await;
        (!has(&tools, "later__echo")).then_some(())
    })
    .await;
    daemon.patch("/mcp/servers/x", &json!({"tools_deny": ["*elicitation*"]})).await.expect(200);
    eventually("a tool that is denied is not offered", async || {
        let tools = client.names("tools", "name").await;
        (!has(&tools, "x__test_elicitation") && has(&tools, "x__test_sampling")).then_some(())
    })
    .await;
    let denied =
        client.answer("tools/call", json!({"name": "x__test_elicitation", "arguments": {}})).await;
    assert_eq!(denied["error"]["code"], -32602);
    daemon.delete("/mcp/servers/x").await.expect(204);
    eventually("a server that is removed is not offered", async || {
        client.names("tools", "name").await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_name_can_be_called_from_the_moment_its_server_is_registered() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    assert!(client.names("tools", "name").await.is_empty());
    for number in 0..20 {
        let name = format!("w{number}");
        daemon.post("/mcp/servers", &wayward(&name, &[])).await.expect(201);
        assert_eq!(client.call(&format!("{name}__echo"), json!({"a": 1})).await, r#"{"a":1}"#);
    }
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_lists_do_not_wait_for_any_more() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("open");
    let slow = wayward("slow", &["--wait-for-file", gate.to_str().unwrap()]);
    daemon.post("/mcp/servers", &slow).await.expect(201);
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    assert!(client.names("tools", "name").await.is_empty(), "after a while");
    let call = client.call("slow__echo", json!({"a": 1}));
    let (text, ()) = tokio::join!(call, async { std::fs::write(&gate, "").unwrap() });
    assert_eq!(text, r#"{"a":1}"#);
}

#[tokio::test]
async fn while_a_server_restarts_its_last_list_is_offered_and_calls_wait() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("open");
    std::fs::write(&gate, "").unwrap();
    let server = daemon.register(&wayward("w", &["--wait-for-file", gate.to_str().unwrap()])).await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    assert!(has(&client.names("tools", "name").await, "w__echo"));
    std::fs::remove_file(&gate).unwrap();
    kill(pid_of(&server));
    daemon.wait_server("w", "its restart", |server: &Value| server["status"] != "ready").await;
    assert!(has(&client.names("tools", "name").await, "w__echo"));
    let call = client.call("w__echo", json!({"a": 1}));
    let (text, ()) = tokio::join!(call, async { std::fs::write(&gate, "").unwrap() });
    assert_eq!(text, r#"{"a":1}"#);
}

#[tokio::test]
async fn resources_are_tools_where_the_registration_says_so() {
    // covers: GTW-4, MGR-52
    let daemon = Daemon::start().await;
    let mut body = exemplary("x", "legacy");
    body["include_resources"] = true.into();
    daemon.register(&body).await;
    for (path, prefix) in [("/mcp", "x__"), ("/mcp/x", "")] {
        let mut client = GatewayClient::open(&daemon, path, json!({})).await;
        let tools = client.names("tools", "name").await;
        let one = format!("{prefix}resource_static-text");
        let any = format!("{prefix}read_resource");
        assert!(has(&tools, &one) && has(&tools, &any), "{path}: {tools:?}");
        let read = client.result("tools/call", json!({"name": one, "arguments": {}})).await;
        let resource = &read["content"][0]["resource"];
        assert_eq!(resource["uri"], "test://static-text");
        assert_eq!(resource["text"], "This is the content of the static text resource.");
        let arguments = json!({"uri": "test://template/3/data"});
        let read = client.result("tools/call", json!({"name": any, "arguments": arguments})).await;
        assert_eq!(read["content"][0]["resource"]["uri"], "test://template/3/data");
        let missing = client.answer("tools/call", json!({"name": any, "arguments": {}})).await;
        assert_eq!(missing["error"]["code"], -32602, "{missing}");
    }
}

#[tokio::test]
async fn tools_that_are_not_allowed_are_neither_seen_nor_called_at_the_servers_own_door() {
    let daemon = Daemon::start().await;
    let mut body = wayward("w", &["--page", "3"]);
    body["tools_allow"] = json!(["echo", "sl*"]);
    body["tools_deny"] = json!(["slow*"]);
    daemon.register(&body).await;
    let mut client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let mut tools = Vec::new();
    let mut params = json!({});
    loop {
        let page = client.result("tools/list", params.clone()).await;
        tools.extend(
            page["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!(tools, ["echo", "sleep"]);
    let denied = client.answer("tools/call", json!({"name": "pid", "arguments": {}})).await;
    assert_eq!(denied["error"]["code"], -32602, "{denied}");
    assert_eq!(client.call("echo", json!({})).await, "{}");
}
