//! Calls through the bridge: an answer, or a failure that says why, and nobody held up.

use cofer_e2e::{Answer, Daemon, OrderLog, alive, eventually, pid_of, tool_params, wayward};
use futures_util::future::join_all;
use serde_json::{Value, json};

async fn call_within(daemon: &Daemon, name: &str, ms: u64, params: &Value) -> Answer {
    let body = json!({"method": "tools/call", "params": params, "timeout_ms": ms});
    daemon.post(&format!("/mcp/servers/{name}/call"), &body).await
}

#[tokio::test]
async fn a_call_is_answered_with_the_servers_result() {
    // covers: HST-2.1
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let answer = daemon.tool("w", "structured", &json!({})).await.expect(200);
    assert_eq!(answer["result"]["structuredContent"]["answer"], 42);
    assert_eq!(daemon.call("w", "ping", &json!({})).await.expect(200), json!({"result": {}}));
    let bare = daemon.post("/mcp/servers/w/call", &json!({"method": "ping"})).await;
    assert_eq!(bare.expect(200), json!({"result": {}}));
}

#[tokio::test]
async fn a_tool_that_fails_is_a_result_like_any_other() {
    // covers: HST-2.1
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let answer = daemon.tool("w", "fail", &json!({})).await.expect(200);
    assert_eq!(answer["result"]["isError"], true);
}

#[tokio::test]
async fn a_json_rpc_error_keeps_its_code_message_and_data() {
    // covers: HST-2.2
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    for (code, status) in
        [(-32601, 404), (-32600, 400), (-32602, 400), (-32603, 502), (-32000, 502), (17, 502)]
    {
        let arguments = json!({"code": code, "message": "as ordered", "data": {"why": [1, null]}});
        let error = daemon.tool("w", "rpc_error", &arguments).await.failure(status, "mcp_error");
        let details = json!({"code": code, "message": "as ordered", "data": {"why": [1, null]}});
        assert_eq!(error["details"], details);
    }
    let error = daemon.call("w", "no/such", &json!({})).await.failure(404, "mcp_error");
    assert_eq!(error["details"]["code"], -32601);
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_and_the_server_lives_on() {
    // covers: HST-2.3
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    let mut body = log.wayward("w", &[]);
    body["call_timeout_ms"] = 250.into();
    let server = daemon.register(&body).await;
    let late = tool_params("late", &json!({"ms": 2000, "tag": "a"}));
    let error = daemon.call("w", "tools/call", &late).await.failure(504, "timeout");
    assert!(error["message"].as_str().unwrap().contains("250"), "{error}");
    log.wait("cancelled tools/call late a", 1).await;
    // The late answer comes while the next call is in work, and is not taken for its answer.
    let next = call_within(&daemon, "w", 20_000, &tool_params("sleep", &json!({"ms": 2500}))).await;
    assert_eq!(next.tool_text(), "slept");
    let seen = log.lines();
    let at = |line: &str| seen.iter().position(|seen| seen == line).expect(line);
    assert!(at("answer tools/call late a") > at("receive tools/call sleep"), "{seen:?}");
    let after = daemon.server("w").await;
    assert_eq!(pid_of(&after), pid_of(&server));
    assert_eq!((&after["status"], &after["restart_count"]), (&json!("ready"), &json!(0)));
}

#[tokio::test]
async fn the_request_sets_its_own_deadline() {
    // covers: HST-2.3
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let hang = tool_params("hang", &json!({}));
    call_within(&daemon, "w", 100, &hang).await.failure(504, "timeout");
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

#[tokio::test]
async fn progress_extends_the_deadline_of_a_caller_who_asked_for_it() {
    // covers: HST-2.3
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let silent = tool_params("progress", &json!({"ms": 4000, "step": 100}));
    let mut told = silent.clone();
    told["_meta"] = json!({"progressToken": "mine"});
    call_within(&daemon, "w", 1500, &silent).await.failure(504, "timeout");
    assert_eq!(call_within(&daemon, "w", 1500, &told).await.tool_text(), "done");
}

#[tokio::test]
async fn calls_are_given_to_the_server_one_at_a_time() {
    // covers: HST-2.4
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &[])).await;
    let arguments: Vec<Value> =
        (0..8).map(|n| json!({"ms": 20, "tag": format!("call-{n}")})).collect();
    let calls = arguments.iter().map(|arguments| daemon.tool("w", "sleep", arguments));
    for answer in join_all(calls).await {
        assert_eq!(answer.tool_text(), "slept");
    }
    let seen: Vec<String> =
        log.lines().into_iter().filter(|line| line.contains("tools/call sleep")).collect();
    assert_eq!(seen.len(), 16, "{seen:?}");
    for pair in seen.chunks(2) {
        let label = pair[0].strip_prefix("receive ").expect("first a receipt");
        assert_eq!(pair[1], format!("answer {label}"), "{seen:?}");
    }
    let most = daemon.tool("w", "count_in_flight", &json!({})).await.tool_text();
    assert_eq!(most, "1");
}

