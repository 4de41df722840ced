//! From what fails on the way to a remote server to the words that a person reads.

use cofer_mcp::HandshakeError;
use cofer_mcp::http::{FailureKind as Sort, Trouble};
use cofer_model::FailureKind;
use cofer_runtime::out_of_files_in;

use crate::launch::Explanation;
use crate::server::SOURCE;

/// Why a request failed; `signed` is whether it carried a token of our own.
pub(crate) fn explain(trouble: &Trouble, signed: bool) -> Explanation {
    let Trouble { message, body, .. } = trouble;
    if let Some(limit) = out_of_files_in(message) {
        let message = format!("{message}: {}", limit.message);
        return Explanation { kind: kind(trouble), message, hint: limit.hint.to_owned() };
    }
    let message = match body {
        Some(body) => format!("{message}; it says: {body}"),
        None => message.clone(),
    };
    Explanation { kind: kind(trouble), message, hint: hint(trouble, signed) }
}

/// Why a server that was reached did not open a conversation.
pub(crate) fn explain_refusal(error: &HandshakeError, signed: bool) -> Explanation {
    if let HandshakeError::Refused { initialize, .. } = error
        && let Some(trouble) = Trouble::read(&initialize.message, initialize.data.as_ref(), SOURCE)
    {
        return explain(&trouble, signed);
    }
    let (kind, hint) = match error {
        HandshakeError::Silent { .. } => (
            FailureKind::StartTimeout,
            "check that the server is well; if it needs longer to answer at first, raise `start_timeout_ms`",
        ),
        HandshakeError::Refused { .. }
        | HandshakeError::NotStateless(_)
        | HandshakeError::NoCommonRevision(_)
        | HandshakeError::Nonsense { .. }
        | HandshakeError::Ended => (
            FailureKind::HandshakeFailed,
            "check that the URL is where the server speaks MCP over Streamable HTTP, which often is /mcp",
        ),
    };
    let message = format!("the server is there but opens no conversation: {error}");
    Explanation { kind, message, hint: hint.to_owned() }
}

fn kind(trouble: &Trouble) -> FailureKind {
    match (trouble.kind, trouble.http_status) {
        (Sort::Connect, _) => FailureKind::Unreachable,
        (Sort::Tls, _) => FailureKind::TlsFailed,
        // Without an answer, there was no token to ask with.
        (Sort::Auth, None) => FailureKind::CredentialsMissing,
        (Sort::Auth, Some(_)) => FailureKind::Unauthorized,
        (Sort::Forbidden, _) => FailureKind::Forbidden,
        (Sort::Http, Some(404 | 405 | 410)) => FailureKind::EndpointNotFound,
        (Sort::Http | Sort::Session, _) => FailureKind::HttpError,
        (Sort::Timeout, _) => FailureKind::StartTimeout,
        (Sort::Protocol | Sort::TooLarge | Sort::Overloaded, _) => FailureKind::HandshakeFailed,
    }
}

/// The pump's hints are for whoever types `cofer proxy`; these name what a registration has.
fn hint(trouble: &Trouble, signed: bool) -> String {
    let hint = match kind(trouble) {
        FailureKind::Unreachable => {
            "check the URL and that the server is up; behind a company's proxy, set HTTPS_PROXY in the daemon's environment"
        }
        FailureKind::TlsFailed => {
            "check the server's certificate; where a private authority signs it, put that authority's certificate into the system's store, or name a file with it in SSL_CERT_FILE in the daemon's environment"
        }
        FailureKind::Unauthorized if !signed => {
            "give what the server wants as proof in `headers`, such as `Authorization: Bearer …`; for a server on Cloud Run, set `auth` to `google_id_token`"
        }
        FailureKind::Forbidden if !signed => {
            "the server knows who asks and does not let them in: check what the key in `headers` may do"
        }
        FailureKind::EndpointNotFound => {
            "check the path of the URL, which often is /mcp; a server that speaks only the older HTTP+SSE transport is not reached like this"
        }
        _ => return trouble.hint.clone(),
    };
    hint.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use cofer_mcp::{Incoming, Message, RpcError};
    use serde_json::json;

    fn trouble(kind: Sort, http_status: Option<u16>) -> Trouble {
        let (message, hint) = ("it failed".to_owned(), "the pump's".to_owned());
        Trouble { kind, message, http_status, hint, body: Some("words".to_owned()) }
    }

    #[test]
    fn every_way_to_fail_has_its_kind() {
        for (sort, status, kind) in [
            (Sort::Connect, None, FailureKind::Unreachable),
            (Sort::Tls, None, FailureKind::TlsFailed),
            (Sort::Auth, None, FailureKind::CredentialsMissing),
            (Sort::Auth, Some(401), FailureKind::Unauthorized),
            (Sort::Forbidden, Some(403), FailureKind::Forbidden),
            (Sort::Http, Some(404), FailureKind::EndpointNotFound),
            (Sort::Http, Some(503), FailureKind::HttpError),
            (Sort::Protocol, Some(200), FailureKind::HandshakeFailed),
            (Sort::Timeout, None, FailureKind::StartTimeout),
        ] {
            let told = explain(&trouble(sort, status), false);
            assert_eq!(told.kind, kind, "{sort:?} {status:?}");
            assert_eq!(told.message, "it failed; it says: words");
            assert!(!told.hint.is_empty());
        }
    }

    #[test]
    fn whoever_signs_gives_the_advice() {
        let refused = trouble(Sort::Auth, Some(401));
        assert_eq!(explain(&refused, true).hint, "the pump's");
        assert!(explain(&refused, false).hint.contains("`headers`"));
    }

    #[test]
    fn a_refusal_of_ours_is_told_apart_from_the_servers() {
        let refused = |data| HandshakeError::Refused {
            initialize: Box::new(rpc(data)),
            discover: Box::new(rpc(serde_json::Value::Null)),
        };
        let ours = json!({"source": SOURCE, "kind": "http", "http_status": 404, "hint": "h"});
        assert_eq!(explain_refusal(&refused(ours), false).kind, FailureKind::EndpointNotFound);
        let theirs = explain_refusal(&refused(serde_json::Value::Null), false);
        assert_eq!(theirs.kind, FailureKind::HandshakeFailed);
        assert!(theirs.message.contains("no (code -1)"), "{}", theirs.message);
    }

    fn rpc(data: serde_json::Value) -> RpcError {
        let error = json!({"code": -1, "message": "no", "data": data});
        let line = Bytes::from(json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string());
        match Incoming::parse(&line) {
            Ok(Incoming::One(Message::Response { outcome: Err(error), .. })) => error,
            other => panic!("{other:?}"),
        }
    }
}
