//! Calls that wait for others: their order, and the calls that need not wait.

use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{BridgeConfig, CallError, Request};
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::callers::{Client, Told, asks, next, question, request_by};
use crate::peer::{LIMIT, bridge, bridge_with, call, request};

fn accepted() -> Result<Bytes, cofer_mcp::RpcError> {
    Ok(Bytes::from_static(br#"{"action":"accept"}"#))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_user_lets_others_go() {
    let (bridge, mut peer, _) = bridge();
    let (one, mut told) = Client::of(1);
    let (other, _) = Client::of(2);
    let first = call(&bridge, request_by(&one, "{}"));
    let request = peer.hears().await;
    let second = call(&bridge, request_by(&other, "{}"));
    assert!(peer.hears_nothing().await, "one at a time");
    asks(&mut peer, json!("q"), "elicitation/create").await;
    let asked = question(&mut told).await;
    let request_of_other = peer.hears().await;
    peer.answers(&request_of_other, json!("second")).await;
    assert_eq!(second.await.unwrap().unwrap(), r#""second""#);
    asked.answer(accepted()).await;
    assert_eq!(peer.hears().await["id"], "q");
    peer.answers(&request, json!("first")).await;
    assert_eq!(first.await.unwrap().unwrap(), r#""first""#);
    // The slot was released once: one at a time again.
    let third = call(&bridge, request_by(&one, "{}"));
    let request = peer.hears().await;
    let fourth = call(&bridge, request_by(&other, "{}"));
    assert!(peer.hears_nothing().await, "two slots were released for one call");
    peer.answers(&request, json!(0)).await;
    let request = peer.hears().await;
    peer.answers(&request, json!(0)).await;
    assert!(third.await.unwrap().is_ok() && fourth.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_two_clients_calls_could_have_caused_waits_until_one_has_ended() {
    let (bridge, mut peer, _) = bridge();
    let (one, mut told) = Client::of(1);
    let (other, mut told_other) = Client::of(2);
    let first = call(&bridge, request_by(&one, "{}"));
    let request = peer.hears().await;
    asks(&mut peer, json!("q1"), "elicitation/create").await;
    let asked = question(&mut told).await;
    let second = call(&bridge, request_by(&other, "{}"));
    let request_of_other = peer.hears().await;
    asked.answer(accepted()).await;
    assert_eq!(peer.hears().await["id"], "q1");
    asks(&mut peer, json!("q2"), "sampling/createMessage").await;
    assert!(peer.hears_nothing().await, "the request was refused");
    assert!(told.try_recv().is_err() && told_other.try_recv().is_err());
    peer.answers(&request, json!(0)).await;
    assert!(first.await.unwrap().is_ok());
    question(&mut told_other).await.answer(accepted()).await;
    assert_eq!(peer.hears().await["id"], "q2");
    peer.answers(&request_of_other, json!(0)).await;
    assert!(second.await.unwrap().is_ok());
    assert!(told.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_user_who_is_away_does_not_delay_the_requests_to_other_clients() {
    let (bridge, mut peer, _) = bridge();
    let (one, mut told) = Client::of(1);
    let (other, mut told_other) = Client::of(2);
    let first = call(&bridge, request_by(&one, "{}"));
    let request = peer.hears().await;
    asks(&mut peer, json!("q1"), "elicitation/create").await;
    let asked = question(&mut told).await;
    let second = call(&bridge, request_by(&other, "{}"));
    let request_of_other = peer.hears().await;
    asks(&mut peer, json!("q2"), "elicitation/create").await;
    question(&mut told_other).await.answer(accepted()).await;
    assert_eq!(peer.hears().await["id"], "q2");
    peer.answers(&request_of_other, json!(0)).await;
    assert!(second.await.unwrap().is_ok() && told.try_recv().is_err());
    asked.answer(accepted()).await;
    assert_eq!(peer.hears().await["id"], "q1");
    peer.answers(&request, json!(0)).await;
    assert!(first.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_user_is_neither_silence_nor_the_servers() {
    let (bridge, mut peer, _) = bridge();
    let (caller, mut told) = Client::of(1);
    let request = request_by(&caller, "{}");
    let running = TaskTracker::new().spawn({
        let bridge = bridge.clone();
        async move { bridge.call(request).await }
    });
    let request = peer.hears().await;
    asks(&mut peer, json!("q"), "elicitation/create").await;
    let asked = question(&mut told).await;
    tokio::time::sleep(10 * LIMIT).await;
    asked.answer(accepted()).await;
    peer.hears().await;
    tokio::time::sleep(LIMIT / 2).await;
    peer.answers(&request, json!(0)).await;
    let called = running.await.unwrap();
    assert!(called.result.is_ok(), "{called:?}");
    assert!(called.timing.input >= 10 * LIMIT, "{:?}", called.timing);
    assert!(called.timing.server < LIMIT, "{:?}", called.timing);
}

#[tokio::test(start_paused = true)]
async fn a_log_message_of_a_call_is_no_silence() {
    let (bridge, mut peer, _) = bridge();
    let (caller, mut told) = Client::of(1);
    let running = call(&bridge, request_by(&caller, "{}"));
    let request = peer.hears().await;
    for _ in 0..3 {
        tokio::time::sleep(LIMIT * 3 / 4).await;
        peer.says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#).await;
        assert!(matches!(next(&mut told).await, Told::Log(_)));
    }
    tokio::time::sleep(LIMIT * 3 / 4).await;
    peer.answers(&request, json!(0)).await;
    assert!(running.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_busy_servers_list_is_the_one_that_it_last_sent() {
    let (bridge, mut peer, _) = bridge();
    let list = || Request::new("tools/list", None, LIMIT);
    let first = call(&bridge, list());
    let heard = peer.hears().await;
    peer.answers(&heard, json!({"tools": [1]})).await;
    first.await.unwrap().unwrap();
    let running = call(&bridge, request("busy"));
    let busy = peer.hears().await;
    assert_eq!(bridge.call(list()).await.result.unwrap(), r#"{"tools":[1]}"#);
    peer.says(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    let second = call(&bridge, list());
    assert!(peer.hears_nothing().await);
    peer.answers(&busy, json!(0)).await;
    assert!(running.await.unwrap().is_ok());
    // A free server is asked.
    let heard = peer.hears().await;
    peer.answers(&heard, json!({"tools": [2]})).await;
    assert_eq!(second.await.unwrap().unwrap(), r#"{"tools":[2]}"#);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_a_ping_during_a_call_gets_several_calls() {
    let config = BridgeConfig { raise_to: Some(8), ..BridgeConfig::default() };
    let (bridge, mut peer, _) = bridge_with(config);
    let first = call(&bridge, request("a"));
    let request_a = peer.hears().await;
    let second = call(&bridge, request("b"));
    let ping = peer.hears().await;
    assert_eq!(ping["method"], "ping");
    assert_eq!(bridge.queue().limit, 1);
    peer.answers(&ping, json!({})).await;
    let request_b = peer.hears().await;
    assert_eq!((&request_b["method"], bridge.queue().limit), (&json!("b"), 8));
    peer.answers(&request_b, json!(0)).await;
    peer.answers(&request_a, json!(0)).await;
    assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
    bridge.set_max_in_flight(2, None);
    assert_eq!(bridge.queue().limit, 2);
    bridge.set_max_in_flight(1, Some(8));
    assert_eq!(bridge.queue().limit, 8, "the server has proven it");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_one_after_the_other_stays_at_one() {
    let config = BridgeConfig { raise_to: Some(8), ..BridgeConfig::default() };
    let (bridge, mut peer, _) = bridge_with(config);
    let first = call(&bridge, request("a"));
    let request_a = peer.hears().await;
    let second = call(&bridge, request("b"));
    let ping = peer.hears().await;
    peer.answers(&request_a, json!(0)).await;
    assert!(first.await.unwrap().is_ok());
    // The wait has ended, and with it the probe.
    let mut heard = [peer.hears().await, peer.hears().await];
    heard.sort_by_key(|message| message["method"].to_string());
    assert_eq!(heard[1]["method"], "notifications/cancelled");
    peer.answers(&ping, json!({})).await;
    peer.answers(&heard[0], json!(0)).await;
    assert!(second.await.unwrap().is_ok());
    assert_eq!(bridge.queue().limit, 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_knows_its_place_in_the_queue() {
    let (bridge, mut peer, _) = bridge();
    let timing = |method: &'static str| {
        let bridge = bridge.clone();
        TaskTracker::new().spawn(async move { bridge.call(request(method)).await.timing })
    };
    let first = timing("a");
    let mut heard = peer.hears().await;
    let second = timing("b");
    assert!(peer.hears_nothing().await);
    let third = timing("c");
    assert!(peer.hears_nothing().await);
    assert_eq!(bridge.queue().waiting, 2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..2 {
        peer.answers(&heard, json!(0)).await;
        heard = peer.hears().await;
    }
    peer.answers(&heard, json!(0)).await;
    let timings = [first.await.unwrap(), second.await.unwrap(), third.await.unwrap()];
    assert_eq!(timings.map(|timing| timing.queue_ahead), [0, 1, 2]);
    assert!(timings[2].queue >= Duration::from_secs(1));
    let queue = bridge.queue();
    assert_eq!((queue.waiting, queue.waited), (0, 2));
    assert!(queue.longest_wait >= Duration::from_secs(1));
    assert!(!matches!(bridge.call(request("d")).await.result, Err(CallError::Overloaded { .. })));
}
