//! A tool's result in two smaller forms: cut, for lists and events, and as text, for the model.

use serde_json::{Map, Value};

/// A result up to this size is listed whole.
pub const LISTED_BYTES: usize = 64 * 1024;
/// What of one string is listed where the result is larger.
const LISTED_STRING: usize = 16 * 1024;
/// What a model is given of one result.
const MODEL_BYTES: usize = 100_000;

/// The result as it is listed, and whether something is missing from it.
pub fn cut_result(result: &Value) -> (Value, bool) {
    if size(result) <= LISTED_BYTES {
        return (result.clone(), false);
    }
    let mut room = LISTED_BYTES;
    (shorten(result, &mut room), true)
}

/// The bytes of its JSON.
fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Keeps the shape and cuts strings; what comes when the room is used up is left out.
fn shorten(value: &Value, room: &mut usize) -> Value {
    match value {
        Value::String(text) => {
            let limit = LISTED_STRING.min(*room);
            let head = head(text, limit);
            *room -= head.len();
            Value::from(head)
        }
        Value::Array(items) => {
            let kept = items.iter().map_while(|item| take(room, 2).then(|| shorten(item, room)));
            Value::Array(kept.collect())
        }
        Value::Object(map) => {
            let mut kept = Map::new();
            for (key, item) in map {
                if !take(room, key.len() + 4) {
                    break;
                }
                kept.insert(key.clone(), shorten(item, room));
            }
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            *room = room.saturating_sub(8);
            value.clone()
        }
    }
}

fn take(room: &mut usize, bytes: usize) -> bool {
    match room.checked_sub(bytes) {
        Some(left) if left > 0 => {
            *room = left;
            true
        }
        _ => false,
    }
}

fn head(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What a model reads of a result: its texts, and a word for what is no text.
pub fn result_text(result: &Value) -> String {
    let blocks = ["content", "contents", "messages"]
        .iter()
        .find_map(|key| result.get(key).and_then(Value::as_array));
    let mut parts: Vec<String> = blocks.into_iter().flatten().map(block_text).collect();
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    if let (true, Some(structured)) = (parts.iter().all(|part| part.trim().is_empty()), structured)
    {
        parts = vec![structured.to_string()];
    }
    if blocks.is_none() && structured.is_none() {
        parts = vec![result.to_string()];
    }
    let text = parts.join("\n");
    if text.trim().is_empty() {
        return "(the tool gave no output)".to_owned();
    }
    if text.len() <= MODEL_BYTES {
        return text;
    }
    let shown = head(&text, MODEL_BYTES);
    format!("{shown}\n[cut: {} of {} bytes are shown]", shown.len(), text.len())
}

fn block_text(block: &Value) -> String {
    let field = |key: &str| block.get(key).and_then(Value::as_str);
    if let Some(text) = field("text") {
        return text.to_owned();
    }
    if let Some(resource) = block.get("resource") {
        return block_text(resource);
    }
    let mime = field("mimeType").unwrap_or("unknown type");
    let uri = field("uri").map(|uri| format!(" {uri}")).unwrap_or_default();
    let kind = field("type").unwrap_or("resource");
    match field("data").or_else(|| field("blob")) {
        Some(data) => {
            format!("[{kind}{uri}, {mime}, {} bytes in base64, not shown to you]", data.len())
        }
        None => format!("[{kind}{uri}, {mime}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_small_result_is_listed_as_it_is() {
        let result = json!({"content": [{"type": "text", "text": "x"}]});
        assert_eq!(cut_result(&result), (result.clone(), false));
    }

    #[test]
    fn a_large_result_keeps_its_shape_and_a_bounded_size() {
        let text = "日本".repeat(200_000);
        let result =
            json!({"content": [{"type": "text", "text": text}, {"type": "text", "text": "end"}]});
        let (cut, truncated) = cut_result(&result);
        assert!(truncated);
        assert!(size(&cut) <= LISTED_BYTES);
        assert!(text.starts_with(cut["content"][0]["text"].as_str().unwrap()));
        assert_eq!(cut["content"][1]["text"], "end");
    }

    #[test]
    fn very_many_small_things_are_bounded_too() {
        let result = json!({"content": (0..100_000).map(|n| json!({"n": n})).collect::<Vec<_>>()});
        let (cut, truncated) = cut_result(&result);
        assert!(truncated && size(&cut) <= 2 * LISTED_BYTES, "{}", size(&cut));
    }

    #[test]
    fn a_model_reads_texts_and_is_told_of_the_rest() {
        let result = json!({"content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "f:///x", "text": "inside"}},
            {"type": "resource_link", "uri": "f:///y", "name": "y"}]});
        assert_eq!(
            result_text(&result),
            "hello\n[image, image/png, 4 bytes in base64, not shown to you]\ninside\n[resource_link f:///y, unknown type]"
        );
        assert_eq!(
            result_text(&json!({"content": [], "structuredContent": {"a": 1}})),
            r#"{"a":1}"#
        );
        assert_eq!(result_text(&json!({"content": []})), "(the tool gave no output)");
        assert_eq!(result_text(&json!({"contents": [{"uri": "u", "text": "body"}]})), "body");
        assert_eq!(result_text(&json!({"resources": [1]})), r#"{"resources":[1]}"#);
    }

    #[test]
    fn a_model_is_not_drowned() {
        let text =
            result_text(&json!({"content": [{"type": "text", "text": "é".repeat(1 << 20)}]}));
        assert!(text.len() < MODEL_BYTES + 100);
        assert!(text.ends_with("of 2097152 bytes are shown]"), "{}", &text[text.len() - 60..]);
    }
}
