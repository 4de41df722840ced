//! The facts about a server in a container: what was asked for, and what is in force.

use cofer_model::{Kind, ServerView};
use serde_json::Value;

use super::{BUSY, styled, text};

/// How much of a container's id people use.
const SHORT_ID: usize = 12;

/// What is true of it now.
pub(super) fn running_facts(server: &ServerView) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(preparing) = &server.preparing {
        facts.push(("Preparing", styled(BUSY, &text::line(preparing))));
    }
    if let Some(id) = &server.container_id {
        facts.push(("Container", text::line(id.get(..SHORT_ID).unwrap_or(id))));
    }
    if let Some(digest) = &server.image_digest {
        facts.push(("Digest", text::line(digest)));
    }
    if !server.endpoints.is_empty() {
        facts.push(("Endpoints", lines(server.endpoints.iter().map(|one| text::line(one)))));
    }
    if let Some(url) = &server.mcp_endpoint {
        facts.push(("MCP at", text::line(url)));
    }
    if let Some(Value::Object(isolation)) = &server.isolation {
        let told = isolation
            .iter()
            .map(|(name, value)| format!("{}: {}", text::line(name), value_words(value)));
        facts.push(("Isolation", lines(told)));
    }
    facts
}

/// What was asked for, where it is for containers only.
pub(super) fn configured_facts(server: &ServerView) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if server.kind != Kind::Container {
        return facts;
    }
    let limits = &server.resource_limits;
    let limits = format!(
        "{} cores, {} of memory, {} of disk, {} processes",
        limits.cpu, limits.memory, limits.disk, limits.pids
    );
    facts.push(("Limits", text::line(&limits)));
    facts.push(("Network", word(&server.network)));
    if let Some(provider) = &server.provider {
        facts.push(("Provider", word(provider)));
    }
    if let Some(require) = &server.require {
        facts.push(("Requires", word(require)));
    }
    if let Some(user) = &server.user {
        facts.push(("User", text::line(user)));
    }
    if !server.volumes.is_empty() {
        facts.push(("Volumes", lines(server.volumes.iter().map(|path| text::line(path)))));
    }
    if !server.openings.is_closed() {
        let openings = serde_json::to_value(&server.openings).unwrap_or_default();
        let given = openings.as_object().into_iter().flatten();
        let given = given.filter(|(_, value)| {
            !matches!(value, Value::Bool(false)) && *value != &Value::Array(Vec::new())
        });
        facts.push((
            "Openings",
            lines(given.map(|(name, value)| format!("{name}: {}", value_words(value)))),
        ));
    }
    facts
}

fn lines(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join("\n")
}

/// A JSON value as words: text as it is, lists in a row.
pub(crate) fn value_words(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text::line(text),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(value_words).collect::<Vec<_>>().join(", "),
        Value::Object(parts) => {
            let parts = parts
                .iter()
                .map(|(name, value)| format!("{}={}", text::line(name), value_words(value)));
            parts.collect::<Vec<_>>().join(" ")
        }
        Value::Number(number) => number.to_string(),
    }
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}
