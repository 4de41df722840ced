//! Fields that clients name differently: tool lists and timeouts.

use serde_json::{Map, Number, Value};

/// A whole day, the longest timeout of a registration.
const MAX_MS: f64 = 86_400_000.0;
/// Cline and Roo Code have `timeout` in seconds, of which they allow at most so many; Gemini CLI,
/// Claude Code, Copilot and others have it in milliseconds.
const MAX_SECONDS: f64 = 3600.0;

/// The field of a registration for a list of tools, by its name in a client.
pub(super) fn tool_list(key: &str) -> Option<&'static str> {
    match key {
        "includeTools" | "allowedTools" | "enabledTools" | "enabled_tools" | "tools" => {
            Some("tools_allow")
        }
        "excludeTools" | "disabledTools" | "disabled_tools" => Some("tools_deny"),
        _ => None,
    }
}

/// Adds a list of tools; one that offers all of them is none.
pub(super) fn insert_tools(body: &mut Map<String, Value>, field: &str, value: Value) {
    let is_all = |list: &Vec<Value>| list.iter().any(|tool| tool == "*");
    if field == "tools_allow" && value.as_array().is_some_and(is_all) {
        return;
    }
    match (body.get_mut(field).and_then(Value::as_array_mut), value) {
        (Some(list), Value::Array(more)) => list.extend(more),
        (_, value) => drop(body.insert(field.to_owned(), value)),
    }
}

/// The field of a registration for a timeout, and the value in milliseconds.
pub(super) fn timeout(key: &str, value: &Value) -> Option<(&'static str, Value)> {
    let number = value.as_f64().filter(|number| *number > 0.0)?;
    let (field, ms) = match key {
        "timeout" if number <= MAX_SECONDS => ("call_timeout_ms", number * 1000.0),
        "timeout" | "tool_timeout_ms" => ("call_timeout_ms", number),
        "tool_timeout_sec" => ("call_timeout_ms", number * 1000.0),
        "startup_timeout_ms" => ("start_timeout_ms", number),
        "startup_timeout_sec" => ("start_timeout_ms", number * 1000.0),
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to MAX_MS")]
    let ms = ms.round().clamp(1.0, MAX_MS) as u64;
    Some((field, Value::Number(Number::from(ms))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn timeouts_are_seconds_or_milliseconds_by_their_size() {
        for (key, value, expected) in [
            ("timeout", json!(60), ("call_timeout_ms", 60_000)),
            ("timeout", json!(3600), ("call_timeout_ms", 3_600_000)),
            ("timeout", json!(30_000), ("call_timeout_ms", 30_000)),
            ("timeout", json!(1e12), ("call_timeout_ms", 86_400_000)),
            ("tool_timeout_sec", json!(0.5), ("call_timeout_ms", 500)),
            ("startup_timeout_sec", json!(20), ("start_timeout_ms", 20_000)),
            ("startup_timeout_ms", json!(20), ("start_timeout_ms", 20)),
        ] {
            assert_eq!(
                timeout(key, &value),
                Some((expected.0, expected.1.into())),
                "{key} {value}"
            );
        }
        assert_eq!(timeout("timeout", &json!("soon")), None);
        assert_eq!(timeout("timeout", &json!(0)), None);
        assert_eq!(timeout("other", &json!(1)), None);
    }
}
