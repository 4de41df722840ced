//! Streamed answers: in order, resumed where they can be, and an error where they cannot.

use std::time::Duration;

use cofer_mcp::http::Remote;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::{Client, remote};
use crate::server::{Piece, Reply, Seen, Server, event, event_with_id, result, status};

fn progress(n: usize) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": n}})
}

fn done(seen: &Seen) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": "done"})
}

#[tokio::test]
async fn events_are_forwarded_one_by_one_as_they_come() {
    // covers: PRX-4.3, PRX-4.4
    let (stream, held) = mpsc::unbounded_channel();
    let held = std::sync::Mutex::new(Some(held));
    let server = Server::start(move |_| Reply::Live(held.lock().unwrap().take().unwrap())).await;
    let mut client = Client::of(&server);
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})).await;
    for n in 0..50 {
        stream.send(event(&progress(n))).unwrap();
        assert_eq!(client.next().await, progress(n), "it comes before the next is sent");
    }
    stream.send(Piece::Text(": still here\n\nevent: other\ndata: {}\n\n".to_owned())).unwrap();
    stream.send(event(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}))).unwrap();
    assert_eq!(client.next().await["id"], 1);
    // What comes behind the answer is still the server's word.
    stream.send(event(&progress(99))).unwrap();
    assert_eq!(client.next().await, progress(99));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed_behind_its_last_event() {
    let server =
        Server::start(|seen| match (seen.method().as_str(), seen.header("last-event-id")) {
            ("tools/call", _) => Reply::Events(
                vec![],
                vec![
                    Piece::Text("id: a0\nretry: 300\ndata:\n\n".to_owned()),
                    event_with_id("a1", &progress(1)),
                    Piece::Cut,
                ],
            ),
            ("GET", Some("a1")) => Reply::Events(vec![], vec![event_with_id("a2", &progress(2))]),
            ("GET", Some("a2")) => Reply::Events(
                vec![],
                vec![event(&json!({"jsonrpc": "2.0", "id": 1, "result": "whole"}))],
            ),
            _ => status(400),
        })
        .await;
    let mut client = Client::of(&server);
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})).await;
    let began = Instant::now();
    assert_eq!(client.next().await, progress(1));
    assert_eq!(client.next().await, progress(2));
    assert_eq!(client.next().await["result"], "whole");
    assert!(began.elapsed() >= Duration::from_millis(600), "retry was not honoured");
    let gets = server.seen_of("GET");
    assert_eq!(gets.len(), 2);
    assert_eq!(gets[0].header("accept"), Some("text/event-stream"));
    assert_eq!(server.seen_of("tools/call").len(), 1);
}

#[tokio::test]
async fn resuming_goes_on_while_the_server_is_away() {
    let server = Server::start(|seen| match seen.method().as_str() {
        "tools/call" => Reply::Events(vec![], vec![event_with_id("1", &progress(1))]),
        _ => status(503),
    })
    .await;
    let mut client = Client::of(&server);
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})).await;
    assert_eq!(client.next().await, progress(1));
    server.wait_for("GET", 2).await;
    assert_eq!(server.seen_of("tools/call").len(), 1);
}

