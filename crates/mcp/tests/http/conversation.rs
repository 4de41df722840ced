//! Messages both ways: untouched, one a line, each answered once.

use serde_json::json;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::server::{Piece, Reply, Server, event, json, result, status};

fn echo(seen: &crate::server::Seen) -> Reply {
    match (seen.http.as_str(), seen.json().get("id")) {
        ("POST", Some(_)) => result(seen, json!({"echo": seen.json()["params"]})),
        ("POST", None) => status(202),
        _ => status(405),
    }
}

#[tokio::test]
async fn bytes_go_to_the_server_and_back_as_they_are() {
    // covers: PRX-3.1, PRX-3.2, PRX-3.3, PRX-3.4, PRX-3.5, PRX-4.2
    let answer = r#"{"result": {"n": 12345678901234567890123, "f":1.0, "s":"\u00e9\u2028"} ,"vendor":[1e5],"jsonrpc":"2.0","id":18446744073709551615}"#;
    let server = Server::start(move |_| {
        Reply::Full(200, vec![("content-type", "application/json".to_owned())], answer.into())
    })
    .await;
    let mut client = Client::of(&server);
    let asked = r#"{"jsonrpc":"2.0", "x-vendor":{"a":1.0},"id":18446744073709551615,"method":"tools/call","params":{"name":"t","n":1.50}}"#;
    client.write(&format!("{asked}\r\n\n  \n")).await;
    assert_eq!(client.line().await.unwrap(), answer);
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].body, asked);
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(seen[0].header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(seen[0].header("mcp-session-id"), None);
    assert_eq!(seen[0].path, "/mcp");
}

#[tokio::test]
async fn an_answer_on_many_lines_is_written_on_one() {
    // covers: PRX-3.5
    let server = Server::start(|seen| match seen.json()["id"].as_i64() {
        Some(1) => Reply::Full(
            200,
            vec![("content-type", "application/json".to_owned())],
            "{\r\n  \"id\": 1,\n  \"result\": {\"s\": \"a\\nb\"}\n}\n".into(),
        ),
        _ => Reply::Events(
            vec![],
            vec![Piece::Text("data: {\"id\": 2,\ndata: \"result\": {}\ndata: }\n\n".to_owned())],
        ),
    })
    .await;
    let mut client = Client::of(&server);
    assert_eq!(client.ask(1, "x", json!({})).await["result"]["s"], "a\nb");
    assert_eq!(client.ask(2, "x", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_slow_answer_holds_up_nobody() {
    // covers: PRX-4.3
    let (release, held) = mpsc::unbounded_channel();
    let held = std::sync::Mutex::new(Some(held));
    let server = Server::start(move |seen| match seen.json()["id"].as_str() {
        Some("slow") => Reply::Live(held.lock().unwrap().take().unwrap()),
        _ => echo(seen),
    })
    .await;
    let mut client = Client::of(&server);
    client
        .send(json!({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {}}))
        .await;
    server.wait_for("tools/call", 1).await;
    for id in 0..20 {
        assert_eq!(client.ask(id, "tools/list", json!({"n": id})).await["result"]["echo"]["n"], id);
    }
    release.send(event(&json!({"jsonrpc": "2.0", "id": "slow", "result": "late"}))).unwrap();
    assert_eq!(client.next().await, json!({"jsonrpc": "2.0", "id": "slow", "result": "late"}));
}

#[tokio::test]
async fn many_at_once_are_each_answered_once() {
    // covers: PRX-3.5
    let server = Server::start(echo).await;
    let mut client = Client::of(&server);
    let lines: String = (0..500)
        .map(|id| {
            format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "x", "params": {"n": id}}))
        })
        .collect();
    client.write(&lines).await;
    let mut answered = std::collections::BTreeSet::new();
    for _ in 0..500 {
        let answer = client.next().await;
        assert_eq!(answer["result"]["echo"]["n"], answer["id"]);
        assert!(answered.insert(answer["id"].as_u64().unwrap()), "twice: {answer}");
    }
    client.close_input();
    assert!(client.rest().await.is_empty());
}

#[tokio::test]
async fn what_the_server_asks_reaches_the_client_and_its_answer_the_server() {
    // covers: PRX-3.4
    let (stream, held) = mpsc::unbounded_channel();
    let held = std::sync::Mutex::new(Some(held));
    let server = Server::start(move |seen| match seen.method().as_str() {
        "initialize" => result(seen, json!({"protocolVersion": "2025-06-18", "capabilities": {}}))
            .with("mcp-session-id", "s1"),
        "tools/call" => Reply::Live(held.lock().unwrap().take().unwrap()),
        _ => echo(seen),
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    client
        .send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}))
        .await;
    let question =
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"x": 1}});
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}});
    stream.send(event(&progress)).unwrap();
    stream.send(event(&question)).unwrap();
    assert_eq!(client.next().await, progress);
    assert_eq!(client.next().await, question);
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}});
    client.send(answer.clone()).await;
    // The answer has no method: it is counted as a plain POST.
    let posted = server.wait_for("POST", 1).await;
    assert_eq!(posted[0].json(), answer);
    assert_eq!(posted[0].header("mcp-session-id"), Some("s1"));
    stream.send(event(&json!({"jsonrpc": "2.0", "id": 1, "result": "done"}))).unwrap();
    assert_eq!(client.next().await["result"], "done");
}

