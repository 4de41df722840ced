//! Conversations: listed, renamed, removed, exported; also in PostgreSQL.

use cofer_e2e::{FakeModel, Reply, wayward};
use serde_json::{Value, json};

use crate::support::{builder, go_on, say, show, world};

#[tokio::test]
async fn conversations_are_listed_renamed_and_removed() {
    let (daemon, _model) = world([Reply::text(&["ok"])]).await;
    let mut ids = Vec::new();
    for words in ["first", "second", "Äpfel"] {
        ids.push(say(&daemon, words).await.conversation());
    }
    let titles = |page: &Value| -> Vec<String> {
        page["conversations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["title"].as_str().unwrap().to_owned())
            .collect()
    };
    let page = daemon.get("/chat/conversations?limit=2").await.expect(200);
    assert_eq!(
        (titles(&page), &page["total"]),
        (vec!["Äpfel".to_owned(), "second".to_owned()], &json!(3))
    );
    let next = page["next"].as_str().unwrap();
    let rest = daemon.get(&format!("/chat/conversations?limit=2&before={next}")).await.expect(200);
    assert_eq!((titles(&rest), &rest["next"]), (vec!["first".to_owned()], &Value::Null));
    let found = daemon.get("/chat/conversations?search=%C3%A4PF").await.expect(200);
    assert_eq!(titles(&found), ["Äpfel"]);
    daemon.get("/chat/conversations?limit=0").await.failure(422, "invalid_request");
    daemon.get("/chat/conversations?before=x").await.failure(422, "invalid_request");

    // A second tab is told of a new title and of the end.
    let path = format!("/chat/conversations/{}", ids[0]);
    let mut tab =
        daemon.stream(daemon.request(reqwest::Method::GET, &format!("{path}/events"))).await;
    assert_eq!(daemon.patch(&path, &json!({"title": " Neu "})).await.expect(200)["title"], "Neu");
    daemon.patch(&path, &json!({"title": ""})).await.failure(422, "invalid_request");
    let told = tab.next().await.unwrap();
    assert_eq!((told.name.as_str(), &told.data["title"]), ("conversationChanged", &json!("Neu")));
    assert_eq!(daemon.delete(&path).await.status, 204);
    assert_eq!(tab.next().await.unwrap().name, "conversationDeleted");
    assert_eq!(tab.next().await, None);
    daemon.get(&path).await.failure(404, "not_found");
    daemon.delete(&path).await.failure(404, "not_found");
    daemon.get("/chat/conversations/nonsense").await.failure(404, "not_found");
    // What was talked about last is first.
    go_on(&daemon, &ids[1], json!({"message": "again"})).await;
    assert_eq!(titles(&daemon.get("/chat/conversations").await.expect(200)), ["second", "Äpfel"]);
}

#[tokio::test]
async fn removing_a_conversation_stops_its_turn() {
    let (daemon, model) = world([Reply::text(&["x"]).hang()]).await;
    let mut events = daemon.chat(&json!({"message": "x"})).await;
    let seen = events.until("it runs", |event| event.name == "textDelta").await;
    let id = seen[0].data["conversation_id"].as_str().unwrap();
    assert_eq!(daemon.delete(&format!("/chat/conversations/{id}")).await.status, 204);
    model.wait_let_go().await;
}

#[tokio::test]
async fn a_conversation_is_exported_whole() {
    let (daemon, _model) = world([
        Reply::calls(&[("way__big", json!({"n": 200_000})), ("way__fail", json!({}))]),
        Reply::text(&["# Done"]),
    ])
    .await;
    let id = say(&daemon, "export ../me").await.conversation();
    let json_file = daemon.get(&format!("/chat/conversations/{id}/export")).await;
    assert_eq!(json_file.headers["content-disposition"], "attachment; filename=\"export-me.json\"");
    let whole = json_file.expect(200);
    let text =
        whole["messages"][1]["tool_calls"][0]["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.len(), 200_000, "results are whole");
    let markdown = daemon.get(&format!("/chat/conversations/{id}/export?format=markdown")).await;
    assert_eq!(markdown.status, 200);
    for part in [
        "# export ../me",
        "### Tool call 1: way · big (done",
        "### Tool call 2: way · fail (error",
        "at wayward",
        "# Done",
    ] {
        assert!(markdown.body.contains(part), "{part} is missing");
    }
    daemon
        .get(&format!("/chat/conversations/{id}/export?format=pdf"))
        .await
        .failure(422, "invalid_request");
}

#[tokio::test]
async fn what_providers_want_to_see_again_is_not_shown() {
    let (daemon, _model) = world([Reply::text(&["ok"])]).await;
    let id = say(&daemon, "x").await.conversation();
    assert!(!show(&daemon, &id).await.to_string().contains("continuation"));
}

#[tokio::test]
async fn a_chat_is_kept_in_postgresql_too() {
    let url = std::env::var("COFER_TEST_POSTGRES_URL")
        .expect("COFER_TEST_POSTGRES_URL is set: run this under scripts/with-postgres");
    let model = FakeModel::start([
        Reply::calls(&[("way__big", json!({"n": 200_000}))]),
        Reply::text(&["ok"]),
    ])
    .await;
    let name = format!("cofer_chat_{}", uuid::Uuid::new_v4().simple());
    let mut admin = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .execute(&mut admin)
        .await
        .unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    let own = format!("{server}/{name}");
    let mut daemon = builder(&model).database_url(&own).start().await;
    daemon.register(&wayward("way", &[])).await;
    let id = say(&daemon, "in postgres").await.conversation();
    assert!(daemon.terminate().await.success());
    let daemon = builder(&model).database_url(&own).start().await;
    let view = show(&daemon, &id).await;
    assert_eq!(view["messages"][2]["text"], "ok");
    let call = view["messages"][1]["tool_calls"][0]["call_id"].as_str().unwrap();
    let whole = daemon.get(&format!("/chat/conversations/{id}/calls/{call}")).await.expect(200);
    assert_eq!(whole["result"]["content"][0]["text"].as_str().unwrap().len(), 200_000);
    drop(daemon);
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)")))
        .execute(&mut admin)
        .await
        .unwrap();
}
