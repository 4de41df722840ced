//! Podman itself: missing, back again, busy; and what a killed daemon leaves.
#![expect(clippy::unwrap_used, reason = "each case is a test, called by that of each runtime")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cofer_e2e::{
    Daemon, Runtime, alive, container_of, containers_of, eventually, image, kill, parent, pid_of,
    podman, volumes_of, wait_gone, wait_no_container, wayward, with, with_both_runtimes,
};
use serde_json::{Value, json};

with_both_runtimes!(
    nothing_is_left_when_the_daemon_is_killed,
    a_container_that_outlived_its_daemon_is_never_doubled,
    twenty_start_at_once,
    two_daemons_leave_each_others_containers_alone,
);

async fn nothing_is_left_when_the_daemon_is_killed(runtime: Runtime) {
    // covers: HST-3.1, MGR-61
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let stubborn = ["--ignore-sigterm", "--ignore-stdin-eof"];
    let servers = [
        daemon.host(&runtime.wayward("plain", &[])).await,
        daemon.host(&runtime.wayward("stubborn", &stubborn)).await,
    ];
    daemon.kill9().await;
    for server in &servers {
        wait_no_container(server).await;
        wait_gone(&[pid_of(server)]).await;
    }
    let daemon = Daemon::builder().data_dir(&data).start().await;
    for server in &servers {
        let name = server["name"].as_str().unwrap();
        let again = daemon.wait_replaced(name, server).await;
        assert_eq!(containers_of(&again).await.len(), 1);
        daemon.tool(name, "pid", &json!({})).await.expect(200);
    }
}

async fn a_container_that_outlived_its_daemon_is_never_doubled(runtime: Runtime) {
    // covers: HST-3.1
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let stubborn = ["--ignore-sigterm", "--ignore-stdin-eof"];
    let server = daemon.host(&runtime.wayward("w", &stubborn)).await;
    let off = daemon.host(&runtime.wayward("removed", &stubborn)).await;
    // With the daemon goes whatever guards its containers.
    let guards = children(daemon.pid());
    for guard in &guards {
        cofer_e2e::signal(*guard, rustix::process::Signal::STOP);
    }
    daemon.kill9().await;
    for guard in &guards {
        kill(*guard);
    }
    assert!(alive(pid_of(&server)), "it has outlived its daemon");
    assert_eq!(containers_of(&server).await.len(), 1);
    // One of them has no row any more, as if the other daemon had died while it removed it.
    forget(&data, &off).await;
    let daemon = Daemon::builder().data_dir(&data).start().await;
    daemon.wait_status("w", "ready").await;
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    eventually("there is one container", async || {
        (containers_of(&server).await.len() == 1).then_some(())
    })
    .await;
    wait_no_container(&off).await;
    let said = daemon.stderr();
    assert!(said.contains(&container_of(&off)[..12]) || said.contains("removed"), "{said}");
}

/// Takes a server's row away behind the daemon's back.
async fn forget(data: &Path, server: &Value) {
    let url = format!("sqlite://{}", data.join("kb.db").display());
    let pool = sqlx::SqlitePool::connect(&url).await.expect("the database opens");
    let id = server["id"].as_str().unwrap();
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_master WHERE name LIKE '%agent_workspaces'")
            .fetch_all(&pool)
            .await
            .expect("the schema is read");
    let table = tables.first().expect("the agreed table is there");
    let gone = sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM \"{table}\" WHERE id = ?")))
        .bind(id)
        .execute(&pool)
        .await
        .expect("the row is deleted");
    assert_eq!(gone.rows_affected(), 1);
    pool.close().await;
}

/// The processes whose parent is `pid`.
fn children(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc is there");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|child| parent(*child) == Some(pid)).collect()
}

async fn twenty_start_at_once(runtime: Runtime) {
    // covers: HST-3.1
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let names: Vec<String> = (0..20).map(|n| format!("w{n}")).collect();
    for name in &names {
        let body = with(runtime.wayward(name, &[]), "resource_limits", json!({"memory": "64M"}));
        daemon.post("/mcp/servers", &body).await.expect(201);
    }
    for name in &names {
        let server = daemon.wait_status(name, "ready").await;
        assert_eq!(server["restart_count"], 0, "{server:#}");
    }
    let calls = names.iter().map(|name| async {
        let answer = daemon.tool(name, "env", &json!({"name": "NOBODY"})).await;
        assert_eq!(answer.tool_text(), "(unset)");
    });
    futures_util::future::join_all(calls).await;
    // And all of them once more when the daemon starts again.
    assert!(daemon.terminate().await.success());
    let daemon = Daemon::builder().data_dir(&data).start().await;
    for name in &names {
        daemon.wait_status(name, "ready").await;
    }
}

