//! Registering a server: what is taken, what is refused, what is stored, shown and changed.

use std::collections::BTreeSet;

use cofer_e2e::{Answer, Daemon, alive, pid_of, pids_in, wait_gone, wayward, wayward_path};
use serde_json::{Value, json};

/// The fields a refusal names.
fn fields(error: &Value) -> BTreeSet<String> {
    let fields = error["details"]["fields"].as_array().expect("details.fields is a list");
    fields.iter().map(|field| field["field"].as_str().expect("a name").to_owned()).collect()
}

fn names(list: &Value) -> Vec<&str> {
    let servers = list["servers"].as_array().expect("a list of servers");
    servers.iter().map(|server| server["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn a_registration_is_answered_at_once_with_an_id_and_times() {
    // covers: MGR-9, MGR-10, MGR-11
    let daemon = Daemon::start().await;
    // It never becomes ready: an answer that waited for that would not come.
    let server =
        daemon.post("/mcp/servers", &wayward("slow", &["--hang-at-start"])).await.expect(201);
    assert_eq!(server["status"], "starting");
    assert_eq!(server["kind"], "process");
    assert_eq!(server["enabled"], true);
    assert_eq!(server["include_resources"], false);
    let id = server["id"].as_str().unwrap();
    assert!(uuid::Uuid::try_parse(id).is_ok(), "{id}");
    assert_eq!(server["created_at"], server["updated_at"]);
    let at = time::OffsetDateTime::parse(
        server["created_at"].as_str().unwrap(),
        &time::format_description::well_known::Rfc3339,
    );
    assert!(at.unwrap().offset().is_utc());
    assert_eq!(daemon.server(id).await["name"], "slow");
}

#[tokio::test]
async fn wait_answers_when_it_is_ready_or_has_failed() {
    // covers: MGR-11, MGR-13, MGR-14
    let daemon = Daemon::start().await;
    let ready = daemon.register(&wayward("good", &["--slow-start", "200"])).await;
    assert!(alive(pid_of(&ready)));
    assert_eq!(ready["server_info"]["name"], "wayward");
    assert_eq!(ready["protocol_version"], "2025-11-25");
    assert!(ready["capabilities"]["tools"].is_object());
    let failing = wayward("bad", &["--exit-at-start", "3"]);
    let failed = daemon.post("/mcp/servers?wait=30", &failing).await.expect(201);
    assert_eq!(failed["status"], "error", "{failed}");
    let hanging = wayward("hanging", &["--hang-at-start"]);
    let waiting = daemon.post("/mcp/servers?wait=0.2", &hanging).await.expect(201);
    assert_eq!(waiting["status"], "starting");
}

#[tokio::test]
async fn a_disabled_server_is_not_started() {
    // covers: MGR-12
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let mut body = wayward("off", &["--pid-file", pid_file.to_str().unwrap()]);
    body["enabled"] = false.into();
    let server = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    assert_eq!(server["status"], "stopped");
    assert_eq!(server["process_status"], "stopped");
    assert_eq!(server["pid"], Value::Null);
    // Whatever was going to start it has had its turn when a later server is ready.
    daemon.register(&wayward("later", &[])).await;
    assert!(!pid_file.exists());
    assert_eq!(daemon.server("off").await["status"], "stopped");
}

#[tokio::test]
async fn every_mistake_is_named_at_once() {
    // covers: MGR-5
    let daemon = Daemon::start().await;
    let body = json!({"name": " ", "args": "one", "max_in_flight": 0, "restart_policy": "maybe",
        "environment": {"A=B": "x"}, "colour": "red"});
    let error = daemon.post("/mcp/servers", &body).await.failure(422, "invalid_request");
    let named = fields(&error);
    for field in ["name", "command", "args", "restart_policy", "colour"] {
        assert!(named.contains(field), "{field} is not in {named:?}");
    }
    let body = json!({"name": "x", "command": "/bin/true", "image": "busybox"});
    daemon.post("/mcp/servers", &body).await.failure(422, "invalid_request");
    let list = daemon.get("/mcp/servers").await.expect(200);
    assert_eq!(names(&list), Vec::<&str>::new());
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_like_every_other_mistake() {
    let daemon = Daemon::start().await;
    for body in ["{\"name\": ", "[]", "", "\u{feff}nonsense"] {
        let request = daemon.request(reqwest::Method::POST, "/mcp/servers").body(body);
        let answer = daemon.send(request.header("Content-Type", "application/json")).await;
        assert!((400..500).contains(&answer.status), "{body:?}: {}", answer.status);
        assert_eq!(answer.json()["error"]["kind"], "invalid_request", "{body:?}");
    }
}

#[tokio::test]
async fn a_name_is_taken_once() {
    // covers: MGR-6
    let daemon = Daemon::start().await;
    let first = daemon.register(&wayward("twin", &[])).await;
    let error = daemon.post("/mcp/servers", &wayward("twin", &[])).await.failure(409, "conflict");
    assert!(error["message"].as_str().unwrap().contains("twin"), "{error}");
    let list = daemon.get("/mcp/servers").await.expect(200);
    assert_eq!(names(&list), ["twin"]);
    assert_eq!(daemon.server("twin").await["id"], first["id"]);
    daemon.register(&wayward("other", &[])).await;
    let rename = daemon.patch("/mcp/servers/other", &json!({"name": "twin"})).await;
    rename.failure(409, "conflict");
}

#[tokio::test]
async fn many_at_once_with_one_name_make_one_server() {
    // covers: MGR-6
    let daemon = Daemon::start().await;
    let body = json!({"name": "race", "command": wayward_path(), "enabled": false});
    let posts = (0..12).map(|_| daemon.post("/mcp/servers", &body));
    let answers: Vec<Answer> = futures_util::future::join_all(posts).await;
    let taken = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((taken, refused), (1, 11));
}

#[tokio::test]
async fn environment_reaches_the_process_and_is_masked_for_readers() {
    // covers: HST-1.3, MGR-58
    let daemon = Daemon::start().await;
    let mut body = wayward("env", &[]);
    body["environment"] =
        json!({"GREETING": "hej på dig \u{1F44B}", "API_KEY": "canary-3141592653"});
    let server = daemon.register(&body).await;
    let read = daemon.tool("env", "env", &json!({"name": "GREETING"})).await;
    assert_eq!(read.tool_text(), "hej på dig \u{1F44B}");
    let read = daemon.tool("env", "env", &json!({"name": "API_KEY"})).await;
    assert_eq!(read.tool_text(), "canary-3141592653");

    assert_ne!(server["environment"]["API_KEY"], "canary-3141592653");
    assert!(server["environment"].get("GREETING").is_some());
    for path in ["/mcp/servers", "/mcp/servers/env"] {
        let answer = daemon.get(path).await;
        assert!(!answer.body.contains("canary-3141592653"), "{path}");
    }
    let revealed = daemon.get("/mcp/servers/env?reveal=true").await.expect(200);
    assert_eq!(revealed["environment"]["API_KEY"], "canary-3141592653");
}

#[tokio::test]
async fn a_server_gets_no_more_of_the_daemons_environment_than_it_needs() {
    // covers: MGR-58
    let daemon = Daemon::builder().env("DAEMON_ONLY", "not yours").start().await;
    daemon.register(&wayward("env", &[])).await;
    let all = daemon.tool("env", "env", &json!({})).await.tool_text();
    let all: Value = serde_json::from_str(&all).unwrap();
    assert!(all.get("PATH").is_some() && all.get("HOME").is_some(), "{all}");
    assert!(all.get("DAEMON_ONLY").is_none(), "{all}");
}

#[tokio::test]
async fn secrets_in_the_environment_are_warned_about() {
    // covers: MGR-8
    let daemon = Daemon::start().await;
    let mut body = wayward("warned", &[]);
    let token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    body["environment"] = json!({"MY_PASSWORD": "hunter2hunter2", "PLAIN": "1", "OTHER": token});
    let server = daemon.register(&body).await;
    let warnings = server["warnings"].to_string();
    assert!(warnings.contains("MY_PASSWORD") && warnings.contains("OTHER"), "{warnings}");
    assert!(!warnings.contains("PLAIN"), "{warnings}");
    assert!(!warnings.contains("hunter2") && !warnings.contains(token), "{warnings}");
    assert!(warnings.contains("plain text"), "{warnings}");
}

#[tokio::test]
async fn a_change_restarts_only_what_runs_differently() {
    let daemon = Daemon::start().await;
    let before = daemon.register(&wayward("changing", &[])).await;
    let words = json!({"description": "words", "call_timeout_ms": 1234, "include_resources": true});
    let after = daemon.patch("/mcp/servers/changing?wait=30", &words).await.expect(200);
    assert_eq!(after["description"], "words");
    assert_eq!(after["call_timeout_ms"], 1234);
    assert_eq!(pid_of(&daemon.server("changing").await), pid_of(&before));
    assert_eq!(after["created_at"], before["created_at"]);
    assert_ne!(after["updated_at"], before["updated_at"]);

    let run = json!({"args": ["--resources", "3"]});
    daemon.patch("/mcp/servers/changing?wait=30", &run).await.expect(200);
    let old = pid_of(&before);
    let rerun = daemon
        .wait_server("changing", "another process", |server| {
            server["status"] == "ready" && server["pid"].as_u64() != Some(old.into())
        })
        .await;
    wait_gone(&[old]).await;
    assert_eq!(rerun["restart_count"], 0);
    let resources = daemon.get("/mcp/servers/changing/resources").await.expect(200);
    assert_eq!(resources["total"], 3);

    daemon.patch("/mcp/servers/changing", &json!({"name": "renamed"})).await.expect(200);
    assert_eq!(pid_of(&daemon.server("renamed").await), pid_of(&rerun));
    daemon.get("/mcp/servers/changing").await.failure(404, "not_found");
    daemon.tool("renamed", "pid", &json!({})).await.expect(200);
    let error = daemon.patch("/mcp/servers/renamed", &json!({"colour": 1})).await;
    assert!(fields(&error.failure(422, "invalid_request")).contains("colour"));
}

#[tokio::test]
async fn a_change_of_enabled_is_the_switch() {
    // covers: MGR-19, MGR-23
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("switch", &[])).await;
    daemon.patch("/mcp/servers/switch", &json!({"enabled": false})).await.expect(200);
    daemon.wait_status("switch", "stopped").await;
    wait_gone(&[pid_of(&server)]).await;
    daemon.patch("/mcp/servers/switch", &json!({"enabled": true})).await.expect(200);
    daemon.wait_status("switch", "ready").await;
}

#[tokio::test]
async fn a_removed_server_is_stopped_and_forgotten() {
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("going", &[])).await;
    let answer = daemon.delete("/mcp/servers/going").await;
    assert!((200..300).contains(&answer.status), "{answer:?}");
    wait_gone(&[pid_of(&server)]).await;
    daemon.get("/mcp/servers/going").await.failure(404, "not_found");
    daemon.delete("/mcp/servers/going").await.failure(404, "not_found");
    let again = daemon.register(&wayward("going", &[])).await;
    assert_ne!(again["id"], server["id"]);
}

#[tokio::test]
async fn validation_tells_everything_and_saves_nothing() {
    // covers: MGR-5, MGR-6, MGR-7, MGR-8
    let daemon = Daemon::start().await;
    daemon.register(&wayward("taken", &[])).await;
    let mut good = wayward("fine", &[]);
    good["environment"] = json!({"API_TOKEN": "canary-2718281828"});
    let verdict = daemon.post("/mcp/validate", &good).await;
    assert!(!verdict.body.contains("canary-2718281828"));
    let verdict = verdict.expect(200);
    assert_eq!(verdict["errors"], json!([]));
    assert!(verdict["warnings"].to_string().contains("API_TOKEN"), "{verdict}");

    let bad = json!({"name": "taken", "command": "no-such-program-anywhere", "colour": 1});
    let verdict = daemon.post("/mcp/validate", &bad).await.expect(200);
    let found = verdict.to_string();
    for word in ["taken", "no-such-program-anywhere", "colour"] {
        assert!(found.contains(word), "{word} is not in {found}");
    }
    let folder = tempfile::tempdir().unwrap();
    let plain_file = folder.path().join("not-executable");
    std::fs::write(&plain_file, "#!/bin/sh\n").unwrap();
    let verdict = daemon
        .post("/mcp/validate", &json!({"name": "x", "command": plain_file}))
        .await
        .expect(200);
    assert!(verdict.to_string().contains("not-executable"), "{verdict}");
    assert_eq!(names(&daemon.get("/mcp/servers").await.expect(200)), ["taken"]);
}

#[tokio::test]
async fn a_command_that_is_not_there_ends_in_an_error_that_says_so() {
    // covers: MGR-7, MGR-14, MGR-22
    let daemon = Daemon::start().await;
    let body = json!({"name": "missing", "command": "no-such-program-anywhere", "args": ["x"]});
    let server = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    assert_eq!(server["status"], "error");
    assert_eq!(server["enabled"], false);
    assert_eq!(server["error"]["kind"], "command_not_found");
    let message = server["error"]["message"].as_str().unwrap();
    assert!(message.contains("no-such-program-anywhere"), "{message}");
    assert!(!server["error"]["hint"].as_str().unwrap().is_empty());
    let mended = json!({"command": wayward_path(), "args": []});
    daemon.patch("/mcp/servers/missing", &mended).await.expect(200);
    assert_eq!(daemon.act("missing", "enable").await["status"], "ready");
}

#[tokio::test]
async fn a_clients_configuration_is_imported() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("already", &[])).await;
    let config = json!({"mcpServers": {
        "one": {"command": wayward_path(), "args": ["--resources", "1"], "env": {"WHO": "one"}},
        "two": {"command": wayward_path()},
    }});
    let answer = daemon.post("/mcp/import", &config).await;
    assert!((200..300).contains(&answer.status), "{answer:?}");
    let one = daemon.wait_status("one", "ready").await;
    assert_eq!(one["args"], json!(["--resources", "1"]));
    daemon.wait_status("two", "ready").await;
    let read = daemon.tool("one", "env", &json!({"name": "WHO"})).await;
    assert_eq!(read.tool_text(), "one");
    assert_eq!(names(&daemon.get("/mcp/servers").await.expect(200)), ["already", "one", "two"]);
}

#[tokio::test]
async fn a_name_people_use_works_in_a_path() {
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("Filesystem Server ファイル", &[])).await;
    let path = "Filesystem%20Server%20%E3%83%95%E3%82%A1%E3%82%A4%E3%83%AB";
    assert_eq!(daemon.server(path).await["id"], server["id"]);
    assert_eq!(daemon.server(server["id"].as_str().unwrap()).await["id"], server["id"]);
    daemon.tool(path, "pid", &json!({})).await.expect(200);
}

#[tokio::test]
async fn a_server_runs_where_it_was_told_to() {
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let mut body = wayward("there", &["--pid-file", pid_file.to_str().unwrap()]);
    body["cwd"] = json!(folder.path());
    let server = daemon.register(&body).await;
    let cwd = daemon.tool("there", "cwd", &json!({})).await.tool_text();
    assert_eq!(cwd, folder.path().canonicalize().unwrap().to_str().unwrap());
    // The pid shown is the server's own, not that of anything that guards it.
    assert_eq!(pids_in(&pid_file), [pid_of(&server)]);
}
