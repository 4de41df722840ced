//! The headers of Streamable HTTP, and how values that are no plain text are put into one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::raw::text_member;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What every POST accepts, and what a GET does.
pub(super) const ANY_ANSWER: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");
pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Says in headers what a message asks for and of whom. The revision of 2026-07-28 wants it; to
/// servers of older ones it is a header like any other.
pub(super) fn describe(headers: &mut HeaderMap, method: &str, params: Option<&Bytes>) {
    headers.insert(METHOD, encoded(method));
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => "taskId",
        _ => return,
    };
    if let Some(name) = params.and_then(|params| text_member(params, key)) {
        headers.insert(NAME, encoded(&name));
    }
}

/// A value as it is, or in the form that carries any text.
pub(super) fn encoded(value: &str) -> HeaderValue {
    let plain = value.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    let disguised = value.starts_with("=?base64?") && value.ends_with("?=");
    let as_it_is = (plain && !padded && !disguised).then(|| HeaderValue::from_str(value).ok());
    as_it_is.flatten().unwrap_or_else(|| {
        let text = format!("=?base64?{}?=", STANDARD.encode(value));
        HeaderValue::from_str(&text).expect("base64 is plain text")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (value, expected) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("us west 1", "us west 1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_message_is_described_by_its_method_and_what_it_names() {
        let described = |method: &str, params: &'static str| {
            let mut headers = HeaderMap::new();
            describe(&mut headers, method, Some(&Bytes::from_static(params.as_bytes())));
            let text = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            (text(METHOD), text(NAME))
        };
        let both = |method: &str, name: &str| (Some(method.to_owned()), Some(name.to_owned()));
        assert_eq!(described("tools/call", r#"{"name":"a"}"#), both("tools/call", "a"));
        assert_eq!(
            described("resources/read", r#"{"uri":"f://x"}"#),
            both("resources/read", "f://x")
        );
        let only = (Some("tools/list".to_owned()), None);
        assert_eq!(described("tools/list", r#"{"name":"a"}"#), only);
    }
}
