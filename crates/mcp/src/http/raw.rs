//! A JSON-RPC message as its bytes, with the little that forwarding it needs to know.

use bytes::{BufMut as _, Bytes, BytesMut};
use memchr::memmem;

use crate::members::member;
use crate::message::{Malformed, Parts};
use crate::object::read_object;

/// Where a request of the era without sessions says its protocol revision.
const VERSION_KEYS: [&str; 2] =
    ["io.modelcontextprotocol/protocolVersion", r"io.modelcontextprotocol\/protocolVersion"];

/// One message, its parts as slices of the text it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Raw {
    /// All of it, on one line.
    pub(super) text: Bytes,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Request { id: Bytes, method: String, params: Option<Bytes> },
    Notification { method: String, params: Option<Bytes> },
    Response { id: Option<Bytes>, result: Option<Bytes>, error: Option<Bytes> },
}

/// What is JSON and no JSON-RPC message, or is not even JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unreadable {
    NotJson(Malformed),
    NotRpc { id: Option<Bytes>, reason: &'static str },
}

impl Raw {
    /// Reads a text that holds one message.
    pub(super) fn read(text: Bytes) -> Result<Self, Unreadable> {
        let text = on_one_line(text);
        let mut parts: [Option<&[u8]>; 5] = [None; 5];
        read_object(&text, |key, value| {
            let at = match key {
                b"id" => 0,
                b"method" => 1,
                b"params" => 2,
                b"result" => 3,
                b"error" => 4,
                _ => return,
            };
            parts[at] = Some(value);
        })
        .map_err(Unreadable::NotJson)?;
        let [id, method, params, result, error] =
            parts.map(|part| part.map(|part| text.slice_ref(part)));
        let id = id.filter(|id| id != "null");
        let wrong = |reason| Unreadable::NotRpc { id: id.clone(), reason };
        if id.as_ref().is_some_and(|id| matches!(id[0], b'{' | b'[' | b't' | b'f')) {
            return Err(Unreadable::NotRpc { id: None, reason: "its id is no string or number" });
        }
        let kind = match (method, result, error) {
            (Some(method), None, None) => {
                let method = text_of(&method).ok_or(wrong("its method is no string"))?;
                match id {
                    Some(id) => Kind::Request { id, method, params },
                    None => Kind::Notification { method, params },
                }
            }
            (None, None, None) => {
                return Err(wrong("it has no method, result or error"));
            }
            (None, result, error) => Kind::Response { id, result, error },
            _ => return Err(wrong("it is a request and a response at once")),
        };
        Ok(Self { text, kind })
    }

    /// The same response, to the request `id`.
    pub(super) fn with_id(&self, id: &Bytes) -> Bytes {
        let Kind::Response { result, error, .. } = &self.kind else {
            return self.text.clone();
        };
        let (name, value) = match (result, error) {
            (_, Some(error)) => ("error", error),
            (Some(result), None) => ("result", result),
            (None, None) => return self.text.clone(),
        };
        let mut text = BytesMut::with_capacity(id.len() + value.len() + 40);
        text.put_slice(br#"{"jsonrpc":"2.0","id":"#);
        text.put_slice(id);
        text.put_slice(format!(",\"{name}\":").as_bytes());
        text.put_slice(value);
        text.put_u8(b'}');
        text.freeze()
    }
}

/// The messages in a text: one, or several where it is an array. Each stands for itself.
pub(super) fn messages(text: &Bytes) -> Result<Vec<Result<Raw, Unreadable>>, Malformed> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'[') {
        return Ok(vec![Raw::read(text.clone())]);
    }
    let Parts(parts) =
        serde_json::from_slice(text).map_err(|error| Malformed { reason: error.to_string() })?;
    let part = |part: &str| Raw::read(text.slice_ref(part.as_bytes()));
    Ok(parts.into_iter().map(|raw| part(raw.get())).collect())
}

/// The revision that a request names for itself; only those without sessions do.
pub(super) fn own_version(params: Option<&Bytes>) -> Option<String> {
    let params = params?;
    // Most requests name none; a search is much cheaper than a walk.
    memmem::find(params, b"io.modelcontextprotocol")?;
    let meta = member(params, "_meta")?;
    VERSION_KEYS.iter().find_map(|key| text_of(member(meta, key)?))
}

/// The string member `key` of the object `json`.
pub(super) fn text_member(json: &[u8], key: &str) -> Option<String> {
    text_of(member(json, key)?)
}

/// What a JSON string says.
pub(super) fn text_of(json: &[u8]) -> Option<String> {
    serde_json::from_slice(json).ok()
}

