//! Servers elsewhere, given by `url`: published ones, ones that forget, refuse, die and come
//! back, and what a person sees of that.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;

use cofer_e2e::{Daemon, Upstream, eventually, run};
use fake_google::{DoorOptions, FrontDoor, Google};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

const KEY: &str = "canary-0123456789abcdef";

fn remote(upstream: &Upstream) -> Value {
    json!({"name": "up", "url": upstream.url()})
}

async fn says(daemon: &Daemon, text: &str) {
    let told = daemon.tool("up", "echo", &json!({ "text": text })).await;
    assert_eq!(told.tool_text(), text);
}

/// A port that nobody listens on, for a program that wants to be told one.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// npm's everything server on this port, until it is dropped.
async fn everything(port: u16) -> Child {
    everything_by(port, "streamableHttp").await
}

async fn everything_by(port: u16, transport: &str) -> Child {
    let folder = std::env::var_os("COFER_TEST_NPM").unwrap_or_else(|| {
        panic!("COFER_TEST_NPM is not set: run this under scripts/test, which installs the servers")
    });
    let program = PathBuf::from(folder).join("node_modules/.bin/mcp-server-everything");
    #[expect(clippy::disallowed_methods, reason = "the other side of the test")]
    let mut command = Command::new(program);
    command.arg(transport).env("PORT", port.to_string()).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("npm's everything server can be started");
    eventually("the everything server listens", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
    })
    .await;
    child
}

#[tokio::test]
async fn the_everything_server_of_npm_is_used_over_http_and_sse_and_found_again() {
    // covers: GTW-1
    let port = free_port();
    let mut server = everything_by(port, "sse").await;
    let daemon = Daemon::start().await;
    let url = format!("http://127.0.0.1:{port}/sse");
    daemon.register(&json!({"name": "up", "url": url, "max_in_flight": 8})).await;
    let echo = async |text: &str| {
        let told = daemon.tool("up", "echo", &json!({ "message": text })).await;
        assert!(told.tool_text().contains(text), "{}", told.body);
    };
    tokio::join!(echo("one"), echo("two"), echo("three"));
    let sum = daemon.tool("up", "get-sum", &json!({"a": 2, "b": 3})).await;
    assert!(sum.tool_text().contains('5'), "{}", sum.body);
    // The stream ends with the server, and the server counts as lost.
    server.kill().await.expect("it can be killed");
    daemon.wait_server("up", "lost the server", |server| server["status"] != "ready").await;
    let _again = everything_by(port, "sse").await;
    daemon.wait_status("up", "ready").await;
    echo("again").await;
}

