//! Servers that speak both protocols, for clients of both: a server whose SDK fixes the protocol of a
//! connection by its first request has one connection for each.

use cofer_e2e::{
    Daemon, alive, eventually, exemplary, kill, pid_of, run, stateless, tests_folder, wait_gone,
};
use serde_json::{Value, json};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/call.py");
const STARTING: &str = "starting a second process for clients of 2026-07-28";
const READY: &str = "ready for clients of 2026-07-28, pid ";

fn time_server() -> Value {
    let program = tests_folder("COFER_TEST_VENV").join("bin/mcp-server-time");
    json!({"name": "time", "command": program, "args": ["--local-timezone", "Asia/Tokyo"]})
}

/// Calls a tool by a client of the Python SDK.
async fn call(daemon: &Daemon, mode: &str, path: &str, tool: &str) -> Value {
    let python = tests_folder("COFER_TEST_VENV").join("bin/python");
    let url = format!("{}{path}", daemon.base());
    let args = [CLIENT, mode, &url, tool, r#"{"timezone":"Asia/Tokyo"}"#];
    let ended = run(&python, &args, &[("TOKEN", daemon.token())], "").await;
    assert_eq!(ended.code, Some(0), "{mode} {path}\n{}\n{}", ended.stdout, ended.stderr);
    serde_json::from_str(ended.stdout.trim()).unwrap_or_else(|_| panic!("{}", ended.stdout))
}

async fn lines_with(daemon: &Daemon, name: &str, part: &str) -> Vec<String> {
    let lines = daemon.log_lines(name).await;
    lines.into_iter().filter(|line| line.contains(part)).collect()
}

/// The process for clients of 2026-07-28 that became ready last.
async fn second_pid(daemon: &Daemon, name: &str) -> u32 {
    let lines = lines_with(daemon, name, READY).await;
    let pid = lines.last().and_then(|line| line.split(READY).nth(1)).expect("a second process");
    pid.trim().parse().expect("a number")
}

#[tokio::test]
async fn a_server_of_the_python_sdk_serves_clients_of_both_revisions() {
    // covers: GTW-1, GTW-2
    let mut daemon = Daemon::start().await;
    let server = daemon.register(&time_server()).await;
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        for (path, tool) in [("/mcp/time", "get_current_time"), ("/mcp", "time__get_current_time")]
        {
            let seen = call(&daemon, mode, path, tool).await;
            assert_eq!(seen["version"], version, "{mode} {path}");
            assert!(seen["names"].as_array().unwrap().contains(&json!(tool)), "{seen}");
            assert!(seen["text"].as_str().unwrap().contains("+09:00"), "{seen}");
        }
    }
    let after = daemon.server("time").await;
    assert_eq!(after["protocol_version"], server["protocol_version"]);
    assert_eq!(after["pid"], server["pid"]);
    assert_eq!(lines_with(&daemon, "time", STARTING).await.len(), 1, "all calls share one process");
    let second = second_pid(&daemon, "time").await;
    assert!(alive(second) && second != pid_of(&server));
    let usage = eventually("the usage of both processes", async || {
        let server = daemon.server("time").await;
        (server["usage"]["pids"].as_u64() >= Some(2)).then(|| server["usage"].clone())
    });
    assert!(usage.await["memory_bytes"].as_u64().unwrap() > 20 << 20);
    assert!(daemon.terminate().await.success());
    wait_gone(&[pid_of(&server), second]).await;
}

#[tokio::test]
async fn the_second_process_ends_with_the_server_and_starts_again_when_it_is_used() {
    // covers: HST-2.2
    let daemon = Daemon::start().await;
    daemon.register(&time_server()).await;
    let ask = async || {
        let params = json!({"name": "get_current_time", "arguments": {"timezone": "Asia/Tokyo"}});
        let (_, exchange) = stateless(&daemon, "/mcp/time", "tools/call", params, json!({})).await;
        let answer = exchange.answer("s-1").await;
        let text = answer["result"]["content"][0]["text"].as_str();
        assert!(text.is_some_and(|text| text.contains("+09:00")), "{answer}");
    };
    ask().await;
    let first = second_pid(&daemon, "time").await;
    kill(first);
    eventually("the end of the connection", async || {
        (!lines_with(&daemon, "time", "the connection for clients of 2026-07-28 ended")
            .await
            .is_empty())
        .then_some(())
    })
    .await;
    ask().await;
    let next = second_pid(&daemon, "time").await;
    assert_ne!(first, next);
    assert_eq!(
        daemon.server("time").await["restart_count"],
        0,
        "the first process is not affected"
    );
    daemon.act("time", "disable").await;
    daemon.wait_status("time", "stopped").await;
    wait_gone(&[next]).await;
    daemon.act("time", "enable").await;
    daemon.wait_status("time", "ready").await;
    ask().await;
    assert_ne!(second_pid(&daemon, "time").await, next);
}

#[tokio::test]
async fn a_server_of_older_revisions_is_probed_once() {
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    let ask = async || {
        let params = json!({"name": "test_simple_text", "arguments": {}});
        let (_, exchange) = stateless(&daemon, "/mcp/x", "tools/call", params, json!({})).await;
        assert_eq!(exchange.answer("s-1").await["result"]["resultType"], "complete");
    };
    tokio::join!(ask(), ask(), ask());
    daemon.act("x", "restart").await;
    daemon.wait_status("x", "ready").await;
    ask().await;
    assert_eq!(lines_with(&daemon, "x", STARTING).await.len(), 1);
    let refusal = lines_with(&daemon, "x", "no connection of its own for clients of").await;
    assert_eq!(refusal.len(), 1, "{refusal:?}");
}

#[tokio::test]
async fn a_server_gets_no_roots_of_a_client_that_has_none() {
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    let params = json!({"name": "test_input_required_result_list_roots", "arguments": {}});
    let (_, exchange) = stateless(&daemon, "/mcp/x", "tools/call", params, json!({})).await;
    let answer = exchange.answer("s-1").await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}
