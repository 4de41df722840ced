//! `cofer chat` against a real daemon.

use cofer_e2e::{Reply, cofer, eventually, follow, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{show, world};

#[tokio::test]
async fn an_answer_is_streamed_with_its_cards_as_lines() {
    // covers: MGR-64
    let (daemon, model) = world([
        Reply::calls(&[("way__echo", json!({"word": "hej"})), ("way__fail", json!({}))]),
        Reply::text(&["All ", "done."]),
        Reply::text(&["Again."]),
    ])
    .await;
    let ended = daemon.cli(&["chat", "do it", "--server", "way", "--model", "other"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(
        lines[0].starts_with(r#"● Tool call 1: way · echo {"word":"hej"}"#),
        "{}",
        ended.stdout
    );
    assert!(
        lines.iter().any(|line| line.starts_with("✓ Tool call 1: way · echo Done")),
        "{}",
        ended.stdout
    );
    assert!(lines.iter().any(|line| line.starts_with("✗ Tool call 2: way · fail Error")
        && line.contains("it went wrong")));
    assert_eq!(lines.last(), Some(&"All done."));
    assert_eq!(model.requests()[0]["model"], "other");
    let id =
        ended.stderr.split("--continue ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let more = daemon.cli(&["chat", "--continue", &id, "and again"]).await;
    assert_eq!(more.stdout, "Again.\n");
    assert_eq!(show(&daemon, &id).await["messages"].as_array().unwrap().len(), 5);
    let list = daemon.cli(&["chat", "--list"]).await;
    assert!(list.stdout.contains(&id) && list.stdout.contains("do it"), "{}", list.stdout);
    let json = daemon.cli(&["chat", "--list", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap()["total"], 1);
}

#[tokio::test]
async fn as_json_it_is_an_event_a_line() {
    let (daemon, _model) = world([Reply::text(&["x"])]).await;
    let ended = daemon.cli(&["--json", "chat", "hi"]).await;
    let events: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.first().unwrap()["event"], "turnStarted");
    assert_eq!(events.last().unwrap()["event"], "turnFinished");
}

#[tokio::test]
async fn a_failure_is_one_and_says_what_to_do() {
    let body = json!({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}});
    let (daemon, _model) = world([Reply::status(401, &body)]).await;
    let ended = daemon.cli(&["chat", "hi"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("Error:") && ended.stderr.contains("Hint: check the key"),
        "{}",
        ended.stderr
    );
    let (daemon, _model) = world([Reply::calls(&[("way__echo", json!({}))])]).await;
    let ended = daemon.cli(&["chat", "hi"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("Tool call limit reached (10 of 10 steps)"), "{}", ended.stderr);
    assert!(ended.stderr.contains("--answer-now"), "{}", ended.stderr);
    assert_eq!(daemon.cli(&["chat"]).await.code, Some(2));
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_in_the_daemon() {
    let (daemon, model) = world([Reply::text(&["Once upon\n"]).hang()]).await;
    let data = daemon.data_dir();
    let env = [("COFER_DATA_DIR", data.to_str().unwrap()), ("HOME", data.to_str().unwrap())];
    let (mut child, mut lines) = follow(&cofer(), &["chat", "a story"], &env);
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("Once upon"));
    signal(child.id().unwrap(), Signal::INT);
    let status = cofer_e2e::within("the command ends", child.wait()).await.unwrap();
    assert_eq!(status.code(), Some(1));
    model.wait_let_go().await;
    let listed = eventually("the turn is over", async || {
        let listed = daemon.get("/chat/conversations").await.expect(200);
        (listed["conversations"][0]["running"] == false).then_some(listed)
    })
    .await;
    let id = listed["conversations"][0]["id"].as_str().unwrap();
    assert_eq!(show(&daemon, id).await["messages"][1]["state"], "stopped");
}
