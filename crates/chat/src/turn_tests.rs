//! The loop with a scripted model, scripted tools, and a journal in memory.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::fakes::{Notebook, Scripted, World, calls, limited, text};
use super::*;
use crate::ModelFailureKind;
use crate::message::CallEnd;
use crate::model::ModelEvent;

#[tokio::test]
async fn an_answer_without_tools_is_told_piece_by_piece() {
    let world = World::default();
    let finished = world.run(&Scripted::new([text(&["Hel", "lo"])]), Action::Message).await;
    assert_eq!((finished.reason, finished.steps), (Reason::Done, 0));
    assert_eq!(finished.usage.input_tokens, Some(10));
    assert_eq!(
        world.notebook.names(),
        ["toolsOffered", "messageStarted", "textDelta", "textDelta", "messageFinished"]
    );
    let Message::Assistant(message) = world.notebook.last() else { panic!() };
    assert_eq!((message.text.as_str(), message.state), ("Hello", AssistantState::Complete));
}

#[tokio::test]
async fn a_chain_of_two_steps_is_kept_in_the_order_of_time() {
    // covers: MGR-64, MGR-72, MGR-73
    let world = World::default();
    let model = Scripted::new([calls(&["s__echo"]), calls(&["s__large"]), text(&["done"])]);
    let finished = world.run(&model, Action::Message).await;
    assert_eq!((finished.reason, finished.steps), (Reason::Done, 2));
    let cards = world.notebook.cards();
    let seen: Vec<_> = cards.iter().map(|card| (card.n, card.tool.as_str(), card.status)).collect();
    assert_eq!(seen, [(1, "echo", CallStatus::Done), (2, "large", CallStatus::Done)]);
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    let Entry::Tools(answers) = &requests[1].history[2] else {
        panic!("{:?}", requests[1].history)
    };
    assert_eq!(answers[0].text, r#"{"index":0}"#);
    assert_eq!(answers[0].id, "id-0");
}

#[tokio::test]
async fn a_large_result_is_stored_once_and_listed_cut() {
    let world = World::default();
    world.run(&Scripted::new([calls(&["s__large"]), text(&["ok"])]), Action::Message).await;
    let card = &world.notebook.cards()[0];
    assert!(card.truncated && card.result_bytes > 1 << 20);
    assert!(card.result.as_ref().unwrap().to_string().len() <= crate::LISTED_BYTES);
    let wholes = world.notebook.wholes.lock().unwrap();
    assert_eq!(wholes.len(), 1);
    assert_eq!(wholes[0]["content"][0]["text"].as_str().unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn the_calls_of_one_step_run_side_by_side() {
    let world = World::default();
    // Each waits for the other: one after the other would never end.
    let model = Scripted::new([calls(&["s__meet", "s__meet"]), text(&["ok"])]);
    let run = tokio::time::timeout(Duration::from_secs(60), world.run(&model, Action::Message));
    assert_eq!(run.await.expect("both ran at once").steps, 1);
    assert_eq!(world.notebook.count("toolCallFinished"), 2);
}

#[tokio::test]
async fn endless_calls_end_after_ten_steps() {
    // covers: MGR-74
    let world = World::default();
    let model = Scripted::new([calls(&["s__echo"])]);
    let finished = world.run(&model, Action::Message).await;
    assert_eq!((finished.reason, finished.steps), (Reason::Limit, 10));
    assert_eq!(model.requests().len(), 10, "the model is not asked an eleventh time");
    assert_eq!(world.notebook.cards().len(), 10);
    let told = world.notebook.events.lock().unwrap();
    assert!(matches!(told.last().unwrap(), EventBody::LimitReached { steps: 10, limit: 10 }));
    drop(told);
    let Message::Notice(notice) = world.notebook.last() else { panic!() };
    assert_eq!(notice.notice, NoticeKind::Limit { steps: 10, limit: 10 });
}

#[tokio::test]
async fn answer_now_asks_once_and_calls_nothing() {
    let world = World::default();
    let model = Scripted::new([calls(&["s__echo"])]);
    let finished = world.run(&model, Action::AnswerNow).await;
    assert_eq!((finished.reason, finished.steps), (Reason::Done, 0));
    assert!(!model.requests()[0].may_call);
    assert!(model.requests()[0].system.ends_with(NO_TOOLS));
    assert!(world.notebook.cards().is_empty());
}

#[tokio::test]
async fn what_a_tool_says_of_its_failure_goes_to_the_model_and_on_the_card() {
    // covers: MGR-70, MGR-71
    let world = World::default();
    let model = Scripted::new([calls(&["s__fail", "s__nowhere"]), text(&["sorry"])]);
    world.run(&model, Action::Message).await;
    let cards = world.notebook.cards();
    assert_eq!(cards[0].outcome, Some(CallEnd::ToolError));
    assert_eq!(cards[0].error.as_ref().unwrap().message, "boom");
    assert_eq!((cards[1].outcome, cards[1].recorded), (Some(CallEnd::NotFound), false));
    let Entry::Tools(answers) = &model.requests()[1].history[2] else { panic!() };
    assert_eq!(answers[0].text, "The tool failed: boom");
    assert!(answers[1].text.contains("no tool named `s__nowhere`"));
}

#[tokio::test]
async fn arguments_that_are_no_object_are_told_to_the_model() {
    let bad = |arguments: Value| {
        let call = ModelCall { id: "1".to_owned(), name: "s__echo".to_owned(), arguments };
        vec![Ok(ModelEvent::End(Answer { calls: vec![call], ..Answer::default() }))]
    };
    let world = World::default();
    let scripts = [bad(json!("{\"a\": ")), bad(Value::Null), bad(json!("")), text(&["ok"])];
    world.run(&Scripted::new(scripts), Action::Message).await;
    let ends: Vec<_> = world.notebook.cards().iter().map(|card| card.outcome).collect();
    assert_eq!(ends, [Some(CallEnd::BadArguments), Some(CallEnd::Ok), Some(CallEnd::Ok)]);
}

#[tokio::test]
async fn stop_ends_the_tools_that_run() {
    let world = World::default();
    let model = Scripted::new([calls(&["s__echo", "s__hang"])]);
    let stop = async {
        world.tools.entered.notified().await;
        world.stop.cancel();
    };
    let (finished, ()) = tokio::join!(world.run(&model, Action::Message), stop);
    assert_eq!(finished.reason, Reason::Stopped);
    assert_eq!(world.tools.cancelled.load(Ordering::SeqCst), 1, "the call was dropped");
    let cards = world.notebook.cards();
    assert_eq!(cards[1].status, CallStatus::Cancelled);
    assert_eq!(world.notebook.count("toolCallFinished"), 2);
    assert!(
        matches!(world.notebook.last(), Message::Notice(notice) if notice.notice == NoticeKind::Stopped)
    );
}

#[tokio::test]
async fn stop_ends_an_answer_that_still_comes_and_keeps_its_beginning() {
    let world = World::default();
    let mut model = Scripted::new([vec![Ok(ModelEvent::Text("Once".to_owned()))]]);
    model.hangs = true;
    let stop = async {
        while world.notebook.count("textDelta") == 0 {
            tokio::task::yield_now().await;
        }
        world.stop.cancel();
    };
    let (finished, ()) = tokio::join!(world.run(&model, Action::Message), stop);
    assert_eq!(finished.reason, Reason::Stopped);
    let messages = world.notebook.messages.lock().unwrap();
    let Message::Assistant(message) = &messages[0] else { panic!() };
    assert_eq!((message.text.as_str(), message.state), ("Once", AssistantState::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_out_as_the_provider_says() {
    let world = World::default();
    let started = Instant::now();
    let model = Scripted::new([limited(7.0), limited(5.0), text(&["ok"])]);
    let finished = world.run(&model, Action::Message).await;
    assert_eq!(finished.reason, Reason::Done);
    assert_eq!(started.elapsed().as_secs(), 12);
    assert_eq!(world.notebook.count("retrying"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_only_asks_to_wait_is_given_up_with_its_words() {
    let world = World::default();
    let finished = world.run(&Scripted::new([limited(1.0)]), Action::Message).await;
    assert_eq!(finished.reason, Reason::Error);
    assert_eq!(world.notebook.count("retrying"), 3);
    assert_eq!(world.notebook.count("messageStarted"), 0, "no empty message is left");
    let Message::Notice(notice) = world.notebook.last() else { panic!() };
    let NoticeKind::Error { error } = notice.notice else { panic!() };
    assert_eq!((error.kind, error.retry_after), (ModelFailureKind::RateLimited, Some(1.0)));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_kept_as_far_as_it_came() {
    let world = World::default();
    let model = Scripted::new([vec![Ok(ModelEvent::Text("half".to_owned()))]]);
    let finished = world.run(&model, Action::Message).await;
    assert_eq!(finished.reason, Reason::Error);
    let messages = world.notebook.messages.lock().unwrap();
    let Message::Assistant(message) = &messages[0] else { panic!() };
    assert_eq!((message.text.as_str(), message.state), ("half", AssistantState::Error));
}

#[tokio::test]
async fn a_server_that_goes_away_between_two_steps_is_told() {
    let world = World::default();
    let model = Scripted::new([calls(&["s__echo"]), calls(&["s__fail"]), text(&["ok"])]);
    world.run(&model, Action::Message).await;
    assert_eq!(world.notebook.count("toolsOffered"), 2, "told again when it changed");
    assert_eq!(world.notebook.cards()[1].outcome, Some(CallEnd::NotFound));
}

#[tokio::test]
async fn a_store_that_fails_ends_the_turn() {
    let world =
        World { notebook: Notebook { broken: true, ..Notebook::default() }, ..World::default() };
    let finished = world.run(&Scripted::new([calls(&["s__echo"])]), Action::Message).await;
    assert_eq!(finished.reason, Reason::Error);
    assert_eq!(world.notebook.count("turnError"), 1);
}

#[tokio::test]
async fn continue_behind_an_answer_asks_the_model_to_go_on() {
    let world = World::default();
    let model = Scripted::new([text(&["more"])]);
    let turn = Turn {
        id: Uuid::now_v7(),
        action: Action::Continue,
        model: &model,
        tools: &world.tools,
        journal: &world.notebook,
        stop: &world.stop,
        history: vec![
            Entry::User("x".to_owned()),
            Entry::Assistant { text: "half".to_owned(), calls: vec![], continuation: None },
        ],
        calls_before: 4,
    };
    turn.run().await;
    assert_eq!(model.requests()[0].history.last(), Some(&Entry::User("Go on.".to_owned())));
}
