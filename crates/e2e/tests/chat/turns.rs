//! Turns that go well, and those that end early by somebody's wish.

use cofer_e2e::{Daemon, FakeModel, Reply, eventually, wayward};
use serde_json::{Value, json};

use crate::support::{KEY, Seen, builder, go_on, log, say, show, world};

#[tokio::test]
async fn a_text_is_streamed_and_stored() {
    let (daemon, model) = world([Reply::text(&["Hel", "lo ", "日本"])]).await;
    let seen = say(&daemon, "say hello").await;
    assert_eq!(seen.text(), "Hello 日本");
    assert_eq!(seen.all("textDelta").len(), 3, "piece by piece");
    assert_eq!(seen.reason(), "done");
    assert_eq!(seen.one("turnFinished")["usage"], json!({"input_tokens": 7, "output_tokens": 3}));
    let stored = show(&daemon, &seen.conversation()).await;
    assert_eq!(stored["title"], "say hello");
    let messages: Vec<_> = stored["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["role"].clone(), m["text"].clone()))
        .collect();
    assert_eq!(
        messages,
        [(json!("user"), json!("say hello")), (json!("assistant"), json!("Hello 日本"))]
    );
    assert_eq!(model.keys(), [format!("Bearer {KEY}")]);
    let request = &model.requests()[0];
    assert_eq!((&request["model"], &request["stream"]), (&json!("scripted"), &json!(true)));
    let names: Vec<_> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.contains(&"way__echo".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_chain_of_two_steps_is_cards_in_the_order_of_time() {
    // covers: MGR-64, MGR-65, MGR-67, MGR-68, MGR-69, MGR-72, MGR-73
    let (daemon, model) = world([
        Reply::calls(&[("way__echo", json!({"word": "första"}))]),
        Reply::calls(&[("way__structured", json!({}))]),
        Reply::text(&["It is 42."]),
    ])
    .await;
    let seen = say(&daemon, "chain").await;
    assert_eq!(seen.one("turnFinished")["steps"], 2);
    let started = seen.all("toolCallStarted");
    assert_eq!(started[0]["arguments"], json!({"word": "första"}), "put together from its pieces");
    let cards: Vec<_> = started
        .iter()
        .map(|card| (card["n"].as_u64().unwrap(), card["tool"].as_str().unwrap()))
        .collect();
    assert_eq!(cards, [(1, "echo"), (2, "structured")]);
    let finished = seen.all("toolCallFinished");
    assert_eq!(finished[1]["result"]["structuredContent"], json!({"answer": 42}));
    assert!(
        finished
            .iter()
            .all(|card| card["status"] == "done" && card["duration_ms"].as_f64() > Some(0.0))
    );
    let position = |name: &str, n: u64| {
        seen.0.iter().position(|e| e.name == name && e.data["n"] == n).unwrap()
    };
    assert!(position("toolCallFinished", 1) < position("toolCallStarted", 2));
    // The model was told what the tools gave.
    let last = &model.requests()[2]["messages"];
    let told: Vec<_> = last
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(told, [json!(r#"{"word":"första"}"#), json!("42")]);
    // And it is stored as it happened.
    let stored = show(&daemon, &seen.conversation()).await;
    let states: Vec<_> = stored["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["role"] == "assistant")
        .map(|m| m["state"].clone())
        .collect();
    assert_eq!(states, ["complete", "complete", "complete"]);
    assert_eq!(stored["messages"][1]["tool_calls"][0]["status"], "done");
    assert_eq!(stored["can_continue"], false);
}

#[tokio::test]
async fn every_call_is_in_the_log_with_arguments_result_and_duration() {
    // covers: MGR-75, MGR-76, MGR-77, GTW-5
    let long = "x".repeat(500);
    let (daemon, _model) = world([
        Reply::calls(&[("way__echo", json!({"word": long}))]),
        Reply::calls(&[("way__fail", json!({}))]),
        Reply::text(&["ok"]),
    ])
    .await;
    let seen = say(&daemon, "log").await;
    let call = seen.all("toolCallStarted")[0]["call_id"].as_str().unwrap().to_owned();
    let text = eventually("the log has the calls", async || {
        let text = log(&daemon);
        text.contains("the tool answered an error").then_some(text)
    })
    .await;
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("[TOOLS]")).collect();
    let started =
        lines.iter().find(|line| line.contains("call started") && line.contains(&call)).unwrap();
    assert!(started.contains("echo") && started.contains("arguments="), "{started}");
    let finished =
        lines.iter().find(|line| line.contains("call finished") && line.contains(&call)).unwrap();
    assert!(finished.contains("duration_ms="), "{finished}");
    assert!(finished.matches('x').count() <= 200, "at most 200 characters of a result: {finished}");
    assert!(
        lines.iter().any(|line| line.contains("it went wrong") && line.contains("at wayward")),
        "with its stack"
    );
    assert!(!text.contains(KEY), "the key is in no log");
}

#[tokio::test]
async fn the_calls_of_one_step_run_at_the_same_time() {
    let model = FakeModel::start([
        Reply::calls(&[
            ("a__sleep", json!({"ms": 400})),
            ("b__sleep", json!({"ms": 400})),
            ("b__echo", json!({})),
        ]),
        Reply::text(&["slept"]),
    ])
    .await;
    let daemon = builder(&model).start().await;
    for name in ["a", "b"] {
        daemon.register(&wayward(name, &[])).await;
    }
    let seen = say(&daemon, "parallel").await;
    let order: Vec<&str> =
        seen.names().into_iter().filter(|name| name.starts_with("toolCall")).collect();
    assert_eq!(order[..3], ["toolCallStarted"; 3], "all begin before the first ends");
    assert_eq!(seen.all("toolCallFinished").len(), 3);
    // Both servers worked at once, as their own clocks in the activity tell.
    let activity = daemon.get("/activity").await.expect(200);
    let sleeps: Vec<&Value> = activity["calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|call| call["tool"] == "sleep")
        .collect();
    let began = |call: &Value| {
        time::OffsetDateTime::parse(
            call["started_at"].as_str().unwrap(),
            &time::format_description::well_known::Rfc3339,
        )
        .unwrap()
    };
    let gap = (began(sleeps[0]) - began(sleeps[1])).abs();
    assert!(gap.as_seconds_f64() * 1000.0 < sleeps[0]["duration_ms"].as_f64().unwrap(), "{gap}");
    assert!(sleeps.iter().all(|call| call["source"] == "chat"));
}

#[tokio::test]
async fn a_failing_tool_is_told_to_the_model_and_stands_on_the_card_with_its_stack() {
    // covers: MGR-70, MGR-71
    let (daemon, model) = world([
        Reply::calls(&[
            ("way__fail", json!({})),
            (
                "way__rpc_error",
                json!({"code": -32050, "message": "no luck", "data": {"stack": "at f\nat g"}}),
            ),
            ("way__nowhere", json!({})),
        ]),
        Reply::calls(&[("way__crash", json!({}))]),
        Reply::text(&["sorry"]),
    ])
    .await;
    let seen = say(&daemon, "fail").await;
    assert_eq!(seen.reason(), "done");
    let card = |n: u64| {
        seen.all("toolCallFinished").into_iter().find(|card| card["n"] == n).unwrap().clone()
    };
    assert_eq!(
        (card(1)["status"].clone(), card(1)["outcome"].clone()),
        (json!("error"), json!("tool_error"))
    );
    assert_eq!(card(1)["error"]["message"], "Error: it went wrong");
    assert!(card(1)["error"]["stack"].as_str().unwrap().contains("at wayward (tools.rs:1:1)"));
    assert_eq!(
        card(2)["error"],
        json!({"message": "no luck", "stack": "at f\nat g", "code": -32050})
    );
    assert_eq!(
        (card(3)["outcome"].clone(), card(3)["recorded"].clone()),
        (json!("not_found"), json!(false))
    );
    assert_eq!(card(4)["outcome"], "disconnected");
    let told = model.requests()[1]["messages"].to_string();
    assert!(
        told.contains("it went wrong")
            && told.contains("no luck")
            && told.contains("no tool named"),
        "{told}"
    );
}

#[tokio::test]
async fn endless_calls_stop_at_ten_and_go_on_when_asked() {
    // covers: MGR-74
    let (daemon, model) = world([Reply::calls(&[("way__echo", json!({"again": true}))])]).await;
    let seen = say(&daemon, "never stop").await;
    assert_eq!(seen.reason(), "limit");
    let limit = seen.one("limitReached");
    assert_eq!((&limit["steps"], &limit["limit"]), (&json!(10), &json!(10)));
    assert_eq!(seen.all("toolCallFinished").len(), 10);
    assert_eq!(model.requests().len(), 10);
    let id = seen.conversation();
    let stored = show(&daemon, &id).await;
    assert_eq!(stored["messages"].as_array().unwrap().last().unwrap()["notice"], "limit");
    assert_eq!(stored["can_continue"], true);
    let more = go_on(&daemon, &id, json!({"action": "continue"})).await;
    assert_eq!(more.reason(), "limit");
    let numbers: Vec<_> =
        more.all("toolCallStarted").iter().map(|card| card["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (11..=20).collect::<Vec<_>>(), "ten more, counted on");
    let before = model.requests().len();
    let last = go_on(&daemon, &id, json!({"action": "answer_now"})).await;
    assert_eq!(last.reason(), "done", "an answer without tools, also of a model that wants more");
    assert!(last.all("toolCallStarted").is_empty());
    let asked = &model.requests()[before];
    assert_eq!(asked["tool_choice"], "none");
    assert_eq!(model.requests().len(), before + 1);
}

#[tokio::test]
async fn servers_come_and_go_in_the_middle() {
    let (daemon, _model) = world([
        Reply::calls(&[("way__sleep", json!({"ms": 1500}))]),
        Reply::calls(&[("late__echo", json!({"x": 1})), ("gone__echo", json!({}))]),
        Reply::text(&["ok"]),
    ])
    .await;
    daemon.register(&wayward("gone", &[])).await;
    let mut events = daemon.chat(&json!({"message": "go"})).await;
    let first = events.until("the first step runs", |event| event.name == "toolCallStarted").await;
    daemon.act("gone", "disable").await;
    daemon.wait_status("gone", "stopped").await;
    daemon.register(&wayward("late", &[])).await;
    let rest = Seen::whole(events).await;
    let offered = Seen(first).all("toolsOffered")[0]["servers"].clone();
    assert_eq!(offered, json!(["gone", "way"]));
    assert_eq!(rest.all("toolsOffered")[0]["servers"], json!(["late", "way"]), "told again");
    let card = |tool: &str| {
        rest.all("toolCallFinished")
            .into_iter()
            .find(|card| card["server"] == tool || card["tool"] == tool)
            .unwrap()
            .clone()
    };
    assert_eq!(card("late")["status"], "done");
    assert_eq!(card("gone__echo")["outcome"], "not_found");
}

#[tokio::test]
async fn a_server_with_a_comma_in_its_name_is_chosen_as_others_are() {
    let (daemon, _model) = world([Reply::text(&["ok"])]).await;
    for name in ["com,ma", "other"] {
        daemon.register(&wayward(name, &["--tools", "3"])).await;
    }
    let path = "/chat/tools?servers=com%2Cma&servers=other&tools_off=com%2Cma%2Ftool-0001";
    let tools = daemon.get(path).await.expect(200);
    let counts: Vec<(&str, u64)> = tools["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| (server["server"].as_str().unwrap(), server["tools"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts, [("com,ma", 2), ("other", 3), ("way", 0)]);
    let none = daemon.get("/chat/tools?servers=").await.expect(200);
    assert_eq!(none["estimated_tokens"], 0);
}

#[tokio::test]
async fn the_tools_are_chosen_per_chat_and_kept_for_it() {
    let (daemon, model) = world([Reply::text(&["ok"])]).await;
    daemon.register(&wayward("other", &["--tools", "3"])).await;
    let tools = daemon.get("/chat/tools?tools_off=other/tool-0001").await.expect(200);
    let other = tools["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["server"] == "other")
        .unwrap()
        .clone();
    assert_eq!(other["tools"], 2);
    let sum: u64 = tools["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["estimated_tokens"].as_u64().unwrap())
        .sum();
    assert!(sum > 0 && tools["estimated_tokens"] == sum);
    let body =
        json!({"message": "x", "servers": ["other", "missing"], "tools_off": ["other/tool-0001"]});
    let seen = Seen::whole(daemon.chat(&body).await).await;
    let offered = seen.one("toolsOffered");
    assert_eq!(
        (&offered["tools"], &offered["unavailable"][0]["server"]),
        (&json!(2), &json!("missing"))
    );
    go_on(&daemon, &seen.conversation(), json!({"message": "again"})).await;
    for request in model.requests() {
        assert_eq!(request["tools"].as_array().unwrap().len(), 2, "kept for the conversation");
    }
    go_on(
        &daemon,
        &seen.conversation(),
        json!({"message": "all", "servers": null, "tools_off": []}),
    )
    .await;
    assert!(model.requests()[2]["tools"].as_array().unwrap().len() > 5);
    go_on(&daemon, &seen.conversation(), json!({"message": "none", "servers": []})).await;
    assert!(model.requests()[3]["tools"].is_null());
}

#[tokio::test]
async fn resources_are_tools_where_a_server_is_told_so() {
    let daemon = Daemon::start().await;
    let mut body = wayward("way", &["--resources", "3"]);
    body["include_resources"] = json!(true);
    daemon.register(&body).await;
    let tools = daemon.get("/chat/tools").await.expect(200);
    let resource = |tool: &str| {
        tools["tools"].as_array().unwrap().iter().find(|t| t["tool"] == tool).unwrap().clone()
    };
    assert_eq!(resource("resources/read")["kind"], "resource");
    let uri = resource("resources/read")["description"]
        .as_str()
        .unwrap()
        .split("resources: ")
        .nth(1)
        .unwrap()
        .split([' ', ','])
        .next()
        .unwrap()
        .to_owned();
    let read = resource("resources/read")["name"].as_str().unwrap().to_owned();
    let list = resource("resources/list")["name"].as_str().unwrap().to_owned();
    let scripted = FakeModel::start([
        Reply::calls(&[(&list, json!({})), (&read, json!({"uri": uri}))]),
        Reply::text(&["read"]),
    ])
    .await;
    let provider = json!({"kind": "openai", "base_url": scripted.base(), "default_model": "m"});
    let request = daemon.request(reqwest::Method::PUT, "/chat/providers/mine").json(&provider);
    daemon.send(request).await.expect(200);
    let seen = say(&daemon, "x").await;
    let finished = seen.all("toolCallFinished");
    let of =
        |tool: &str| finished.iter().find(|card| card["tool"] == tool).unwrap()["result"].clone();
    assert_eq!(of("resources/list")["resources"].as_array().unwrap().len(), 3);
    assert_eq!(of("resources/read")["contents"][0]["uri"], uri);
}

#[tokio::test]
async fn a_result_of_a_megabyte_is_cut_in_lists_and_whole_where_it_is_asked_for() {
    let (daemon, model) =
        world([Reply::calls(&[("way__big", json!({"n": 1 << 20}))]), Reply::text(&["big"])]).await;
    let seen = say(&daemon, "big").await;
    let card = seen.one("toolCallFinished");
    assert_eq!(card["truncated"], true);
    assert!(card["result_bytes"].as_u64().unwrap() > 1 << 20);
    assert!(card.to_string().len() < 80_000);
    let (id, call) = (seen.conversation(), card["call_id"].as_str().unwrap().to_owned());
    assert!(show(&daemon, &id).await.to_string().len() < 100_000);
    let whole = daemon.get(&format!("/chat/conversations/{id}/calls/{call}")).await.expect(200);
    assert_eq!(whole["result"]["content"][0]["text"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(whole["truncated"], false);
    let told = model.requests()[1]["messages"].to_string();
    assert!(told.len() < 200_000 && told.contains("bytes are shown"), "the model is not drowned");
    // The next turn shows the model as much of it as this one did.
    go_on(&daemon, &id, json!({"message": "and now"})).await;
    assert!(model.requests()[2]["messages"].to_string().len() > 90_000);
}
