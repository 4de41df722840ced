//! Volumes: what a server keeps outlives its crashes, its restarts and its registration, and
//! goes only when that is asked for.
#![expect(clippy::unwrap_used, reason = "each case is a test, called by that of each runtime")]

use cofer_e2e::{
    Daemon, Runtime, container_of, podman, volumes_of, wait_no_container, with, with_both_runtimes,
};
use serde_json::{Value, json};

with_both_runtimes!(
    data_is_there_after_crash_restart_and_another_daemon,
    a_removed_server_leaves_its_volume_and_purge_takes_it,
);

fn keeping(runtime: Runtime, name: &str) -> Value {
    with(runtime.wayward(name, &[]), "volumes", json!(["/data", "/var/more"]))
}

async fn write(daemon: &Daemon, path: &str, text: &str) {
    let told = daemon.tool("w", "write", &json!({"path": path, "text": text})).await;
    assert_eq!(told.tool_text(), "written", "{path}");
}

async fn read(daemon: &Daemon, path: &str) -> String {
    daemon.tool("w", "read", &json!({"path": path})).await.tool_text()
}

async fn data_is_there_after_crash_restart_and_another_daemon(runtime: Runtime) {
    // covers: HST-6.1, HST-6.2
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut daemon = Daemon::builder().data_dir(&data).start().await;
    let server = daemon.host(&keeping(runtime, "w")).await;
    write(&daemon, "/data/note", "kept").await;
    write(&daemon, "/var/more/note", "kept too").await;
    // A crash right after the writing.
    daemon.tool("w", "crash", &json!({})).await.failure(409, "not_connected");
    let crashed = daemon.wait_replaced("w", &server).await;
    assert_eq!(read(&daemon, "/data/note").await, "kept");
    podman(&["kill", &container_of(&crashed)]).await;
    let killed = daemon.wait_replaced("w", &crashed).await;
    assert_eq!(read(&daemon, "/data/note").await, "kept");
    daemon.act("w", "restart").await;
    assert_eq!(read(&daemon, "/var/more/note").await, "kept too");
    daemon.act("w", "disable").await;
    daemon.act("w", "enable").await;
    assert_eq!(read(&daemon, "/data/note").await, "kept");
    daemon.kill9().await;
    let daemon = Daemon::builder().data_dir(&data).start().await;
    daemon.wait_replaced("w", &killed).await;
    assert_eq!(read(&daemon, "/data/note").await, "kept");
    assert_eq!(volumes_of(&server).await.len(), 2, "one for each path");
    daemon.delete("/mcp/servers/w?purge=true").await.expect(204);
}

async fn a_removed_server_leaves_its_volume_and_purge_takes_it(runtime: Runtime) {
    // covers: HST-6.1
    let daemon = Daemon::start().await;
    let left = daemon.host(&keeping(runtime, "w")).await;
    write(&daemon, "/data/note", "left behind").await;
    let listed = daemon.cli(&["server", "volumes"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let names = volumes_of(&left).await;
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| listed.stdout.contains(name)), "{names:?} in {listed:?}");
    daemon.delete("/mcp/servers/w").await.expect(204);
    wait_no_container(&left).await;
    assert_eq!(volumes_of(&left).await.len(), 2, "removal keeps what was written");
    // Another server of the same name begins with nothing.
    let next = daemon.host(&keeping(runtime, "w")).await;
    let told = daemon.tool("w", "read", &json!({"path": "/data/note"})).await.expect(200);
    assert_eq!(told["result"]["isError"], true, "{told}");
    let listed = daemon.cli(&["server", "volumes", "--json"]).await;
    let all: Value = serde_json::from_str(&listed.stdout)
        .unwrap_or_else(|error| panic!("{error} in {listed:?}"));
    assert!(names.iter().all(|name| all.to_string().contains(name.as_str())), "{all}");
    daemon.delete("/mcp/servers/w?purge=true").await.expect(204);
    assert_eq!(volumes_of(&next).await, Vec::<String>::new());
    assert_eq!(volumes_of(&left).await.len(), 2, "purge takes only its own");
    for name in &names {
        podman(&["volume", "rm", name]).await;
    }
}
