//! Models and providers that fail: each failure has its kind, its words, and what to do next.

use cofer_e2e::{Daemon, FakeModel, Reply};
use serde_json::{Value, json};

use crate::support::{KEY, builder, go_on, log, say, show, world};

fn openai_error(message: &str, code: &str) -> Value {
    json!({"error": {"message": message, "type": "invalid_request_error", "code": code}})
}

/// The turn fails with this kind, is told so, and is stored so; the key is nowhere.
async fn fails(reply: Reply, kind: &str) -> Value {
    let (daemon, _model) = world([reply]).await;
    let seen = say(&daemon, "hello").await;
    assert_eq!(seen.reason(), "error");
    let error = seen.one("turnError").clone();
    assert_eq!(error["kind"], kind, "{error}");
    assert!(error["hint"].is_string(), "{error}");
    let stored = show(&daemon, &seen.conversation()).await;
    let last = stored["messages"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["notice"], &last["error"]["kind"]), (&json!("error"), &json!(kind)));
    assert_eq!(stored["can_continue"], true);
    assert!(!stored.to_string().contains(KEY) && !log(&daemon).contains(KEY), "the key is nowhere");
    error
}

#[tokio::test]
async fn a_wrong_key_is_told_without_the_key() {
    let body = openai_error(&format!("Incorrect API key provided: {KEY}"), "invalid_api_key");
    let error = fails(Reply::status(401, &body), "wrong_key").await;
    assert!(error["hint"].as_str().unwrap().contains("Settings"), "{error}");
}

