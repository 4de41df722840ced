//! Clients and servers of both eras of the protocol, in all four pairs.

use cofer_e2e::{Daemon, GatewayClient, OrderLog, eventually, exemplary, stateless};
use reqwest::Method;
use serde_json::{Value, json};

fn able() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

/// What a person says to a question with this message.
fn reply_to(params: &Value) -> Value {
    let message = params["message"].as_str().unwrap_or_default();
    let content =
        if message.contains("color") { json!({"color": "red"}) } else { json!({"name": "Ada"}) };
    json!({"action": "accept", "content": content})
}

const TWO_ROUNDS: &str = "test_input_required_result_multi_round";
const OUTCOME: &str = "Multi-round complete for Ada who likes red";

#[tokio::test]
async fn a_client_with_sessions_is_asked_by_servers_of_both_eras() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    for era in ["legacy", "modern"] {
        daemon.register(&exemplary(era, era)).await;
        let mut client = GatewayClient::open(&daemon, &format!("/mcp/{era}"), able()).await;
        let (id, exchange) =
            client.ask("tools/call", json!({"name": TWO_ROUNDS, "arguments": {}})).await;
        let mut messages = exchange.stream();
        for _ in 0..2 {
            let question = messages.method("elicitation/create").await;
            client.reply(&question["id"], reply_to(&question["params"])).await;
        }
        let answer = messages.answer(id).await;
        assert_eq!(answer["result"]["content"][0]["text"], OUTCOME, "{era}");
    }
}

#[tokio::test]
async fn a_client_without_sessions_is_asked_by_servers_of_both_eras() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    for era in ["legacy", "modern"] {
        daemon.register(&exemplary(era, era)).await;
        let path = format!("/mcp/{era}");
        let mut params = json!({"name": TWO_ROUNDS, "arguments": {}});
        let mut states = Vec::new();
        let answer = loop {
            let (_, exchange) =
                stateless(&daemon, &path, "tools/call", params.clone(), able()).await;
            let answer = exchange.answer("s-1").await;
            if answer["result"]["resultType"] != "input_required" {
                break answer;
            }
            let state = answer["result"]["requestState"].clone();
            assert!(!states.contains(&state), "{era}: each round has a state of its own");
            states.push(state.clone());
            params["requestState"] = state;
            params["inputResponses"] = json!({});
            for (key, request) in answer["result"]["inputRequests"].as_object().unwrap() {
                assert_eq!(request["method"], "elicitation/create");
                params["inputResponses"][key] = reply_to(&request["params"]);
            }
        };
        assert_eq!(states.len(), 2);
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(answer["result"]["content"][0]["text"], OUTCOME, "{era}");
    }
}

#[tokio::test]
async fn a_call_that_waits_for_its_client_is_gone_on_with_by_the_same_request_only() {
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    let first = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let (_, exchange) = stateless(&daemon, "/mcp/x", "tools/call", first.clone(), able()).await;
    let state = exchange.json()["result"]["requestState"].clone();
    let again = |name: &str, state: &Value| json!({"name": name, "arguments": {"message": "Who?"}, "requestState": state, "inputResponses": {}});
    for (what, params) in [
        ("another tool", again("test_sampling", &state)),
        ("a state that is none", again("test_elicitation", &json!("cofer-held-0"))),
    ] {
        let (_, exchange) = stateless(&daemon, "/mcp/x", "tools/call", params, able()).await;
        assert_eq!(exchange.json()["error"]["code"], -32602, "{what}");
    }
    let (_, exchange) =
        stateless(&daemon, "/mcp/x", "tools/call", again("test_elicitation", &state), able()).await;
    let asked = exchange.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "what is missing is asked again");
    let mut params = again("test_elicitation", &asked["result"]["requestState"]);
    params["inputResponses"] = json!({"q1": {"action": "accept", "content": {"response": "me"}}});
    let (_, exchange) = stateless(&daemon, "/mcp/x", "tools/call", params, able()).await;
    let answer = exchange.json();
    assert!(
        answer["result"]["content"][0]["text"].as_str().unwrap().contains(r#"{"response":"me"}"#)
    );
}