#[tokio::test]
async fn a_stream_without_event_ids_that_ends_early_is_an_error_and_not_sent_again() {
    // covers: PRX-4.5
    for (cut, kind) in [(true, "connect"), (false, "protocol")] {
        let server = Server::start(move |_| {
            let mut pieces = vec![event(&progress(1))];
            if cut {
                pieces.push(Piece::Cut);
            }
            Reply::Events(vec![], pieces)
        })
        .await;
        let mut client = Client::of(&server);
        client.send(json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call"})).await;
        assert_eq!(client.next().await, progress(1));
        let error = client.next().await;
        assert_eq!(error["id"], "x");
        assert_eq!(error["error"]["code"], -32603);
        assert_eq!(error["error"]["data"]["kind"], kind, "{error}");
        assert_eq!(error["error"]["data"]["source"], "cofer-proxy");
        assert!(error["error"]["data"]["hint"].as_str().unwrap().contains("not sent again"));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn silence_is_what_the_time_limit_counts() {
    // covers: PRX-5.4, PRX-6.2
    let (stream, held) = mpsc::unbounded_channel();
    let held = std::sync::Mutex::new(Some(held));
    let server = Server::start(move |seen| match seen.method().as_str() {
        "tools/call" => Reply::Live(held.lock().unwrap().take().unwrap()),
        _ => status(202),
    })
    .await;
    let silence = Duration::from_millis(1500);
    let mut client = Client::start(Remote { silence, ..remote(&server.url()) });
    let began = Instant::now();
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"})).await;
    // Longer than the limit in all, never longer than it in one piece.
    while began.elapsed() < silence * 2 {
        stream.send(Piece::Text(": keep-alive\n\n".to_owned())).unwrap();
        tokio::time::sleep(silence / 6).await;
    }
    stream.send(event(&progress(1))).unwrap();
    assert_eq!(client.next().await, progress(1));
    let error = client.next().await;
    assert_eq!(error["error"]["data"]["kind"], "timeout", "{error}");
    assert_eq!(error["error"]["message"], "the server was silent for 1.5 s");
    let told = server.wait_for("notifications/cancelled", 1).await;
    assert_eq!(told[0].json()["params"]["requestId"], 1);
    stream.send(event(&json!({"id": 1, "result": "late"}))).unwrap_or_default();
    client.close_input();
    assert!(client.rest().await.is_empty(), "a late answer is dropped");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    // covers: PRX-5.4
    let server = Server::start(|seen| match seen.method().as_str() {
        "tools/call" => Reply::Silence,
        _ => status(202),
    })
    .await;
    let silence = Duration::from_millis(300);
    let mut client = Client::start(Remote { silence, ..remote(&server.url()) });
    let error = client.ask(1, "tools/call", json!({})).await;
    assert_eq!(error["error"]["data"]["kind"], "timeout");
    server.wait_closed(1).await;
    assert_eq!(server.seen_of("tools/call").len(), 1, "a call is never sent twice");
}

#[tokio::test]
async fn what_is_over_the_cap_costs_its_own_asker_an_error() {
    let server = Server::start(|seen| {
        let text = "x".repeat(2000);
        match seen.json()["params"]["form"].as_str() {
            Some("json") => result(seen, json!(text)),
            Some("events") => Reply::Events(
                vec![],
                vec![event(&json!({"id": seen.json()["id"], "result": text}))],
            ),
            _ if seen.json().get("id").is_none() => status(202),
            _ => Reply::Events(vec![], vec![event(&done(seen))]),
        }
    })
    .await;
    let mut client = Client::start(Remote { cap: 1000, ..remote(&server.url()) });
    for form in ["json", "events"] {
        let error = client.ask(form, "tools/call", json!({"form": form})).await;
        assert_eq!(error["error"]["data"]["kind"], "too_large", "{error}");
    }
    // The request itself, whatever its id looks like and wherever it stands.
    let long = format!(
        "{{\"method\":\"x\",\"params\":\"{}\",\"id\":\"big \\\"one\\\"\"}}\n",
        "x".repeat(2000)
    );
    client.write(&long).await;
    let error = client.next().await;
    assert_eq!(error["id"], "big \"one\"");
    assert_eq!(error["error"]["data"]["kind"], "too_large");
    assert_eq!(client.ask(9, "x", json!({})).await["result"], "done");
}

#[tokio::test]
async fn a_cancelled_request_is_told_to_the_server_and_never_answered() {
    let (stream, held) = mpsc::unbounded_channel();
    let held = std::sync::Mutex::new(Some(held));
    let server = Server::start(move |seen| match seen.method().as_str() {
        "tools/call" => Reply::Live(held.lock().unwrap().take().unwrap()),
        "ping" => result(seen, json!({})),
        "initialize" => Reply::Events(vec![], vec![event(&json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}))]),
        _ => status(202),
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    client.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call"})).await;
    server.wait_for("tools/call", 1).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "r"}});
    client.send(cancel.clone()).await;
    let told = server.wait_for("notifications/cancelled", 1).await;
    assert_eq!(told[0].json(), cancel, "as the client said it");
    stream.send(event(&json!({"id": 7, "result": "late"}))).unwrap_or_default();
    client.nothing_before(8).await;
    // What is not under way is not cancelled.
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}})).await;
    client.nothing_before(9).await;
    assert_eq!(server.seen_of("notifications/cancelled").len(), 1);
    server.wait_closed(1).await;
}
