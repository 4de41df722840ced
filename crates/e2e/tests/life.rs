//! The life of a server that is well: boot, the switch, silence, what is shown, shutdown.

use std::path::Path;

use cofer_e2e::{
    Daemon, OrderLog, alive, parent, pid_of, processes_with, signal, tool_params, wait_gone,
    wayward,
};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("temporary paths are text").to_owned()
}

#[tokio::test]
async fn boot_starts_everything_enabled_in_parallel() {
    // covers: HST-3.1
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    // Each comes up only when the other has begun: one after the other, neither would.
    let (a, b) = (path(folder.path(), "a"), path(folder.path(), "b"));
    for (name, mine) in [("a", &a), ("b", &b)] {
        daemon.register(&wayward(name, &["--pid-file", mine])).await;
    }
    let mut off = wayward("off", &[]);
    off["enabled"] = false.into();
    daemon.post("/mcp/servers", &off).await.expect(201);
    for (name, mine, other) in [("a", &a, &b), ("b", &b, &a)] {
        let args = json!({"args": ["--pid-file", mine, "--wait-for-file", other]});
        daemon.patch(&format!("/mcp/servers/{name}?wait=30"), &args).await.expect(200);
        daemon.wait_status(name, "ready").await;
    }
    assert!(daemon.terminate().await.success());
    for file in [&a, &b] {
        std::fs::remove_file(file).unwrap();
    }
    let daemon = Daemon::builder().data_dir(&data).start().await;
    for name in ["a", "b"] {
        let server = daemon.wait_status(name, "ready").await;
        assert!(alive(pid_of(&server)));
        daemon.tool(name, "pid", &json!({})).await.expect(200);
    }
    assert_eq!(daemon.server("off").await["status"], "stopped");
}

#[tokio::test]
async fn the_switch_stops_and_starts() {
    // covers: MGR-19, MGR-21, MGR-23, MGR-25
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("w", &[])).await;
    let off = daemon.act("w", "disable").await;
    assert_eq!((&off["status"], &off["enabled"]), (&json!("stopped"), &json!(false)));
    assert_eq!((&off["pid"], &off["process_status"]), (&Value::Null, &json!("stopped")));
    assert!(!alive(pid_of(&server)));
    // Once more changes nothing.
    assert_eq!(daemon.act("w", "disable").await["status"], "stopped");
    let on = daemon.act("w", "enable").await;
    assert_eq!(on["status"], "ready");
    assert_ne!(on["pid"], server["pid"]);
    assert_eq!(daemon.act("w", "enable").await["pid"], on["pid"]);
}

#[tokio::test]
async fn a_server_is_asked_to_go_before_it_is_made_to() {
    // covers: HST-3.4, MGR-23
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &["--ignore-stdin-eof"])).await;
    daemon.act("w", "disable").await;
    // The lists that the daemon asks a server for when it is ready may still be answered.
    let order: Vec<_> = log.lines().into_iter().filter(|line| !line.ends_with("/list")).collect();
    assert!(order.ends_with(&["eof".to_owned(), "sigterm".to_owned()]), "{order:?}");
}

#[tokio::test]
async fn a_server_that_ignores_everything_is_killed() {
    // covers: MGR-26, HST-3.5
    let daemon = Daemon::start().await;
    let flags = ["--ignore-sigterm", "--ignore-stdin-eof"];
    let server = daemon.register(&wayward("w", &flags)).await;
    let off = daemon.act("w", "disable").await;
    assert_eq!(off["status"], "stopped", "{off}");
    assert!(!alive(pid_of(&server)));
    let told = daemon.log_lines("w").await.join("\n");
    assert!(told.to_lowercase().contains("kill"), "the log says that it was forced: {told}");
}

#[tokio::test]
async fn sigterm_ends_every_server_and_then_the_daemon() {
    // covers: HST-3.4, MGR-61
    let mut daemon = Daemon::start().await;
    let log = OrderLog::new();
    let polite = log.wayward("polite", &["--ignore-stdin-eof"]);
    let mut pids = vec![pid_of(&daemon.register(&polite).await)];
    pids.push(pid_of(&daemon.register(&wayward("plain", &[])).await));
    let starting = daemon.post("/mcp/servers", &wayward("starting", &["--hang-at-start"])).await;
    starting.expect(201);
    // Neither a reader of events nor a call without an answer holds it up.
    let mut events = daemon.events().await;
    let hang = tool_params("hang", &json!({"tag": "busy"}));
    let body = json!({"method": "tools/call", "params": hang, "timeout_ms": 3_600_000});
    let call = daemon.request(Method::POST, "/mcp/servers/polite/call").json(&body).send();
    let ending = async {
        log.wait("receive tools/call hang busy", 1).await;
        daemon.terminate().await
    };
    let (answer, status) = tokio::join!(call, ending);
    assert!(!answer.is_ok_and(|answer| answer.status().is_success()), "the call was not answered");
    while events.next().await.is_some() {}
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(pids.iter().all(|pid| !alive(*pid)), "they ended before the daemon did");
    assert_eq!(log.count("sigterm"), 1);
    assert_eq!(daemon.rest_of_stdout().await, "", "stdout has the ready line and nothing else");
}

