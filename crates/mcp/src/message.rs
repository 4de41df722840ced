//! One JSON-RPC message: id and method are read, everything else stays the bytes it came in.

use bytes::Bytes;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::members::member;
use crate::object::read_object;

/// The longest method, and the longest id of a request: both are kept, beside any budget, for as
/// long as the request is.
const MAX_NAME: usize = 1024;
/// The most messages in one batch.
const MAX_BATCH: usize = 4096;
/// The largest error of a peer whose `data` is read: parsed, JSON takes many times its memory.
const MAX_ERROR: usize = 256 * 1024;
/// What is repeated of an error that has no message.
const MAX_REPEATED: usize = 1024;

/// What one line holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A message.
    One(Message),
    /// A batch, as the revision of 2025-03-26 allowed.
    Batch(Vec<Message>),
}

/// One message, its parts as slices of the line.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// The peer asks something; the id is its own, as JSON.
    Request {
        /// To be sent back as it is.
        id: Bytes,
        /// What is asked.
        method: String,
        /// With what.
        params: Option<Bytes>,
    },
    /// The peer tells something.
    Notification {
        /// What is told.
        method: String,
        /// With what.
        params: Option<Bytes>,
    },
    /// The peer answers; the id is ours, where it is one we could have given.
    Response {
        /// The request that is answered, none where the peer could not tell.
        id: Option<u64>,
        /// The result as JSON, or the error.
        outcome: Result<Bytes, RpcError>,
    },
}

/// A JSON-RPC error as the peer sent it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// More, where the peer sent more.
    pub data: Option<Value>,
    /// All of it as it came, where it came from a peer.
    pub raw: Option<Box<Bytes>>,
}

/// A line that is no JSON-RPC message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON-RPC message: {reason}")]
pub struct Malformed {
    /// Why not.
    pub reason: String,
}

impl Incoming {
    /// Reads one line.
    pub fn parse(line: &Bytes) -> Result<Self, Malformed> {
        match line.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => Message::parse(line, line).map(Self::One),
            Some(b'[') => {
                let Parts(parts) = serde_json::from_slice(line).map_err(malformed)?;
                parts
                    .into_iter()
                    .map(|part| Message::parse(line, part.get().as_bytes()))
                    .collect::<Result<_, _>>()
                    .map(Self::Batch)
            }
            _ => Err(Malformed { reason: "it is neither an object nor an array".to_owned() }),
        }
    }
}

impl Message {
    /// Reads `part`, which lies within `line`.
    fn parse(line: &Bytes, part: &[u8]) -> Result<Self, Malformed> {
        let envelope = Envelope::read(part)?;
        let slice = |value: &[u8]| line.slice_ref(value);
        let id = envelope.id.filter(|id| *id != b"null");
        let is_long = |part: Option<&[u8]>| part.is_some_and(|part| part.len() > MAX_NAME);
        if is_long(envelope.method) || envelope.method.is_some() && is_long(id) {
            let reason = format!("its method or id has more than {MAX_NAME} bytes");
            return Err(Malformed { reason });
        }
        match (envelope.method, envelope.result, envelope.error) {
            (Some(method), None, None) => {
                let params = envelope.params.map(slice);
                let method = serde_json::from_slice(method).map_err(malformed)?;
                Ok(match id {
                    // An id outlives its params, and as a slice would keep all of them.
                    Some(id) => Self::Request { id: Bytes::copy_from_slice(id), method, params },
                    None => Self::Notification { method, params },
                })
            }
            (None, Some(result), None) => {
                Ok(Self::Response { id: own_id(id), outcome: Ok(slice(result)) })
            }
            (None, _, Some(error)) => {
                let error = RpcError::read(slice(error));
                Ok(Self::Response { id: own_id(id), outcome: Err(error) })
            }
            _ => {
                Err(Malformed { reason: "it has no method, result or error of its own".to_owned() })
            }
        }
    }
}

impl RpcError {
    /// An error of our own.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, raw: None }
    }

    /// The error object: as it came, where it came from a peer and is one.
    pub fn to_json(&self) -> Bytes {
        if let Some(raw) = self.raw.as_deref().filter(|raw| raw.starts_with(b"{")) {
            return raw.clone();
        }
        let mut error = json!({"code": self.code, "message": self.message});
        if let (Some(members), Some(data)) = (error.as_object_mut(), &self.data) {
            members.insert("data".to_owned(), data.clone());
        }
        Bytes::from(error.to_string())
    }

    /// An error of a peer that bends the form is still an error: what is missing gets a stand-in.
    fn read(raw: Bytes) -> Self {
        let json = &raw[..];
        let code = member(json, "code").and_then(|code| serde_json::from_slice(code).ok());
        let message = member(json, "message").and_then(|text| serde_json::from_slice(text).ok());
        let message = message.unwrap_or_else(|| {
            let start = String::from_utf8_lossy(&json[..json.len().min(MAX_REPEATED)]);
            format!("the server answered an error without a message: {start}")
        });
        let data = member(json, "data").filter(|_| json.len() <= MAX_ERROR);
        let data = data.and_then(|data| serde_json::from_slice(data).ok());
        Self { code: code.unwrap_or(-32603), message, data, raw: Some(Box::new(raw)) }
    }
}

