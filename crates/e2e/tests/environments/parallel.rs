//! Many agents on one repository at once.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::json;

use crate::workshop::{Workshop, facts};

#[tokio::test]
async fn ten_agents_work_at_once_and_none_fails() {
    let workshop = Workshop::open().await;
    let work = async |number: usize| {
        let mut agent = workshop.agent().await;
        let id = format!("agent-{number}");
        let told = agent.create(&format!("Agent {number}")).await;
        assert_eq!(told["id"], id);
        for round in 0..3 {
            let command =
                format!("echo {number}.{round} >> src/a.txt; echo {number} > own-{number}-{round}");
            let ran = agent.run(&id, &command).await;
            assert_eq!((&ran["exit_code"], &ran["warnings"]), (&json!(0), &json!([])), "{ran}");
            assert!(ran["commit"].is_string(), "{ran}");
        }
        assert_eq!(
            agent.run(&id, "cat src/a.txt").await["stdout"],
            format!("a\n{number}.0\n{number}.1\n{number}.2\n")
        );
        agent.destroy(&id).await;
        agent.client.close().await;
        told["container_id"].as_str().unwrap().to_owned()
    };
    let containers: HashSet<String> = join_all((0..10).map(work)).await.into_iter().collect();
    assert_eq!(containers.len(), 10);
    for number in 0..10 {
        let log =
            workshop.git(&["rev-list", "--count", &format!("main..cofer/agent-{number}")]).await;
        assert_eq!(log, "3");
        let files =
            workshop.git(&["diff", "--name-only", "main", &format!("cofer/agent-{number}")]).await;
        assert_eq!(files.lines().count(), 4, "{files}");
    }
    workshop.is_tidy("agent-0").await;
    assert_eq!(workshop.git(&["fsck", "--connectivity-only", "--no-dangling"]).await, "");
}

#[tokio::test]
async fn of_several_that_want_the_same_id_one_gets_it() {
    let workshop = Workshop::open().await;
    let ask = async || {
        let mut agent = workshop.agent().await;
        agent.try_create(json!({"title": "same"})).await
    };
    let results = join_all((0..4).map(|_| ask())).await;
    let made = results.iter().filter(|result| result["isError"] != true).count();
    assert_eq!(made, 1, "{results:?}");
    for result in results.iter().filter(|result| result["isError"] == true) {
        assert_eq!(result["structuredContent"]["error"]["kind"], "conflict", "{result}");
    }
    assert_eq!(workshop.containers().await.len(), 1);
}

#[tokio::test]
async fn commands_of_one_environment_run_side_by_side() {
    let workshop = Workshop::open().await;
    let mut agent = workshop.agent().await;
    agent.create("x").await;
    // Each waits for what the other does.
    let one = "echo 1 > /one; while [ ! -e /two ]; do sleep 0.02; done; echo met > met-one";
    let two = "while [ ! -e /one ]; do sleep 0.02; done; echo 2 > /two; echo met > met-two";
    let mut ids = Vec::new();
    for command in [one, two] {
        let arguments = json!({"environment_source": workshop.repo(), "environment_id": "x", "command": command});
        ids.push(
            agent
                .client
                .ask("tools/call", json!({"name": "environment_run_cmd", "arguments": arguments}))
                .await,
        );
    }
    for id in ids {
        assert_eq!(facts(&agent.client.answer(id).await["result"])["exit_code"], 0);
    }
    let files = workshop.git(&["ls-tree", "--name-only", "cofer/x"]).await;
    assert!(files.contains("met-one") && files.contains("met-two"), "{files}");
}