async fn two_daemons_leave_each_others_containers_alone(runtime: Runtime) {
    let one = Daemon::start().await;
    let server = one.host(&runtime.wayward("w", &[])).await;
    let other = Daemon::start().await;
    let same_name = other.host(&runtime.wayward("w", &[])).await;
    assert_ne!(server["container_id"], same_name["container_id"]);
    other.delete("/mcp/servers/w").await.expect(204);
    assert_eq!(one.server("w").await["container_id"], server["container_id"]);
    one.tool("w", "pid", &json!({})).await.expect(200);
    assert_eq!(containers_of(&server).await.len(), 1);
}

fn podman_program() -> PathBuf {
    let path = std::env::var("PATH").unwrap();
    let found = path.split(':').map(|dir| Path::new(dir).join("podman")).find(|p| p.is_file());
    found.expect("podman is on PATH")
}

#[tokio::test]
async fn without_podman_the_error_says_so_and_nothing_else_suffers() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("podman");
    let builder = Daemon::builder().env("COFER_PODMAN", program.display().to_string());
    let daemon = builder.start().await;
    let body = json!({"name": "w", "image": image("wayward"), "provider": "podman"});
    daemon.post("/mcp/servers", &body).await.expect(201);
    let waiting = daemon
        .wait_server("w", "an error", |server| server["error"]["kind"] == "engine_unavailable")
        .await;
    let error = &waiting["error"];
    assert!(error["message"].as_str().unwrap().contains("Podman"), "{error:#}");
    assert!(error["hint"].as_str().unwrap().contains("install"), "{error:#}");
    // A server that needs no container does not notice.
    daemon.register(&wayward("process", &[])).await;
    daemon.tool("process", "pid", &json!({})).await.expect(200);
    // Podman is installed: the server comes by itself.
    symlink(podman_program(), &program).unwrap();
    daemon.wait_status("w", "ready").await;
    daemon.tool("w", "pid", &json!({})).await.expect(200);
}

#[tokio::test]
async fn servers_come_back_when_podman_does() {
    // covers: HST-3.2
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("podman");
    symlink(podman_program(), &program).unwrap();
    let data = folder.path().join("data");
    let start =
        || Daemon::builder().env("COFER_PODMAN", program.display().to_string()).data_dir(&data);
    let mut daemon = start().start().await;
    let body = json!({"name": "w", "image": image("wayward"), "provider": "podman"});
    let server = daemon.host(&body).await;
    // Gone while the server runs, which it goes on to do.
    std::fs::remove_file(&program).unwrap();
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    kill(pid_of(&server));
    daemon
        .wait_server("w", "an error", |server| server["error"]["kind"] == "engine_unavailable")
        .await;
    symlink(podman_program(), &program).unwrap();
    daemon.wait_replaced("w", &server).await;
    assert_eq!(containers_of(&server).await.len(), 1);
    // Gone while the daemon starts.
    assert!(daemon.terminate().await.success());
    std::fs::remove_file(&program).unwrap();
    let daemon = start().start().await;
    daemon
        .wait_server("w", "an error", |server| server["error"]["kind"] == "engine_unavailable")
        .await;
    symlink(podman_program(), &program).unwrap();
    daemon.wait_status("w", "ready").await;
}

#[tokio::test]
async fn a_broken_podman_is_told_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("podman");
    let script = "#!/bin/sh\necho 'Error: the moon is in the wrong phase' >&2\nexit 125\n";
    std::fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let daemon = Daemon::builder().env("COFER_PODMAN", program.display().to_string()).start().await;
    let body = json!({"name": "w", "image": image("wayward")});
    daemon.post("/mcp/servers", &body).await.expect(201);
    let waiting = daemon
        .wait_server("w", "an error", |server| server["error"]["kind"] == "engine_unavailable")
        .await;
    assert!(waiting["error"].to_string().contains("wrong phase"), "{waiting:#}");
}

#[tokio::test]
async fn volumes_without_a_row_are_reported_and_kept() {
    // covers: HST-6.1
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let body = with(Runtime::Runc.wayward("w", &[]), "volumes", json!(["/data"]));
    let server = daemon.host(&body).await;
    daemon.delete("/mcp/servers/w").await.expect(204);
    let left = volumes_of(&server).await;
    assert_eq!(left.len(), 1);
    assert!(daemon.terminate().await.success());
    let daemon = Daemon::builder().data_dir(&data).start().await;
    eventually("the volume is reported", async || daemon.stderr().contains(&left[0]).then_some(()))
        .await;
    assert_eq!(volumes_of(&server).await, left, "reported, not removed");
    podman(&["volume", "rm", &left[0]]).await;
}
