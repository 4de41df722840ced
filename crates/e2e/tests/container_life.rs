//! The life of a server in a container, with runc and with runsc: registered, called, killed,
//! crashed, restarted, paused, stopped. The same rules as for a process, another runtime.
#![expect(clippy::unwrap_used, reason = "each case is a test, called by that of each runtime")]

use cofer_e2e::{
    Daemon, Runtime, alive, container_of, containers_of, inspect, pid_of, podman,
    wait_no_container, with, with_both_runtimes,
};
use serde_json::{Value, json};

with_both_runtimes!(
    a_registered_image_is_ready_and_called,
    podman_shows_its_labels_and_limits,
    a_json_rpc_error_comes_through_a_container,
    a_call_without_an_answer_leaves_the_container_alone,
    calls_are_given_to_a_container_one_at_a_time,
    large_messages_pass_whole,
    a_killed_container_comes_back,
    a_crash_is_told_with_exit_code_and_stderr,
    a_container_that_keeps_crashing_is_given_time,
    a_manual_restart_makes_a_new_container_and_counts_anew,
    a_paused_container_is_unresponsive_until_it_goes_on,
    one_container_is_shown_with_uptime_and_usage,
    the_switch_removes_and_makes_the_container,
    sigterm_ends_every_container_and_then_the_daemon,
    a_start_that_fails_leaves_no_container,
);

async fn a_registered_image_is_ready_and_called(runtime: Runtime) {
    // covers: HST-1.1, HST-1.3, HST-2.1
    let daemon = Daemon::start().await;
    let body = with(runtime.wayward("w", &["--resources", "3"]), "stdio_bridge", json!(true));
    let body = with(body, "restart_policy", json!("always"));
    let body =
        with(body, "environment", json!({"GREETING": "hej på dig", "TOKEN": "s3cret-value"}));
    let server = daemon.host(&body).await;
    assert_eq!(server["server_info"]["name"], "wayward");
    assert_eq!(server["process_status"], "running");
    // The engine tells it a moment later.
    let digested = |server: &Value| server["image_digest"].to_string().contains("sha256:");
    daemon.wait_server("w", "the digest of its image", digested).await;
    let told = daemon.tool("w", "echo", &json!({"text": "hej \u{1F44B}"})).await.tool_text();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), json!({"text": "hej \u{1F44B}"}));
    let greeting = daemon.tool("w", "env", &json!({"name": "GREETING"})).await.tool_text();
    assert_eq!(greeting, "hej på dig");
    let resources = daemon.get("/mcp/servers/w/resources").await.expect(200);
    assert_eq!(resources["total"], 3);
    // It counts its processes by itself.
    let inside: u32 = daemon.tool("w", "pid", &json!({})).await.tool_text().parse().unwrap();
    assert!(inside < 10, "{inside}");
    assert!(alive(pid_of(&server)));
    // The value of a variable is in nobody's arguments.
    let secret = "s3cret-value";
    assert_eq!(daemon.tool("w", "env", &json!({"name": "TOKEN"})).await.tool_text(), secret);
    assert!(cofer_e2e::processes_with(secret).is_empty());
    assert!(!daemon.server("w").await.to_string().contains(secret));
}

async fn podman_shows_its_labels_and_limits(runtime: Runtime) {
    // covers: HST-1.1, HST-5.1
    let daemon = Daemon::start().await;
    let server = daemon.host(&runtime.wayward("w", &[])).await;
    let listed = containers_of(&server).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["State"], "running");
    assert_eq!(listed[0]["Id"], json!(container_of(&server)));
    let facts = inspect(&container_of(&server)).await;
    assert_eq!(facts["OCIRuntime"], runtime.name());
    let host = &facts["HostConfig"];
    assert_eq!(host["Memory"], 512 << 20, "{host}");
    assert_eq!(host["MemorySwap"], 512 << 20, "swap would be memory beyond the limit: {host}");
    assert_eq!(host["NanoCpus"], 500_000_000, "{host}");
    assert_eq!(host["PidsLimit"], 256, "{host}");
    assert_eq!(host["ReadonlyRootfs"], true);
    let restarts = host["RestartPolicy"]["Name"].as_str().unwrap_or_default();
    assert!(matches!(restarts, "" | "no"), "the daemon alone restarts it: {host}");
}

async fn a_json_rpc_error_comes_through_a_container(runtime: Runtime) {
    // covers: HST-2.2
    let daemon = Daemon::start().await;
    daemon.host(&runtime.wayward("w", &[])).await;
    let arguments = json!({"code": -32042, "message": "as ordered", "data": {"why": "a test"}});
    let error = daemon.tool("w", "rpc_error", &arguments).await.failure(502, "mcp_error");
    assert_eq!(error["details"]["code"], -32042);
    assert_eq!(error["details"]["message"], "as ordered");
    assert_eq!(error["details"]["data"], json!({"why": "a test"}));
    let unknown = daemon.call("w", "no/such", &json!({})).await.failure(404, "mcp_error");
    assert_eq!(unknown["details"]["code"], -32601);
}