#[tokio::test]
async fn a_server_that_can_do_more_is_given_more() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    let mut body = log.wayward("w", &[]);
    body["max_in_flight"] = 3.into();
    daemon.register(&body).await;
    let hang = tool_params("hang", &json!({"tag": "busy"}));
    // Two calls that never end, and a third that is answered beside them.
    let busy = join_all((0..2).map(|_| call_within(&daemon, "w", 60_000, &hang)));
    let beside = async {
        log.wait("receive tools/call hang busy", 2).await;
        daemon.tool("w", "pid", &json!({})).await.expect(200);
        // With three in work the fourth waits.
        let third = call_within(&daemon, "w", 60_000, &hang);
        let fourth = async {
            log.wait("receive tools/call hang busy", 3).await;
            call_within(&daemon, "w", 200, &tool_params("pid", &json!({}))).await
        };
        tokio::select! {
            _ = third => panic!("a call that hangs was answered"),
            answer = fourth => answer.failure(504, "timeout"),
        }
    };
    tokio::select! {
        _ = busy => panic!("a call that hangs was answered"),
        _ = beside => {}
    }
    let pids = log.count("receive tools/call pid");
    assert_eq!(pids, 1, "the one that timed out in the queue never reached the server");
}

#[tokio::test]
async fn a_full_queue_says_so_and_when_to_come_back() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    let server = daemon.register(&log.wayward("w", &[])).await;
    let hang = tool_params("hang", &json!({}));
    let refused = futures_util::future::select_ok((0..600).map(|_| {
        Box::pin(async {
            let answer = call_within(&daemon, "w", 60_000, &hang).await;
            if answer.status == 429 { Ok(answer) } else { Err(answer) }
        })
    }));
    let (refused, _) = refused.await.expect("one of 600 is refused");
    refused.failure(429, "overloaded");
    let pause: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(pause >= 1);
    // All callers have gone away by now: the queue empties, and the same process serves on.
    let pid = eventually("the queue is empty again", async || {
        let answer = daemon.tool("w", "pid", &json!({})).await;
        (answer.status == 200).then(|| answer.tool_text())
    })
    .await;
    assert_eq!(pid, pid_of(&server).to_string());
    assert!(log.count("receive tools/call hang") < 600, "refused calls never reach the server");
}

#[tokio::test]
async fn a_caller_who_goes_away_cancels_the_call() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &[])).await;
    let sleep = tool_params("sleep", &json!({"ms": 60_000, "tag": "a"}));
    tokio::select! {
        answer = call_within(&daemon, "w", 60_000, &sleep) => panic!("it sleeps: {answer:?}"),
        () = log.wait("receive tools/call sleep a", 1) => {}
    }
    log.wait("cancelled tools/call sleep a", 1).await;
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

