//! Whoever looks after a conversation from outside: hears what goes wrong in it, and knows
//! where a server went that is not where it was.

use std::fmt;

use async_trait::async_trait;
use http::Uri;

use super::failure::{Failure, FailureKind};

/// See the module.
#[async_trait]
pub trait Attendant: fmt::Debug + Send + Sync {
    /// A request of this method had no answer of the server's. Must not block.
    fn failed(&self, method: &str, trouble: &Trouble) {
        let _ = (method, trouble);
    }

    /// What a person can do about it, where the usual advice does not fit.
    fn advice(&self, trouble: &Trouble) -> Option<String> {
        let _ = trouble;
        None
    }

    /// Where the server is now, asked when nobody listens where it was; none where there is no
    /// other place to look. What could not be sent is sent there, once. May take a while.
    async fn moved(&self) -> Option<Uri> {
        None
    }
}

/// Leaves a conversation to itself.
#[derive(Debug, Clone, Copy)]
pub struct Unattended;

impl Attendant for Unattended {}

/// Why there was no answer, in the words that the client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What happened.
    pub message: String,
    /// The status of the answer, where there was one.
    pub http_status: Option<u16>,
    /// What to do about it.
    pub hint: String,
    /// The server's own words, where it had some.
    pub body: Option<String>,
}

impl From<&Failure> for Trouble {
    fn from(failure: &Failure) -> Self {
        let Failure { kind, message, http_status, hint, body } = failure.clone();
        Self { kind, message, http_status, hint, body }
    }
}

impl Trouble {
    /// The trouble that an error's `data` tells of, where `source` made that error.
    pub fn read(message: &str, data: Option<&serde_json::Value>, source: &str) -> Option<Self> {
        let data = data?;
        let text = |key| data.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
        if text("source").as_deref() != Some(source) {
            return None;
        }
        let status = data.get("http_status").and_then(serde_json::Value::as_u64);
        Some(Self {
            kind: serde_json::from_value(data.get("kind")?.clone()).ok()?,
            message: message.to_owned(),
            http_status: status.and_then(|status| status.try_into().ok()),
            hint: text("hint")?,
            body: text("body"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::Value;

    #[test]
    fn what_a_client_is_told_can_be_read_back() {
        let mut failure = Failure::new(FailureKind::Forbidden, "no", "ask");
        failure.http_status = Some(403);
        failure.body = Some("go away".to_owned());
        let line = failure.response(&Bytes::from_static(b"1"), "cofer");
        let line: Value = serde_json::from_slice(&line).unwrap();
        let error = &line["error"];
        let message = error["message"].as_str().unwrap();
        let read = |source| Trouble::read(message, error.get("data"), source);
        assert_eq!(read("cofer"), Some(Trouble::from(&failure)));
        assert_eq!(read("cofer-proxy"), None);
        assert_eq!(Trouble::read("x", None, "cofer"), None);
    }
}
