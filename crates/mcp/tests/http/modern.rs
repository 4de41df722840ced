//! The revision 2026-07-28: headers, tools with annotations, cancelling by closing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::{Client, modern};
use crate::server::{Piece, Reply, Seen, Server, event, json, result, status};

fn annotated(name: &str, header: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": header}}}})
}

#[tokio::test]
async fn requests_say_in_headers_what_they_are() {
    let server = Server::start(|seen| result(seen, json!({}))).await;
    let mut client = Client::of(&server);
    for (method, params, name) in [
        ("server/discover", json!({}), None),
        ("tools/call", json!({"name": "get_weather"}), Some("get_weather")),
        ("prompts/get", json!({"name": "grüße"}), Some("=?base64?Z3LDvMOfZQ==?=")),
        ("resources/read", json!({"uri": "file:///a b"}), Some("file:///a b")),
    ] {
        client.send(modern(method, method, params)).await;
        assert_eq!(client.next().await["id"], method);
        let seen = server.seen_of(method).pop().unwrap();
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), Some(method));
        assert_eq!(seen.header("mcp-name"), name);
        assert_eq!(seen.header("mcp-session-id"), None);
    }
    client.close_input();
    client.rest().await;
    assert!(server.seen().iter().all(|seen| seen.http == "POST"), "no GET and no DELETE");
}

#[tokio::test]
async fn annotated_arguments_go_into_headers_and_bad_tools_out_of_the_list() {
    let server = Server::start(|seen| match seen.method().as_str() {
        "tools/list" => result(seen, json!({"ttlMs": 1.0, "tools": [annotated("good", "Region"), annotated("bad", "My Region"), {"name": "plain"}]})),
        _ => result(seen, json!({})),
    })
    .await;
    let mut client = Client::of(&server);
    client.send(modern(1, "tools/list", json!({}))).await;
    let line = client.line().await.unwrap();
    assert!(line.contains("\"ttlMs\":1.0"), "the rest stays as it is: {line}");
    let listed: Value = serde_json::from_str(&line).unwrap();
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["good", "plain"]);
    assert_eq!(listed["id"], 1);
    client
        .send(modern(2, "tools/call", json!({"name": "good", "arguments": {"region": "us-west1"}})))
        .await;
    client.next().await;
    assert_eq!(server.seen_of("tools/call")[0].header("mcp-param-region"), Some("us-west1"));
}