fn malformed(error: serde_json::Error) -> Malformed {
    Malformed { reason: error.to_string() }
}

fn own_id(id: Option<&[u8]>) -> Option<u64> {
    id.and_then(|id| std::str::from_utf8(id).ok()?.parse().ok())
}

/// The parts of a batch. Their number is limited: read as messages, the shortest ones take ten
/// times the memory of their line.
pub(crate) struct Parts<'a>(pub(crate) Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Parts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PartsVisitor;
        impl<'de> Visitor<'de> for PartsVisitor {
            type Value = Parts<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a batch of at most {MAX_BATCH} messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Parts<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = seq.next_element()? {
                    if parts.len() == MAX_BATCH {
                        return Err(A::Error::custom(format!(
                            "a batch has at most {MAX_BATCH} messages"
                        )));
                    }
                    parts.push(part);
                }
                Ok(Parts(parts))
            }
        }
        deserializer.deserialize_seq(PartsVisitor)
    }
}

/// The parts of a message that routing needs, each as JSON. Of a key that stands twice the
/// last one counts, as in most readers of JSON.
#[derive(Default)]
struct Envelope<'a> {
    id: Option<&'a [u8]>,
    method: Option<&'a [u8]>,
    params: Option<&'a [u8]>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
}

impl<'a> Envelope<'a> {
    fn read(json: &'a [u8]) -> Result<Self, Malformed> {
        let mut envelope = Self::default();
        read_object(json, |key, value| match key {
            b"id" => envelope.id = Some(value),
            b"method" => envelope.method = Some(value),
            b"params" => envelope.params = Some(value),
            b"result" => envelope.result = Some(value),
            b"error" => envelope.error = Some(value),
            _ => {}
        })?;
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Incoming, Malformed> {
        Incoming::parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    fn one(text: &str) -> Message {
        match parse(text).unwrap() {
            Incoming::One(message) => message,
            Incoming::Batch(_) => panic!("a batch"),
        }
    }

    #[test]
    fn what_a_result_holds_stays_the_bytes_it_came_in() {
        let raw = r#"{ "n": 12345678901234567890123, "n": 1.0, "s": "\ud800\u2028" , "z":1e5}"#;
        let message = one(&format!(r#"{{"result":{raw},"jsonrpc":"2.0","id":7}}"#));
        assert_eq!(
            message,
            Message::Response { id: Some(7), outcome: Ok(Bytes::from(raw.to_owned())) }
        );
    }

    #[test]
    fn a_null_result_is_a_result() {
        let message = one(r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
        assert_eq!(
            message,
            Message::Response { id: Some(1), outcome: Ok(Bytes::from_static(b"null")) }
        );
    }

    #[test]
    fn requests_and_notifications_differ_by_their_id() {
        let request = one(r#"{"jsonrpc":"2.0","id":"a\"b","method":"ping"}"#);
        let id = Bytes::from_static(br#""a\"b""#);
        assert_eq!(request, Message::Request { id, method: "ping".to_owned(), params: None });
        let told = one(r#"{"method":"notifications/x","params":{"a":1}}"#);
        let params = Some(Bytes::from_static(br#"{"a":1}"#));
        assert_eq!(told, Message::Notification { method: "notifications/x".to_owned(), params });
    }

    #[test]
    fn an_error_keeps_code_message_and_data() {
        let message = one(
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32001,"message":"no","data":{"a":[1]}}}"#,
        );
        let Message::Response { id: Some(3), outcome: Err(error) } = message else {
            panic!("not an error: {message:?}");
        };
        assert_eq!((error.code, error.message.as_str()), (-32001, "no"));
        assert_eq!(error.data, Some(json!({"a": [1]})));
        let Message::Response { id: None, outcome: Err(error) } =
            one(r#"{"id":null,"error":"boom"}"#)
        else {
            panic!("not an error");
        };
        assert_eq!(error.code, -32603);
    }

    #[test]
    fn an_error_is_passed_on_as_it_came() {
        let raw =
            r#"{"code":-32001 ,"message":"\ud800","data":{"n":12345678901234567890123},"x":1}"#;
        let Message::Response { outcome: Err(error), .. } =
            one(&format!(r#"{{"id":3,"error":{raw}}}"#))
        else {
            panic!("not an error");
        };
        assert_eq!(error.to_json(), raw.as_bytes());
        let ours = RpcError::new(-32603, "a \"quoted\" word");
        let again: Value = serde_json::from_slice(&ours.to_json()).unwrap();
        assert_eq!(again, json!({"code": -32603, "message": "a \"quoted\" word"}));
    }

    #[test]
    fn a_batch_is_many_messages() {
        let Incoming::Batch(messages) = parse(r#"[{"id":1,"result":{}},{"method":"x"}]"#).unwrap()
        else {
            panic!("not a batch");
        };
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn what_is_not_json_rpc_is_malformed() {
        for text in [
            "",
            "hello",
            "42",
            "{}",
            "[1]",
            r#"{"id":1}"#,
            r#"{"id":1,"result":}"#,
            "\u{feff}{}",
            r#"{"method":5}"#,
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
