//! The API does as its OpenAPI document says: schemathesis sends generated requests to every operation, valid and
//! invalid ones, and fails on an undocumented status, header or body, on a schema-valid request that is refused without
//! its documented error, and on an undocumented 5xx.
//!
//! Generated registrations must do no harm: the daemon's `PATH` is an empty folder, its home and data are temporary, its
//! container engine is missing, its proxy accepts nothing, and `openapi/cofer_hooks.py` replaces commands and
//! addresses.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cofer_e2e::{Daemon, FakeModel, Reply, command, tests_folder, wayward};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

/// Generated requests of each kind for an operation; the documented boundary values come on top.
const EXAMPLES: &str = "12";

/// The whole run takes about a minute and a half.
const LIMIT: Duration = Duration::from_secs(280);

/// How long a stream is read: `/events`, followed logs and chats do not end by themselves.
const STREAM_SECONDS: &str = "2";

/// Nothing accepts connections there.
const CLOSED: &str = "http://127.0.0.1:9";

/// A daemon that can start nothing but what the test registers, and reach nothing but `model`.
async fn harmless_daemon(empty: &Path, model: &FakeModel) -> Daemon {
    let text = |path: &Path| path.to_str().expect("temporary paths are text").to_owned();
    let mut builder = Daemon::builder()
        .env("PATH", text(empty))
        .env("COFER_PODMAN", text(&empty.join("podman")))
        .env("OPENAI_API_KEY", "none")
        .env("OPENAI_BASE_URL", model.base())
        .env("COFER_CHAT_MODEL", "scripted")
        .env("NO_PROXY", "127.0.0.1");
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        builder = builder.env(proxy, CLOSED);
    }
    builder.start().await
}

/// Makes what requests with an id need: a server, a recorded call and a conversation. Returns the ids as variables for
/// the hooks.
async fn populate(daemon: &Daemon) -> [(&'static str, String); 2] {
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "echo", &json!({"text": "hi"})).await.expect(200);
    let activity = daemon.get("/activity").await.expect(200);
    let call = activity["calls"][0]["call_id"].as_str().expect("the call is listed").to_owned();
    let mut turn = daemon.chat(&json!({"message": "hello", "servers": []})).await;
    let seen = turn.until("the turn ends", |event| event.name == "turnFinished").await;
    let started = seen.iter().find(|event| event.name == "turnStarted").expect("it began");
    let conversation = started.data["conversation_id"].as_str().expect("an id").to_owned();
    [("COFER_TEST_CALL", call), ("COFER_TEST_CONVERSATION", conversation)]
}

fn schemathesis(daemon: &Daemon, folder: &Path) -> Command {
    let mut command = command(&tests_folder("COFER_TEST_VENV").join("bin/st"));
    command
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .arg("run")
        .arg(format!("{}/api/v1/openapi.json", daemon.base()))
        .args(["--url", &format!("{}/api/v1", daemon.base())])
        .args(["--header", &format!("Authorization: Bearer {}", daemon.token())])
        .args(["--phases", "examples,coverage,fuzzing", "--checks", "all"])
        .args(["--max-examples", EXAMPLES, "--generation-deterministic", "--no-shrink"])
        .args(["--request-timeout", STREAM_SECONDS, "--suppress-health-check", "all"])
        .args(["--continue-on-failure", "--no-color"])
        .env("PYTHONPATH", folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", "cofer_hooks")
        .stdin(Stdio::null());
    command
}

#[tokio::test]
async fn every_operation_does_as_the_openapi_document_says() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let model = FakeModel::start([Reply::text(&["Hello", "."])]).await;
    let daemon = harmless_daemon(empty.path(), &model).await;
    let ids = populate(&daemon).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi");
    let mut schemathesis = schemathesis(&daemon, &folder);
    schemathesis.envs(ids).current_dir(empty.path());
    let ended = tokio::time::timeout(LIMIT, schemathesis.output()).await;
    let ended = ended.expect("schemathesis ends in time").expect("schemathesis can be run");
    let (report, errors) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{report}\n{errors}");
    let operations = operations(&daemon).await;
    let tested = format!("Selected: {operations}/{operations}\n  Tested: {operations}");
    assert!(report.contains(&tested), "not every operation was tested:\n{report}");
    daemon.send(daemon.raw(Method::GET, "/healthz")).await.expect(200);
}

async fn operations(daemon: &Daemon) -> usize {
    let document = daemon.get("/openapi.json").await.expect(200);
    let paths = document["paths"].as_object().expect("paths");
    paths.values().filter_map(Value::as_object).map(serde_json::Map::len).sum()
}

#[tokio::test]
async fn a_path_that_is_not_text_is_refused_like_every_other_mistake() {
    let daemon = Daemon::start().await;
    for path in ["/mcp/servers/%FF", "/chat/conversations/%FF/calls/%FE", "/environments/%FF/log"] {
        daemon.get(path).await.failure(422, "invalid_request");
    }
}