#[tokio::test]
async fn what_a_client_without_sessions_cannot_be_asked_is_refused_by_name() {
    let daemon = Daemon::start().await;
    for era in ["legacy", "modern"] {
        daemon.register(&exemplary(era, era)).await;
        let params = json!({"name": "test_missing_capability", "arguments": {}});
        let (status, exchange) =
            stateless(&daemon, &format!("/mcp/{era}"), "tools/call", params, json!({})).await;
        let answer = exchange.json();
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32021)), "{era}: {answer}");
        assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
    }
}

#[tokio::test]
async fn a_client_without_sessions_discovers_lists_and_reads() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    for (path, tool) in [("/mcp/x", "test_simple_text"), ("/mcp", "x__test_simple_text")] {
        let ask = async |method: &str, params: Value| {
            let (status, exchange) = stateless(&daemon, path, method, params, json!({})).await;
            (status, exchange.json())
        };
        let (_, found) = ask("server/discover", json!({})).await;
        assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
        assert!(found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string());
        let (_, tools) = ask("tools/list", json!({})).await;
        let tools = &tools["result"];
        assert!(tools["tools"].as_array().unwrap().iter().any(|known| known["name"] == tool));
        assert_eq!(
            (&tools["resultType"], &tools["cacheScope"]),
            (&json!("complete"), &json!("private"))
        );
        let (_, called) = ask("tools/call", json!({"name": tool, "arguments": {}})).await;
        assert_eq!(called["result"]["resultType"], "complete");
        let (status, lost) = ask("resources/read", json!({"uri": "test://nowhere"})).await;
        assert_eq!((status, &lost["error"]["code"]), (200, &json!(-32602)));
        assert_eq!(lost["error"]["data"]["uri"], "test://nowhere");
        for removed in ["ping", "initialize", "resources/subscribe", "no/such"] {
            let (status, answer) = ask(removed, json!({})).await;
            assert_eq!(
                (status, &answer["error"]["code"]),
                (404, &json!(-32601)),
                "{path} {removed}"
            );
            assert_eq!(answer["id"], "s-1");
        }
    }
}

#[tokio::test]
async fn headers_that_say_something_else_than_the_body_are_refused() {
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let list =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "test_simple_text", "_meta": meta}});
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let version = ("mcp-protocol-version", "2026-07-28");
    let method = ("mcp-method", "tools/list");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, &Value, Headers<'_>, i64); 7] = [
        ("no version", &list, &[method], -32020),
        ("another version", &list, &[("mcp-protocol-version", "2025-11-25"), method], -32020),
        ("no method", &list, &[version], -32020),
        ("another method", &list, &[version, ("mcp-method", "prompts/list")], -32020),
        ("no name", &call, &[version, ("mcp-method", "tools/call")], -32020),
        (
            "another name",
            &call,
            &[version, ("mcp-method", "tools/call"), ("mcp-name", "x")],
            -32020,
        ),
        ("no meta", &bare, &[version, method], -32602),
    ];
    for (what, body, headers, code) in cases {
        let mut request = daemon.raw(Method::POST, "/mcp/x").bearer_auth(daemon.token()).json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = daemon.send(request).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (400, &json!(code)),
            "{what}: {}",
            answer.body
        );
    }
}

#[tokio::test]
async fn a_client_without_sessions_listens_to_servers_of_both_eras() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    for era in ["legacy", "modern"] {
        daemon.register(&exemplary(era, era)).await;
        let path = format!("/mcp/{era}");
        let uri = "test://watched-resource";
        let filter =
            json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": [uri]}});
        let (_, exchange) =
            stateless(&daemon, &path, "subscriptions/listen", filter.clone(), json!({})).await;
        let mut heard = exchange.stream();
        let first = heard.next().await.unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["notifications"], filter["notifications"]);
        let call = async |tool: &str, arguments: Value| {
            let params = json!({"name": tool, "arguments": arguments});
            stateless(&daemon, &path, "tools/call", params, json!({})).await.1.json()
        };
        // A server of the newer era is asked to tell in a request of its own, which may take a moment.
        let update = cofer_e2e::eventually("the resource's change is told", async || {
            call("test_touch_resource", json!({"uri": uri})).await;
            let next =
                tokio::time::timeout(std::time::Duration::from_millis(300), heard.next()).await;
            next.ok().flatten()
        })
        .await;
        assert_eq!(update["params"]["uri"], uri, "{era}: {update}");
        assert_eq!(update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s-1");
        call("test_trigger_prompt_change", json!({})).await;
        call("test_trigger_tool_change", json!({})).await;
        heard.method("notifications/tools/list_changed").await;
        let prompts = "notifications/prompts/list_changed";
        assert!(
            heard.passed.iter().all(|message| message["method"] != prompts),
            "{era}: it did not ask for that"
        );
    }
}