#[tokio::test]
async fn lines_that_are_no_messages_are_answered_and_the_rest_goes_on() {
    // covers: PRX-5.5
    let server = Server::start(echo).await;
    let mut client = Client::of(&server);
    client.write("this is not JSON\n").await;
    let error = client.next().await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(null), &json!(-32700)));
    client.write("{\"id\":7,\"jsonrpc\":\"2.0\"}\n").await;
    let error = client.next().await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(7), &json!(-32600)));
    client.nothing_before(8).await;
}

#[tokio::test]
async fn the_parts_of_a_batch_are_answered_each() {
    let server = Server::start(echo).await;
    let mut client = Client::of(&server);
    client.write("[{\"id\":1,\"method\":\"a\"},{\"method\":\"notifications/n\"},{\"id\":\"2\",\"method\":\"b\"}]\n").await;
    let mut ids = [client.next().await["id"].to_string(), client.next().await["id"].to_string()];
    ids.sort();
    assert_eq!(ids, ["\"2\"", "1"]);
    server.wait_for("notifications/n", 1).await;
    client.write("[]\n").await;
    assert_eq!(client.next().await["error"]["code"], -32600);
}

#[tokio::test]
async fn an_id_in_use_is_refused() {
    let server = Server::start(|seen| match seen.method().as_str() {
        "tools/call" => Reply::Silence,
        _ => echo(seen),
    })
    .await;
    let mut client = Client::of(&server);
    for _ in 0..2 {
        client.send(json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call"})).await;
    }
    assert_eq!(client.next().await["error"]["code"], -32600);
    client.nothing_before(6).await;
}

#[tokio::test]
async fn notifications_are_sent_in_order_and_never_answered() {
    // covers: PRX-3.4
    let server =
        Server::start(
            |seen| if seen.json()["params"]["n"] == 3 { status(500) } else { echo(seen) },
        )
        .await;
    let mut client = Client::of(&server);
    for n in 0..10 {
        client
            .send(json!({"jsonrpc": "2.0", "method": "notifications/n", "params": {"n": n}}))
            .await;
    }
    let seen = server.wait_for("notifications/n", 10).await;
    let order: Vec<_> =
        seen.iter().map(|seen| seen.json()["params"]["n"].as_u64().unwrap()).collect();
    assert_eq!(order, (0..10).collect::<Vec<_>>());
    client.nothing_before(1).await;
}

#[tokio::test]
async fn a_large_message_passes_both_ways_also_in_a_stream() {
    let text = "é\\\" ".repeat(1 << 20);
    let answer = format!(r#"{{"id":1,"result":"{text}"}}"#);
    let plain = answer.clone();
    let server = Server::start(move |seen| {
        if seen.header("mcp-method") == Some("events") {
            return Reply::Events(vec![], vec![Piece::Text(format!("data: {plain}\n\n"))]);
        }
        Reply::Full(
            200,
            vec![("content-type", "application/json".to_owned())],
            plain.clone().into(),
        )
    })
    .await;
    let mut client = Client::of(&server);
    for method in ["json", "events"] {
        let asked = format!(r#"{{"id":1,"method":"{method}","params":{{"text":"{text}"}}}}"#);
        client.write(&format!("{asked}\n")).await;
        assert!(client.line().await.unwrap() == answer, "a large answer came back changed");
        assert!(server.seen().pop().unwrap().body == asked, "a large request arrived changed");
    }
}

#[tokio::test]
async fn an_answer_to_nobody_is_given_to_the_one_that_asked() {
    let server = Server::start(|seen| match seen.json()["id"].as_i64() {
        Some(1) => json(
            400,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "bad"}}),
        ),
        // Another spelling of the same id.
        _ => Reply::Events(
            vec![],
            vec![Piece::Text("data: {\"id\":2.0,\"result\":{}}\n\n".to_owned())],
        ),
    })
    .await;
    let mut client = Client::of(&server);
    let error = client.ask(1, "x", json!({})).await;
    assert_eq!(error["error"], json!({"code": -32000, "message": "bad"}));
    client.send(json!({"jsonrpc": "2.0", "id": 2, "method": "x"})).await;
    assert_eq!(client.next().await["id"], json!(2.0));
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::start(|seen| match seen.json()["id"].as_i64() {
        Some(n) if n % 2 == 0 => {
            Reply::Events(vec![], vec![event(&json!({"id": n, "result": {}}))])
        }
        _ => echo(seen),
    })
    .await;
    let mut client = Client::of(&server);
    for id in 0..20 {
        client.ask(id, "x", json!({})).await;
    }
    let last = server.seen().last().unwrap().connection;
    assert!(last < 5, "{last} connections for 20 requests one after the other");
}
