//! Limits hold, and the one that fired is named.
#![expect(clippy::unwrap_used, reason = "each case is a test, called by that of each runtime")]

use cofer_e2e::{
    Daemon, Runtime, container_of, inspect, pid_of, wait_no_container, with, with_both_runtimes,
};
use serde_json::{Value, json};

with_both_runtimes!(
    a_memory_hog_is_named_with_the_limit_that_ended_it,
    a_smaller_limit_is_named_when_it_ends_a_server,
    a_fork_bomb_is_held,
    limits_given_at_registration_hold,
    the_disk_is_limited_or_said_not_to_be,
    tmp_is_memory_and_limited_as_such,
);

async fn a_memory_hog_is_named_with_the_limit_that_ended_it(runtime: Runtime) {
    // covers: HST-5.1, HST-3.2
    let daemon = Daemon::start().await;
    let body = with(runtime.wayward("w", &[]), "restart_policy", json!("never"));
    daemon.host(&body).await;
    let hog = daemon.tool("w", "memory", &json!({"n": 900 << 20})).await;
    hog.failure(409, "not_connected");
    let ended = daemon.wait_status("w", "error").await;
    names_the_limit(&ended["error"], "512");
    wait_no_container(&ended).await;
}

async fn a_smaller_limit_is_named_when_it_ends_a_server(runtime: Runtime) {
    // covers: HST-5.2
    let daemon = Daemon::start().await;
    let limits = json!({"memory": "64M"});
    let body = with(runtime.wayward("w", &[]), "resource_limits", limits);
    let body = with(body, "restart_policy", json!("never"));
    daemon.host(&body).await;
    daemon.tool("w", "memory", &json!({"n": 200 << 20})).await.failure(409, "not_connected");
    let ended = daemon.wait_status("w", "error").await;
    names_the_limit(&ended["error"], "64");
    let log = daemon.log_lines("w").await.join("\n").to_lowercase();
    assert!(log.contains("memory"), "{log}");
}

fn names_the_limit(error: &Value, limit: &str) {
    assert_eq!(error["kind"], "out_of_memory", "{error:#}");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.to_lowercase().contains("memory"), "{error:#}");
    assert!(message.contains(limit), "the limit is named: {error:#}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("memory")), "{error:#}");
}

async fn a_fork_bomb_is_held(runtime: Runtime) {
    // covers: HST-5.2
    let daemon = Daemon::start().await;
    // A sandbox needs some for itself.
    let pids = 128;
    let body =
        with(runtime.wayward("w", &[]), "resource_limits", json!({"pids": pids, "cpu": "1"}));
    let body = with(body, "restart_policy", json!("never"));
    let other = daemon.host(&runtime.wayward("other", &[])).await;
    let server = daemon.host(&body).await;
    let bomb = daemon.tool("w", "forks", &json!({"n": 400})).await;
    if bomb.status == 200 {
        // It was refused more, and lives on.
        let told: Value = serde_json::from_str(&bomb.tool_text()).unwrap();
        let started = told["started"].as_u64().unwrap();
        assert!((1..pids).contains(&started), "{told}");
        assert!(told["error"].is_string(), "{told}");
        assert_eq!(daemon.server("w").await["container_id"], server["container_id"]);
    } else {
        // It did not survive its own bomb, which is its own business alone.
        let ended = daemon.wait_status("w", "error").await;
        assert_eq!(runtime, Runtime::Runsc, "{ended:#}");
        wait_no_container(&ended).await;
    }
    let after = daemon.server("other").await;
    assert_eq!(after["container_id"], other["container_id"]);
    daemon.tool("other", "pid", &json!({})).await.expect(200);
    daemon.delete("/mcp/servers/w").await.expect(204);
    wait_no_container(&server).await;
    cofer_e2e::wait_gone(&[pid_of(&server)]).await;
}

async fn limits_given_at_registration_hold(runtime: Runtime) {
    // covers: HST-5.2
    let daemon = Daemon::start().await;
    let limits = json!({"cpu": "0.2", "memory": "96M", "pids": 77});
    let server = daemon.host(&with(runtime.wayward("w", &[]), "resource_limits", limits)).await;
    let host = inspect(&container_of(&server)).await["HostConfig"].clone();
    assert_eq!(host["Memory"], 96 << 20, "{host}");
    assert_eq!(host["NanoCpus"], 200_000_000, "{host}");
    assert_eq!(host["PidsLimit"], 77, "{host}");
    assert_eq!(server["isolation"]["memory"], 96 << 20);
    // A changed limit is in force in the next container.
    let change = json!({"resource_limits": {"cpu": "0.5", "memory": "128M"}});
    daemon.patch("/mcp/servers/w", &change).await.expect(200);
    let changed = daemon.wait_replaced("w", &server).await;
    assert_eq!(changed["isolation"]["memory"], 128 << 20, "{changed:#}");
    for wrong in [json!({"cpu": "0"}), json!({"memory": "lots"}), json!({"disk": "-1"})] {
        let body = with(runtime.wayward("x", &[]), "resource_limits", wrong);
        daemon.post("/mcp/servers", &body).await.failure(422, "invalid_request");
    }
}

async fn the_disk_is_limited_or_said_not_to_be(runtime: Runtime) {
    // covers: HST-5.1, HST-5.2
    let daemon = Daemon::start().await;
    let limit = 40 << 20;
    let body = with(runtime.wayward("w", &[]), "resource_limits", json!({"disk": "40M"}));
    let body = with(body, "restart_policy", json!("never"));
    let server = daemon.host(&with(body, "volumes", json!(["/data"]))).await;
    let disk = &server["isolation"]["disk"];
    // The limit leaves room for what is below it.
    let some = json!({"path": "/data/some", "n": 10 << 20});
    assert_eq!(daemon.tool("w", "fill", &some).await.tool_text(), r#"{"written":10485760}"#);
    let fill = daemon.tool("w", "fill", &json!({"path": "/data/full", "n": 80 << 20})).await;
    if disk.to_string().contains("not enforced") {
        let told = fill.tool_text();
        assert!(told.contains(&(80 << 20).to_string()), "said not to be enforced, yet {told}");
        let warned = server["warnings"].to_string();
        assert!(warned.contains("disk"), "a limit that does not hold is told: {server:#}");
    } else {
        assert_eq!(disk, limit, "{server:#}");
        // Refused by the storage, or ended by the daemon that watches it.
        if !(fill.status == 200 && fill.tool_text().contains("error")) {
            let ended = daemon.wait_status("w", "error").await;
            let error = &ended["error"];
            assert!(error["message"].as_str().unwrap().contains("disk"), "{error:#}");
            assert!(error["message"].as_str().unwrap().contains("40"), "{error:#}");
            wait_no_container(&ended).await;
        }
    }
    daemon.delete("/mcp/servers/w?purge=true").await.expect(204);
}

async fn tmp_is_memory_and_limited_as_such(runtime: Runtime) {
    // covers: HST-5.2
    let daemon = Daemon::start().await;
    let limits = json!({"memory": "96M"});
    daemon.host(&with(runtime.wayward("w", &[]), "resource_limits", limits)).await;
    let fill = daemon.tool("w", "fill", &json!({"path": "/tmp/full", "n": 200 << 20})).await;
    // It is refused what is over half of the memory, and the server lives on.
    let told: Value = serde_json::from_str(&fill.tool_text()).unwrap();
    assert!(told["error"].is_string(), "{told}");
    assert!(told["written"].as_u64().unwrap() <= 48 << 20, "{told}");
}
