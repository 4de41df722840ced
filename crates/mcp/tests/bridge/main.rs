//! The bridge and the handshake against a peer that the test plays itself, on paused time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod callers;
mod peer;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{BridgeConfig, CallError, HandshakeError, Request, collect_pages, handshake};
use cofer_model::Budget;
use serde_json::json;
use tokio::io::AsyncBufReadExt as _;

use crate::peer::{LIMIT, bridge, bridge_with, call, request};

#[tokio::test(start_paused = true)]
async fn one_request_at_a_time_by_default() {
    // covers: HST-2.4
    let (bridge, mut peer, _) = bridge();
    let first = call(&bridge, request("a"));
    let heard = peer.hears().await;
    let second = call(&bridge, request("b"));
    assert!(
        peer.hears_nothing().await,
        "the second request was written before the first was answered"
    );
    peer.answers(&heard, json!("first")).await;
    let heard = peer.hears().await;
    peer.answers(&heard, json!("second")).await;
    assert_eq!(first.await.unwrap().unwrap(), r#""first""#);
    assert_eq!(second.await.unwrap().unwrap(), r#""second""#);
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_askers_in_any_order() {
    let (bridge, mut peer, _) =
        bridge_with(BridgeConfig { max_in_flight: 3, ..BridgeConfig::default() });
    let mut calls = Vec::new();
    let mut heard = Vec::new();
    for method in ["a", "b", "c"] {
        calls.push(call(&bridge, request(method)));
        heard.push(peer.hears().await);
    }
    for request in heard.iter().rev() {
        peer.answers(request, request["method"].clone()).await;
    }
    for (handle, expected) in calls.into_iter().zip([r#""a""#, r#""b""#, r#""c""#]) {
        assert_eq!(handle.await.unwrap().unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_costs_one_call_its_time_and_nothing_else() {
    // covers: HST-2.3
    let (bridge, mut peer, _) = bridge();
    let late = call(&bridge, Request::new("slow", None, Duration::from_secs(5)));
    let slow = peer.hears().await;
    assert_eq!(late.await.unwrap(), Err(CallError::Timeout(Duration::from_secs(5))));
    let cancelled = peer.hears().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], slow["id"]);

    let next = call(&bridge, request("next"));
    let heard = peer.hears().await;
    peer.answers(&slow, json!("late")).await;
    peer.answers(&heard, json!("in time")).await;
    assert_eq!(next.await.unwrap().unwrap(), r#""in time""#);
}

#[tokio::test(start_paused = true)]
async fn progress_buys_time_for_the_call_that_makes_it() {
    let (bridge, mut peer, _) = bridge();
    let params = Bytes::from_static(br#"{"_meta":{"progressToken":"mine"}}"#);
    let long = call(&bridge, Request::new("long", Some(params), Duration::from_secs(5)));
    let heard = peer.hears().await;
    let token = &heard["params"]["_meta"]["progressToken"];
    assert_eq!(token, &heard["id"], "the token is unique to the request");
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        let told = json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
        peer.says(&told.to_string()).await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    peer.answers(&heard, json!("done")).await;
    assert_eq!(long.await.unwrap().unwrap(), r#""done""#);
}

#[tokio::test(start_paused = true)]
async fn progress_of_another_call_buys_nothing() {
    let (bridge, mut peer, _) = bridge();
    let params = Bytes::from_static(br#"{"_meta":{"progressToken":1}}"#);
    let call = call(&bridge, Request::new("x", Some(params), Duration::from_secs(5)));
    peer.hears().await;
    peer.says(r#"{"method":"notifications/progress","params":{"progressToken":999,"progress":1}}"#)
        .await;
    assert!(matches!(call.await.unwrap(), Err(CallError::Timeout(_))));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_cancels_its_request() {
    let (bridge, mut peer, _) = bridge();
    let gone = call(&bridge, request("x"));
    let heard = peer.hears().await;
    gone.abort();
    let cancelled = peer.hears().await;
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &heard["id"])
    );
    assert!(cancelled.get("id").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_in_the_queue_was_never_heard_of() {
    let (bridge, mut peer, _) = bridge();
    let first = call(&bridge, request("first"));
    let heard = peer.hears().await;
    let queued = call(&bridge, request("queued"));
    assert!(peer.hears_nothing().await);
    queued.abort();
    let third = call(&bridge, request("third"));
    peer.answers(&heard, json!(1)).await;
    let heard = peer.hears().await;
    assert_eq!(heard["method"], "third");
    peer.answers(&heard, json!(3)).await;
    assert!(first.await.unwrap().is_ok() && third.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_says_so_at_once_and_empties_again() {
    let config = BridgeConfig { queue_limit: 2, ..BridgeConfig::default() };
    let (bridge, mut peer, _) = bridge_with(config);
    let running = call(&bridge, request("running"));
    let heard = peer.hears().await;
    let queued = [call(&bridge, request("q1")), call(&bridge, request("q2"))];
    assert!(peer.hears_nothing().await);
    assert_eq!(
        bridge.call(request("too many")).await.result,
        Err(CallError::Overloaded { waiting: 2 })
    );
    peer.answers(&heard, json!(0)).await;
    for _ in 0..2 {
        let heard = peer.hears().await;
        peer.answers(&heard, json!(0)).await;
    }
    assert!(running.await.unwrap().is_ok());
    for call in queued {
        assert!(call.await.unwrap().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_has_its_turn_was_never_sent() {
    let (bridge, mut peer, _) = bridge();
    let _running = call(&bridge, request("running"));
    peer.hears().await;
    let queued = bridge.call(Request::new("queued", None, Duration::from_secs(2))).await.result;
    assert_eq!(queued, Err(CallError::QueueTimeout(Duration::from_secs(2))));
    assert!(peer.hears_nothing().await);
}

#[tokio::test(start_paused = true)]
async fn what_callers_hold_is_bounded_in_bytes() {
    let config = BridgeConfig { held_bytes_limit: 100, ..BridgeConfig::default() };
    let (bridge, mut peer, _) = bridge_with(config);
    let params = |bytes: usize| Some(Bytes::from(format!("[\"{}\"]", "x".repeat(bytes - 4))));
    let large = call(&bridge, Request::new("large", params(150), LIMIT));
    let heard = peer.hears().await;
    let refused = bridge.call(Request::new("more", params(10), LIMIT)).await.result;
    assert!(matches!(refused, Err(CallError::Overloaded { .. })));
    peer.answers(&heard, json!(0)).await;
    assert!(large.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn noise_is_told_and_harms_nothing() {
    let (bridge, mut peer, heard) = bridge();
    let call = call(&bridge, request("x"));
    let request = peer.hears().await;
    peer.says("npm WARN deprecated").await;
    peer.says(r#"{"level":"info"}"#).await;
    peer.says(r#"{"id":12345,"result":"nobody asked"}"#).await;
    peer.says(r#"{"method":"notifications/tools/list_changed"}"#).await;
    peer.answers(&request, json!(1)).await;
    assert!(call.await.unwrap().is_ok());
    assert_eq!(*heard.noise.lock().unwrap(), ["npm WARN deprecated", r#"{"level":"info"}"#]);
    assert_eq!(*heard.notified.lock().unwrap(), ["notifications/tools/list_changed"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_cap_fails_its_asker_only() {
    let (bridge, mut peer, heard) = bridge_with(BridgeConfig {
        max_message: 1000,
        max_in_flight: 2,
        ..BridgeConfig::default()
    });
    let large = call(&bridge, request("large"));
    let first = peer.hears().await;
    let small = call(&bridge, request("small"));
    let second = peer.hears().await;
    peer.answers(&first, json!("x".repeat(5000))).await;
    peer.answers(&second, json!("fits")).await;
    assert!(
        matches!(large.await.unwrap(), Err(CallError::AnswerTooLarge { bytes, cap: 1000 }) if bytes > 5000)
    );
    assert_eq!(small.await.unwrap().unwrap(), r#""fits""#);
    assert_eq!(heard.oversized.lock().unwrap().len(), 1);
    let request = Request::new("big", Some(Bytes::from(format!("[{}]", "1,".repeat(600)))), LIMIT);
    assert!(matches!(bridge.call(request).await.result, Err(CallError::RequestTooLarge { .. })));
}

#[tokio::test(start_paused = true)]
async fn without_memory_an_answer_fails_its_caller_and_a_request_the_server() {
    let memory = Budget::new(1_000_000);
    let config =
        BridgeConfig { max_in_flight: 2, memory: Arc::clone(&memory), ..BridgeConfig::default() };
    let (bridge, mut peer, heard) = bridge_with(config);
    let large = call(&bridge, request("large"));
    let first = peer.hears().await;
    let other = memory.try_charge(800_000).unwrap();
    peer.answers(&first, json!("x".repeat(500_000))).await;
    let error = large.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::OutOfMemory { limit: 1_000_000, .. }), "{error:?}");
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
        "params": {"message": "x".repeat(500_000)}});
    peer.says(&question.to_string()).await;
    assert_eq!(peer.hears().await["id"], "q", "the server's request is answered with an error");
    let params = Bytes::from(format!("[\"{}\"]", "x".repeat(300_000)));
    let rejected = bridge.call(Request::new("x", Some(params), LIMIT)).await.result;
    assert!(matches!(rejected, Err(CallError::OutOfMemory { .. })), "{rejected:?}");
    assert_eq!((heard.unaffordable.lock().unwrap().len(), memory.losses()), (2, 3));
    // Small calls are served meanwhile, and large ones as soon as there is memory again.
    let small = call(&bridge, request("small"));
    let second = peer.hears().await;
    peer.answers(&second, json!("fits")).await;
    assert_eq!(small.await.unwrap().unwrap(), r#""fits""#);
    drop(other);
    let large = call(&bridge, request("large"));
    let third = peer.hears().await;
    peer.answers(&third, json!("x".repeat(500_000))).await;
    let answer = large.await.unwrap().unwrap();
    assert!(memory.used() >= answer.len() as u64);
    drop(answer);
    assert_eq!(memory.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn endless_pages_end_at_the_cap_and_keep_nothing() {
    let memory = Budget::new(10 << 20);
    let config = BridgeConfig {
        max_message: 1 << 20,
        memory: Arc::clone(&memory),
        ..BridgeConfig::default()
    };
    let (bridge, mut peer, _) = bridge_with(config);
    let serve = async {
        for page in 0.. {
            let asked = peer.hears().await;
            let tools = [json!({"name": "t".repeat(100_000)})];
            peer.answers(&asked, json!({"tools": tools, "nextCursor": page.to_string()})).await;
            assert!(page < 12, "pages of more than 1 MiB were asked for");
        }
    };
    let error = tokio::select! {
        listing = collect_pages(&bridge, "tools/list", "tools", LIMIT) => listing.unwrap_err(),
        () = serve => unreachable!("the pages do not end"),
    };
    assert!(matches!(error, CallError::OutOfMemory { limit: 0x10_0000, .. }), "{error:?}");
    assert_eq!((memory.losses(), memory.used()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_server_is_the_end_of_every_wait() {
    let (bridge, mut peer, _) = bridge();
    let running = call(&bridge, request("running"));
    peer.hears().await;
    let queued = call(&bridge, request("queued"));
    assert!(peer.hears_nothing().await);
    drop(peer);
    bridge.closed().await;
    assert_eq!(running.await.unwrap(), Err(CallError::Disconnected));
    assert_eq!(queued.await.unwrap(), Err(CallError::Disconnected));
    assert_eq!(bridge.call(request("after")).await.result, Err(CallError::Disconnected));
}

#[tokio::test(start_paused = true)]
async fn closing_closes_stdin_even_while_the_server_does_not_read() {
    let (bridge, mut peer, _) = bridge();
    let params = Bytes::from(format!("[\"{}\"]", "x".repeat(1 << 20)));
    let stuck = call(&bridge, Request::new("x", Some(params), LIMIT));
    peer.stdin.fill_buf().await.unwrap();
    bridge.close();
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut peer.stdin, &mut rest).await.unwrap();
    drop(peer);
    assert_eq!(stuck.await.unwrap(), Err(CallError::Disconnected));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_never_sent_is_not_cancelled_either() {
    let (bridge, mut peer, _) = bridge();
    let refused = bridge.call(Request::new("x", Some(Bytes::from_static(b"7")), LIMIT)).await;
    assert_eq!(refused.result, Err(CallError::BadParams));
    assert!(peer.hears_nothing().await);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_under_way_is_finished_before_stdin_is_closed() {
    let (bridge, mut peer, _) = bridge();
    let params = Bytes::from(format!("[\"{}\"]", "x".repeat(1 << 20)));
    let under_way = call(&bridge, Request::new("x", Some(params), LIMIT));
    peer.stdin.fill_buf().await.unwrap();
    bridge.close();
    assert_eq!(peer.hears().await["method"], "x");
    drop(peer);
    assert_eq!(under_way.await.unwrap(), Err(CallError::Disconnected));
}

#[tokio::test(start_paused = true)]
async fn full_pipes_cannot_deadlock() {
    let (bridge, mut peer, _) =
        bridge_with(BridgeConfig { max_in_flight: 2, ..BridgeConfig::default() });
    let params = Bytes::from(format!("[\"{}\"]", "x".repeat(1 << 20)));
    let first = call(&bridge, Request::new("a", Some(params), LIMIT));
    peer.stdin.fill_buf().await.unwrap();
    // The peer writes far more than a pipe holds before it reads on.
    for _ in 0..1000 {
        peer.says(
            &json!({"method": "notifications/message", "params": {"data": "y".repeat(1000)}})
                .to_string(),
        )
        .await;
    }
    let heard = peer.hears().await;
    peer.answers(&heard, json!("z".repeat(1 << 20))).await;
    assert_eq!(first.await.unwrap().unwrap().len(), (1 << 20) + 2);
}

#[tokio::test(start_paused = true)]
async fn of_many_calls_at_once_none_is_lost_on_the_way() {
    let config = BridgeConfig { max_in_flight: 300, ..BridgeConfig::default() };
    let (bridge, mut peer, _) = bridge_with(config);
    let calls: Vec<_> = (0..300).map(|_| call(&bridge, request("ping"))).collect();
    for _ in 0..calls.len() {
        peer.hears().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_requests_are_answered() {
    let (_bridge, mut peer, _) = bridge();
    peer.says(r#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#).await;
    assert_eq!(peer.hears().await, json!({"jsonrpc": "2.0", "id": "p-1", "result": {}}));
    for (method, code) in [("sampling/createMessage", -32603), ("no/such", -32601)] {
        peer.says(&json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {}}).to_string())
            .await;
        let refusal = peer.hears().await;
        assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(2), &json!(code)));
    }
    peer.says(r#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#).await;
    assert_eq!(peer.hears().await["result"], json!({"roots": []}));
}

#[tokio::test(start_paused = true)]
async fn idleness_is_silence_with_nothing_asked() {
    let (bridge, mut peer, _) = bridge();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(bridge.idle_for().unwrap() >= Duration::from_secs(3));
    let running = call(&bridge, request("x"));
    let heard = peer.hears().await;
    assert_eq!(bridge.idle_for(), None);
    peer.answers(&heard, json!(0)).await;
    running.await.unwrap().unwrap();
    assert!(bridge.idle_for().unwrap() < Duration::from_secs(1));
    // A list of ours: a peer that hangs on it is found silent by its heartbeat.
    let listing = call(&bridge, request("tools/list"));
    let heard = peer.hears().await;
    assert!(bridge.idle_for().is_some());
    peer.answers(&heard, json!({"tools": []})).await;
    listing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn any_word_of_the_server_is_a_sign_of_life() {
    let (bridge, mut peer, _) = bridge();
    let (_, ()) = tokio::join!(bridge.sign_of_life(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        peer.says("hm").await;
    });
}

#[tokio::test(start_paused = true)]
async fn an_older_server_is_opened_by_initialize() {
    let (bridge, mut peer, _) = bridge();
    let (info, ()) = tokio::join!(handshake(&bridge, LIMIT), async {
        let heard = peer.hears().await;
        assert_eq!(
            (&heard["method"], &heard["params"]["protocolVersion"]),
            (&json!("initialize"), &json!("2025-11-25"))
        );
        let result = json!({"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": {"name": "old"}});
        peer.answers(&heard, result).await;
        assert_eq!(peer.hears().await["method"], "notifications/initialized");
    });
    let info = info.unwrap();
    assert_eq!(
        (info.protocol_version.as_str(), &info.server_info["name"]),
        ("2025-03-26", &json!("old"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_discovered_and_every_request_introduces_itself() {
    let (bridge, mut peer, _) = bridge();
    let (info, ()) = tokio::join!(handshake(&bridge, LIMIT), async {
        let heard = peer.hears().await;
        peer.says(
            &json!({"id": heard["id"], "error": {"code": -32022, "message": "unsupported"}})
                .to_string(),
        )
        .await;
        let heard = peer.hears().await;
        assert_eq!(heard["method"], "server/discover");
        assert_eq!(
            heard["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "serverInfo": {"name": "new"}});
        peer.answers(&heard, result).await;
    });
    assert_eq!(info.unwrap().protocol_version, "2026-07-28");
    let called = call(
        &bridge,
        Request::new("tools/call", Some(Bytes::from_static(br#"{"name":"x"}"#)), LIMIT),
    );
    let heard = peer.hears().await;
    assert_eq!(heard["params"]["name"], "x");
    assert!(heard["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_object());
    peer.answers(&heard, json!({})).await;
    called.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_neither_era_is_refused_with_both_reasons() {
    let (bridge, mut peer, _) = bridge();
    let (info, ()) = tokio::join!(handshake(&bridge, LIMIT), async {
        for message in ["no initialize", "no discover"] {
            let heard = peer.hears().await;
            peer.says(
                &json!({"id": heard["id"], "error": {"code": -32601, "message": message}})
                    .to_string(),
            )
            .await;
        }
    });
    let text = info.unwrap_err().to_string();
    assert!(text.contains("no initialize") && text.contains("no discover"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_not_waited_for_without_end() {
    let (bridge, _peer, _) = bridge();
    let error = handshake(&bridge, LIMIT).await.unwrap_err();
    assert!(matches!(error, HandshakeError::Silent { method: "initialize", .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_followed_over_its_pages_byte_for_byte() {
    let (bridge, mut peer, _) = bridge();
    let (listing, ()) = tokio::join!(collect_pages(&bridge, "tools/list", "tools", LIMIT), async {
        let heard = peer.hears().await;
        assert!(heard.get("params").is_none());
        peer.says(&format!(
            r#"{{"id":{},"result":{{"tools":[{{"name":"a", "x":1.0}}],"nextCursor":"p2"}}}}"#,
            heard["id"]
        ))
        .await;
        let heard = peer.hears().await;
        assert_eq!(heard["params"]["cursor"], "p2");
        peer.answers(&heard, json!({"tools": [{"name": "b"}]})).await;
    });
    let items: Vec<String> =
        listing.unwrap().items.iter().map(|item| item.get().to_owned()).collect();
    assert_eq!(items, [r#"{"name":"a", "x":1.0}"#, r#"{"name":"b"}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_turns_in_circles_is_an_error() {
    let (bridge, mut peer, _) = bridge();
    let (listing, ()) = tokio::join!(collect_pages(&bridge, "tools/list", "tools", LIMIT), async {
        for _ in 0..2 {
            let heard = peer.hears().await;
            peer.answers(&heard, json!({"tools": [], "nextCursor": "again"})).await;
        }
    });
    assert!(listing.unwrap_err().to_string().contains("same cursor"));
}