#[tokio::test]
async fn tools_that_changed_are_asked_for_and_the_call_is_sent_once_more() {
    let server = Server::start(|seen| match seen.method().as_str() {
        "tools/list" => match seen.json()["params"]["cursor"].as_str() {
            None => result(seen, json!({"tools": [], "nextCursor": "2"})),
            Some(_) => Reply::Events(vec![], vec![event(&json!({"id": seen.json()["id"], "result": {"tools": [annotated("sql", "Region")]}}))]),
        },
        _ if seen.header("mcp-param-region") == Some("eu") => result(seen, json!("ran")),
        _ => json(400, json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": {"code": -32020, "message": "Header mismatch"}})),
    })
    .await;
    let mut client = Client::of(&server);
    client
        .send(modern(1, "tools/call", json!({"name": "sql", "arguments": {"region": "eu"}})))
        .await;
    assert_eq!(client.next().await["result"], "ran");
    let lists = server.seen_of("tools/list");
    assert_eq!(lists.len(), 2);
    assert_eq!(
        lists[0].json()["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    // A mismatch that stays is the server's answer.
    client
        .send(modern(2, "tools/call", json!({"name": "sql", "arguments": {"region": "us"}})))
        .await;
    assert_eq!(client.next().await["error"]["code"], -32020);
    assert_eq!(server.seen_of("tools/call").len(), 4);
}

#[tokio::test]
async fn cancelling_closes_the_stream_and_says_nothing() {
    let (stream, held) = mpsc::unbounded_channel();
    let held = Mutex::new(Some(held));
    let server = Server::start(move |seen| match seen.method().as_str() {
        "tools/call" => Reply::Live(held.lock().unwrap().take().unwrap()),
        _ => result(seen, json!({})),
    })
    .await;
    let mut client = Client::of(&server);
    client.send(modern("c", "tools/call", json!({"name": "t"}))).await;
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress"});
    stream.send(event(&progress)).unwrap();
    assert_eq!(client.next().await, progress);
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}})).await;
    server.wait_closed(1).await;
    client.nothing_before(2).await;
    assert_eq!(server.seen_of("notifications/cancelled").len(), 0);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_over_also_where_its_events_have_ids() {
    let server = Server::start(|_| {
        Reply::Events(
            vec![],
            vec![
                Piece::Text(
                    "id: 1\nretry: 1\ndata: {\"method\":\"notifications/x\"}\n\n".to_owned(),
                ),
                Piece::Cut,
            ],
        )
    })
    .await;
    let mut client = Client::of(&server);
    client.send(modern(1, "tools/call", json!({"name": "t"}))).await;
    assert_eq!(client.next().await["method"], "notifications/x");
    assert_eq!(client.next().await["error"]["data"]["kind"], "connect");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn errors_of_the_server_stay_its_own() {
    let server = Server::start(|seen| {
        let (status, code) = if seen.method() == "a" { (404, -32601) } else { (400, -32022) };
        json(status, json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": {"code": code, "message": "m", "data": {"k": 1}}}))
    })
    .await;
    let mut client = Client::of(&server);
    client.send(modern(1, "a", json!({}))).await;
    assert_eq!(
        client.next().await["error"],
        json!({"code": -32601, "message": "m", "data": {"k": 1}})
    );
    client.send(modern(2, "b", json!({}))).await;
    assert_eq!(client.next().await["error"]["code"], -32022);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn the_server_asks_a_modern_client_nothing() {
    let server = Server::start(|seen: &Seen| {
        Reply::Events(
            vec![],
            vec![
                event(&json!({"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage"})),
                event(&json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": {}})),
            ],
        )
    })
    .await;
    let mut client = Client::of(&server);
    client.send(modern(1, "tools/call", json!({"name": "t"}))).await;
    assert_eq!(client.next().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}

#[tokio::test]
async fn a_subscription_goes_on_over_a_broken_connection() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |seen| {
        let id = seen.json()["id"].clone();
        let acknowledged = event(&json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}}));
        let changed = |n: usize| event(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"n": n}}));
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::Events(vec![], vec![acknowledged, changed(1), Piece::Cut]),
            1 => status(503),
            2 => Reply::Events(vec![], vec![acknowledged, changed(2)]),
            _ => Reply::Events(vec![], vec![acknowledged, event(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}}))]),
        }
    })
    .await;
    let mut client = Client::of(&server);
    client.send(modern("sub", "subscriptions/listen", json!({"notifications": {}}))).await;
    assert_eq!(client.next().await["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(client.next().await["params"]["n"], 1);
    assert_eq!(client.next().await["params"]["n"], 2);
    assert_eq!(client.next().await["result"]["resultType"], "complete");
    client.close_input();
    assert!(client.rest().await.is_empty());
    let asked = server.seen();
    assert_eq!(asked.len(), 4);
    assert!(asked.iter().all(|seen| seen.body == asked[0].body), "with the same id");
}

#[tokio::test]
async fn an_unreadable_line_of_a_modern_client_is_answered_without_an_id() {
    let server = Server::start(|seen| result(seen, json!({}))).await;
    let mut client = Client::of(&server);
    client.send(modern(1, "server/discover", json!({}))).await;
    client.next().await;
    client.write("{nonsense\n").await;
    let error = client.next().await;
    assert_eq!(error["error"]["code"], -32700);
    assert!(error.get("id").is_none(), "{error}");
}
