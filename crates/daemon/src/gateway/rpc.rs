//! JSON-RPC messages as bytes: what a server said stays as it came, only what is around it is
//! written here.

use axum::http::StatusCode;
use bytes::{BufMut as _, Bytes, BytesMut};
use cofer_mcp::{CallError, RpcError, member};
use cofer_model::{ErrorKind, Status};
use cofer_supervisor::CallFailure;
use serde_json::{Value, json};

pub(super) const PARSE_ERROR: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;
pub(super) const HEADER_MISMATCH: i64 = -32020;
pub(super) const MISSING_CAPABILITY: i64 = -32021;
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// A result as JSON, or why there is none.
pub(super) type Answer = Result<Bytes, Fault>;

/// A JSON-RPC error. Boxed, as answers are passed around on the path of every call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault(Box<FaultParts>);

#[derive(Debug, Clone, PartialEq)]
struct FaultParts {
    code: i64,
    /// The error object.
    json: Bytes,
    /// The HTTP status that an answer with nothing else in it has; 200 where none is given.
    status: Option<StatusCode>,
}

impl Fault {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self::with(code, message, None)
    }

    pub(super) fn with(code: i64, message: impl Into<String>, data: Option<Value>) -> Self {
        let mut error = json!({"code": code, "message": message.into()});
        if let Some(data) = data {
            error["data"] = data;
        }
        Self(Box::new(FaultParts { code, json: error.to_string().into(), status: None }))
    }

    /// A failure of ours, in the words that the rest of the daemon uses for it.
    pub(super) fn ours(kind: ErrorKind, message: impl Into<String>, hint: Option<&str>) -> Self {
        let mut data = json!({"source": "cofer", "kind": kind});
        if let Some(hint) = hint {
            data["hint"] = hint.into();
        }
        Self::with(INTERNAL, message, Some(data))
    }

    /// The error of a peer, byte for byte.
    pub(super) fn of_peer(error: &RpcError) -> Self {
        let parts = FaultParts { code: error.code, json: error.to_json(), status: None };
        Self(Box::new(parts))
    }

    #[must_use]
    pub(super) fn status(mut self, status: StatusCode) -> Self {
        self.0.status = Some(status);
        self
    }

    pub(super) fn code(&self) -> i64 {
        self.0.code
    }

    pub(super) fn json(&self) -> &Bytes {
        &self.0.json
    }

    pub(super) fn http_status(&self) -> Option<StatusCode> {
        self.0.status
    }

    pub(super) fn to_rpc_error(&self) -> RpcError {
        let raw = Some(Box::new(self.0.json.clone()));
        RpcError { code: self.0.code, message: String::new(), data: None, raw }
    }

    /// Why a call to the server `name` has no result.
    pub(super) fn of_call(name: &str, failure: CallFailure) -> Self {
        let error = match failure {
            CallFailure::Call(error) => error,
            CallFailure::NotConnected { status } => return Self::not_connected(name, status),
            CallFailure::NoMcp => {
                let message =
                    format!("server “{name}” runs, and speaks no MCP where it was looked for");
                return Self::ours(ErrorKind::NotConnected, message, None);
            }
        };
        let (kind, hint) = match &error {
            CallError::Rpc(error) => return Self::of_peer(error),
            CallError::BadParams => {
                return Self::new(INVALID_PARAMS, "params are neither an object nor an array");
            }
            CallError::Timeout(_) => (
                ErrorKind::Timeout,
                Some("the server was not restarted; a longer `call_timeout_ms` gives it more time"),
            ),
            CallError::QueueTimeout(_) | CallError::Overloaded { .. } => (
                ErrorKind::Overloaded,
                Some("try again later, or raise the server's `max_in_flight` if it can do more"),
            ),
            CallError::OutOfMemory { .. } => (
                ErrorKind::Overloaded,
                Some("ask for less at once, or raise `--max-memory` of `cofer serve`"),
            ),
            CallError::RequestTooLarge { .. } | CallError::AnswerTooLarge { .. } => {
                (ErrorKind::TooLarge, None)
            }
            CallError::Disconnected => (
                ErrorKind::NotConnected,
                Some("try again: it is restarted where its registration says so"),
            ),
        };
        Self::ours(kind, format!("server “{name}”: {error}"), hint)
    }

    /// The server is not running.
    pub(super) fn not_connected(name: &str, status: Status) -> Self {
        let hint =
            format!("`cofer server show {name}` tells why, `cofer server enable {name}` starts it");
        let message = format!("server “{name}” is not running ({status})");
        Self::ours(ErrorKind::NotConnected, message, Some(&hint))
    }

    pub(super) fn no_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    pub(super) fn bad_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }
}