#[tokio::test]
async fn the_everything_server_of_npm_is_used_over_http_and_found_and_found_again() {
    // covers: GTW-1
    let port = free_port();
    let mut server = everything(port).await;
    let daemon = Daemon::start().await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    let object = daemon.register(&json!({"name": "up", "url": url})).await;
    assert_eq!(object["kind"], "remote");
    assert_eq!(object["pid"], Value::Null);
    assert_eq!(object["process_status"], "running");
    assert_eq!(object["endpoints"], json!([url]));
    assert_eq!(object["mcp_endpoint"], url);
    assert!(object["server_info"]["name"].is_string(), "{object}");
    let tools = daemon.get("/mcp/servers/up/tools").await.expect(200);
    assert!(tools["total"].as_u64().is_some_and(|total| total > 5), "{tools}");
    let text = "hej \u{1F469}\u{200D}\u{1F4BB} \u{2028}";
    let told = daemon.tool("up", "echo", &json!({ "message": text })).await;
    assert!(told.tool_text().contains(text), "{}", told.body);
    // It dies, which is noticed by itself or by the next call, and comes back.
    server.kill().await.expect("it can be killed");
    drop(daemon.tool("up", "echo", &json!({"message": "x"})).await);
    let object = daemon.wait_status("up", "restarting").await;
    assert_eq!(object["error"]["kind"], "unreachable", "{object}");
    let _server = everything(port).await;
    daemon.wait_status("up", "ready").await;
    let told = daemon.tool("up", "echo", &json!({"message": "again"})).await;
    assert!(told.tool_text().contains("again"), "{}", told.body);
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_again_and_nobody_notices() {
    let upstream = Upstream::start();
    let daemon = Daemon::start().await;
    daemon.register(&remote(&upstream)).await;
    says(&daemon, "one").await;
    upstream.forget_sessions();
    says(&daemon, "two").await;
    assert_eq!(upstream.count("initialize"), 2);
    let object = daemon.server("up").await;
    assert_eq!((&object["status"], &object["restart_count"]), (&json!("ready"), &json!(0)));
}

#[tokio::test]
async fn a_server_that_died_is_reached_again_by_the_restart_policy() {
    let mut upstream = Upstream::start();
    let daemon = Daemon::start().await;
    let mut body = remote(&upstream);
    body["heartbeat"] = json!({"interval_ms": 100, "timeout_ms": 5000});
    daemon.register(&body).await;
    upstream.die();
    // Nobody calls it: the heartbeat finds out.
    let object = daemon.wait_status("up", "restarting").await;
    assert_eq!(object["error"]["kind"], "unreachable", "{object}");
    assert!(object["error"]["hint"].as_str().is_some_and(|hint| hint.contains("URL")), "{object}");
    assert!(object["next_restart_at"].is_string(), "{object}");
    let failed = daemon.tool("up", "echo", &json!({})).await;
    failed.failure(409, "not_connected");
    upstream.rise();
    let object = daemon.wait_status("up", "ready").await;
    assert!(object["restart_count"].as_u64().is_some_and(|count| count > 0), "{object}");
    says(&daemon, "again").await;
}

#[tokio::test]
async fn a_policy_of_never_leaves_a_lost_server_in_error() {
    let mut upstream = Upstream::start();
    let daemon = Daemon::start().await;
    let mut body = remote(&upstream);
    body["restart_policy"] = json!("never");
    daemon.register(&body).await;
    upstream.die();
    let failed = daemon.tool("up", "echo", &json!({})).await.failure(502, "mcp_error");
    assert_eq!(failed["details"]["data"]["kind"], "connect", "{failed}");
    let object = daemon.wait_status("up", "error").await;
    assert_eq!(object["error"]["kind"], "unreachable", "{object}");
    upstream.rise();
    assert_eq!(daemon.act("up", "enable").await["status"], "ready");
}

#[tokio::test]
async fn headers_go_with_every_request_and_are_kept_like_secrets() {
    let upstream = Upstream::start();
    upstream.want_bearer(Some(KEY));
    let daemon = Daemon::start().await;
    let mut body = remote(&upstream);
    body["headers"] = json!({"Authorization": format!("Bearer {KEY}"), "X-Team": "blue"});
    let object = daemon.register(&body).await;
    says(&daemon, "in").await;
    assert!(
        upstream
            .asked()
            .iter()
            .filter(|asked| asked.method != "OPTIONS")
            .all(|asked| { asked.headers.get("x-team").is_some_and(|team| team == "blue") })
    );
    assert_eq!(object["headers"], json!({"Authorization": "********", "X-Team": "********"}));
    let warned = object["warnings"].to_string();
    assert!(warned.contains("Authorization") && warned.contains("plain text"), "{warned}");
    let shown = daemon.get("/mcp/servers/up?reveal=true").await.expect(200);
    assert_eq!(shown["headers"]["Authorization"], format!("Bearer {KEY}"));
    // What is shown can be sent back, and only what was changed changes.
    let mut headers = object["headers"].clone();
    headers["X-Team"] = json!("red");
    daemon.patch("/mcp/servers/up?wait=30", &json!({ "headers": headers })).await.expect(200);
    says(&daemon, "in again").await;
    let last = upstream.asked().pop().expect("it was asked");
    assert_eq!(last.headers["x-team"], "red");
    // A key that is not taken any more.
    upstream.want_bearer(Some("another"));
    daemon.post("/mcp/servers/up/restart", &json!({})).await.expect(200);
    let told = |server: &Value| server["error"]["message"].to_string().contains("401");
    let object = daemon.wait_server("up", "a refusal to tell of", told).await;
    assert_eq!(object["error"]["kind"], "unauthorized", "{object}");
    for place in [daemon.stderr(), object.to_string(), daemon.log_lines("up").await.join("\n")] {
        assert!(!place.contains(KEY), "the key stands in {place}");
    }
}

#[tokio::test]
async fn every_refusal_has_its_kind_and_a_way_on() {
    let upstream = Upstream::start();
    let daemon = Daemon::start().await;
    let nobody = format!("http://127.0.0.1:{}/mcp", free_port());
    let tls = upstream.url().replace("http:", "https:");
    let lost = upstream.url().replace("/mcp", "/elsewhere");
    let page = "<html><body><h1>Welcome</h1></body></html>";
    for (name, url, forced, kind, hint) in [
        ("refused", nobody, None, "unreachable", "is up"),
        ("tls", tls, None, "tls_failed", "certificate"),
        ("unauthorized", upstream.url(), Some((401, "who are you")), "unauthorized", "`headers`"),
        ("forbidden", upstream.url(), Some((403, "not you")), "forbidden", "`headers`"),
        ("lost", lost, None, "endpoint_not_found", "/mcp"),
        ("broken", upstream.url(), Some((500, "oh no")), "http_error", "log"),
        ("page", upstream.url(), Some((200, page)), "handshake_failed", "URL"),
    ] {
        upstream.answer_with(forced);
        let body = json!({"name": name, "url": url});
        let object = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
        assert_eq!(object["status"], "error", "{object}");
        let error = &object["error"];
        assert_eq!(error["kind"], kind, "{object}");
        assert!(error["hint"].as_str().is_some_and(|text| text.contains(hint)), "{error}");
        if let Some((_, words)) = forced.filter(|(status, _)| *status != 200) {
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains(words), "{message}");
        }
    }
}

