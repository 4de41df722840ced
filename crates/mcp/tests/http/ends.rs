//! The end: soon, without a word lost that could be had, and without anything left.

use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::{Client, modern};
use crate::server::{Reply, Server, event, result, status};

#[tokio::test]
async fn answers_that_are_nearly_there_are_still_given() {
    let server = Server::start(|seen| match seen.json().get("id") {
        Some(_) => result(seen, json!({})),
        None => status(202),
    })
    .await;
    let mut client = Client::of(&server);
    client
        .write(concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        ))
        .await;
    client.close_input();
    let ids: Vec<_> = client.rest().await.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(0), json!(1)]);
}

#[tokio::test]
async fn the_end_of_the_input_ends_what_does_not_end_by_itself() {
    let (stream, held) = mpsc::unbounded_channel();
    let held = std::sync::Mutex::new(Some(held));
    let server = Server::start(move |seen| match seen.method().as_str() {
        "initialize" => {
            result(seen, json!({"protocolVersion": "2025-06-18"})).with("mcp-session-id", "s")
        }
        "tools/call" => Reply::Live(held.lock().unwrap().take().unwrap()),
        "GET" | "DELETE" => Reply::Silence,
        _ => status(202),
    })
    .await;
    let mut client = Client::of(&server);
    client.open().await;
    client.send(json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call"})).await;
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress"});
    stream.send(event(&progress)).unwrap();
    assert_eq!(client.next().await, progress);
    server.wait_for("GET", 1).await;
    let began = Instant::now();
    client.close_input();
    assert!(client.rest().await.is_empty());
    // Two seconds on an idle machine; the server's silence would be a minute.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let told = server.seen_of("notifications/cancelled");
    assert_eq!(told[0].json()["params"]["requestId"], "a");
    assert_eq!(server.seen_of("DELETE").len(), 1);
    server.wait_closed(3).await;
}

#[tokio::test]
async fn a_stop_waits_for_no_answer() {
    let server = Server::start(|_| Reply::Silence).await;
    let mut client = Client::of(&server);
    client.send(modern(1, "tools/call", json!({"name": "t"}))).await;
    server.wait_for("tools/call", 1).await;
    client.stop.cancel();
    assert!(client.rest().await.is_empty());
    server.wait_closed(1).await;
}

#[tokio::test]
async fn a_reader_that_is_gone_ends_the_pump() {
    let server = Server::start(|seen| result(seen, json!({}))).await;
    let mut client = Client::of(&server);
    client.ask(1, "x", json!({})).await;
    let ended = client.hang_up().await;
    assert!(ended, "the pump ends when an answer finds no reader");
}

#[tokio::test]
async fn an_endless_subscription_does_not_hold_up_the_end() {
    let server = Server::start(|_| Reply::Silence).await;
    let mut client = Client::of(&server);
    client.send(modern(1, "subscriptions/listen", json!({}))).await;
    server.wait_for("subscriptions/listen", 1).await;
    client.close_input();
    assert!(client.rest().await.is_empty());
    server.wait_closed(1).await;
}

#[tokio::test]
async fn nothing_is_asked_of_the_server_before_the_client_asks() {
    let server = Server::start(|seen| result(seen, json!({}))).await;
    let mut client = Client::of(&server);
    client.close_input();
    assert!(client.rest().await.is_empty());
    assert!(server.seen().is_empty());
}
