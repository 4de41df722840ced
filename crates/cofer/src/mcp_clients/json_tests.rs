//! Texts as editors and people write them, before and after.

use serde_json::json;

use super::*;

fn entry() -> Value {
    json!({"command": "cofer", "args": ["connect"]})
}

fn with_entry(text: &str) -> String {
    set(text, "mcpServers", "cofer", &entry()).unwrap()
}

/// Setting is idempotent, and taking the entry out again gives what is expected.
fn check(text: &str, expected: &str, taken_out: &str) {
    let changed = with_entry(text);
    assert_eq!(changed, expected);
    assert_eq!(with_entry(&changed), changed, "twice is as good as once");
    assert_eq!(get(&changed, "mcpServers", "cofer").unwrap(), Some(entry()));
    assert_eq!(remove(&changed, "mcpServers", "cofer").unwrap().unwrap(), taken_out);
}

#[test]
fn an_empty_file_gets_a_whole_object() {
    let whole = "{\n  \"mcpServers\": {\n    \"cofer\": {\n      \"command\": \"cofer\",\n      \"args\": [\"connect\"]\n    }\n  }\n}\n";
    check("", whole, "{\n  \"mcpServers\": {\n  }\n}\n");
    assert_eq!(with_entry("{}"), whole.trim_end());
    assert_eq!(with_entry("// mine\n"), format!("// mine\n{whole}"));
}

#[test]
fn others_stay_as_they_are_with_their_comments() {
    let text = "{\n\t// my servers\n\t\"mcpServers\": {\n\t\t\"fs\": { \"command\": \"npx\" } // files\n\t},\n\t\"theme\": \"dark\", // at night\n}\n";
    let changed = "{\n\t// my servers\n\t\"mcpServers\": {\n\t\t\"fs\": { \"command\": \"npx\" }, // files\n\t\t\"cofer\": {\n\t\t\t\"command\": \"cofer\",\n\t\t\t\"args\": [\"connect\"]\n\t\t}\n\t},\n\t\"theme\": \"dark\", // at night\n}\n";
    check(text, changed, text);
}

#[test]
fn a_trailing_comma_is_kept() {
    let text = "{\n  \"mcpServers\": {\n    \"fs\": {},\n    // last\n  },\n}\n";
    let changed = text.replace(
        "{},\n",
        "{},\n    \"cofer\": {\n      \"command\": \"cofer\",\n      \"args\": [\"connect\"]\n    },\n",
    );
    check(text, &changed, text);
}

#[test]
fn an_entry_between_others_is_taken_out_alone() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": 1, // one\n    \"cofer\": {\"x\": 1}, // ours\n    \"b\": 2\n  }\n}\n";
    let removed = remove(text, "mcpServers", "cofer").unwrap().unwrap();
    assert_eq!(
        removed,
        "{\n  \"mcpServers\": {\n    \"a\": 1, // one // ours\n    \"b\": 2\n  }\n}\n"
    );
    let first = "{\"mcpServers\": {\"cofer\": 1, \"b\": 2}}";
    let removed = remove(first, "mcpServers", "cofer").unwrap().unwrap();
    assert_eq!(removed, "{\"mcpServers\": { \"b\": 2}}");
    assert_eq!(remove(first, "mcpServers", "other").unwrap(), None);
    assert_eq!(remove("", "mcpServers", "cofer").unwrap(), None);
}

#[test]
fn a_text_on_one_line_stays_on_one() {
    check(
        r#"{"a":1,"mcpServers":{"fs":{}}}"#,
        r#"{"a":1,"mcpServers":{"fs":{}, "cofer": {"command":"cofer","args":["connect"]}}}"#,
        r#"{"a":1,"mcpServers":{"fs":{}}}"#,
    );
    assert_eq!(
        with_entry(r#"{"a": 1}"#),
        r#"{"a": 1, "mcpServers": {"cofer":{"command":"cofer","args":["connect"]}}}"#
    );
}

#[test]
fn windows_line_ends_and_marks_stay() {
    let text = "\u{feff}{\r\n    \"a\": 1\r\n}\r\n";
    let changed = with_entry(text);
    assert!(
        changed.starts_with(
            "\u{feff}{\r\n    \"a\": 1,\r\n    \"mcpServers\": {\r\n        \"cofer\""
        ),
        "{changed:?}"
    );
    assert_eq!(changed.matches('\n').count(), changed.matches("\r\n").count());
}

#[test]
fn an_older_entry_is_replaced_where_it_stands() {
    let text = "{\n  \"mcpServers\": {\n    \"cofer\": {\"command\": \"old\"}, // ours\n    \"b\": {}\n  }\n}\n";
    let changed = with_entry(text);
    assert!(changed.contains("    \"cofer\": {\n      \"command\": \"cofer\","), "{changed}");
    assert!(changed.contains("    }, // ours\n    \"b\": {}\n"), "{changed}");
}

#[test]
fn an_object_with_nothing_but_a_comment_keeps_it() {
    let changed = with_entry("{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n");
    assert!(changed.contains("    // none yet\n    \"cofer\": {"), "{changed}");
    assert!(changed.ends_with("    }\n  }\n}\n"), "{changed}");
}

#[test]
fn what_is_no_object_is_not_touched() {
    let wrong = set(r#"{"mcpServers": []}"#, "mcpServers", "cofer", &entry()).unwrap_err();
    assert_eq!(wrong, JsonError::NotAnObject("mcpServers".to_owned()));
    assert!(set("{", "mcpServers", "cofer", &entry()).is_err());
}
