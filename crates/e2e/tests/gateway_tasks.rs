//! Tasks behind `/mcp`: their ids lead back to the server that has them.

use cofer_e2e::{Daemon, GatewayClient, eventually, stateless, tests_folder};
use serde_json::{Value, json};

/// npm's everything server, which has the tasks of 2025-11-25.
fn everything(name: &str) -> Value {
    let program = tests_folder("COFER_TEST_NPM").join("node_modules/.bin/mcp-server-everything");
    json!({"name": name, "command": program, "args": ["stdio"]})
}

#[tokio::test]
async fn tasks_of_two_servers_are_reached_by_their_joined_ids() {
    // covers: GTW-1
    let daemon = Daemon::start().await;
    daemon.register(&everything("a")).await;
    daemon.register(&everything("b")).await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let tasks = &client.opened["result"]["capabilities"]["tasks"];
    assert!(tasks["requests"]["tools"]["call"].is_object(), "{tasks}");
    let mut ids = Vec::new();
    for server in ["a", "b"] {
        let id = daemon.get(&format!("/mcp/servers/{server}")).await.expect(200)["id"].clone();
        let call = json!({"name": format!("{server}__simulate-research-query"),
            "arguments": {"topic": server, "ambiguous": false}, "task": {"ttl": 300_000}});
        let created = client.result("tools/call", call).await;
        let task = created["task"]["taskId"].as_str().unwrap_or_default().to_owned();
        assert!(task.starts_with(&format!("{}.", id.as_str().unwrap())), "{created}");
        ids.push(task);
    }
    let listed = client.result("tasks/list", json!({})).await;
    let listed = listed["tasks"].as_array().expect("a list of tasks").clone();
    for id in &ids {
        assert!(listed.iter().any(|task| task["taskId"] == id.as_str()), "{listed:?}");
        let shown = client.result("tasks/get", json!({"taskId": id})).await;
        assert_eq!(shown["taskId"], id.as_str());
    }
    let cancelled = client.result("tasks/cancel", json!({"taskId": ids[1]})).await;
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(ids[1]), &json!("cancelled")));
    eventually("the task is completed", async || {
        let task = client.result("tasks/get", json!({"taskId": ids[0]})).await;
        (task["status"] == "completed").then_some(())
    })
    .await;
    let result = client.result("tasks/result", json!({"taskId": ids[0]})).await;
    assert!(result["content"][0]["text"].as_str().unwrap().contains("Research Report: a"));
    let related = &result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
    assert_eq!(related, ids[0].as_str());
    for unknown in ["nothing", "01990000-0000-7000-8000-000000000001.x"] {
        let answer = client.answer("tasks/get", json!({"taskId": unknown})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test]
async fn the_status_of_a_task_is_announced_under_its_joined_id() {
    let daemon = Daemon::start().await;
    let object = daemon.register(&everything("a")).await;
    let mut client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let mut heard = client.listen(None).await;
    let call = json!({"name": "a__simulate-research-query",
        "arguments": {"topic": "x", "ambiguous": false}, "task": {"ttl": 300_000}});
    client.result("tools/call", call).await;
    let told = heard.method("notifications/tasks/status").await;
    let task = told["params"]["taskId"].as_str().unwrap_or_default();
    assert!(task.starts_with(&format!("{}.", object["id"].as_str().unwrap())), "{told}");
}

#[tokio::test]
async fn clients_without_sessions_declare_the_extension_for_tasks() {
    let daemon = Daemon::start().await;
    let params = json!({"taskId": "x"});
    let (status, refused) =
        stateless(&daemon, "/mcp", "tasks/get", params.clone(), json!({})).await;
    assert_eq!((status, &refused.json()["error"]["code"]), (400, &json!(-32021)));
    let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let (_, unknown) = stateless(&daemon, "/mcp", "tasks/get", params, declared.clone()).await;
    assert_eq!(unknown.json()["error"]["code"], -32602);
    let (_, removed) = stateless(&daemon, "/mcp", "tasks/list", json!({}), declared).await;
    assert_eq!(removed.json()["error"]["code"], -32601);
}
