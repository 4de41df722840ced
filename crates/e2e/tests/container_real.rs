//! A published MCP server in a container: npm's `everything`, over stdio and over HTTP.

use cofer_e2e::{Daemon, Runtime, container_of, podman, with, with_both_runtimes};
use serde_json::{Value, json};

with_both_runtimes!(
    the_everything_server_of_npm_answers_over_stdio,
    the_everything_server_of_npm_answers_over_http,
);

/// Calls it as a client would, and again after it was killed.
async fn is_used(daemon: &Daemon, server: &Value) {
    let tools = daemon.get("/mcp/servers/real/tools").await.expect(200);
    assert!(tools.to_string().contains("\"echo\""), "{tools}");
    let told = daemon.tool("real", "echo", &json!({"message": "hej på dig"})).await.tool_text();
    assert!(told.contains("hej på dig"), "{told}");
    let prompts = daemon.get("/mcp/servers/real/prompts").await.expect(200);
    assert!(prompts["total"].as_u64() >= Some(1), "{prompts}");
    podman(&["kill", &container_of(server)]).await;
    daemon.wait_replaced("real", server).await;
    let told = daemon.tool("real", "echo", &json!({"message": "again"})).await.tool_text();
    assert!(told.contains("again"), "{told}");
}

async fn the_everything_server_of_npm_answers_over_stdio(runtime: Runtime) {
    // covers: HST-1.1, HST-2.1
    let daemon = Daemon::start().await;
    let body = with(runtime.image("real", "everything"), "resource_limits", json!({"cpu": "1"}));
    let server = daemon.host(&body).await;
    is_used(&daemon, &server).await;
}

async fn the_everything_server_of_npm_answers_over_http(runtime: Runtime) {
    // covers: HST-1.2
    let daemon = Daemon::start().await;
    let body = with(runtime.image("real", "everything-http"), "stdio_bridge", json!(false));
    let body = with(body, "ports", json!([{"container": 8080, "host": 0}]));
    let body = with(body, "resource_limits", json!({"cpu": "1"}));
    let server = daemon.host(&body).await;
    is_used(&daemon, &server).await;
}
