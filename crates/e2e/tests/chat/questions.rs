//! What a server asks while a chat calls it: shown to who looks on, answered by them, and refused
//! where nobody does.

use cofer_e2e::{Daemon, Events, FakeModel, Reply, exemplary};
use serde_json::{Value, json};

use crate::support::{Seen, builder, say, show};

/// A daemon with a server of this era that asks, and with a model that first calls this tool.
async fn asking(
    era: &str,
    tool: &str,
    arguments: Value,
    then: impl IntoIterator<Item = Reply>,
) -> (Daemon, FakeModel) {
    let call = Reply::calls(&[(&format!("x__{tool}"), arguments)]);
    let model = FakeModel::start([call].into_iter().chain(then)).await;
    let daemon = builder(&model).start().await;
    daemon.register(&exemplary("x", era)).await;
    (daemon, model)
}

/// A turn that somebody looks on, up to the server's question.
async fn asked(daemon: &Daemon) -> (Events, Value) {
    let mut events = daemon.chat(&json!({"message": "go", "attended": true})).await;
    let seen = events.until("it is asked", |event| event.name == "questionAsked").await;
    let question = seen.last().unwrap().data.clone();
    (events, question)
}

async fn reply(daemon: &Daemon, question: &Value, body: Value) -> cofer_e2e::Answer {
    let text = |key: &str| question[key].as_str().unwrap().to_owned();
    let path = format!("/chat/conversations/{}/questions/{}", text("conversation_id"), text("id"));
    daemon.post(&path, &body).await
}

async fn rest(mut events: Events) -> Seen {
    Seen(events.until("the turn ends", |event| event.name == "turnFinished").await)
}

fn text_of(seen: &Seen) -> String {
    let finished = seen.one("toolCallFinished");
    finished["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_form_of_a_server_is_filled_in_by_who_looks_on() {
    for era in ["legacy", "modern"] {
        let arguments = json!({"message": "Who are you?"});
        let (daemon, _model) =
            asking(era, "test_elicitation", arguments, [Reply::text(&["ok"])]).await;
        let (events, question) = asked(&daemon).await;
        assert_eq!(
            (&question["wish"], &question["message"], &question["server"]),
            (&json!("form"), &json!("Who are you?"), &json!("x")),
            "{era}"
        );
        assert_eq!(question["schema"]["required"], json!(["response"]));
        let id = question["conversation_id"].as_str().unwrap();
        let stored = show(&daemon, id).await;
        assert_eq!(stored["questions"][0]["id"], question["id"], "who comes later sees it too");
        let card = &stored["messages"][1]["tool_calls"][0];
        assert_eq!((&card["call_id"], &card["status"]), (&question["call_id"], &json!("running")));
        reply(&daemon, &question, json!({"action": "accept"}))
            .await
            .failure(422, "invalid_request");
        let accepted = json!({"action": "accept", "content": {"response": "Ada"}});
        reply(&daemon, &question, accepted.clone()).await.expect(204);
        let seen = rest(events).await;
        assert_eq!(text_of(&seen), r#"User response: action=accept, content={"response":"Ada"}"#);
        assert_eq!(seen.one("questionClosed")["question_id"], question["id"]);
        assert_eq!(seen.reason(), "done");
        reply(&daemon, &question, accepted).await.failure(404, "not_found");
        assert_eq!(show(&daemon, id).await["questions"], json!([]));
    }
}

#[tokio::test]
async fn a_question_can_be_declined() {
    let (daemon, _model) =
        asking("legacy", "test_elicitation", json!({"message": "?"}), [Reply::text(&["ok"])]).await;
    let (events, question) = asked(&daemon).await;
    reply(&daemon, &question, json!({"action": "decline"})).await.expect(204);
    assert_eq!(text_of(&rest(events).await), "User response: action=decline, content={}");
}

#[tokio::test]
async fn the_model_answers_a_server_only_when_it_is_allowed() {
    let prompt = json!({"prompt": "Name a colour"});
    let then = [Reply::text(&["gre", "en"]), Reply::text(&["ok"])];
    let (daemon, model) = asking("legacy", "test_sampling", prompt.clone(), then).await;
    let (events, question) = asked(&daemon).await;
    assert_eq!(
        (&question["wish"], &question["messages"]),
        (&json!("sampling"), &json!([{"role": "user", "text": "Name a colour"}]))
    );
    assert_eq!(model.requests().len(), 1, "nothing is asked before");
    reply(&daemon, &question, json!({"action": "accept"})).await.expect(204);
    assert_eq!(text_of(&rest(events).await), "LLM response: green");
    let sampled = &model.requests()[1];
    assert_eq!(sampled["messages"].as_array().unwrap().last().unwrap()["content"], "Name a colour");
    assert!(sampled.get("tools").is_none(), "{sampled}");
    assert_eq!(sampled["max_tokens"], 100, "{sampled}");

    let (daemon, model) = asking("legacy", "test_sampling", prompt, [Reply::text(&["ok"])]).await;
    let (events, question) = asked(&daemon).await;
    reply(&daemon, &question, json!({"action": "decline"})).await.expect(204);
    let text = text_of(&rest(events).await);
    assert!(text.contains("did not allow it"), "{text}");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn stop_takes_an_open_question_away() {
    let (daemon, _model) =
        asking("legacy", "test_elicitation", json!({"message": "?"}), [Reply::text(&["ok"])]).await;
    let (events, question) = asked(&daemon).await;
    let id = question["conversation_id"].as_str().unwrap();
    daemon.post(&format!("/chat/conversations/{id}/stop"), &json!({})).await.expect(200);
    let seen = rest(events).await;
    assert_eq!((seen.reason(), seen.all("questionClosed").len()), ("stopped", 1));
    assert_eq!(show(&daemon, id).await["questions"], json!([]));
}

#[tokio::test]
async fn where_nobody_looks_on_a_server_is_told_so_and_the_card_tells_why() {
    for era in ["legacy", "modern"] {
        let arguments = json!({"message": "?"});
        let (daemon, _model) =
            asking(era, "test_elicitation", arguments, [Reply::text(&["ok"])]).await;
        let seen = say(&daemon, "go").await;
        assert_eq!(seen.all("questionAsked"), Vec::<&Value>::new());
        let card = seen.one("toolCallFinished");
        let words = "nobody looks at this chat who could be asked";
        assert!(card.to_string().contains(words), "{era}: {card}");
        assert_eq!(seen.reason(), "done");
    }
}
