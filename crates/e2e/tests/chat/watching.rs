//! Turns that are stopped, looked at from elsewhere, and outlived by their daemon.

use cofer_e2e::{FakeModel, Reply, eventually, wayward};
use serde_json::json;

use crate::support::{Seen, builder, show, world};

#[tokio::test]
async fn stop_ends_the_model_and_the_tools() {
    let (daemon, model) = world([Reply::text(&["Once upon"]).hang()]).await;
    let mut events = daemon.chat(&json!({"message": "a long story"})).await;
    let seen = events.until("the answer begins", |event| event.name == "textDelta").await;
    let id = seen[0].data["conversation_id"].as_str().unwrap().to_owned();
    let busy = daemon.post("/chat", &json!({"conversation_id": id, "message": "and?"})).await;
    busy.failure(409, "conflict");
    let stopped =
        daemon.post(&format!("/chat/conversations/{id}/stop"), &json!({})).await.expect(200);
    assert_eq!(stopped, json!({"stopped": true}));
    let rest = Seen::whole(events).await;
    assert_eq!(rest.reason(), "stopped");
    model.wait_let_go().await;
    let stored = show(&daemon, &id).await;
    assert_eq!(
        (&stored["messages"][1]["text"], &stored["messages"][1]["state"]),
        (&json!("Once upon"), &json!("stopped"))
    );
    let again =
        daemon.post(&format!("/chat/conversations/{id}/stop"), &json!({})).await.expect(200);
    assert_eq!(again, json!({"stopped": false}));
}

#[tokio::test]
async fn stop_cancels_a_running_tool() {
    let model = FakeModel::start([Reply::calls(&[("way__hang", json!({}))])]).await;
    let daemon = builder(&model).start().await;
    daemon.register(&wayward("way", &[])).await;
    let mut events = daemon.chat(&json!({"message": "hang"})).await;
    let seen = events.until("the tool runs", |event| event.name == "toolCallStarted").await;
    let id = seen[0].data["conversation_id"].as_str().unwrap().to_owned();
    eventually("the call is under way", async || {
        (!daemon.get("/chat/conversations").await.expect(200)["conversations"][0]["running"]
            .is_null())
        .then_some(())
    })
    .await;
    daemon.post(&format!("/chat/conversations/{id}/stop"), &json!({})).await.expect(200);
    let rest = Seen::whole(events).await;
    assert_eq!(rest.one("toolCallFinished")["status"], "cancelled");
    let activity = daemon.get("/activity").await.expect(200);
    assert_eq!(activity["calls"][0]["outcome"], "cancelled", "the server was told");
    // The server is free again.
    daemon.tool("way", "echo", &json!({})).await.expect(200);
}

#[tokio::test]
async fn a_reload_in_the_middle_sees_the_same_turn_without_a_gap() {
    let (daemon, _model) =
        world([Reply::calls(&[("way__sleep", json!({"ms": 700}))]), Reply::text(&["a", "b", "c"])])
            .await;
    let mut first = daemon.chat(&json!({"message": "reload"})).await;
    let seen = first.until("the tool runs", |event| event.name == "toolCallStarted").await;
    let id = seen[0].data["conversation_id"].as_str().unwrap().to_owned();
    // The tab that asked is closed; another opens and draws what is there.
    drop(first);
    let view = show(&daemon, &id).await;
    assert_eq!(view["running"], true);
    assert_eq!(view["messages"][1]["tool_calls"][0]["status"], "running");
    let after = view["last_event_id"].as_str().unwrap();
    let path = format!("/chat/conversations/{id}/events?after={after}");
    let mut second = daemon.stream(daemon.request(reqwest::Method::GET, &path)).await;
    // A third knows nothing and gets the turn from its beginning.
    let whole = format!("/chat/conversations/{id}/events");
    let mut third = daemon.stream(daemon.request(reqwest::Method::GET, &whole)).await;
    let rest = Seen(second.until("the turn ends", |event| event.name == "turnFinished").await);
    assert_eq!(rest.text(), "abc");
    assert!(rest.all("toolCallStarted").is_empty(), "nothing twice");
    assert_eq!(rest.one("toolCallFinished")["status"], "done");
    let all = Seen(third.until("the turn ends", |event| event.name == "turnFinished").await);
    assert_eq!(all.names().first(), Some(&"turnStarted"));
    assert_eq!(all.text(), "abc");
    // A connection that broke goes on behind what it saw.
    let last = &seen.last().unwrap().id;
    let request = daemon.request(reqwest::Method::GET, &whole).header("Last-Event-ID", last);
    let mut back = daemon.stream(request).await;
    let missed = Seen(back.until("the turn ends", |event| event.name == "turnFinished").await);
    assert_eq!(missed.names().first(), Some(&"toolCallFinished"));
    // And an id that never was is told to look anew.
    let request = daemon.request(reqwest::Method::GET, &whole).header("Last-Event-ID", "nonsense");
    let reset = daemon.stream(request).await.next().await.unwrap();
    assert_eq!(reset.name, "reset");
}

#[tokio::test]
async fn a_turn_goes_on_when_its_reader_goes_away() {
    let (daemon, _model) =
        world([Reply::calls(&[("way__sleep", json!({"ms": 300}))]), Reply::text(&["done"])]).await;
    let mut events = daemon.chat(&json!({"message": "go"})).await;
    let first = events.next().await.unwrap();
    drop(events);
    let id = first.data["conversation_id"].as_str().unwrap().to_owned();
    let view = eventually("the turn has ended", async || {
        let view = show(&daemon, &id).await;
        (view["running"] == false).then_some(view)
    })
    .await;
    assert_eq!(view["messages"][2]["text"], "done");
}

#[tokio::test]
async fn an_end_of_the_daemon_ends_turns_in_order_and_a_kill_is_told_afterwards() {
    let model = FakeModel::start([Reply::text(&["half"]).hang()]).await;
    let home = tempfile::tempdir().unwrap();
    let mut daemon = builder(&model).data_dir(home.path()).start().await;
    let mut events = daemon.chat(&json!({"message": "x"})).await;
    let seen = events.until("the answer begins", |event| event.name == "textDelta").await;
    let id = seen[0].data["conversation_id"].as_str().unwrap().to_owned();
    assert!(daemon.terminate().await.success());
    assert_eq!(Seen::whole(events).await.reason(), "stopped");
    let mut daemon = builder(&model).data_dir(home.path()).start().await;
    assert_eq!(show(&daemon, &id).await["messages"][1]["state"], "stopped");
    let mut events = daemon.chat(&json!({"message": "y"})).await;
    let seen = events.until("the answer begins", |event| event.name == "textDelta").await;
    let id = seen[0].data["conversation_id"].as_str().unwrap().to_owned();
    daemon.kill9().await;
    let daemon = builder(&model).data_dir(home.path()).start().await;
    let view = show(&daemon, &id).await;
    assert_eq!((&view["running"], &view["can_continue"]), (&json!(false), &json!(true)));
    assert_eq!(view["messages"][0]["text"], "y", "what the person said is on the disk");
}