#[tokio::test]
async fn a_server_that_does_not_run_cannot_be_called() {
    let daemon = Daemon::start().await;
    let mut body = wayward("off", &[]);
    body["enabled"] = false.into();
    daemon.post("/mcp/servers", &body).await.expect(201);
    let error = daemon.tool("off", "pid", &json!({})).await.failure(409, "not_connected");
    assert!(error["hint"].as_str().unwrap().contains("enable"), "{error}");
    for list in ["tools", "resources", "prompts"] {
        let answer = daemon.get(&format!("/mcp/servers/off/{list}")).await;
        let error = answer.failure(409, "not_connected");
        assert!(error["hint"].as_str().unwrap().contains("enable"), "{error}");
    }
    daemon.tool("nobody", "pid", &json!({})).await.failure(404, "not_found");
    daemon.get("/mcp/servers/nobody/tools").await.failure(404, "not_found");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_that_call_at_once() {
    // covers: HST-3.2
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("w", &[])).await;
    let crash = tool_params("kill_self", &json!({"signal": 9}));
    // An hour is allowed: the failure comes from the server's end, not from the clock.
    let answer = call_within(&daemon, "w", 3_600_000, &crash).await;
    answer.failure(409, "not_connected");
    daemon.wait_status("w", "ready").await;
    assert!(!alive(pid_of(&server)));
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

#[tokio::test]
async fn lists_are_followed_over_all_their_pages() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &["--tools", "120", "--resources", "51"])).await;
    let tools = daemon.get("/mcp/servers/w/tools").await.expect(200);
    assert_eq!(tools["total"], 120);
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..120).map(|n| format!("tool-{n:04}")).collect();
    assert_eq!(names, expected);
    assert!(tools["tools"][0]["inputSchema"].is_object());
    let resources = daemon.get("/mcp/servers/w/resources").await.expect(200);
    assert_eq!(resources["total"], 51);
    assert_eq!(resources["resources"][50]["uri"], "wayward:///resource/50");
    let prompts = daemon.get("/mcp/servers/w/prompts").await.expect(200);
    assert_eq!(
        (&prompts["total"], &prompts["prompts"][0]["name"]),
        (&json!(1), &json!("greeting"))
    );
}

#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &["--endless-pages"])).await;
    let answer = daemon.get("/mcp/servers/w/tools").await;
    assert!(answer.status == 200 || answer.status == 502, "{answer:?}");
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

#[tokio::test]
async fn servers_of_both_eras_are_served() {
    let daemon = Daemon::start().await;
    for (era, version) in [
        ("legacy", &["2025-11-25"][..]),
        ("modern", &["2026-07-28"]),
        ("both", &["2026-07-28", "2025-11-25"]),
    ] {
        let server = daemon.register(&wayward(era, &["--era", era])).await;
        let spoken = server["protocol_version"].as_str().unwrap();
        assert!(version.contains(&spoken), "{era}: {spoken}");
        assert_eq!(server["server_info"]["name"], "wayward");
        let echoed = daemon.tool(era, "echo", &json!({"era": era})).await.tool_text();
        assert_eq!(echoed, json!({"era": era}).to_string());
        let tools = daemon.get(&format!("/mcp/servers/{era}/tools")).await.expect(200);
        assert!(tools["total"].as_u64().unwrap() > 10, "{era}");
    }
}

#[tokio::test]
async fn recent_calls_are_shown_with_their_times_and_outcomes() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "echo", &json!({})).await.expect(200);
    daemon.tool("w", "fail", &json!({})).await.expect(200);
    daemon.tool("w", "rpc_error", &json!({})).await.failure(502, "mcp_error");
    call_within(&daemon, "w", 50, &tool_params("hang", &json!({}))).await.failure(504, "timeout");
    let page = daemon.get("/activity").await.expect(200);
    let calls: Vec<&Value> = page["calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|call| call["method"] == "tools/call")
        .collect();
    let told: Vec<(&str, &str)> = calls
        .iter()
        .map(|call| (call["tool"].as_str().unwrap(), call["outcome"].as_str().unwrap()))
        .collect();
    let expected =
        [("hang", "timeout"), ("rpc_error", "mcp_error"), ("fail", "tool_error"), ("echo", "ok")];
    assert_eq!(told, expected);
    for call in calls {
        assert_eq!(call["server"], "w");
        assert!(call["duration_ms"].as_f64().unwrap() > 0.0);
        assert!(call["stages"]["server_ms"].as_f64().is_some());
    }
}

#[tokio::test]
async fn a_stuck_call_does_not_hold_up_another_server() {
    // covers: MGR-60
    let daemon = Daemon::start().await;
    daemon.register(&wayward("stuck", &[])).await;
    daemon.register(&wayward("free", &[])).await;
    let hang = tool_params("hang", &json!({}));
    tokio::select! {
        answer = call_within(&daemon, "stuck", 60_000, &hang) => panic!("answered: {answer:?}"),
        () = async {
            for _ in 0..20 {
                daemon.tool("free", "pid", &json!({})).await.expect(200);
            }
        } => {}
    }
}
