//! Finds a member of a JSON object without parsing the values that it passes over.
//!
//! For JSON that was parsed before and is looked at again: a megabyte of text is passed over
//! at the speed of a search for its closing quote. On what is not valid JSON it finds nothing
//! or something of no meaning, but never panics.

use memchr::memchr2;

/// The value of the first member `key` of the object `json`, as it stands there.
pub fn member<'a>(json: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let start = value_start(json, key)?;
    json.get(start..value_end(json, start)?)
}

/// The same, or the first `limit` bytes of it where it has more: then nobody looks for its end.
pub fn member_beginning<'a>(json: &'a [u8], key: &str, limit: usize) -> Option<&'a [u8]> {
    let rest = json.get(value_start(json, key)?..)?;
    let head = &rest[..rest.len().min(limit)];
    match value_end(head, 0) {
        Some(end) => head.get(..end),
        None if head.len() < rest.len() => Some(head),
        None => None,
    }
}

/// Where the value of the first member `key` begins.
fn value_start(json: &[u8], key: &str) -> Option<usize> {
    let mut at = skip_space(json, 0);
    if json.get(at) != Some(&b'{') {
        return None;
    }
    at += 1;
    loop {
        at = skip_space(json, at);
        let key_end = string_end(json, at)?;
        let found = json.get(at + 1..key_end - 1)? == key.as_bytes();
        at = skip_space(json, key_end);
        if json.get(at) != Some(&b':') {
            return None;
        }
        let start = skip_space(json, at + 1);
        if found {
            return Some(start);
        }
        at = skip_space(json, value_end(json, start)?);
        if json.get(at) != Some(&b',') {
            return None;
        }
        at += 1;
    }
}

fn skip_space(json: &[u8], at: usize) -> usize {
    let rest = json.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len())
}

fn value_end(json: &[u8], at: usize) -> Option<usize> {
    match json.get(at)? {
        b'"' => string_end(json, at),
        b'{' | b'[' => nested_end(json, at),
        _ => {
            let rest = json.get(at..)?;
            let scalar =
                |byte: &u8| !matches!(byte, b',' | b'}' | b']') && !byte.is_ascii_whitespace();
            Some(at + rest.iter().position(|byte| !scalar(byte)).unwrap_or(rest.len()))
        }
    }
}

fn nested_end(json: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = open;
    loop {
        match json.get(at)? {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                at = string_end(json, at)?;
                continue;
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// One past the closing quote of the string that opens at `at`.
fn string_end(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        let rest = json.get(at..)?;
        let stop = memchr2(b'"', b'\\', rest)?;
        if rest[stop] == b'"' {
            return Some(at + stop + 1);
        }
        at += stop + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(json: &str, key: &str, expected: Option<&str>) {
        assert_eq!(member(json.as_bytes(), key), expected.map(str::as_bytes), "{json}");
    }

    #[test]
    fn a_member_is_found_wherever_it_stands() {
        let text = r#" { "a" : {"name":"no","x":["}",{}]} , "name":"yes" , "z": -1.5e3 } "#;
        check(text, "name", Some(r#""yes""#));
        check(text, "a", Some(r#"{"name":"no","x":["}",{}]}"#));
        check(text, "z", Some("-1.5e3"));
        check(text, "x", None);
        check(r#"{"s":"a\\\"b\\","k":true}"#, "k", Some("true"));
        check(r#"{"k":null}"#, "k", Some("null"));
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in
            ["", "[]", "5", "{", "{}", r#"{"k"}"#, r#"{"k":}"#, r#"{"k":"open"#, r#"{"a":1 "k":2}"#]
        {
            let found = member(text.as_bytes(), "k");
            assert!(found.is_none_or(|value| value.is_empty()), "{text}: {found:?}");
        }
    }

    #[test]
    fn of_a_large_member_the_beginning_is_given() {
        let text = br#"{"name":"x","arguments":{"a":"0123456789"},"_meta":{}}"#;
        let beginning = |limit| member_beginning(text, "arguments", limit).unwrap();
        assert_eq!(beginning(8), br#"{"a":"01"#);
        for limit in [18, 19, 1000] {
            assert_eq!(beginning(limit), br#"{"a":"0123456789"}"#, "{limit}");
        }
        assert_eq!(member_beginning(text, "other", 8), None);
        assert_eq!(member_beginning(br#"{"a":"open"#, "a", 1000), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_finds_what_a_parser_finds(a in any_json(), b in any_json(), c in any_json(), pretty: bool) {
            let value = json!({"a": a, "b": b, "c": c});
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            for key in ["a", "b", "c"] {
                let found: Value = serde_json::from_slice(member(text.as_bytes(), key).unwrap()).unwrap();
                prop_assert_eq!(&found, &value[key]);
            }
            prop_assert_eq!(member(text.as_bytes(), "d"), None);
        }

        #[test]
        fn it_never_panics(bytes in prop::collection::vec(prop::sample::select(br#"{}[]":,\ak1 "#.to_vec()), 0..60)) {
            member(&bytes, "k");
        }
    }
}