async fn a_call_without_an_answer_leaves_the_container_alone(runtime: Runtime) {
    // covers: HST-2.3
    let daemon = Daemon::start().await;
    let body = with(runtime.wayward("w", &[]), "call_timeout_ms", json!(300));
    let server = daemon.host(&body).await;
    daemon.tool("w", "hang", &json!({})).await.failure(504, "timeout");
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    let after = daemon.server("w").await;
    assert_eq!(after["container_id"], server["container_id"]);
    assert_eq!(after["restart_count"], 0);
}

async fn calls_are_given_to_a_container_one_at_a_time(runtime: Runtime) {
    // covers: HST-2.4
    let daemon = Daemon::start().await;
    daemon.host(&runtime.wayward("w", &[])).await;
    let nap = json!({"ms": 20});
    let naps = (0..8).map(|_| daemon.tool("w", "sleep", &nap));
    for answer in futures_util::future::join_all(naps).await {
        assert_eq!(answer.tool_text(), "slept");
    }
    assert_eq!(daemon.tool("w", "count_in_flight", &json!({})).await.tool_text(), "1");
}

async fn large_messages_pass_whole(runtime: Runtime) {
    // covers: HST-2.1
    let daemon = Daemon::start().await;
    daemon.host(&runtime.wayward("w", &[])).await;
    let text: String = (0..400_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let told = daemon.tool("w", "echo", &json!({"text": text})).await.tool_text();
    assert!(told.contains(&text), "{} bytes came back", told.len());
    let big = daemon.tool("w", "big", &json!({"n": 4 << 20})).await.tool_text();
    assert_eq!(big.len(), 4 << 20);
}

async fn a_killed_container_comes_back(runtime: Runtime) {
    // covers: HST-3.2
    let daemon = Daemon::start().await;
    let server = daemon.host(&runtime.wayward("w", &[])).await;
    podman(&["kill", &container_of(&server)]).await;
    let after = daemon.wait_replaced("w", &server).await;
    assert_eq!(after["restart_count"], 1);
    assert!(after["last_crash_at"].is_string(), "{after}");
    assert_eq!(daemon.tool("w", "echo", &json!({"n": 1})).await.tool_text(), r#"{"n":1}"#);
    assert_eq!(containers_of(&server).await.len(), 1, "the old one is removed");
    // Also when somebody removes it altogether.
    podman(&["rm", "--force", "--time", "0", &container_of(&after)]).await;
    let again = daemon.wait_replaced("w", &after).await;
    assert_eq!(containers_of(&again).await.len(), 1);
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

async fn a_crash_is_told_with_exit_code_and_stderr(runtime: Runtime) {
    // covers: HST-3.2
    let daemon = Daemon::start().await;
    let server = daemon.host(&runtime.wayward("w", &[])).await;
    daemon.tool("w", "crash", &json!({"code": 41})).await.failure(409, "not_connected");
    daemon.wait_replaced("w", &server).await;
    let log = daemon.log_lines("w").await.join("\n");
    assert!(log.contains("wayward: crashing as ordered"), "{log}");
    assert!(log.contains("41"), "{log}");
}

async fn a_container_that_keeps_crashing_is_given_time(runtime: Runtime) {
    // covers: HST-3.3
    let daemon = Daemon::start().await;
    daemon.post("/mcp/servers", &runtime.wayward("w", &["--crash-when-ready", "20"])).await;
    let waiting = daemon
        .wait_server("w", "a health warning", |server| {
            server["health"] == "warning" && server["status"] == "restarting"
        })
        .await;
    assert!(waiting["restart_count"].as_u64() >= Some(3), "{waiting:#}");
    assert!(waiting["next_restart_at"].is_string(), "{waiting:#}");
    assert!(!waiting["health_reasons"].as_array().unwrap().is_empty());
    daemon.act("w", "disable").await;
    wait_no_container(&waiting).await;
}

async fn a_manual_restart_makes_a_new_container_and_counts_anew(runtime: Runtime) {
    // covers: HST-3.5
    let daemon = Daemon::start().await;
    let server = daemon.host(&runtime.wayward("w", &[])).await;
    podman(&["kill", &container_of(&server)]).await;
    let crashed = daemon.wait_replaced("w", &server).await;
    assert_eq!(crashed["restart_count"], 1);
    let restarted = daemon.act("w", "restart").await;
    assert_eq!(restarted["status"], "ready", "{restarted:#}");
    assert_ne!(restarted["container_id"], crashed["container_id"]);
    assert_eq!(restarted["restart_count"], 0);
    assert_eq!(containers_of(&server).await.len(), 1);
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

async fn a_paused_container_is_unresponsive_until_it_goes_on(runtime: Runtime) {
    // covers: HST-4.3
    let daemon = Daemon::start().await;
    let heartbeat = json!({"interval_ms": 200, "timeout_ms": 500});
    let body = with(runtime.wayward("w", &[]), "heartbeat", heartbeat);
    let server = daemon.host(&body).await;
    podman(&["pause", &container_of(&server)]).await;
    let silent = daemon.wait_status("w", "unresponsive").await;
    assert_eq!(silent["health"], "warning");
    assert_eq!(silent["container_id"], server["container_id"], "it is not restarted");
    podman(&["unpause", &container_of(&server)]).await;
    let after = daemon.wait_status("w", "ready").await;
    assert_eq!(after["container_id"], server["container_id"]);
    assert_eq!(after["restart_count"], 0);
}

async fn one_container_is_shown_with_uptime_and_usage(runtime: Runtime) {
    // covers: HST-4.1, HST-4.2
    let daemon = Daemon::start().await;
    let server = daemon.host(&runtime.wayward("w", &[])).await;
    let held = 64 << 20;
    daemon.tool("w", "memory", &json!({"n": held})).await.expect(200);
    let long = json!({"ms": 4000});
    let burning = daemon.tool("w", "burn", &long);
    let watching = daemon.wait_server("w", "its usage", |server| {
        let usage = &server["usage"];
        usage["memory_bytes"].as_u64() >= Some(held)
            && usage["cpu_percent"].as_f64() > Some(5.0)
            && usage["pids"].as_u64() >= Some(1)
    });
    let (_, busy) = tokio::join!(burning, watching);
    assert!(busy["uptime_seconds"].is_number(), "{busy:#}");
    assert_eq!(busy["process_status"], "running");
    // One thread can use one core, with some room for how that is measured.
    assert!(busy["usage"]["cpu_percent"].as_f64() < Some(150.0), "{busy:#}");
    let all = daemon.get("/mcp/servers").await.expect(200);
    assert_eq!(all["servers"][0]["image"], server["image"]);
    assert_eq!(all["servers"][0]["status"], "ready");
}

async fn the_switch_removes_and_makes_the_container(runtime: Runtime) {
    // covers: HST-3.5
    let daemon = Daemon::start().await;
    let server = daemon.host(&runtime.wayward("w", &[])).await;
    let off = daemon.act("w", "disable").await;
    assert_eq!(off["status"], "stopped");
    assert_eq!(off["container_id"], Value::Null);
    wait_no_container(&server).await;
    let on = daemon.act("w", "enable").await;
    assert_eq!(on["status"], "ready", "{on:#}");
    assert_ne!(on["container_id"], server["container_id"]);
    daemon.delete("/mcp/servers/w").await.expect(204);
    wait_no_container(&server).await;
}

async fn sigterm_ends_every_container_and_then_the_daemon(runtime: Runtime) {
    // covers: HST-3.4
    let mut daemon = Daemon::start().await;
    let kept = json!(["/data"]);
    let flags = ["--ignore-stdin-eof", "--log-order", "/data/order"];
    let polite = daemon.host(&with(runtime.wayward("polite", &flags), "volumes", kept)).await;
    let plain = daemon.host(&runtime.wayward("plain", &[])).await;
    let volume = cofer_e2e::volumes_of(&polite).await.pop().expect("it has a volume");
    assert_eq!(daemon.terminate().await.code(), Some(0));
    for server in [&polite, &plain] {
        assert_eq!(containers_of(server).await, Vec::<Value>::new());
        assert!(!alive(pid_of(server)));
    }
    // It was asked before it was made to.
    let folder = podman(&["volume", "inspect", "--format", "{{.Mountpoint}}", &volume]).await;
    let order = std::fs::read_to_string(format!("{folder}/order")).unwrap();
    assert!(order.ends_with("eof\nsigterm\n"), "{order}");
    podman(&["volume", "rm", &volume]).await;
}

async fn a_start_that_fails_leaves_no_container(runtime: Runtime) {
    // covers: HST-1.1
    let daemon = Daemon::start().await;
    let broken = daemon.settle(&runtime.wayward("broken", &["--exit-at-start", "7"])).await;
    assert_eq!(broken["status"], "error", "{broken:#}");
    assert_eq!(broken["error"]["exit_code"], 7, "{broken:#}");
    assert!(broken["error"]["stderr"].to_string().contains("cannot start"), "{broken:#}");
    wait_no_container(&broken).await;
    let silent =
        with(runtime.wayward("silent", &["--hang-at-start"]), "start_timeout_ms", json!(1500));
    let silent = daemon.settle(&silent).await;
    assert_eq!(silent["status"], "error", "{silent:#}");
    wait_no_container(&silent).await;
}
