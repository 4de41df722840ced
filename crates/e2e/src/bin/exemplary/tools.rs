//! The tools.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::offer::{PICTURE, SOUND};
use crate::questions::{Asked, Context, Question, form, prompt};
use crate::server::Fault;

const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
/// The URL that is to be opened, as its server calls it.
const SIGN_IN: &str = "sign-in-1";
/// Known to this process alone, so that only it can sign a state.
static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

pub(crate) async fn call(context: &Context<'_>) -> Result<Value, Fault> {
    let name = context.params["name"].as_str().unwrap_or_default();
    match name {
        "test_simple_text" => Ok(text("This is a simple text response for testing.")),
        "test_image_content" => Ok(content(&[picture()])),
        "test_audio_content" => {
            Ok(content(&[json!({"type": "audio", "data": SOUND, "mimeType": "audio/wav"})]))
        }
        "test_embedded_resource" => {
            Ok(content(&[embedded("This is an embedded resource content.")]))
        }
        "test_multiple_content_types" => {
            let text = json!({"type": "text", "text": "Multiple content types test:"});
            Ok(content(&[text, picture(), embedded(r#"{"test":"data","value":123}"#)]))
        }
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = true.into();
            Ok(result)
        }
        "test_header_argument" | "json_schema_2020_12_tool" => {
            Ok(text(&context.arguments().to_string()))
        }
        "test_known_roots" => Ok(text(&context.server.roots.borrow().to_string())),
        "test_tool_with_logging" | "test_logging_tool" => Ok(log(context).await),
        "test_tool_with_progress" => Ok(progress(context).await),
        "test_reconnection" => {
            sleep(Duration::from_millis(1500)).await;
            Ok(text("Reconnection test completed successfully."))
        }
        "test_trigger_tool_change" => {
            context.server.list_changed("tools");
            Ok(text("The list of tools changed"))
        }
        "test_trigger_prompt_change" => {
            context.server.list_changed("prompts");
            Ok(text("The list of prompts changed"))
        }
        "test_touch_resource" => {
            context.server.updated(context.arguments()["uri"].as_str().unwrap_or_default());
            Ok(text("The resource changed"))
        }
        "test_url_required" => url_required(context).await,
        "test_url_opened" => {
            context.server.url_opened.set(true);
            let params = json!({"elicitationId": SIGN_IN});
            context.server.notify("notifications/elicitation/complete", &params);
            Ok(text("The URL is opened"))
        }
        _ => asking(context, name).await,
    }
}

/// Works only once a URL was opened.
async fn url_required(context: &Context<'_>) -> Result<Value, Fault> {
    if context.server.url_opened.get() {
        return Ok(text("The URL was opened"));
    }
    let mut url = json!({"mode": "url", "message": "Sign in", "url": "https://x.example/sign-in"});
    if context.is_modern() {
        return told(context, &[("sign_in", "elicitation/create", url)], None, "Agreed").await;
    }
    url["elicitationId"] = SIGN_IN.into();
    Err(Fault::with(-32042, "Sign in first", json!({"elicitations": [url]})))
}

async fn log(context: &Context<'_>) -> Value {
    let may_log = !context.is_modern() || context.params["_meta"].get(LEVEL_KEY).is_some();
    for step in ["started", "processing data", "completed"] {
        if may_log {
            let params = json!({"level": "info", "data": format!("Tool execution {step}")});
            context.server.notify("notifications/message", &params);
        }
        sleep(Duration::from_millis(50)).await;
    }
    text("Tool with logging executed successfully")
}

async fn progress(context: &Context<'_>) -> Value {
    let token = &context.params["_meta"]["progressToken"];
    for done in [0, 50, 100] {
        if !token.is_null() {
            let params = json!({"progressToken": token, "progress": done, "total": 100,
                "message": format!("Completed step {done} of 100")});
            context.server.notify("notifications/progress", &params);
        }
        sleep(Duration::from_millis(50)).await;
    }
    text("done")
}

/// Tools that want to know something.
async fn asking(context: &Context<'_>, name: &str) -> Result<Value, Fault> {
    let elicit = |key, question| (key, "elicitation/create", question);
    let arguments = context.arguments();
    let said = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    match name {
        "test_elicitation" => {
            let question = form(&said("message"), "response", "string");
            told(context, &[elicit("response", question)], None, "User response").await
        }
        "test_elicitation_sep1034_defaults" => {
            let question =
                json!({"message": "Please review the fields", "requestedSchema": defaults()});
            told(context, &[elicit("form", question)], None, "Elicitation completed").await
        }
        "test_elicitation_sep1330_enums" => {
            let question = json!({"message": "Please select options", "requestedSchema": enums()});
            told(context, &[elicit("form", question)], None, "Elicitation completed").await
        }
        "test_sampling" => {
            let question = ("sample", "sampling/createMessage", prompt(&said("prompt")));
            told(context, &[question], None, "LLM response").await
        }
        "test_missing_capability" => {
            if context.is_modern() && !context.client_can("sampling") {
                let data = json!({"requiredCapabilities": {"sampling": {}}});
                return Err(Fault::with(-32021, "sampling is needed", data));
            }
            let question = ("sample", "sampling/createMessage", prompt("Hello"));
            told(context, &[question], None, "LLM response").await
        }
        "test_streaming_elicitation" | "test_input_required_result_elicitation" => {
            let question = elicit("user_name", form("What is your name?", "name", "string"));
            told(context, &[question], None, "Hello").await
        }
        "test_input_required_result_sampling" => {
            let question = prompt("What is the capital of France?");
            told(
                context,
                &[("capital_question", "sampling/createMessage", question)],
                None,
                "It is",
            )
            .await
        }
        "test_input_required_result_list_roots" => {
            told(context, &[("client_roots", "roots/list", json!({}))], None, "Found").await
        }
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            let state = stated(context, "confirm")?;
            let question = elicit("confirm", form("Please confirm", "ok", "boolean"));
            told(context, &[question], Some(&state), "state-ok").await
        }
        "test_input_required_result_multiple_inputs" => {
            let questions = [
                elicit("user_name", form("What is your name?", "name", "string")),
                ("greeting", "sampling/createMessage", prompt("Generate a greeting")),
                ("client_roots", "roots/list", json!({})),
            ];
            let state = stated(context, "multiple")?;
            told(context, &questions, Some(&state), "All of it").await
        }
        "test_input_required_result_multi_round" => rounds(context).await,
        "test_input_required_result_capabilities" => capable(context).await,
        other => Err(Fault::new(-32602, &format!("Unknown tool: {other}"))),
    }
}

/// Asks, and tells what was answered.
async fn told(
    context: &Context<'_>,
    questions: &[Question],
    state: Option<&str>,
    words: &str,
) -> Result<Value, Fault> {
    match context.ask(questions, state).await {
        Ok(Asked::Answers(answers)) => {
            let answers: Vec<String> = answers.iter().map(summary).collect();
            Ok(text(&format!("{words}: {}", answers.join("; "))))
        }
        Ok(Asked::Wants(result)) => Ok(result),
        Err(Fault(error)) => Ok(text(&format!("Not supported: {error}"))),
    }
}

/// An answer as the suite wants to read it.
fn summary(answer: &Value) -> String {
    match (answer.get("action"), answer["content"]["text"].as_str()) {
        (Some(action), _) => {
            let action = action.as_str().unwrap_or_default();
            let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
            format!("action={action}, content={content}")
        }
        (None, Some(text)) => text.to_owned(),
        (None, None) => answer.to_string(),
    }
}

/// Two questions, the second of which needs the answer to the first.
async fn rounds(context: &Context<'_>) -> Result<Value, Fault> {
    let name = match context.state().map(|state| check(state, "name")) {
        Some(Some(name)) if context.is_modern() => Some(name),
        Some(None)
            if context.is_modern()
                && context.state().and_then(|state| check(state, "first")).is_none() =>
        {
            return Err(Fault::new(-32602, "requestState was changed"));
        }
        _ => None,
    };
    let name = match name {
        Some(name) => name,
        None => {
            let question = form("Step 1: What is your name?", "name", "string");
            let state = sign("first", "");
            match context.ask(&[("step1", "elicitation/create", question)], Some(&state)).await? {
                Asked::Wants(result) => return Ok(result),
                Asked::Answers(answers) => {
                    answers[0]["content"]["name"].as_str().unwrap_or("friend").to_owned()
                }
            }
        }
    };
    let question = form("Step 2: What is your favorite color?", "color", "string");
    let state = sign("name", &name);
    match context.ask(&[("step2", "elicitation/create", question)], Some(&state)).await? {
        Asked::Wants(result) => Ok(result),
        Asked::Answers(answers) => {
            let color = answers[0]["content"]["color"].as_str().unwrap_or("none");
            Ok(text(&format!("Multi-round complete for {name} who likes {color}")))
        }
    }
}

/// Asks only what the client says that it can answer.
async fn capable(context: &Context<'_>) -> Result<Value, Fault> {
    let mut questions: Vec<Question> = Vec::new();
    if context.client_can("elicitation") {
        questions.push(("elicit_input", "elicitation/create", form("Input", "value", "string")));
    }
    if context.client_can("sampling") {
        questions.push(("sample_input", "sampling/createMessage", prompt("Sample request")));
    }
    if questions.is_empty() {
        return Ok(text("No supported capabilities declared"));
    }
    told(context, &questions, Some(&sign("capable", "")), "capabilities-ok").await
}

/// A fresh state, where the one that came back is one of ours or there is none.
fn stated(context: &Context<'_>, kind: &str) -> Result<String, Fault> {
    match context.state() {
        Some(state) if context.is_modern() && check(state, kind).is_none() => {
            Err(Fault::new(-32602, "requestState was changed"))
        }
        _ => Ok(sign(kind, "")),
    }
}

fn sign(kind: &str, data: &str) -> String {
    format!("{kind}|{data}|{:x}", SECRET.hash_one((kind, data)))
}

/// What a state of this kind holds, where it was not changed.
fn check(state: &str, kind: &str) -> Option<String> {
    let (rest, _) = state.rsplit_once('|')?;
    let (_, data) = rest.split_once('|')?;
    (sign(kind, data) == state).then(|| data.to_owned())
}

fn defaults() -> Value {
    json!({"type": "object", "required": [], "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verified", "default": true},
    }})
}

fn enums() -> Value {
    let titled = |word: &str| {
        let one = |n: usize| json!({"const": format!("value{n}"), "title": format!("{word} {n}")});
        (1..=3).map(one).collect::<Vec<_>>()
    };
    let options = json!(["option1", "option2", "option3"]);
    json!({"type": "object", "required": [], "properties": {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3,
            "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3,
            "items": {"anyOf": titled("Choice")}},
    }})
}

fn picture() -> Value {
    json!({"type": "image", "data": PICTURE, "mimeType": "image/png"})
}

fn embedded(text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": "test://embedded-resource",
        "mimeType": "text/plain", "text": text}})
}

fn content(blocks: &[Value]) -> Value {
    json!({"content": blocks})
}

fn text(text: &str) -> Value {
    content(&[json!({"type": "text", "text": text})])
}