/// What stands before a result or an error in the answer to request `id`.
pub(super) fn response_head<'a>(id: &'a [u8], key: &'a str) -> [&'a [u8]; 5] {
    [br#"{"jsonrpc":"2.0","id":"#, id, br#",""#, key.as_bytes(), br#"":"#]
}

/// The whole answer to request `id`.
pub(super) fn response(id: &[u8], answer: &Answer) -> Bytes {
    let (key, value) = match answer {
        Ok(result) => ("result", result),
        Err(fault) => ("error", fault.json()),
    };
    let [a, b, c, d, e] = response_head(id, key);
    [a, b, c, d, e, value, b"}"].concat().into()
}

/// An error that answers no request in particular.
pub(super) fn orphan_error(fault: &Fault) -> Bytes {
    [br#"{"jsonrpc":"2.0","error":"#, &fault.json()[..], b"}"].concat().into()
}

/// A notification.
pub(super) fn notification(method: &str, params: Option<&[u8]>) -> Bytes {
    message(&[], method, params)
}

/// A request of ours, or of a server's that we pass on.
pub(super) fn request(id: u64, method: &str, params: Option<&[u8]>) -> Bytes {
    message(format!(r#""id":{id},"#).as_bytes(), method, params)
}

fn message(id: &[u8], method: &str, params: Option<&[u8]>) -> Bytes {
    let method = Value::from(method).to_string();
    let mut text =
        BytesMut::with_capacity(40 + id.len() + method.len() + params.map_or(0, <[u8]>::len));
    text.put_slice(br#"{"jsonrpc":"2.0","#);
    text.put_slice(id);
    text.put_slice(br#""method":"#);
    text.put_slice(method.as_bytes());
    if let Some(params) = params {
        text.put_slice(br#","params":"#);
        text.put_slice(params);
    }
    text.put_u8(b'}');
    text.freeze()
}

/// The string member `key` of the object `json`.
pub(super) fn text_member(json: &[u8], key: &str) -> Option<String> {
    serde_json::from_slice(member(json, key)?).ok()
}

/// `json` with `value` in the place of `part`, which is a part of it.
pub(super) fn replace(json: &[u8], part: &[u8], value: &[u8]) -> Bytes {
    let start = part.as_ptr().addr() - json.as_ptr().addr();
    [&json[..start], value, &json[start + part.len()..]].concat().into()
}

/// The object `json` with `members` (`"a":1,"b":2`) before its own.
pub(super) fn with_members(json: &[u8], members: &[u8]) -> Bytes {
    let Some(open) = json.iter().position(|byte| *byte == b'{') else {
        return Bytes::copy_from_slice(json);
    };
    let rest = &json[open + 1..];
    let is_empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let comma: &[u8] = if is_empty || members.is_empty() { b"" } else { b"," };
    [&json[..=open], members, comma, rest].concat().into()
}

/// Whether something can be the id of a request.
pub(super) fn is_id(id: &[u8]) -> bool {
    matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_around_what_they_carry() {
        let raw = Bytes::from_static(br#"{"n": 12345678901234567890123, "n":1.0}"#);
        assert_eq!(
            response(br#""a\"""#, &Ok(raw.clone())),
            r#"{"jsonrpc":"2.0","id":"a\"","result":{"n": 12345678901234567890123, "n":1.0}}"#
        );
        assert_eq!(
            response(b"7", &Err(Fault::new(-1, "no"))),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#
        );
        assert_eq!(
            notification("x/\"y", Some(b"{}")),
            r#"{"jsonrpc":"2.0","method":"x/\"y","params":{}}"#
        );
        assert_eq!(request(3, "ping", None), r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    }

    #[test]
    fn members_are_put_first_and_parts_replaced() {
        assert_eq!(with_members(b"{}", br#""a":1"#), r#"{"a":1}"#);
        assert_eq!(with_members(b" { }", br#""a":1"#), r#" {"a":1 }"#);
        assert_eq!(with_members(br#"{"b":2}"#, br#""a":1"#), r#"{"a":1,"b":2}"#);
        assert_eq!(with_members(br#"{"b":2}"#, b""), r#"{"b":2}"#);
        let json = br#"{"name": "old", "z":[1.0]}"#;
        let part = member(json, "name").unwrap();
        assert_eq!(replace(json, part, br#""new""#), r#"{"name": "new", "z":[1.0]}"#);
    }

    #[test]
    fn strings_and_numbers_are_ids() {
        for (id, expected) in [
            ("1", true),
            ("-1", true),
            ("\"x\"", true),
            ("{}", false),
            ("[1]", false),
            ("true", false),
            ("", false),
        ] {
            assert_eq!(is_id(id.as_bytes()), expected, "{id}");
        }
    }
}
