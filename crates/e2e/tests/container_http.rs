//! Servers that speak HTTP in a container: a published port, ready when it answers, reached
//! directly and through the daemon.
#![expect(clippy::unwrap_used, reason = "each case is a test, called by that of each runtime")]

use std::net::TcpListener;

use cofer_e2e::{
    Daemon, Runtime, container_of, inspect, plain_client, podman, wait_no_container, with,
    with_both_runtimes,
};
use serde_json::{Value, json};

with_both_runtimes!(
    an_http_server_is_reached_directly_and_through_the_daemon,
    answers_as_a_stream_are_read_too,
    a_killed_http_server_is_reached_again,
    a_fixed_port_is_the_one_that_is_published,
    an_http_server_that_never_listens_fails_in_time,
);

fn http(runtime: Runtime, name: &str) -> Value {
    let body = with(runtime.image(name, "wayward-http"), "stdio_bridge", json!(false));
    with(body, "ports", json!([{"container": 8080, "host": 0}]))
}

/// `ADDRESS:PORT` of the first endpoint.
fn endpoint(server: &Value) -> String {
    let endpoint = server["endpoints"][0].as_str();
    let endpoint = endpoint.unwrap_or_else(|| panic!("no endpoint in {server:#}"));
    let address = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    address.split('/').next().unwrap_or_default().to_owned()
}

/// Shakes hands with it as any client of it would.
async fn initialize(address: &str) -> (u16, String) {
    let client = plain_client();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "e2e", "version": "0"},
    }});
    let request = client.post(format!("http://{address}/mcp")).json(&body);
    let request = request.header("Accept", "application/json, text/event-stream");
    let answer = request.send().await.unwrap_or_else(|error| panic!("{address}: {error}"));
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn an_http_server_is_reached_directly_and_through_the_daemon(runtime: Runtime) {
    // covers: HST-1.2, HST-2.1, HST-2.2
    let daemon = Daemon::start().await;
    let server = daemon.host(&http(runtime, "w")).await;
    let address = endpoint(&server);
    assert!(address.starts_with("127.0.0.1:"), "loopback only: {server:#}");
    let (status, body) = initialize(&address).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("wayward"), "{body}");
    let told = daemon.tool("w", "echo", &json!({"n": 1})).await.tool_text();
    assert_eq!(told, r#"{"n":1}"#);
    let tools = daemon.get("/mcp/servers/w/tools").await.expect(200);
    assert!(tools["total"].as_u64() > Some(10), "{tools}");
    let error = daemon.tool("w", "rpc_error", &json!({"code": -32042})).await;
    assert_eq!(error.failure(502, "mcp_error")["details"]["code"], -32042);
    assert_eq!(server["server_info"]["name"], "wayward", "{server:#}");
    let ports = inspect(&container_of(&server)).await["NetworkSettings"]["Ports"].clone();
    let published = ports["8080/tcp"][0].clone();
    assert_eq!(published["HostIp"], "127.0.0.1", "{ports}");
    assert!(address.ends_with(published["HostPort"].as_str().unwrap()), "{ports} {address}");
    daemon.delete("/mcp/servers/w").await.expect(204);
    wait_no_container(&server).await;
}

async fn answers_as_a_stream_are_read_too(runtime: Runtime) {
    // covers: HST-1.2
    let daemon = Daemon::start().await;
    let flags = json!({"WAYWARD_FLAGS": "--http-stream"});
    daemon.host(&with(http(runtime, "w"), "environment", flags)).await;
    let text = "line\nbreak \u{2028} and more";
    let told = daemon.tool("w", "echo", &json!({"text": text})).await.tool_text();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), json!({"text": text}));
}

async fn a_killed_http_server_is_reached_again(runtime: Runtime) {
    // covers: HST-1.2, HST-3.2
    let daemon = Daemon::start().await;
    let server = daemon.host(&http(runtime, "w")).await;
    podman(&["kill", &container_of(&server)]).await;
    let after = daemon.wait_replaced("w", &server).await;
    assert_eq!(after["restart_count"], 1);
    assert_eq!(initialize(&endpoint(&after)).await.0, 200);
    daemon.tool("w", "echo", &json!({})).await.expect(200);
}

async fn a_fixed_port_is_the_one_that_is_published(runtime: Runtime) {
    // covers: HST-1.2
    let daemon = Daemon::start().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let ports = json!([{"container": 8080, "host": port}]);
    let body = with(http(runtime, "w"), "ports", ports.clone());
    let refused = daemon.settle(&body).await;
    assert_eq!(refused["status"], "error", "{refused:#}");
    assert_eq!(refused["error"]["kind"], "port_in_use", "{refused:#}");
    assert!(refused["error"].to_string().contains(&port.to_string()), "{refused:#}");
    wait_no_container(&refused).await;
    drop(taken);
    let on = daemon.act("w", "enable").await;
    assert_eq!(on["status"], "ready", "{on:#}");
    assert_eq!(endpoint(&on), format!("127.0.0.1:{port}"));
    assert_eq!(initialize(&endpoint(&on)).await.0, 200);
}

async fn an_http_server_that_never_listens_fails_in_time(runtime: Runtime) {
    // covers: HST-1.2
    let daemon = Daemon::start().await;
    // Behind one that works, so that nothing has to be found out first.
    daemon.host(&http(runtime, "good")).await;
    let body = with(http(runtime, "w"), "ports", json!([{"container": 9, "host": 0}]));
    let body = with(body, "start_timeout_ms", json!(12_000));
    let server = daemon.settle(&body).await;
    assert_eq!(server["status"], "error", "{server:#}");
    assert!(server["error"].to_string().contains('9'), "the port is named: {server:#}");
    wait_no_container(&server).await;
}

#[tokio::test]
async fn a_port_is_needed_where_there_is_no_bridge() {
    // covers: HST-1.2
    let daemon = Daemon::start().await;
    let body = with(http(Runtime::Runc, "w"), "ports", json!([]));
    let error = daemon.post("/mcp/servers", &body).await.failure(422, "invalid_request");
    assert!(error["details"].to_string().contains("ports"), "{error}");
}
