//! MCP's conformance suite with the example server of the Python SDK: directly, hosted over stdio and
//! hosted by URL. Hosted, no scenario fails that passes directly.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use cofer_e2e::{Daemon, OpenDoor, command, eventually, run, stateless, tests_folder};
use serde_json::json;
use tokio::process::Child;

const LISTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/fails-directly.txt");
const OVER_STDIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/everything_stdio.py");

/// The scenarios that are listed for a revision.
fn listed(revision: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(LISTED).expect("the list is there");
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let scenario = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.len() > 2, "a reason is missing: {line}");
        (words[0] == revision).then(|| words[1].to_owned())
    };
    lines.filter_map(scenario).collect()
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths are text").to_owned()
}

fn python() -> PathBuf {
    tests_folder("COFER_TEST_VENV").join("bin/python")
}

fn everything_server() -> String {
    text(&tests_folder("COFER_TEST_PYTHON_SDK").join("examples/servers/everything-server"))
}

/// Starts the example server on a free port; its URL.
async fn start_http() -> (Child, String) {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = free.local_addr().expect("it has an address").port().to_string();
    drop(free);
    let mut command = command(&python());
    command.args(["-m", "mcp_everything_server", "--port", &port]);
    command.env("PYTHONPATH", everything_server());
    let server = command.spawn().expect("the server starts");
    let address = format!("127.0.0.1:{port}");
    eventually("the server listens", async || {
        tokio::net::TcpStream::connect(&address).await.ok().map(drop)
    })
    .await;
    (server, format!("http://{address}/mcp"))
}

/// Runs the suite against `url`: the scenarios that fail.
async fn failures(url: &str, revision: &str) -> BTreeSet<String> {
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let program = text(&modules.join("mcp-conformance-0.2/dist/index.js"));
    let args = [&program, "server", "--url", url, "--requirements", revision];
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let home = text(folder.path());
    let ended = run(&modules.join(".bin/node"), &args, &[("HOME", &home)], "").await;
    let summary = ended.stdout.split("=== SUMMARY ===").nth(1).unwrap_or_default();
    let names = |mark: &str| -> BTreeSet<String> {
        let name = |line: &str| {
            let (name, counts) = line.strip_prefix(mark)?.trim().split_once(": ")?;
            counts.contains("passed").then(|| name.to_owned())
        };
        summary.lines().filter_map(name).collect()
    };
    let passed = names("✓");
    let failed = names("✗");
    let all = passed.len() + failed.len();
    assert!(all >= 25, "the suite did not run:\n{}\n{}", ended.stdout, ended.stderr);
    failed
}

/// A daemon that hosts the example server over stdio and by `url`.
async fn hosting(url: &str) -> Daemon {
    let daemon = Daemon::start().await;
    let stdio = json!({"name": "stdio", "command": python(), "max_in_flight": 8,
        "args": [OVER_STDIO, everything_server()]});
    daemon.register(&stdio).await;
    daemon.register(&json!({"name": "url", "url": url, "max_in_flight": 8})).await;
    daemon
}

async fn check(revision: &str) {
    let (_server, url) = start_http().await;
    assert_eq!(failures(&url, revision).await, listed(revision), "directly");
    let daemon = hosting(&url).await;
    let door = OpenDoor::to(&daemon).await;
    for name in ["stdio", "url"] {
        let url = format!("{}/mcp/{name}", door.base());
        assert_eq!(failures(&url, revision).await, listed(revision), "hosted: {name}");
    }
}

#[tokio::test]
async fn the_python_sdks_server_passes_hosted_as_it_does_directly_for_clients_without_sessions() {
    // covers: GTW-1, GTW-2
    check("2026-07-28").await;
}

#[tokio::test]
async fn the_python_sdks_server_passes_hosted_as_it_does_directly_for_clients_with_sessions() {
    // covers: GTW-1, GTW-2
    check("2025-11-25").await;
}

#[tokio::test]
async fn changed_lists_reach_clients_that_listen() {
    // covers: GTW-2
    let (_server, url) = start_http().await;
    let daemon = hosting(&url).await;
    for name in ["stdio", "url"] {
        let path = format!("/mcp/{name}");
        let filter = json!({"notifications": {"toolsListChanged": true}});
        let (_, exchange) =
            stateless(&daemon, &path, "subscriptions/listen", filter.clone(), json!({})).await;
        let mut heard = exchange.stream();
        let first = heard.next().await.expect("an acknowledgement");
        assert_eq!(first["params"]["notifications"], filter["notifications"], "{name}: {first}");
        let params = json!({"name": "test_trigger_tool_change", "arguments": {}});
        let (_, exchange) = stateless(&daemon, &path, "tools/call", params, json!({})).await;
        assert_eq!(exchange.answer("s-1").await["result"]["resultType"], "complete", "{name}");
        heard.method("notifications/tools/list_changed").await;
    }
}