#[tokio::test]
async fn a_server_that_ignores_the_end_is_killed_after_its_grace() {
    // covers: HST-3.4
    let mut daemon = Daemon::start().await;
    let stubborn = ["--ignore-sigterm", "--ignore-stdin-eof"];
    let server = daemon.register(&wayward("stubborn", &stubborn)).await;
    let quick = daemon.register(&wayward("quick", &[])).await;
    signal(daemon.pid(), Signal::TERM);
    // The others do not wait for it.
    wait_gone(&[pid_of(&quick)]).await;
    assert!(alive(pid_of(&server)), "it has up to 30 s");
    assert_eq!(daemon.wait().await.code(), Some(0));
    assert!(!alive(pid_of(&server)));
}

#[tokio::test]
async fn sigint_is_a_shutdown_like_sigterm() {
    // covers: MGR-61
    let mut daemon = Daemon::start().await;
    let server = daemon.register(&wayward("w", &[])).await;
    signal(daemon.pid(), Signal::INT);
    assert_eq!(daemon.wait().await.code(), Some(0));
    assert!(!alive(pid_of(&server)));
}

#[tokio::test]
async fn a_silent_server_is_unresponsive_until_it_answers() {
    // covers: HST-4.3
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    let mut body = log.wayward("w", &[]);
    body["heartbeat"] = json!({"interval_ms": 150, "timeout_ms": 300});
    let server = daemon.register(&body).await;
    let pid = pid_of(&server);
    // A server that works on a request is not asked for a sign of life.
    log.wait("answer resources/templates/list", 1).await;
    daemon.tool("w", "stop", &json!({})).await.expect(200);
    let silent = daemon.wait_status("w", "unresponsive").await;
    assert_eq!(pid_of(&silent), pid);
    assert_eq!(
        (&silent["process_status"], &silent["health"]),
        (&json!("running"), &json!("warning"))
    );
    assert!(!silent["health_reasons"].as_array().unwrap().is_empty());
    signal(pid, Signal::CONT);
    let back = daemon.wait_status("w", "ready").await;
    assert_eq!((pid_of(&back), &back["restart_count"]), (pid, &json!(0)));
    assert_eq!(back["health"], "ok");
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    let told = daemon.log_lines("w").await.join("\n").to_lowercase();
    assert!(told.contains("unresponsive") || told.contains("heartbeat"), "{told}");
}

#[tokio::test]
async fn a_server_that_works_on_a_call_is_not_disturbed() {
    // covers: HST-4.3
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    let mut body = log.wayward("w", &[]);
    body["heartbeat"] = json!({"interval_ms": 200, "timeout_ms": 1000});
    daemon.register(&body).await;
    let mut events = daemon.events().await;
    // Busy and deaf for many heartbeats, as a long computation is.
    daemon.tool("w", "burn", &json!({"ms": 2500, "tag": "busy"})).await.expect(200);
    daemon.register(&wayward("later", &[])).await;
    let seen =
        events.until("a later server is ready", |event| event.is_status("later", "ready")).await;
    assert!(!seen.iter().any(|event| event.is_status("w", "unresponsive")), "{seen:?}");
    let lines = log.lines();
    let begin = lines.iter().position(|line| *line == "receive tools/call burn busy").unwrap();
    assert_eq!(lines[begin + 1], "answer tools/call burn busy", "{lines:?}");
}

#[tokio::test]
async fn one_server_is_shown_with_uptime_and_usage() {
    // covers: HST-4.1
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "memory", &json!({"n": 64 << 20})).await.expect(200);
    let shown = daemon
        .wait_server("w", "64 MiB in use", |server| {
            server["usage"]["memory_bytes"].as_u64().unwrap_or(0) > 64 << 20
        })
        .await;
    assert_eq!(shown["process_status"], "running");
    assert!(shown["usage"]["pids"].as_u64().unwrap() >= 1);
    assert!(shown["usage"]["cpu_percent"].as_f64().unwrap() >= 0.0);
    assert!(shown["uptime_seconds"].as_f64().unwrap() > 0.0);
    assert!(shown["started_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!((&shown["restart_count"], &shown["last_crash_at"]), (&json!(0), &Value::Null));
    assert_eq!((&shown["health"], &shown["health_reasons"]), (&json!("ok"), &json!([])));
}

#[tokio::test]
async fn all_servers_are_listed_with_status_and_configuration() {
    // covers: HST-4.2, MGR-27
    let daemon = Daemon::start().await;
    daemon.register(&wayward("b", &["--resources", "2"])).await;
    let mut off = wayward("a", &[]);
    off["enabled"] = false.into();
    daemon.post("/mcp/servers", &off).await.expect(201);
    daemon.post("/mcp/servers?wait=30", &wayward("c", &["--exit-at-start", "1"])).await.expect(201);
    let list = daemon.get("/mcp/servers").await.expect(200);
    let servers = list["servers"].as_array().unwrap();
    let told: Vec<(&str, &str)> = servers
        .iter()
        .map(|server| (server["name"].as_str().unwrap(), server["status"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("a", "stopped"), ("b", "ready"), ("c", "error")]);
    let b = &servers[1];
    assert_eq!(b["args"], json!(["--resources", "2"]));
    assert_eq!((&b["image"], &b["kind"]), (&Value::Null, &json!("process")));
    assert!(b["command"].as_str().unwrap().ends_with("wayward"));
}

#[tokio::test]
async fn only_registered_servers_ever_run() {
    // covers: MGR-57
    let daemon = Daemon::start().await;
    let list = daemon.get("/mcp/servers").await.expect(200);
    assert_eq!(list, json!({"servers": []}));
    let all = processes_with("").into_iter();
    let children: Vec<u32> = all.filter(|pid| parent(*pid) == Some(daemon.pid())).collect();
    assert_eq!(children, Vec::<u32>::new());
}