/// Ids that are equal as JSON are equal as bytes.
pub(super) fn canonical(id: &Bytes) -> Bytes {
    let plain = match id.first() {
        Some(b'"') => memchr::memchr(b'\\', id).is_none(),
        _ => !id.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) && id != "-0",
    };
    if plain {
        return id.clone();
    }
    match serde_json::from_slice(id) {
        Ok(serde_json::Value::String(text)) => serde_json::Value::from(text).to_string().into(),
        Ok(serde_json::Value::Number(number)) => match number.as_f64() {
            Some(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                format!("{number:.0}").replace("-0", "0").into()
            }
            _ => id.clone(),
        },
        _ => id.clone(),
    }
}

/// A line end in valid JSON is white space between tokens: a blank serves as well, and does
/// not end the line.
fn on_one_line(text: Bytes) -> Bytes {
    let text = trimmed(text);
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

fn trimmed(text: Bytes) -> Bytes {
    let inner = text.trim_ascii();
    if inner.len() == text.len() { text } else { text.slice_ref(inner) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Raw, Unreadable> {
        Raw::read(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn a_message_is_told_by_what_it_has() {
        let Kind::Request { id, method, params } =
            read(r#"{"id":"a","method":"tools\/call","params":{"x":1.0}}"#).unwrap().kind
        else {
            panic!("no request");
        };
        assert_eq!((&id[..], &method[..]), (&br#""a""#[..], "tools/call"));
        assert_eq!(params.unwrap(), r#"{"x":1.0}"#);
        for text in [r#"{"method":"x"}"#, r#"{"id":null,"method":"x"}"#] {
            assert!(matches!(read(text).unwrap().kind, Kind::Notification { .. }), "{text}");
        }
        let answer = read(r#"{"id":null,"result":{}}"#).unwrap();
        assert!(matches!(answer.kind, Kind::Response { id: None, .. }));
        for text in [
            r#"{"id":1}"#,
            r#"{"id":{},"method":"x"}"#,
            r#"{"id":1,"method":3}"#,
            r#"{"id":1,"method":"x","result":1}"#,
        ] {
            assert!(matches!(read(text), Err(Unreadable::NotRpc { .. })), "{text}");
        }
        assert!(matches!(read("{"), Err(Unreadable::NotJson(_))));
    }

    #[test]
    fn a_message_on_many_lines_becomes_one_line_and_is_the_same() {
        let raw = read("\n{\r\n \"id\": 1,\n \"result\": {\"s\": \"a\\nb\"}\n}\n").unwrap();
        assert!(!raw.text.contains(&b'\n') && !raw.text.contains(&b'\r'));
        let value: serde_json::Value = serde_json::from_slice(&raw.text).unwrap();
        assert_eq!(value["result"]["s"], "a\nb");
    }

    #[test]
    fn an_answer_to_nobody_gets_the_id_of_the_one_that_asked() {
        let raw = read(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x","data":{"n":1e2}}}"#,
        )
        .unwrap();
        let text = raw.with_id(&Bytes::from_static(b"\"q\""));
        assert_eq!(
            text,
            r#"{"jsonrpc":"2.0","id":"q","error":{"code":-32000,"message":"x","data":{"n":1e2}}}"#
        );
    }

    #[test]
    fn ids_that_are_written_differently_are_the_same() {
        let same = |a: &'static str, b: &'static str| {
            canonical(&Bytes::from_static(a.as_bytes()))
                == canonical(&Bytes::from_static(b.as_bytes()))
        };
        assert!(
            same("1", "1.0")
                && same("10", "1e1")
                && same(r#""A""#, r#""\u0041""#)
                && same("0", "-0")
        );
        assert!(!same("1", r#""1""#) && !same("1", "1.5"));
        assert!(!same("18446744073709551615", "18446744073709551614"));
    }

    #[test]
    fn the_revision_is_found_where_it_belongs() {
        let version = |text: &'static str| own_version(Some(&Bytes::from_static(text.as_bytes())));
        assert_eq!(
            version(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#)
                .as_deref(),
            Some("2026-07-28")
        );
        assert_eq!(
            version(r#"{"_meta":{"io.modelcontextprotocol\/protocolVersion":"x"}}"#).as_deref(),
            Some("x")
        );
        assert_eq!(
            version(r#"{"arguments":{"io.modelcontextprotocol/protocolVersion":"x"}}"#),
            None
        );
        assert_eq!(version(r#"{"_meta":{"progressToken":1}}"#), None);
    }
}
