//! Servers that fail: at their first start, after it, and again and again.

use std::path::Path;

use cofer_e2e::{
    Daemon, Event, alive, eventually, kill, mentions, pid_of, pids_in, wait_gone, wayward,
};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

fn time_of(value: &Value) -> OffsetDateTime {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is not a time"));
    OffsetDateTime::parse(text, &Rfc3339).expect("times are RFC 3339")
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("temporary paths are text").to_owned()
}

/// Kills the server's process and waits until another one is ready.
async fn crash_and_wait(daemon: &Daemon, name: &str) -> Value {
    let old = daemon.server_pid(name).await;
    kill(old);
    daemon
        .wait_server(name, "another process", |server| {
            server["status"] == "ready" && server["pid"].as_u64() != Some(old.into())
        })
        .await
}

#[tokio::test]
async fn a_crashed_server_comes_back_by_itself() {
    // covers: HST-3.2, MGR-60
    let daemon = Daemon::start().await;
    let before = daemon.register(&wayward("w", &[])).await;
    assert_eq!((&before["restart_count"], &before["last_crash_at"]), (&json!(0), &Value::Null));
    daemon.tool("w", "stderr", &json!({"text": "last words"})).await.expect(200);
    daemon.tool("w", "crash", &json!({"code": 7})).await.failure(409, "not_connected");
    let after = daemon
        .wait_server("w", "another process", |server| {
            server["status"] == "ready" && server["pid"] != before["pid"]
        })
        .await;
    assert_eq!(after["restart_count"], 1);
    assert_eq!(after["enabled"], true);
    let crash = time_of(&after["last_crash_at"]);
    let started = time_of(&after["started_at"]);
    assert!(started - crash < time::Duration::seconds(5), "{crash} {started}");
    daemon.tool("w", "pid", &json!({})).await.expect(200);

    let told = daemon.log_lines("w").await.join("\n");
    assert!(told.contains("code 7"), "{told}");
    assert!(told.contains("last words"), "{told}");
    eventually("the crash stands in the log file, with its stderr", async || {
        let logs = daemon.data_dir().join("logs");
        let both = ["code 7", "last words"].iter().all(|text| !mentions(&logs, text).is_empty());
        both.then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_server_that_keeps_crashing_is_given_time() {
    // covers: HST-3.3
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    for count in 1..=3 {
        let server = crash_and_wait(&daemon, "w").await;
        assert_eq!(server["restart_count"], count);
        assert_eq!(server["next_restart_at"], Value::Null);
    }
    kill(daemon.server_pid("w").await);
    let waiting = daemon
        .wait_server("w", "a next restart", |server| !server["next_restart_at"].is_null())
        .await;
    assert_eq!(waiting["status"], "restarting", "{waiting}");
    assert_eq!(waiting["process_status"], "restarting");
    assert_eq!(waiting["pid"], Value::Null);
    assert_eq!(waiting["health"], "warning");
    let reasons = waiting["health_reasons"].as_array().unwrap();
    assert!(!reasons.is_empty(), "{waiting}");
    let pause = time_of(&waiting["next_restart_at"]) - time_of(&waiting["last_crash_at"]);
    let about_five = time::Duration::milliseconds(4500)..time::Duration::milliseconds(6500);
    assert!(about_five.contains(&pause), "the first pause is 5 s, not {pause}");
    daemon.tool("w", "pid", &json!({})).await.failure(409, "not_connected");

    // A manual restart does not wait for it, and counts anew.
    let fresh = daemon.act("w", "restart").await;
    assert_eq!(fresh["status"], "ready", "{fresh}");
    assert_eq!((&fresh["restart_count"], &fresh["health"]), (&json!(0), &json!("ok")));
    assert_eq!(fresh["next_restart_at"], Value::Null);
    let again = crash_and_wait(&daemon, "w").await;
    assert_eq!(again["next_restart_at"], Value::Null);
}

#[tokio::test]
async fn a_waiting_server_can_be_switched_off() {
    // covers: HST-3.3, MGR-23
    let daemon = Daemon::start().await;
    daemon.post("/mcp/servers", &wayward("w", &["--crash-when-ready", "0"])).await.expect(201);
    let looping =
        |server: &Value| server["health"] == "warning" && !server["next_restart_at"].is_null();
    daemon.wait_server("w", "a pause between its crashes", looping).await;
    let server = daemon.act("w", "disable").await;
    assert_eq!((&server["status"], &server["enabled"]), (&json!("stopped"), &json!(false)));
    assert_eq!(server["next_restart_at"], Value::Null);
}

#[tokio::test]
async fn a_first_start_that_fails_goes_to_error_and_switches_off() {
    // covers: MGR-14, MGR-15, MGR-16, MGR-22, MGR-29
    let daemon = Daemon::start().await;
    let other = daemon.register(&wayward("other", &[])).await;
    let mut events = daemon.events().await;
    let folder = tempfile::tempdir().unwrap();
    let needed = path(folder.path(), "needed");
    let body = wayward("w", &["--require-file", &needed]);
    let failed = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    assert_eq!((&failed["status"], &failed["enabled"]), (&json!("error"), &json!(false)));
    assert_eq!(failed["process_status"], "stopped");
    let error = &failed["error"];
    assert_eq!(error["kind"], "exited_early");
    assert_eq!(error["exit_code"], 3);
    assert!(error["stderr"].as_str().unwrap().contains("wayward: cannot start"), "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty());

    // One change, one event, and nothing is tried again before somebody asks.
    daemon.register(&wayward("later", &[])).await;
    let seen =
        events.until("a later server is ready", |event| event.is_status("later", "ready")).await;
    let is_mine =
        |event: &&Event| event.name == "mcpServerStatusChanged" && event.data["name"] == "w";
    let mine: Vec<_> = seen.iter().filter(is_mine).collect();
    let statuses: Vec<_> =
        mine.iter().map(|event| event.data["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["starting", "error"]);
    assert_eq!(mine[1].data["error"]["exit_code"], 3);
    assert!(mine[1].data["error"]["stderr"].as_str().unwrap().contains("cannot start"));
    let told = daemon.log_lines("w").await.join("\n");
    assert!(told.contains("code 3") && told.contains("cannot start"), "{told}");
    eventually("the failure stands in the log file", async || {
        let logs = daemon.data_dir().join("logs");
        let both = ["code 3", "cannot start"].iter().all(|text| !mentions(&logs, text).is_empty());
        both.then_some(())
    })
    .await;
    assert_eq!(daemon.server_pid("other").await, pid_of(&other));

    // Mended and switched on again, it works.
    std::fs::write(&needed, "").unwrap();
    let mended = daemon.act("w", "enable").await;
    assert_eq!((&mended["status"], &mended["enabled"]), (&json!("ready"), &json!(true)));
    assert_eq!(mended["error"], Value::Null);
}

#[tokio::test]
async fn a_failed_start_stays_failed_when_the_daemon_starts_again() {
    // covers: MGR-22
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let pid_file = path(folder.path(), "pid");
    let body = wayward("w", &["--exit-at-start", "3", "--pid-file", &pid_file]);
    daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    daemon.kill9().await;
    let daemon = Daemon::builder().data_dir(&data).start().await;
    daemon.register(&wayward("later", &[])).await;
    assert_eq!(daemon.server("w").await["enabled"], false);
    assert_eq!(pids_in(Path::new(&pid_file)).len(), 1, "it was not started again");
}

#[tokio::test]
async fn a_server_that_does_not_answer_the_handshake_fails_in_time() {
    // covers: MGR-14
    let daemon = Daemon::start().await;
    let folder = tempfile::tempdir().unwrap();
    let pid_file = path(folder.path(), "pid");
    let mut body = wayward("w", &["--hang-at-start", "--pid-file", &pid_file]);
    body["start_timeout_ms"] = 400.into();
    let failed = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    assert_eq!(failed["error"]["kind"], "start_timeout", "{failed}");
    wait_gone(&pids_in(Path::new(&pid_file))).await;
}

#[tokio::test]
async fn a_program_that_is_no_server_fails_with_what_it_said() {
    // covers: MGR-14
    let daemon = Daemon::start().await;
    let body =
        json!({"name": "w", "command": "sh", "args": ["-c", "echo hello; echo why >&2; exit 0"]});
    let failed = daemon.post("/mcp/servers?wait=30", &body).await.expect(201);
    assert_eq!(failed["status"], "error");
    assert_eq!(failed["error"]["exit_code"], 0);
    assert!(failed["error"]["stderr"].as_str().unwrap().contains("why"), "{failed}");
}

#[tokio::test]
async fn one_broken_server_harms_no_other() {
    // covers: MGR-16, MGR-60
    let daemon = Daemon::start().await;
    let good = daemon.register(&wayward("good", &[])).await;
    for (name, flags) in [
        ("dead", &["--exit-at-start", "1"][..]),
        ("deaf", &["--hang-at-start"]),
        ("loud", &["--noise", "--stderr-flood", "20000"]),
        ("dying", &["--crash-when-ready", "10"]),
    ] {
        daemon.post("/mcp/servers", &wayward(name, flags)).await.expect(201);
    }
    daemon.wait_status("dead", "error").await;
    daemon.wait_status("loud", "ready").await;
    daemon.wait_server("dying", "a crash", |server| !server["last_crash_at"].is_null()).await;
    for _ in 0..10 {
        daemon.tool("good", "pid", &json!({})).await.expect(200);
    }
    let after = daemon.server("good").await;
    assert_eq!((&after["pid"], &after["status"]), (&good["pid"], &json!("ready")));
    daemon.send(daemon.raw(reqwest::Method::GET, "/healthz")).await.expect(200);
}

#[tokio::test]
async fn restart_policy_never_leaves_it_ended() {
    let daemon = Daemon::start().await;
    for (name, code, status) in [("failed", 5, "error"), ("done", 0, "stopped")] {
        let mut body = wayward(name, &[]);
        body["restart_policy"] = "never".into();
        let server = daemon.register(&body).await;
        daemon.tool(name, "crash", &json!({"code": code})).await.failure(409, "not_connected");
        let ended = daemon.wait_status(name, status).await;
        assert_eq!(ended["restart_count"], 0);
        wait_gone(&[pid_of(&server)]).await;
        if status == "error" {
            assert_eq!(
                (&ended["error"]["kind"], &ended["error"]["exit_code"]),
                (&json!("crashed"), &json!(5))
            );
        }
    }
}

#[tokio::test]
async fn restart_policy_on_failure_looks_at_the_exit_code() {
    let daemon = Daemon::start().await;
    let mut body = wayward("w", &[]);
    body["restart_policy"] = "on-failure".into();
    let server = daemon.register(&body).await;
    daemon.tool("w", "crash", &json!({"code": 5})).await.failure(409, "not_connected");
    daemon
        .wait_server("w", "another process", |after| {
            after["status"] == "ready" && after["pid"] != server["pid"]
        })
        .await;
    daemon.tool("w", "crash", &json!({"code": 0})).await.failure(409, "not_connected");
    let ended = daemon.wait_status("w", "stopped").await;
    assert_eq!(ended["pid"], Value::Null);
}

#[tokio::test]
async fn a_manual_restart_makes_a_new_process_and_counts_anew() {
    // covers: HST-3.5
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let crashed = crash_and_wait(&daemon, "w").await;
    assert_eq!(crashed["restart_count"], 1);
    let fresh = daemon.act("w", "restart").await;
    assert_eq!(fresh["status"], "ready");
    assert_ne!(fresh["pid"], crashed["pid"]);
    assert!(!alive(pid_of(&crashed)));
    assert_eq!((&fresh["restart_count"], &fresh["health"]), (&json!(0), &json!("ok")));
    // That it crashed stays a fact.
    assert_eq!(fresh["last_crash_at"], crashed["last_crash_at"]);
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}
