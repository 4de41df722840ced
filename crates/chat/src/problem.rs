//! What a failed tool says of itself: a message for people, and its stack where it gave one.

use serde_json::Value;

use crate::message::Problem;

/// The keys under which servers put a stack.
const STACK_KEYS: [&str; 4] = ["stack", "traceback", "stacktrace", "stack_trace"];
/// The longest message and the longest stack that are kept.
const MAX_MESSAGE: usize = 2_000;
const MAX_STACK: usize = 64 * 1024;

/// The problem that a result with `isError` tells.
pub fn problem_of_result(result: &Value) -> Problem {
    let text = texts(result).join("\n");
    let structured = result.get("structuredContent");
    let stack =
        structured.and_then(stack_in).or_else(|| looks_like_stack(&text).then(|| text.clone()));
    let told = structured
        .and_then(|value| value.pointer("/error/message").or_else(|| value.get("message")))
        .and_then(Value::as_str);
    let message = match told {
        Some(message) => message.to_owned(),
        None if text.trim().is_empty() => "the tool failed and did not say why".to_owned(),
        None if stack.is_some() => headline(&text),
        None => text,
    };
    Problem {
        message: cut(&message, MAX_MESSAGE),
        stack: stack.map(|s| cut(&s, MAX_STACK)),
        code: None,
    }
}

/// The problem that a JSON-RPC error tells.
pub fn problem_of_rpc(code: i64, message: &str, data: Option<&Value>) -> Problem {
    let stack = data.and_then(|data| match data {
        Value::String(text) => Some(text.clone()),
        data => stack_in(data).or_else(|| serde_json::to_string_pretty(data).ok()),
    });
    Problem {
        message: cut(message, MAX_MESSAGE),
        stack: stack.map(|stack| cut(&stack, MAX_STACK)),
        code: Some(code),
    }
}

fn texts(result: &Value) -> Vec<&str> {
    let blocks = result.get("content").and_then(Value::as_array);
    blocks.into_iter().flatten().filter_map(|block| block.get("text")?.as_str()).collect()
}

fn stack_in(value: &Value) -> Option<String> {
    let named = |value: &Value| {
        STACK_KEYS.iter().find_map(|key| Some(value.get(key)?.as_str()?.to_owned()))
    };
    named(value).or_else(|| named(value.get("error")?))
}

/// Whether a text holds frames as JavaScript, Python, Java, Go or Rust write them.
fn looks_like_stack(text: &str) -> bool {
    text.contains("Traceback (most recent call last)")
        || text.contains("stack backtrace:")
        || text.contains("goroutine ")
        || text
            .lines()
            .skip(1)
            .any(|line| line.trim_start().starts_with("at ") && line.starts_with([' ', '\t']))
}

/// The line of a stack that says what happened: Python's is the last, the others' the first.
fn headline(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let python = text.contains("Traceback (most recent call last)");
    let line = if python { lines.next_back() } else { lines.next() };
    line.unwrap_or_default().to_owned()
}

fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failed(text: &str) -> Problem {
        problem_of_result(&json!({"content": [{"type": "text", "text": text}], "isError": true}))
    }

    #[test]
    fn a_message_without_a_stack_is_the_message() {
        // covers: MGR-70
        assert_eq!(
            failed("no such file: /x"),
            Problem { message: "no such file: /x".to_owned(), stack: None, code: None }
        );
        assert!(failed("").message.contains("did not say why"));
    }

    #[test]
    fn a_stack_is_told_apart_from_its_message() {
        // covers: MGR-70, MGR-71
        let node = "Error: boom\n    at f (/srv/x.js:1:2)\n    at main";
        assert_eq!(failed(node).message, "Error: boom");
        assert_eq!(failed(node).stack.as_deref(), Some(node));
        let python =
            "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: boom";
        assert_eq!(failed(python).message, "ValueError: boom");
        assert!(failed(python).stack.is_some());
        assert!(failed("look\nat this").stack.is_none(), "prose is no stack");
    }

    #[test]
    fn a_structured_error_is_read() {
        let result = json!({"content": [], "isError": true,
            "structuredContent": {"error": {"message": "not here", "stack": "at f"}}});
        let problem = problem_of_result(&result);
        assert_eq!(
            (problem.message.as_str(), problem.stack.as_deref()),
            ("not here", Some("at f"))
        );
    }

    #[test]
    fn the_data_of_a_json_rpc_error_is_its_stack() {
        let problem = problem_of_rpc(-32000, "boom", Some(&json!({"stack": "at f\nat g"})));
        assert_eq!(problem.stack.as_deref(), Some("at f\nat g"));
        assert_eq!(problem.code, Some(-32000));
        assert!(
            problem_of_rpc(-1, "x", Some(&json!({"a": 1}))).stack.unwrap().contains("\"a\": 1")
        );
        assert_eq!(problem_of_rpc(-1, "x", None).stack, None);
    }
}
