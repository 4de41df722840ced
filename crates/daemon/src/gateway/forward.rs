//! Passes a request on to one server, whichever eras the two sides are of.
//!
//! ```text
//!  client            server
//!  session      ──►  initialize    as it is
//!  stateless    ──►  discover      as it is
//!  session      ──►  discover      says who asks; a result that wants input becomes questions
//!                                  to the client, and the request is sent again (`rounds`)
//!  stateless    ──►  initialize    over the server's second connection, as it is, if the server
//!                                  speaks both protocols; else without the envelope in `_meta`:
//!                                  the result gets what the newer era wants in it; a question
//!                                  of the server's becomes a result that wants input (`held`),
//!                                  and so does a URL that is to be opened first (`urls`)
//! ```

use bytes::Bytes;
use cofer_mcp::{Era, MODERN, member};
use serde_json::{Value, json};

use super::asker::{Asker, AskerEra, with_meta, without_envelope};
use super::rounds;
use super::rpc::{Answer, Fault, INVALID_PARAMS, RESOURCE_NOT_FOUND, text_member, with_members};
use super::session::Session;
use super::upstream::Upstream;
use super::urls;

/// Methods whose results say how long they hold.
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// Sends the request on and brings the answer back as the client's era wants it.
pub(super) async fn forward(
    upstream: &Upstream,
    asker: &Asker,
    method: &str,
    params: Option<Bytes>,
) -> Answer {
    let era = upstream.ready().await?;
    match (&asker.era, era) {
        (AskerEra::Session(_), Era::Initialize) | (AskerEra::Stateless(_), Era::Discover) => {
            send(upstream, asker, method, params).await
        }
        (AskerEra::Session(session), Era::Discover) => {
            let params = with_meta(params.as_ref(), &meta_of(session));
            Box::pin(rounds::call(upstream, asker, method, params)).await
        }
        (AskerEra::Stateless(stateless), Era::Initialize) => {
            if let Some(second) = Box::pin(upstream.stateless()).await {
                return send(&second, asker, method, params).await;
            }
            let params = params.map(|params| without_envelope(&params));
            let call = urls::call(upstream, asker, stateless, method, params.clone());
            let answer = Box::pin(call).await;
            modernise(method, params.as_ref(), answer)
        }
    }
}

pub(super) async fn send(
    upstream: &Upstream,
    asker: &Asker,
    method: &str,
    params: Option<Bytes>,
) -> Answer {
    upstream.call(method, params, Some(asker)).await
}

/// What a request to a server of the newer era says of a client of the older one.
fn meta_of(session: &Session) -> Vec<u8> {
    let initialize = &session.opening.initialize;
    let info = member(initialize, "clientInfo").unwrap_or(br#"{"name":"","version":""}"#);
    let capabilities = member(initialize, "capabilities").unwrap_or(b"{}");
    let version = Value::from(MODERN).to_string();
    let mut meta = [
        br#""io.modelcontextprotocol/protocolVersion":"#,
        version.as_bytes(),
        br#","io.modelcontextprotocol/clientInfo":"#,
        info,
        br#","io.modelcontextprotocol/clientCapabilities":"#,
        capabilities,
    ]
    .concat();
    if let Some(level) = session.level() {
        meta.extend(format!(r#","io.modelcontextprotocol/logLevel":"{}""#, level.name()).bytes());
    }
    meta
}

/// An answer of the older era as the newer one wants it.
fn modernise(method: &str, params: Option<&Bytes>, answer: Answer) -> Answer {
    match answer {
        Ok(result) => Ok(complete(method, &result)),
        Err(fault) if fault.code() == RESOURCE_NOT_FOUND && method == "resources/read" => {
            let error: Value = serde_json::from_slice(fault.json()).unwrap_or_default();
            let message = error["message"].as_str().unwrap_or("Resource not found").to_owned();
            let uri = params.and_then(|params| text_member(params, "uri"));
            Err(Fault::with(INVALID_PARAMS, message, Some(json!({"uri": uri}))))
        }
        Err(fault) => Err(fault),
    }
}

/// A result with the members that every result of the newer era has.
pub(super) fn complete(method: &str, result: &Bytes) -> Bytes {
    let mut members: Vec<&str> = Vec::new();
    let mut add = |key, text| {
        if member(result, key).is_none() {
            members.push(text);
        }
    };
    add("resultType", r#""resultType":"complete""#);
    let is_whole = || member(result, "resultType") != Some(br#""input_required""#);
    if CACHEABLE.contains(&method) && is_whole() {
        add("ttlMs", r#""ttlMs":0"#);
        add("cacheScope", r#""cacheScope":"private""#);
    }
    if members.is_empty() {
        result.clone()
    } else {
        with_members(result, members.join(",").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_the_older_era_get_what_the_newer_one_wants() {
        let check = |method: &str, result: &'static str| {
            complete(method, &Bytes::from_static(result.as_bytes()))
        };
        assert_eq!(
            check("tools/call", r#"{"content":[]}"#),
            r#"{"resultType":"complete","content":[]}"#
        );
        assert_eq!(
            check("tools/list", r#"{"tools":[],"ttlMs":5}"#),
            r#"{"resultType":"complete","cacheScope":"private","tools":[],"ttlMs":5}"#
        );
        let unfinished = r#"{"resultType":"input_required","inputRequests":{}}"#;
        assert_eq!(check("resources/read", unfinished), unfinished);
        let whole = r#"{"resultType":"complete","n":1.0}"#;
        assert_eq!(check("tools/call", whole), whole);
    }

    #[test]
    fn a_resource_that_is_not_there_is_a_wrong_parameter() {
        let params = Bytes::from_static(br#"{"uri":"x://y"}"#);
        let answer = Err(Fault::new(RESOURCE_NOT_FOUND, "gone"));
        let fault = modernise("resources/read", Some(&params), answer).unwrap_err();
        assert_eq!(fault.json(), r#"{"code":-32602,"message":"gone","data":{"uri":"x://y"}}"#);
    }
}
