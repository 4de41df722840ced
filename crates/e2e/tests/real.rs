//! Published MCP servers, hosted for real: npm's filesystem server and PyPI's time server.

use std::path::PathBuf;

use cofer_e2e::{Daemon, alive, pid_of, wait_gone};
use serde_json::{Value, json};

/// A folder that `scripts/setup-tests` fills.
fn folder(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).unwrap_or_else(|| {
        panic!("{variable} is not set: run this under scripts/test, which installs the servers")
    });
    PathBuf::from(path)
}

async fn tool_names(daemon: &Daemon, name: &str) -> Vec<String> {
    let tools = daemon.get(&format!("/mcp/servers/{name}/tools")).await.expect(200);
    let tools = tools["tools"].as_array().expect("a list of tools").clone();
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn the_filesystem_server_of_npm_reads_a_file() {
    // covers: HST-2.1
    let program = folder("COFER_TEST_NPM").join("node_modules/.bin/mcp-server-filesystem");
    let shared = tempfile::tempdir().unwrap();
    let root = shared.path().canonicalize().unwrap();
    std::fs::write(root.join("note.txt"), "hej på dig \u{1F44B}\n").unwrap();
    let daemon = Daemon::start().await;
    let body = json!({"name": "fs", "command": program, "args": [root]});
    let server = daemon.register(&body).await;
    let tools = tool_names(&daemon, "fs").await;
    for tool in ["read_file", "write_file", "list_directory"] {
        assert!(tools.contains(&tool.to_owned()), "{tool} is not in {tools:?}");
    }
    let read = daemon.tool("fs", "read_file", &json!({"path": root.join("note.txt")})).await;
    assert!(read.tool_text().contains("hej på dig \u{1F44B}"));
    let arguments = json!({"path": root.join("made.txt"), "content": "made\n"});
    daemon.tool("fs", "write_file", &arguments).await.expect(200);
    assert_eq!(std::fs::read_to_string(root.join("made.txt")).unwrap(), "made\n");
    let outside = daemon.tool("fs", "read_file", &json!({"path": "/etc/passwd"})).await.expect(200);
    assert_eq!(outside["result"]["isError"], true);
    // Killed, it comes back.
    cofer_e2e::kill(pid_of(&server));
    daemon
        .wait_server("fs", "another process", |after: &Value| {
            after["status"] == "ready" && after["pid"] != server["pid"]
        })
        .await;
    let read = daemon.tool("fs", "read_file", &json!({"path": root.join("note.txt")})).await;
    assert!(read.tool_text().contains("hej"));
}

#[tokio::test]
async fn the_time_server_of_pypi_tells_the_time() {
    // covers: HST-2.1
    let program = folder("COFER_TEST_VENV").join("bin/mcp-server-time");
    let mut daemon = Daemon::start().await;
    let body =
        json!({"name": "time", "command": program, "args": ["--local-timezone", "Asia/Tokyo"]});
    let server = daemon.register(&body).await;
    assert!(alive(pid_of(&server)));
    let tools = tool_names(&daemon, "time").await;
    assert!(tools.contains(&"get_current_time".to_owned()), "{tools:?}");
    let told = daemon.tool("time", "get_current_time", &json!({"timezone": "Asia/Tokyo"})).await;
    assert!(told.tool_text().contains("+09:00"), "{}", told.body);
    assert!(daemon.terminate().await.success());
    wait_gone(&[pid_of(&server)]).await;
}
