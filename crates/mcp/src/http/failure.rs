//! Failures of our own, as the JSON-RPC errors that the client is told.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::auth::AuthFailure;
use super::transport::TransportError;

/// How much of a server's words is passed on.
pub(super) const MAX_BODY: usize = 1024;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// There is no valid token, or the server took none for one.
    Auth,
    /// The token is valid and its owner may not do this.
    Forbidden,
    /// The server was silent for too long.
    Timeout,
    /// The server could not be reached, or the connection to it broke.
    Connect,
    /// No trusted TLS connection came about.
    Tls,
    /// Another HTTP status that is no success.
    Http,
    /// The session was lost and could not be opened again.
    Session,
    /// The server's answer is not what the protocol says.
    Protocol,
    /// A message over the cap, in either direction.
    TooLarge,
    /// The memory budget has no room for a message.
    Overloaded,
}

/// A request's failure on the way to the server or back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) message: String,
    pub(super) http_status: Option<u16>,
    pub(super) hint: String,
    pub(super) body: Option<String>,
}

/// What an error carries as its `data`.
#[derive(Serialize)]
struct Data<'a> {
    source: &'a str,
    kind: FailureKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    hint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

impl Failure {
    pub(super) fn new(
        kind: FailureKind,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { kind, message: message.into(), http_status: None, hint: hint.into(), body: None }
    }

    pub(super) fn silent(limit: Duration) -> Self {
        Self::new(
            FailureKind::Timeout,
            format!("the server was silent for {} s", seconds(limit)),
            "the request was given up and not sent again; a longer time limit may help where the server needs long without saying anything.",
        )
    }

    /// An answer that began and has no end.
    pub(super) fn cut(cause: Option<&TransportError>) -> Self {
        let hint = "it was not sent again, because it may have run; look at the server's log, and at time limits on the way to it.";
        match cause {
            Some(error) => Self::new(
                FailureKind::Connect,
                format!("the server's answer broke off: {}", chain(error)),
                hint,
            ),
            None => Self::new(
                FailureKind::Protocol,
                "the server ended its stream without an answer",
                hint,
            ),
        }
    }

    pub(super) fn too_large(what: &str, cap: usize) -> Self {
        Self::new(
            FailureKind::TooLarge,
            format!("{what} has more than {cap} bytes"),
            "ask for less at once, or in pages.",
        )
    }

    /// A message of the server's that was discarded for lack of memory.
    pub(super) fn out_of_memory(what: &str, limit: u64) -> Self {
        Self::new(
            FailureKind::Overloaded,
            format!("the memory limit of {limit} bytes has no room for {what}"),
            "ask for less at once, or try again when other calls have ended.",
        )
    }

    /// The error's response to request `id`.
    pub(super) fn response(&self, id: &Bytes, source: &str) -> Bytes {
        let data = Data {
            source,
            kind: self.kind,
            http_status: self.http_status,
            hint: &self.hint,
            body: self.body.as_deref(),
        };
        error_response(Some(id), -32603, &self.message, serde_json::to_value(data).ok())
    }
}

/// A JSON-RPC error as a line; without `id` where the request had none that could be read.
pub(super) fn error_response(
    id: Option<&Bytes>,
    code: i64,
    message: &str,
    data: Option<serde_json::Value>,
) -> Bytes {
    let mut error = serde_json::json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    let id = id.map_or(String::new(), |id| {
        format!(r#""id":{},"#, std::str::from_utf8(id).unwrap_or("null"))
    });
    format!(r#"{{"jsonrpc":"2.0",{id}"error":{error}}}"#).into()
}

impl From<AuthFailure> for Failure {
    fn from(failure: AuthFailure) -> Self {
        Self::new(FailureKind::Auth, failure.message, failure.hint)
    }
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        let (kind, hint) = match &error {
            TransportError::Url(_) => (FailureKind::Connect, "correct the URL."),
            TransportError::Connect { .. } | TransportError::ConnectTimeout { .. } => (
                FailureKind::Connect,
                "check the URL and that the server is up; behind a company's proxy, set HTTPS_PROXY.",
            ),
            TransportError::Proxy { .. } => (
                FailureKind::Connect,
                "check HTTPS_PROXY, and list what needs no proxy in NO_PROXY.",
            ),
            TransportError::Tls { .. } => (
                FailureKind::Tls,
                "where a company's proxy or a private authority signs certificates, give its certificate with --cacert.",
            ),
            TransportError::Broken { .. } => (
                FailureKind::Connect,
                "it was not sent again, because it may have run; look at the server's log.",
            ),
            TransportError::Silent(limit) => return Self::silent(*limit),
            TransportError::Cut(_) => return Self::cut(Some(&error)),
            TransportError::TooLarge { cap } => {
                return Self::too_large("the server's answer", *cap);
            }
            TransportError::OutOfMemory { limit } => {
                return Self::out_of_memory("the server's answer", *limit);
            }
        };
        Self::new(kind, chain(&error), hint)
    }
}

/// An error and all that it came from, in one line.
fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        // Some errors say what their source says.
        if !words.ends_with(&next) {
            words.push_str(": ");
            words.push_str(&next);
        }
        source = cause.source();
    }
    words
}

