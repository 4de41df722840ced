//! Clients that others wrote, at the door of all servers: the SDKs for TypeScript, Python and
//! Rust, and the command line of MCP Inspector.

use std::path::Path;

use cofer_e2e::{Daemon, Ended, exemplary, plain_client_with, run, tests_folder, wayward};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");

async fn daemon() -> Daemon {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.register(&exemplary("x", "legacy")).await;
    daemon
}

async fn run_client(daemon: &Daemon, program: &Path, args: &[&str]) -> Ended {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let home = folder.path().to_str().expect("paths are text");
    let ended = run(program, args, &[("TOKEN", daemon.token()), ("HOME", home)], "").await;
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    ended
}

/// What a client that does everything has to have seen.
fn check(seen: &str) {
    let seen: Value = serde_json::from_str(seen.trim()).unwrap_or_else(|_| panic!("{seen}"));
    let names: Vec<&str> =
        seen["names"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"w__echo") && names.contains(&"x__test_elicitation"), "{names:?}");
    assert_eq!(seen["echo"], r#"{"text":"안녕 👋"}"#);
    assert_eq!(seen["asked"], r#"User response: action=accept, content={"response":"me"}"#);
    let progress: Vec<f64> =
        seen["progress"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    assert_eq!(progress, [0.0, 50.0, 100.0]);
}

async fn typescript(version: &str) {
    let daemon = daemon().await;
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let script = format!("{CLIENTS}/typescript.cjs");
    let url = format!("{}/mcp", daemon.base());
    let args = [script.as_str(), modules.to_str().expect("paths are text"), version, &url];
    check(&run_client(&daemon, &modules.join(".bin/node"), &args).await.stdout);
}

#[tokio::test]
async fn the_typescript_sdk_of_the_older_line_lists_calls_and_is_asked() {
    // covers: GTW-1
    typescript("v1").await;
}

#[tokio::test]
async fn the_typescript_sdk_of_the_newer_line_lists_calls_and_is_asked_in_a_session() {
    // covers: GTW-1
    typescript("v2-legacy").await;
}

#[tokio::test]
async fn the_typescript_sdk_of_the_newer_line_lists_calls_and_is_asked_without_a_session() {
    // covers: GTW-1
    typescript("v2-modern").await;
}

async fn python(mode: &str) {
    let daemon = daemon().await;
    let program = tests_folder("COFER_TEST_VENV").join("bin/python");
    let script = format!("{CLIENTS}/client.py");
    let url = format!("{}/mcp", daemon.base());
    check(&run_client(&daemon, &program, &[&script, mode, &url]).await.stdout);
}

#[tokio::test]
async fn the_python_sdk_lists_calls_and_is_asked_in_a_session() {
    // covers: GTW-1
    python("legacy").await;
}

#[tokio::test]
async fn the_python_sdk_lists_calls_and_is_asked_without_a_session() {
    // covers: GTW-1
    python("auto").await;
}

#[tokio::test]
async fn the_inspectors_command_line_lists_and_calls() {
    // covers: GTW-1
    let daemon = daemon().await;
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let program = modules.join(".bin/mcp-inspector");
    let program = program.canonicalize().expect("the inspector is installed");
    let url = format!("{}/mcp", daemon.base());
    let header = format!("Authorization: Bearer {}", daemon.token());
    let inspect = async |more: &[&str]| {
        let args =
            [program.to_str().unwrap(), "--cli", &url, "--transport", "http", "--header", &header];
        let ended =
            run_client(&daemon, &modules.join(".bin/node"), &[&args[..], more].concat()).await;
        serde_json::from_str::<Value>(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stdout))
    };
    let listed = inspect(&["--method", "tools/list"]).await;
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "x__test_simple_text"), "{listed}");
    let call = ["--method", "tools/call", "--tool-name", "w__echo", "--tool-arg", "text=hi"];
    let called = inspect(&call).await;
    assert_eq!(called["content"][0]["text"], r#"{"text":"hi"}"#);
}

#[tokio::test]
async fn the_rust_sdk_lists_and_calls() {
    // covers: GTW-1
    let daemon = daemon().await;
    let token = HeaderValue::from_str(&format!("Bearer {}", daemon.token())).unwrap();
    let http = plain_client_with([(AUTHORIZATION, token)].into_iter().collect());
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", daemon.base()));
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let client = ().serve(transport).await.expect("it connects");
    let tools = client.list_all_tools().await.expect("it lists");
    assert!(tools.iter().any(|tool| tool.name == "w__echo"));
    let mut call = CallToolRequestParams::new("w__echo");
    call.arguments = json!({"text": "hi"}).as_object().cloned();
    let called = client.call_tool(call).await.expect("it calls");
    let called = serde_json::to_value(called).unwrap();
    assert_eq!(called["content"][0]["text"], r#"{"text":"hi"}"#);
    client.cancel().await.expect("it ends");
}
