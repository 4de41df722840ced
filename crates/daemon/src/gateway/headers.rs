//! What a request of the newer era says of itself in headers, held against what it says in its
//! body: whoever routes by the one and whoever runs the other must see the same.

use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cofer_model::ServerId;

use super::Gateway;
use super::asker::{Asker, AskerEra};
use super::rpc::{Fault, HEADER_MISMATCH, text_member};

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// How the headers begin that carry arguments.
const PARAM: &str = "mcp-param-";
/// What a tool's schema has where an argument is carried by a header.
const ANNOTATION: &[u8] = b"x-mcp-header";

/// Holds `Mcp-Method` and `Mcp-Name` against the body.
pub(super) fn check_headers(
    headers: &HeaderMap,
    method: &str,
    params: Option<&Bytes>,
) -> Result<(), Fault> {
    check_one(headers, &METHOD, "Mcp-Method", method)?;
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        // Clients that do not send it yet are not turned away.
        "tasks/get" | "tasks/update" | "tasks/cancel" if headers.contains_key(&NAME) => "taskId",
        _ => return Ok(()),
    };
    match params.and_then(|params| text_member(params, key)) {
        Some(name) => check_one(headers, &NAME, "Mcp-Name", &name),
        None => Ok(()),
    }
}

fn check_one(headers: &HeaderMap, name: &HeaderName, shown: &str, body: &str) -> Result<(), Fault> {
    let Some(value) = headers.get(name) else {
        return Err(mismatch(format!("the header `{shown}` is missing")));
    };
    let Some(said) = decode(value) else {
        return Err(mismatch(format!("the header `{shown}` cannot be read")));
    };
    if said == body {
        return Ok(());
    }
    Err(mismatch(format!("the header `{shown}` says {said:?}, and the body {body:?}")))
}

fn mismatch(message: String) -> Fault {
    Fault::new(HEADER_MISMATCH, message)
}

/// What a header says: plain text, or any text in Base64.
fn decode(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    let encoded = text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?="));
    match encoded {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// The headers that carry arguments.
pub(super) fn param_headers(headers: &HeaderMap) -> HeaderMap {
    let carries = |name: &HeaderName| name.as_str().starts_with(PARAM);
    let mut params = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| carries(name)) {
        params.append(name.clone(), value.clone());
    }
    params
}

impl Gateway {
    /// Learns from a page of tools which arguments are carried by headers.
    pub(super) fn learn_headers(&self, server: ServerId, page: &[u8], is_first: bool) {
        let knows =
            || self.watchers().get(&server).is_some_and(|watcher| !watcher.mirrored.is_empty());
        if memchr::memmem::find(page, ANNOTATION).is_none() && !knows() {
            return;
        }
        if let Some(handle) = self.0.supervisor.get(server) {
            self.watch(&handle).mirrored.learn(page, is_first);
        }
    }

    /// Holds the arguments of a call against the headers that carry them.
    pub(super) fn check_mirrored(
        &self,
        asker: &Asker,
        server: ServerId,
        params: Option<&[u8]>,
    ) -> Result<(), Fault> {
        let (AskerEra::Stateless(stateless), Some(params)) = (&asker.era, params) else {
            return Ok(());
        };
        let watcher = self.watchers().get(&server).cloned();
        let Some(watcher) = watcher.filter(|watcher| !watcher.mirrored.is_empty()) else {
            return Ok(());
        };
        let mut expected = HeaderMap::new();
        watcher.mirrored.mirror(params, &mut expected);
        for (name, body) in &expected {
            let said = stateless.headers.get(name).and_then(decode);
            let body = decode(body);
            let same = match (&said, &body) {
                (Some(said), Some(body)) => is_same(said, body),
                _ => false,
            };
            if !same {
                let message = format!("the header `{name}` says {said:?}, and the body {body:?}");
                return Err(mismatch(message));
            }
        }
        Ok(())
    }
}

/// Texts that are the same, or numbers that are.
fn is_same(a: &str, b: &str) -> bool {
    a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(pairs: &[(&str, &str)], method: &str, params: &'static str) -> Option<i64> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let params = Bytes::from_static(params.as_bytes());
        check_headers(&headers, method, Some(&params)).err().map(|fault| fault.code())
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let list = ("mcp-method", "tools/list");
        assert_eq!(code(&[list], "tools/list", "{}"), None);
        assert_eq!(code(&[], "tools/list", "{}"), Some(HEADER_MISMATCH));
        assert_eq!(
            code(&[("mcp-method", "TOOLS/LIST")], "tools/list", "{}"),
            Some(HEADER_MISMATCH)
        );
        let call = ("mcp-method", "tools/call");
        let params = r#"{"name":"世"}"#;
        assert_eq!(code(&[call], "tools/call", params), Some(HEADER_MISMATCH));
        assert_eq!(code(&[call, ("mcp-name", "=?base64?5LiW?=")], "tools/call", params), None);
        assert_eq!(
            code(&[call, ("mcp-name", "=?base64?!?=")], "tools/call", params),
            Some(HEADER_MISMATCH)
        );
        let read = ("mcp-method", "resources/read");
        assert_eq!(
            code(&[read, ("mcp-name", "x://y")], "resources/read", r#"{"uri":"x://y"}"#),
            None
        );
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        assert!(
            is_same("42.0", "42") && is_same("a", "a") && !is_same("a", "A") && !is_same("1", "2")
        );
    }
}
