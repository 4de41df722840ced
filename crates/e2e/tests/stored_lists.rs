//! Lists survive the daemon: offered before any server is ready, replaced when it is, and dropped
//! with the configuration that they belong to.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cofer_e2e::{Daemon, GatewayClient, eventually, stateless, wayward, wayward_path};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A file without which a server does not answer.
struct Gate(TempDir);

impl Gate {
    fn open() -> Self {
        let gate = Self(tempfile::tempdir().unwrap());
        gate.set(true);
        gate
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("open")
    }

    fn set(&self, open: bool) {
        if open {
            std::fs::write(self.path(), "").unwrap();
        } else {
            std::fs::remove_file(self.path()).unwrap();
        }
    }

    fn wayward(&self, name: &str, flags: &[&str]) -> Value {
        let path = self.path();
        wayward(name, &[&["--wait-for-file", path.to_str().unwrap()], flags].concat())
    }

    /// A server whose list of tools, and whose start, depend on files.
    fn changing(&self, name: &str) -> Value {
        let script = self.0.path().join("server");
        let folder = self.0.path().display();
        let wayward = wayward_path().display().to_string();
        let text = format!(
            "#!/bin/sh\n[ -e {folder}/broken ] && exit 3\nexec {wayward} \
             --wait-for-file {folder}/open --tools $(cat {folder}/count)\n"
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        self.write("count", "2");
        json!({"name": name, "command": script})
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }
}

async fn start(data: &Path) -> Daemon {
    Daemon::builder().data_dir(data).start().await
}

/// Ends the daemon and starts it again on the same data.
async fn restart(mut daemon: Daemon, data: &Path) -> Daemon {
    daemon.terminate().await;
    start(data).await
}

async fn tools_at(daemon: &Daemon, path: &str) -> Vec<String> {
    let mut client = GatewayClient::open(daemon, path, json!({})).await;
    client.names("tools", "name").await
}

async fn wait_for_tools(daemon: &Daemon, path: &str, count: usize) -> Vec<String> {
    eventually("all tools are listed", async || {
        let tools = tools_at(daemon, path).await;
        (tools.len() == count).then_some(tools)
    })
    .await
}

async fn statuses(daemon: &Daemon) -> Vec<String> {
    let all = daemon.get("/mcp/servers").await.expect(200);
    let servers = all["servers"].as_array().unwrap_or_else(|| panic!("{all}"));
    servers.iter().map(|server| server["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn all_tools_of_forty_servers_are_offered_before_any_is_ready() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let gate = Gate::open();
    let daemon = start(&data).await;
    for number in 0..40 {
        let body = gate.wayward(&format!("s{number:02}"), &["--tools", "3", "--resources", "1"]);
        daemon.post("/mcp/servers", &body).await.expect(201);
    }
    let tools = wait_for_tools(&daemon, "/mcp", 120).await;
    let one = tools_at(&daemon, "/mcp/s07").await;
    let raw = daemon.get("/mcp/servers/s07/tools").await.expect(200);

    gate.set(false);
    let daemon = restart(daemon, &data).await;
    assert_eq!(tools_at(&daemon, "/mcp").await, tools);
    assert_eq!(tools_at(&daemon, "/mcp/s07").await, one);
    assert_eq!(daemon.get("/mcp/servers/s07/tools").await.expect(200), raw);
    let resources = daemon.get("/mcp/servers/s07/resources").await.expect(200);
    assert_eq!(resources["total"], 1, "{resources}");
    let (_, listed) = stateless(&daemon, "/mcp/s07", "tools/list", json!({}), json!({})).await;
    let listed = listed.answer("s-1").await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 3, "{listed}");
    let chat = daemon.get("/chat/tools").await.expect(200);
    assert_eq!(chat["tools"].as_array().unwrap().len(), 120, "{chat}");
    assert_eq!(statuses(&daemon).await, vec!["starting"; 40]);

    // It asks the server, which does not answer yet.
    let refreshed = daemon.get("/mcp/servers/s07/tools?refresh=true").await;
    refreshed.failure(409, "not_connected");
    gate.set(true);
    let refreshed = eventually("it is ready", async || {
        let answer = daemon.get("/mcp/servers/s07/tools?refresh=true").await;
        (answer.status == 200).then(|| answer.expect(200))
    })
    .await;
    assert_eq!(refreshed, raw);
}

#[tokio::test]
async fn a_call_to_a_server_that_starts_waits_until_it_is_ready() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let gate = Gate::open();
    let daemon = start(&data).await;
    daemon.register(&gate.wayward("w", &[])).await;
    wait_for_tools(&daemon, "/mcp/w", tools_at(&daemon, "/mcp/w").await.len()).await;
    eventually("it is joined", async || {
        tools_at(&daemon, "/mcp").await.contains(&"w__echo".to_owned()).then_some(())
    })
    .await;
    gate.set(false);
    let daemon = restart(daemon, &data).await;
    let short = json!({"method": "tools/list", "timeout_ms": 200});
    daemon.post("/mcp/servers/w/call", &short).await.failure(409, "not_connected");
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let echo = json!({"a": 1});
    let (api, gateway, ()) = tokio::join!(
        daemon.tool("w", "echo", &echo),
        client.call("w__echo", echo.clone()),
        async {
            assert_eq!(daemon.server("w").await["status"], "starting");
            gate.set(true);
        }
    );
    assert_eq!(gateway, r#"{"a":1}"#);
    assert_eq!(api.expect(200)["result"]["content"][0]["text"], r#"{"a":1}"#);
}

#[tokio::test]
async fn lists_that_differ_when_the_server_is_ready_are_announced_and_stored() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let gate = Gate::open();
    let daemon = start(&data).await;
    daemon.register(&gate.changing("c")).await;
    wait_for_tools(&daemon, "/mcp", 2).await;
    gate.set(false);
    gate.write("count", "3");
    let daemon = restart(daemon, &data).await;
    let mut joined = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let mut one = GatewayClient::open(&daemon, "/mcp/c", json!({})).await;
    assert_eq!(joined.names("tools", "name").await.len(), 2);
    assert_eq!(one.names("tools", "name").await.len(), 2);
    let (mut joined_heard, mut one_heard) = (joined.listen(None).await, one.listen(None).await);
    gate.set(true);
    joined_heard.method("notifications/tools/list_changed").await;
    one_heard.method("notifications/tools/list_changed").await;
    assert_eq!(joined.names("tools", "name").await.len(), 3);
    assert_eq!(one.names("tools", "name").await.len(), 3);
    drop((joined, one, joined_heard, one_heard));

    gate.set(false);
    let daemon = restart(daemon, &data).await;
    assert_eq!(tools_at(&daemon, "/mcp").await.len(), 3);
    gate.set(true);
    daemon.wait_status("c", "ready").await;
}

#[tokio::test]
async fn a_server_that_failed_or_has_another_configuration_offers_nothing() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let gate = Gate::open();
    let daemon = start(&data).await;
    let mut failing = gate.changing("failing");
    failing["restart_policy"] = "never".into();
    daemon.register(&failing).await;
    daemon.register(&gate.wayward("changed", &["--tools", "4"])).await;
    wait_for_tools(&daemon, "/mcp", 6).await;
    gate.set(false);
    gate.write("broken", "");
    let daemon = restart(daemon, &data).await;
    daemon.wait_status("failing", "error").await;
    daemon.get("/mcp/servers/failing/tools").await.failure(409, "not_connected");
    eventually("only the other server is offered", async || {
        (tools_at(&daemon, "/mcp").await.len() == 4).then_some(())
    })
    .await;
    let body = gate.wayward("changed", &["--tools", "5"]);
    daemon.patch("/mcp/servers/changed", &json!({"args": body["args"]})).await.expect(200);
    daemon.get("/mcp/servers/changed/tools").await.failure(409, "not_connected");
    wait_for_tools(&daemon, "/mcp", 0).await;
    gate.set(true);
    wait_for_tools(&daemon, "/mcp", 5).await;
}
