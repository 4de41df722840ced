//! From the messages of a conversation to what a model is shown of it.

use std::collections::HashMap;

use serde_json::Value;
use uuid::Uuid;

use crate::message::{AssistantMessage, CallStatus, Message, ToolCard};
use crate::model::{Entry, ModelCall, ToolAnswer};
use crate::result::result_text;

/// The texts of results that are cut in their cards, by call.
pub type Wholes = HashMap<Uuid, String>;

/// What a model is shown. Every call has an answer in it, because providers refuse a
/// conversation in which one is missing.
pub fn history(messages: &[Message], wholes: &Wholes) -> Vec<Entry> {
    let mut entries = Vec::new();
    for message in messages {
        match message {
            Message::User(message) => push_user(&mut entries, &message.text),
            Message::Assistant(message) => push_assistant(&mut entries, message, wholes),
            Message::Notice(_) => {}
        }
    }
    entries
}

/// Two messages in a row, the first of which got no answer, are one.
fn push_user(entries: &mut Vec<Entry>, text: &str) {
    if let Some(Entry::User(before)) = entries.last_mut() {
        before.push_str("\n\n");
        before.push_str(text);
    } else {
        entries.push(Entry::User(text.to_owned()));
    }
}

fn push_assistant(entries: &mut Vec<Entry>, message: &AssistantMessage, wholes: &Wholes) {
    if message.text.is_empty() && message.tool_calls.is_empty() {
        return;
    }
    entries.push(Entry::Assistant {
        text: message.text.clone(),
        calls: message.tool_calls.iter().map(call).collect(),
        continuation: message.continuation.clone(),
    });
    if !message.tool_calls.is_empty() {
        let answers = message.tool_calls.iter().map(|card| {
            let whole = wholes.get(&card.call_id).cloned();
            ToolAnswer {
                id: card.model_call_id.clone(),
                name: card.name.clone(),
                text: whole.unwrap_or_else(|| answer_text(card, card.result.as_ref())),
            }
        });
        entries.push(Entry::Tools(answers.collect()));
    }
}

fn call(card: &ToolCard) -> ModelCall {
    ModelCall {
        id: card.model_call_id.clone(),
        name: card.name.clone(),
        arguments: card.arguments.clone(),
    }
}

/// What the model reads of a call that ended; `result` is the whole one.
pub(crate) fn answer_text(card: &ToolCard, result: Option<&Value>) -> String {
    match (card.status, result, &card.error) {
        (CallStatus::Done, Some(result), _) => result_text(result),
        (CallStatus::Error, Some(result), _) => format!("The tool failed: {}", result_text(result)),
        (CallStatus::Error, None, Some(problem)) => {
            let stack =
                problem.stack.as_ref().map(|stack| format!("\n{stack}")).unwrap_or_default();
            format!("The call failed: {}{stack}", problem.message)
        }
        (CallStatus::Cancelled | CallStatus::Running, ..) => {
            "The call was cancelled before it ended.".to_owned()
        }
        (CallStatus::Done | CallStatus::Error, None, _) => "(no output)".to_owned(),
    }
}