#[tokio::test]
async fn a_missing_model_is_told() {
    let body = openai_error("The model `scripted` does not exist", "model_not_found");
    fails(Reply::status(404, &body), "no_such_model").await;
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told() {
    let body = openai_error(
        "This model's maximum context length is 8192 tokens.",
        "context_length_exceeded",
    );
    let error = fails(Reply::status(400, &body), "context_overflow").await;
    assert!(error["hint"].as_str().unwrap().contains("new chat"), "{error}");
}

#[tokio::test]
async fn a_model_without_tools_is_told() {
    let body = json!({"error": {"message": "scripted does not support tools"}});
    fails(Reply::status(400, &body), "no_tools").await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_keeps_what_came() {
    let (daemon, model) =
        world([Reply::text(&["half an ", "answer"]).cut(), Reply::text(&["the rest"])]).await;
    let seen = say(&daemon, "hello").await;
    assert_eq!(seen.one("turnError")["kind"], "stream_cut");
    assert_eq!(seen.one("messageFinished")["state"], "error");
    let id = seen.conversation();
    assert_eq!(show(&daemon, &id).await["messages"][1]["text"], "half an answer");
    let more = go_on(&daemon, &id, json!({"action": "continue"})).await;
    assert_eq!((more.reason(), more.text().as_str()), ("done", "the rest"));
    let asked = model.requests()[1]["messages"].clone();
    assert_eq!(asked.as_array().unwrap().last().unwrap()["role"], "user", "{asked}");
}

#[tokio::test]
async fn a_provider_that_fails_is_quoted() {
    let body = json!({"error": {"message": "boom", "type": "server_error"}});
    let (daemon, _model) = world([Reply::status(500, &body)]).await;
    let seen = say(&daemon, "hello").await;
    let error = seen.one("turnError");
    assert_eq!(error["kind"], "provider_error");
    assert!(error["message"].as_str().unwrap().contains("answered 500: boom"), "{error}");
}

#[tokio::test]
async fn an_error_inside_the_stream_is_told() {
    let told = json!({"error": {"message": "maximum context length", "type": "server_error"}});
    let (daemon, _model) = world([Reply::text(&["so far"]).then(told)]).await;
    let seen = say(&daemon, "hello").await;
    assert_eq!(
        (seen.text().as_str(), seen.one("turnError")["kind"].as_str()),
        ("so far", Some("context_overflow"))
    );
}

#[tokio::test]
async fn an_answer_without_bounds_costs_the_turn_and_not_the_daemon() {
    let call = |index: u64, arguments: &str| {
        let function = json!({"name": "way__echo", "arguments": arguments});
        let calls = json!([{"index": index, "id": "call_1", "function": function}]);
        json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
    };
    // Room for as many calls as the number says would be more than there is memory.
    let many = Reply::text(&["so far"]).then(call(4_000_000_000, "{}"));
    let long = Reply::text(&["so far"]).then(call(0, &"x".repeat(5 << 20)));
    let (daemon, _model) = world([many, long, Reply::text(&["fine"])]).await;
    for why in ["more than 1024 calls", "longer than 4194304 bytes"] {
        let seen = say(&daemon, "hello").await;
        let error = seen.one("turnError");
        assert_eq!(error["kind"], "provider_error");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
        assert_eq!(seen.text(), "so far");
    }
    assert_eq!(say(&daemon, "still there?").await.text(), "fine");
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_as_the_provider_says() {
    let limited = Reply::status(429, &json!({"error": {"message": "slow down"}}))
        .header("retry-after-ms", "50");
    let (daemon, model) = world([limited.clone(), limited, Reply::text(&["there"])]).await;
    let seen = say(&daemon, "hello").await;
    assert_eq!((seen.reason(), seen.text().as_str()), ("done", "there"));
    let retries = seen.all("retrying");
    assert_eq!(retries.len(), 2);
    assert_eq!(
        (&retries[1]["attempt"], &retries[1]["of"], &retries[1]["after_ms"]),
        (&json!(2), &json!(3), &json!(50))
    );
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn a_rate_limit_that_does_not_end_is_given_up_with_its_words() {
    let limited =
        Reply::status(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "0");
    let (daemon, model) = world([limited]).await;
    let seen = say(&daemon, "hello").await;
    assert_eq!(seen.one("turnError")["kind"], "rate_limited");
    assert_eq!(model.requests().len(), 4, "three times again, and no more");
    // Who asks for an hour is believed at once.
    let long =
        Reply::status(429, &json!({"error": {"message": "later"}})).header("retry-after", "3600");
    let (daemon, model) = world([long]).await;
    let seen = say(&daemon, "hello").await;
    assert_eq!(seen.one("turnError")["retry_after"], 3600.0);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn stop_ends_the_wait_for_a_rate_limit() {
    let limited =
        Reply::status(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "50");
    let (daemon, _model) = world([limited]).await;
    let mut events = daemon.chat(&json!({"message": "x"})).await;
    let seen = events.until("it waits", |event| event.name == "retrying").await;
    let id = seen[0].data["conversation_id"].as_str().unwrap().to_owned();
    daemon.post(&format!("/chat/conversations/{id}/stop"), &json!({})).await.expect(200);
    let seen = events.until("it ends", |event| event.name == "turnFinished").await;
    assert_eq!(seen.last().unwrap().data["reason"], "stopped");
}

#[tokio::test]
async fn nobody_there_is_told_with_what_to_start() {
    let daemon = Daemon::builder()
        .env("OLLAMA_HOST", "127.0.0.1:9")
        .env("COFER_CHAT_MODEL", "qwen3")
        .start()
        .await;
    let seen = say(&daemon, "hello").await;
    let error = seen.one("turnError");
    assert_eq!(error["kind"], "unreachable", "{error}");
    assert!(error["hint"].as_str().unwrap().contains("ollama serve"), "{error}");
}

#[tokio::test]
async fn nothing_set_up_is_told_and_can_be_made_good() {
    let daemon = Daemon::start().await;
    let seen = say(&daemon, "hello").await;
    let error = seen.one("turnError");
    assert_eq!(error["kind"], "not_configured");
    assert!(error["hint"].as_str().unwrap().contains("Settings"));
    let listed = daemon.get("/chat/providers").await.expect(200);
    assert_eq!((&listed["configured"], &listed["default"]), (&json!(false), &Value::Null));
    assert_eq!(listed["kinds"].as_array().unwrap().len(), 4);
    let model = FakeModel::start([Reply::text(&["hi"])]).await;
    let body = json!({"kind": "openai", "base_url": model.base(), "default_model": "m"});
    daemon
        .send(daemon.request(reqwest::Method::PUT, "/chat/providers/mine").json(&body))
        .await
        .expect(200);
    let more = go_on(&daemon, &seen.conversation(), json!({"action": "continue"})).await;
    assert_eq!(more.text(), "hi", "what was said is answered now");
}

#[tokio::test]
async fn a_provider_without_a_model_says_that_one_is_to_be_chosen() {
    let model = FakeModel::start([Reply::text(&["hi"])]).await;
    let daemon = Daemon::builder().env("OPENAI_BASE_URL", model.base()).start().await;
    let seen = say(&daemon, "hello").await;
    assert_eq!(seen.one("turnError")["kind"], "no_model");
}

#[tokio::test]
async fn arguments_that_are_no_json_go_back_to_the_model() {
    let (daemon, model) =
        world([Reply::raw_calls(&[("way__echo", "{\"a\": ".to_owned())]), Reply::text(&["oh"])])
            .await;
    let seen = say(&daemon, "x").await;
    assert_eq!(seen.one("toolCallFinished")["outcome"], "bad_arguments");
    assert!(model.requests()[1]["messages"].to_string().contains("not a JSON object"));
    assert_eq!(seen.reason(), "done");
}

#[tokio::test]
async fn what_cannot_be_a_turn_is_refused_before_anything_runs() {
    let model = FakeModel::start([Reply::text(&["hi"])]).await;
    let daemon = builder(&model).start().await;
    for body in [
        json!({}),
        json!({"message": ""}),
        json!({"message": "x", "provider": "nobody"}),
        json!({"message": "x", "colour": 1}),
    ] {
        daemon.post("/chat", &body).await.failure(422, "invalid_request");
    }
    let nowhere =
        json!({"message": "x", "conversation_id": "0197a000-0000-7000-8000-000000000000"});
    daemon.post("/chat", &nowhere).await.failure(404, "not_found");
    assert!(model.requests().is_empty());
    assert_eq!(daemon.get("/chat/conversations").await.expect(200)["total"], 0);
}