fn seconds(span: Duration) -> String {
    let text = format!("{:.3}", span.as_secs_f64());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A server's words for a person: without markup, on few lines, and not many.
pub(super) fn readable(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let text = if looks_like_html(&text) { without_markup(&text) } else { text.into_owned() };
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut words = words.join(" ");
    if words.len() > MAX_BODY {
        let end = (0..=MAX_BODY - 3).rev().find(|at| words.is_char_boundary(*at)).unwrap_or(0);
        words.truncate(end);
        words.push('…');
    }
    (!words.is_empty()).then_some(words)
}

fn looks_like_html(text: &str) -> bool {
    let start = text.trim_start();
    start.starts_with('<') && !start.starts_with("<?xml")
}

fn without_markup(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let name = tag.to_ascii_lowercase();
        let unseen = ["style", "script"].into_iter().find(|unseen| name.starts_with(unseen));
        let end = match unseen {
            Some(unseen) => name.find(&format!("</{unseen}")).map(|at| at + 2),
            None if name.starts_with("!--") => name.find("-->"),
            None => Some(0),
        };
        let closed = end.and_then(|from| Some(from + tag[from..].find('>')? + 1));
        rest = closed.map_or("", |at| &tag[at..]);
    }
    text.push_str(rest);
    let marks = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    marks.iter().fold(text, |text, (mark, sign)| text.replace(mark, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_without_its_markup() {
        // covers: PRX-5.3
        let page = b"<html><head>\n<meta http-equiv=\"x\">\n<title>403 Forbidden</title><style>b{color:red}</style>\n</head>\n<body text=#000000><!-- a > b -->\n<h1>Error: Forbidden</h1>\n<h2>Your client &lt;you&gt; may not.</h2>\n</body></html>\n";
        assert_eq!(
            readable(page).unwrap(),
            "403 Forbidden Error: Forbidden Your client <you> may not."
        );
        assert_eq!(readable(b"plain a < b\n\n words"), Some("plain a < b words".to_owned()));
        assert_eq!(readable(b" \n"), None);
        assert_eq!(readable(b"<p>open <script>never closed"), Some("open".to_owned()));
    }

    #[test]
    fn long_words_are_cut_between_letters() {
        let shown = readable("é".repeat(5000).as_bytes()).unwrap();
        assert!(shown.len() <= MAX_BODY && shown.ends_with("é…"), "{}", shown.len());
    }

    #[test]
    fn an_error_says_what_the_contract_says() {
        // covers: PRX-5.3
        let mut failure = Failure::new(FailureKind::TooLarge, "m", "h");
        let line =
            |failure: &Failure| failure.response(&Bytes::from_static(b"\"a\""), "cofer-proxy");
        assert_eq!(
            line(&failure),
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"m","data":{"source":"cofer-proxy","kind":"too_large","hint":"h"}}}"#
        );
        failure.http_status = Some(502);
        failure.body = Some("b".to_owned());
        assert!(line(&failure).ends_with(br#""http_status":502,"hint":"h","body":"b"}}}"#));
    }

    #[test]
    fn spans_read_like_a_person_writes_them() {
        assert_eq!(seconds(Duration::from_secs(300)), "300");
        assert_eq!(seconds(Duration::from_millis(1500)), "1.5");
    }
}