#[tokio::test]
async fn a_refusal_in_mid_life_is_told_and_healed() {
    let upstream = Upstream::start();
    let daemon = Daemon::start().await;
    let mut body = remote(&upstream);
    body["heartbeat"] = json!({"interval_ms": 100, "timeout_ms": 5000});
    daemon.register(&body).await;
    upstream.want_bearer(Some(KEY));
    let object = daemon.wait_status("up", "restarting").await;
    assert_eq!(object["error"]["kind"], "unauthorized", "{object}");
    upstream.want_bearer(None);
    daemon.wait_status("up", "ready").await;
    says(&daemon, "healed").await;
}

#[tokio::test]
async fn a_server_of_the_newest_revision_is_spoken_to_in_it() {
    let upstream = Upstream::start();
    upstream.speak_modern();
    let daemon = Daemon::start().await;
    let object = daemon.register(&remote(&upstream)).await;
    assert_eq!(object["protocol_version"], "2026-07-28");
    says(&daemon, "new").await;
}

#[tokio::test]
async fn a_server_that_is_away_when_the_daemon_starts_is_waited_for() {
    let mut upstream = Upstream::start();
    let mut daemon = Daemon::start().await;
    daemon.register(&remote(&upstream)).await;
    assert!(daemon.terminate().await.success());
    assert_eq!(upstream.count("DELETE"), 1, "the session is ended");
    upstream.die();
    let data = daemon.data_dir();
    let daemon_again = Daemon::builder().data_dir(&data).start().await;
    daemon_again.wait_status("up", "restarting").await;
    upstream.rise();
    daemon_again.wait_status("up", "ready").await;
}

#[tokio::test]
async fn cloud_runs_front_door_opens_for_the_credentials_of_the_proxy() {
    let google = Google::start();
    let door = FrontDoor::start(&google, DoorOptions::default());
    let home = tempfile::tempdir().expect("a temporary folder");
    let file = home.path().join("credentials.json");
    std::fs::write(&file, google.service_account().to_string()).expect("it can be written");
    let file = file.to_str().expect("text");
    let body = json!({
        "name": "run", "url": format!("{}/mcp", door.url()), "auth": "google_id_token",
    });
    let daemon = Daemon::builder().env("GOOGLE_APPLICATION_CREDENTIALS", file).start().await;
    daemon.register(&body).await;
    let (_, verdict) = door.seen().pop().expect("the door was reached");
    assert!(verdict.is_ok(), "{verdict:?}");
    for canary in google.canaries() {
        assert!(!daemon.stderr().contains(&canary), "{canary} was logged");
    }
    let daemon = Daemon::builder().env("NO_GCE_CHECK", "true").start().await;
    let object = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    assert_eq!(object["error"]["kind"], "credentials_missing", "{object}");
    let hint = object["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("gcloud auth application-default login"), "{hint}");
}

#[tokio::test]
async fn the_command_line_and_an_import_register_remote_servers() {
    let upstream = Upstream::start();
    upstream.want_bearer(Some(KEY));
    let daemon = Daemon::start().await;
    let (data, url) = (daemon.data_dir(), upstream.url());
    let bearer = format!("Bearer {KEY}");
    let env = [
        ("COFER_DATA_DIR", data.to_str().expect("text")),
        ("COFER_URL", daemon.base()),
        ("AUTHORIZATION", &bearer),
    ];
    let args = ["server", "add", "up", "--url", &url, "--header", "Authorization"];
    let ended = run(&cofer_e2e::cofer(), &args, &env, "").await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    says(&daemon, "typed").await;
    let ended = daemon.cli(&["server", "set", "up", "--header", "X-Team: blue"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    says(&daemon, "changed").await;
    let shown = daemon.get("/mcp/servers/up?reveal=true").await.expect(200);
    assert_eq!(shown["headers"], json!({"Authorization": bearer, "X-Team": "blue"}));
    let config = json!({"mcpServers": {"two": {
        "type": "http", "url": url, "headers": {"Authorization": bearer},
    }}});
    let imported = daemon.post("/mcp/import", &config).await;
    assert!(imported.status < 300, "{}", imported.body);
    assert!(!imported.body.contains(KEY), "{}", imported.body);
    let object = daemon.wait_status("two", "ready").await;
    assert_eq!(object["kind"], "remote");
}
