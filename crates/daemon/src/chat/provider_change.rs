//! A provider as a person wants it, checked: every mistake is found at once. Pure.

use cofer_chat::{ProviderKind, check_base_url, check_provider_id};
use cofer_model::FieldError;
use cofer_store::ProviderRecord;
use serde_json::{Map, Value};

use super::request::is_model;

/// The longest key.
const MAX_KEY: usize = 4096;
/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// Applies `map` to what was there, and names every mistake in it.
pub(super) fn changed(
    id: &str,
    map: &Map<String, Value>,
    before: Option<ProviderRecord>,
    fields: &mut Vec<FieldError>,
) -> ProviderRecord {
    let mut wrong = |field: &str, message: String| fields.push(FieldError::new(field, message));
    if let Err(problem) = check_provider_id(id) {
        wrong("id", problem);
    }
    let mut text = |field: &str, fits: fn(&str) -> bool, what: &str| match map.get(field) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if fits(text) => Some(text.trim().to_owned()),
        Some(_) => {
            wrong(field, what.to_owned());
            None
        }
    };
    let kind = text(
        "kind",
        |kind| ProviderKind::parse(kind).is_some(),
        "is none of openai, anthropic, gemini, ollama",
    );
    let name = text("name", is_name, "is not 1 to 100 characters on one line");
    let base_url = text("base_url", |_| true, "is not a text");
    let api_key = text("api_key", is_key, "is not printable ASCII, or too long");
    let model =
        text("default_model", |model| model.is_empty() || is_model(model), "is no name of a model");
    let kind = kind.or_else(|| before.as_ref().map(|before| before.kind.clone()));
    let kind = kind.as_deref().and_then(ProviderKind::parse);
    if kind.is_none() && !map.contains_key("kind") {
        wrong("kind", "is missing".to_owned());
    }
    let kind = kind.unwrap_or(ProviderKind::Openai);
    let old_url = before
        .as_ref()
        .filter(|before| before.kind == kind.as_str())
        .map(|before| before.base_url.clone());
    let base_url = match base_url.filter(|url| !url.is_empty()) {
        Some(url) => check_base_url(kind, &url).unwrap_or_else(|problem| {
            wrong("base_url", problem);
            String::new()
        }),
        None => old_url.unwrap_or_else(|| kind.base_url().to_owned()),
    };
    let is_default = match map.get("is_default") {
        Some(Value::Bool(on)) => *on,
        None | Some(Value::Null) => before.as_ref().is_some_and(|before| before.is_default),
        Some(_) => {
            wrong("is_default", "is neither true nor false".to_owned());
            false
        }
    };
    let old_key = before.as_ref().and_then(|before| before.api_key.clone());
    let moved = before.as_ref().is_some_and(|before| origin(&before.base_url) != origin(&base_url));
    if api_key.is_none() && old_key.is_some() && moved && !base_url.is_empty() {
        wrong("api_key", "has to be given again, since the address is another".to_owned());
    }
    ProviderRecord {
        id: id.to_owned(),
        kind: kind.as_str().to_owned(),
        name: name
            .or_else(|| before.as_ref().map(|before| before.name.clone()))
            .unwrap_or_else(|| id.to_owned()),
        base_url,
        api_key: api_key.or(old_key).filter(|key| !key.is_empty()),
        default_model: model
            .or_else(|| before.and_then(|before| before.default_model))
            .filter(|model| !model.is_empty()),
        is_default,
    }
}

/// Scheme, host and port.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    &url[..end]
}

fn is_name(name: &str) -> bool {
    let count = name.trim().chars().count();
    count > 0 && count <= MAX_NAME && !name.chars().any(char::is_control)
}

/// What can stand in a header.
fn is_key(key: &str) -> bool {
    key.len() <= MAX_KEY && key.trim().bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(body: Value, before: Option<ProviderRecord>) -> Result<ProviderRecord, Vec<String>> {
        let mut fields = Vec::new();
        let record = changed("lm", body.as_object().unwrap(), before, &mut fields);
        if fields.is_empty() {
            Ok(record)
        } else {
            Err(fields.into_iter().map(|field| field.field).collect())
        }
    }

    fn stored() -> ProviderRecord {
        change(json!({"kind": "openai", "base_url": "http://h:1/v1", "api_key": "sk-1", "default_model": "m"}), None).unwrap()
    }

    #[test]
    fn a_new_provider_has_what_it_does_not_say_from_its_kind() {
        let record = change(json!({"kind": "anthropic"}), None).unwrap();
        assert_eq!(record.base_url, ProviderKind::Anthropic.base_url());
        assert_eq!((record.name.as_str(), record.api_key, record.is_default), ("lm", None, false));
    }

    #[test]
    fn what_is_not_mentioned_stays_and_an_empty_key_removes_it() {
        let kept = change(json!({"name": "Mine", "is_default": true}), Some(stored())).unwrap();
        assert_eq!(kept.api_key.as_deref(), Some("sk-1"));
        assert_eq!((kept.default_model.as_deref(), kept.is_default), (Some("m"), true));
        let gone = change(json!({"api_key": "", "default_model": ""}), Some(stored())).unwrap();
        assert_eq!((gone.api_key, gone.default_model), (None, None));
    }

    #[test]
    fn a_key_does_not_follow_to_another_address() {
        let moved = change(json!({"base_url": "http://evil:1/v1"}), Some(stored()));
        assert_eq!(moved.unwrap_err(), ["api_key"]);
        let path = change(json!({"base_url": "http://h:1/other"}), Some(stored())).unwrap();
        assert_eq!(path.api_key.as_deref(), Some("sk-1"), "the same server");
        assert!(
            change(json!({"base_url": "http://evil:1/", "api_key": "sk-2"}), Some(stored()))
                .is_ok()
        );
    }

    #[test]
    fn every_mistake_is_named() {
        for (body, field) in [
            (json!({}), "kind"),
            (json!({"kind": "x"}), "kind"),
            (json!({"kind": "openai", "base_url": "file:///x"}), "base_url"),
            (json!({"kind": "openai", "base_url": 1}), "base_url"),
            (json!({"kind": "openai", "api_key": "a\nb"}), "api_key"),
            (json!({"kind": "openai", "api_key": "schlüssel"}), "api_key"),
            (json!({"kind": "openai", "name": ""}), "name"),
            (json!({"kind": "openai", "default_model": 7}), "default_model"),
            (json!({"kind": "openai", "is_default": "yes"}), "is_default"),
        ] {
            assert_eq!(change(body.clone(), None).unwrap_err(), [field], "{body}");
        }
    }
}