#[tokio::test]
async fn closing_the_stream_of_a_client_without_sessions_cancels_its_call() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &[])).await;
    let params = json!({"name": "progress", "arguments": {"ms": 60_000, "step": 50}, "_meta": {"progressToken": 1}});
    let (_, exchange) = stateless(&daemon, "/mcp/w", "tools/call", params, json!({})).await;
    let mut messages = exchange.stream();
    messages.method("notifications/progress").await;
    drop(messages);
    log.wait("cancelled tools/call progress", 1).await;
}

/// The error of a server of the older era that wants a URL opened first.
const URL_REQUIRED: i64 = -32042;

#[tokio::test]
async fn a_client_without_sessions_is_asked_to_open_a_url_and_waits_until_it_was() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    let ask = async |params: &Value, capabilities: Value| {
        let (status, exchange) =
            stateless(&daemon, "/mcp", "tools/call", params.clone(), capabilities).await;
        (status, exchange.answer("s-1").await)
    };
    let able = || json!({"elicitation": {"url": {}}});
    let first = json!({"name": "x__test_url_required", "arguments": {}});
    let (status, refused) = ask(&first, json!({"elicitation": {}})).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32021)), "{refused}");
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], able());
    let (_, asked) = ask(&first, able()).await;
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required");
    let params = json!({"mode": "url", "message": "Sign in", "url": "https://x.example/sign-in"});
    let request = json!({"method": "elicitation/create", "params": params});
    assert_eq!(asked["inputRequests"], json!({"url1": request}));
    let again = |action: &str| {
        let mut params = first.clone();
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = json!({"url1": {"action": action}});
        params
    };
    let (_, declined) = ask(&again("decline"), able()).await;
    assert_eq!(declined["error"]["code"], -32602, "{declined}");
    let refusals = async || {
        let activity = daemon.get("/activity").await.expect(200);
        let calls = activity["calls"].as_array().unwrap().clone();
        calls.iter().filter(|call| call["outcome"] == "mcp_error").count()
    };
    let before = refusals().await;
    let accepted = again("accept");
    let ((_, answer), ()) = tokio::join!(ask(&accepted, able()), async {
        let waits = async || (refusals().await > before).then_some(());
        eventually("the next try waits", waits).await;
        daemon.tool("x", "test_url_opened", &json!({})).await.expect(200);
    });
    assert_eq!(answer["result"]["content"][0]["text"], "The URL was opened", "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_url_to_be_opened_comes_to_clients_with_sessions_as_they_know_it() {
    let daemon = Daemon::start().await;
    for era in ["legacy", "modern"] {
        daemon.register(&exemplary(era, era)).await;
    }
    let able = json!({"elicitation": {"url": {}}});
    let mut client = GatewayClient::open(&daemon, "/mcp", able).await;
    let mut heard = client.listen(None).await;
    let call =
        |server: &str| json!({"name": format!("{server}__test_url_required"), "arguments": {}});
    // By a server of its own era, as it came.
    let refused = client.answer("tools/call", call("legacy")).await;
    assert_eq!(refused["error"]["code"], URL_REQUIRED, "{refused}");
    let wanted = &refused["error"]["data"]["elicitations"][0];
    daemon.tool("legacy", "test_url_opened", &json!({})).await.expect(200);
    let done = heard.method("notifications/elicitation/complete").await;
    assert_eq!(done["params"]["elicitationId"], wanted["elicitationId"]);
    // By one of the newer era, which knows no id.
    let (id, exchange) = client.ask("tools/call", call("modern")).await;
    let mut messages = exchange.stream();
    let question = messages.method("elicitation/create").await;
    assert_eq!(question["params"]["url"], "https://x.example/sign-in");
    assert!(question["params"]["elicitationId"].as_str().is_some_and(|id| !id.is_empty()));
    client.reply(&question["id"], json!({"action": "accept"})).await;
    let answer = messages.answer(id).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Agreed: action=accept, content={}");
}
