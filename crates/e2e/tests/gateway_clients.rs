//! Clients that others wrote, at the door of all servers: the SDKs for TypeScript, Python and
//! Rust, and the command line of MCP Inspector; each over HTTP, and by starting `cofer connect`.

use std::path::Path;

use cofer_e2e::{
    Daemon, Ended, McpClient, cofer, command, exemplary, plain_client_with, run, tests_folder,
    wayward,
};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");

async fn daemon() -> Daemon {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.register(&exemplary("x", "legacy")).await;
    daemon
}

/// By which way a client comes in.
#[derive(Clone, Copy)]
enum Way {
    Http,
    Connect,
}

impl Way {
    /// The URL, or the program that leads there.
    fn door(self, daemon: &Daemon) -> String {
        match self {
            Self::Http => format!("{}/mcp", daemon.base()),
            Self::Connect => text(&cofer()),
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("paths are text").to_owned()
}

async fn run_client(daemon: &Daemon, program: &Path, args: &[&str]) -> Ended {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let (home, data) = (text(folder.path()), text(&daemon.data_dir()));
    let variables = [("TOKEN", daemon.token()), ("HOME", &home), ("COFER_DATA_DIR", &data)];
    let ended = run(program, args, &variables, "").await;
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

async fn typescript(version: &str, way: Way) {
    let daemon = daemon().await;
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let script = format!("{CLIENTS}/typescript.cjs");
    let args = [script.as_str(), &text(&modules), version, &way.door(&daemon)];
    check(&run_client(&daemon, &modules.join(".bin/node"), &args).await.stdout);
}

#[tokio::test]
async fn the_typescript_sdk_of_the_older_line_lists_calls_and_is_asked() {
    // covers: GTW-1
    typescript("v1", Way::Http).await;
}

#[tokio::test]
async fn the_typescript_sdk_of_the_newer_line_lists_calls_and_is_asked_in_a_session() {
    // covers: GTW-1
    typescript("v2-legacy", Way::Http).await;
}

#[tokio::test]
async fn the_typescript_sdk_of_the_newer_line_lists_calls_and_is_asked_without_a_session() {
    // covers: GTW-1
    typescript("v2-modern", Way::Http).await;
}

#[tokio::test]
async fn the_typescript_sdks_do_so_through_a_command() {
    // covers: GTW-1, GTW-3
    for version in ["v1", "v2-legacy", "v2-modern"] {
        typescript(version, Way::Connect).await;
    }
}

async fn python(mode: &str, way: Way) {
    let daemon = daemon().await;
    let program = tests_folder("COFER_TEST_VENV").join("bin/python");
    let script = format!("{CLIENTS}/client.py");
    check(&run_client(&daemon, &program, &[&script, mode, &way.door(&daemon)]).await.stdout);
}

#[tokio::test]
async fn the_python_sdk_lists_calls_and_is_asked_in_a_session() {
    // covers: GTW-1
    python("legacy", Way::Http).await;
}

#[tokio::test]
async fn the_python_sdk_lists_calls_and_is_asked_without_a_session() {
    // covers: GTW-1
    python("auto", Way::Http).await;
}

#[tokio::test]
async fn the_python_sdk_does_so_through_a_command() {
    // covers: GTW-1, GTW-3
    for mode in ["legacy", "auto"] {
        python(mode, Way::Connect).await;
    }
}

async fn inspector(way: &[&str], daemon: &Daemon) {
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let program = modules.join(".bin/mcp-inspector");
    let program = text(&program.canonicalize().expect("the inspector is installed"));
    let inspect = async |more: &[&str]| {
        let args = [&[program.as_str(), "--cli"], way, more].concat();
        let ended = run_client(daemon, &modules.join(".bin/node"), &args).await;
        serde_json::from_str::<Value>(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stdout))
    };
    let listed = inspect(&["--method", "tools/list"]).await;
    let tools = listed["tools"].as_array().expect("a list");
    assert!(tools.iter().any(|tool| tool["name"] == "x__test_simple_text"), "{listed}");
    let call = ["--method", "tools/call", "--tool-name", "w__echo", "--tool-arg", "text=hi"];
    let called = inspect(&call).await;
    assert_eq!(called["content"][0]["text"], r#"{"text":"hi"}"#);
}

#[tokio::test]
async fn the_inspectors_command_line_lists_and_calls() {
    // covers: GTW-1
    let daemon = daemon().await;
    let header = format!("Authorization: Bearer {}", daemon.token());
    let url = Way::Http.door(&daemon);
    inspector(&[&url, "--transport", "http", "--header", &header], &daemon).await;
}

#[tokio::test]
async fn the_inspectors_command_line_does_so_through_a_command() {
    // covers: GTW-1, GTW-3
    let daemon = daemon().await;
    let data = format!("COFER_DATA_DIR={}", text(&daemon.data_dir()));
    inspector(&["-e", &data, &Way::Connect.door(&daemon), "connect"], &daemon).await;
}

/// `mcp-remote` at the endpoint of all servers, with these options and a home of its own.
fn mcp_remote(daemon: &Daemon, home: &Path, options: &[&str]) -> McpClient {
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let script = modules.join(".bin/mcp-remote").canonicalize().expect("mcp-remote is installed");
    let (script, url) = (text(&script), Way::Http.door(daemon));
    let args = [&[script.as_str(), &url], options].concat();
    // Fails instead of opening a browser of the user's desktop.
    let env = [("HOME", text(home)), ("BROWSER", "/bin/false".to_owned())];
    let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
    McpClient::start_by(&modules.join(".bin/node"), &args, &env, home)
}

#[tokio::test]
async fn mcp_remote_calls_with_the_token_and_ends_without_it() {
    // covers: GTW-1
    let daemon = daemon().await;
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    let header = format!("Authorization:Bearer {}", daemon.token());
    let mut client = mcp_remote(&daemon, home.path(), &["--header", &header]);
    client.initialize().await;
    let called = client.call("w__echo", json!({"text": "hi"})).await;
    assert_eq!(called["content"][0]["text"], r#"{"text":"hi"}"#);
    drop(client);
    // Without a token it looks for OAuth metadata, finds none, and gives up.
    let (code, rest, stderr) = mcp_remote(&daemon, home.path(), &[]).wait().await;
    assert_eq!((code, rest.len()), (Some(1), 0), "{stderr}");
    assert!(!stderr.contains("Please authorize this client by visiting"), "{stderr}");
}

/// Lists and calls by a client of the SDK for Rust.
async fn rust(client: RunningService<RoleClient, ()>) {
    let tools = client.list_all_tools().await.expect("it lists");
    assert!(tools.iter().any(|tool| tool.name == "w__echo"));
    let mut call = CallToolRequestParams::new("w__echo");
    call.arguments = json!({"text": "hi"}).as_object().cloned();
    let called = client.call_tool(call).await.expect("it calls");
    let called = serde_json::to_value(called).expect("it is JSON");
    assert_eq!(called["content"][0]["text"], r#"{"text":"hi"}"#);
    client.cancel().await.expect("it ends");
}

#[tokio::test]
async fn the_rust_sdk_lists_and_calls() {
    // covers: GTW-1
    let daemon = daemon().await;
    let token = HeaderValue::from_str(&format!("Bearer {}", daemon.token())).unwrap();
    let http = plain_client_with([(AUTHORIZATION, token)].into_iter().collect());
    let config = StreamableHttpClientTransportConfig::with_uri(Way::Http.door(&daemon));
    let transport = StreamableHttpClientTransport::with_client(http, config);
    rust(().serve(transport).await.expect("it connects")).await;
}

#[tokio::test]
async fn the_rust_sdk_does_so_through_a_command() {
    // covers: GTW-1, GTW-3
    let daemon = daemon().await;
    let mut command = command(&cofer());
    command.arg("connect").env("COFER_DATA_DIR", daemon.data_dir());
    let transport = TokioChildProcess::new(command).expect("it starts");
    rust(().serve(transport).await.expect("it connects")).await;
}
