//! A client of the newer era and a server of the older one that wants its user to open a URL
//! first. The server says so with an error that the newer era has no more; here it becomes a
//! result that wants input, and the client's next try, which says that the user agreed, gives
//! the user some time for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{member, read_object};
use cofer_supervisor::Notice;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::asker::{Asker, Stateless};
use super::forward::send;
use super::rpc::{Answer, Fault, INTERNAL, text_member};
use super::upstream::Upstream;

/// The server wants a URL opened: only in 2025-11-25.
const URL_REQUIRED: i64 = -32042;
const COMPLETE: &str = "notifications/elicitation/complete";
/// The state that the next try carries. There is nothing in it: the server knows its user.
const STATE: &str = "cofer-url";
/// How long the next try waits for the user.
const FOR_THE_USER: Duration = Duration::from_secs(60);

/// Sends the request. What the server answers is as the newer era has it, but for the members
/// that every result of it has.
pub(super) async fn call(
    upstream: &Upstream,
    asker: &Asker,
    stateless: &Stateless,
    method: &str,
    params: Option<Bytes>,
) -> Answer {
    let next_try = params.as_ref().and_then(|params| next_try(params));
    let Some((params, said)) = next_try else {
        return wants_input(stateless, send(upstream, asker, method, params).await);
    };
    if said == Said::No {
        let message = "the user did not agree to open what the server wants to have opened";
        return Err(Fault::bad_params(message));
    }
    let mut notices = upstream.notices();
    let mut answer = send(upstream, asker, method, Some(params.clone())).await;
    let wanted = required(&answer);
    if said == Said::Yes
        && !wanted.is_empty()
        && timeout(FOR_THE_USER, opened(&mut notices, &wanted)).await.is_ok()
    {
        answer = send(upstream, asker, method, Some(params)).await;
    }
    wants_input(stateless, answer)
}

/// What the user said to all that was asked.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Yes,
    No,
    Nothing,
}

/// The params of a next try as the older era knows them, and what the user said.
fn next_try(params: &[u8]) -> Option<(Bytes, Said)> {
    let state = member(params, "requestState")?;
    if serde_json::from_slice::<String>(state).ok()? != STATE {
        return None;
    }
    let mut said = Said::Nothing;
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let read = read_object(params, |key, value| match key {
        b"requestState" => {}
        b"inputResponses" => said = said_in(value),
        _ => kept.push([b"\"", key, b"\":", value].concat()),
    });
    read.ok()?;
    Some(([b"{".as_slice(), &kept.join(&b","[..]), b"}"].concat().into(), said))
}

fn said_in(responses: &[u8]) -> Said {
    let mut actions = Vec::new();
    let read = read_object(responses, |_, response| actions.push(text_member(response, "action")));
    match &actions[..] {
        [] => Said::Nothing,
        _ if read.is_err() => Said::Nothing,
        all if all.iter().all(|action| action.as_deref() == Some("accept")) => Said::Yes,
        _ => Said::No,
    }
}

/// What the server wants to have opened, where that is its answer.
fn required(answer: &Answer) -> Vec<Value> {
    let Err(fault) = answer else {
        return Vec::new();
    };
    if fault.code() != URL_REQUIRED {
        return Vec::new();
    }
    let mut error: Value = serde_json::from_slice(fault.json()).unwrap_or_default();
    let Value::Array(all) = error["data"]["elicitations"].take() else {
        return Vec::new();
    };
    all.into_iter().filter(|one| one["mode"] == "url" && one["url"].is_string()).collect()
}

/// Ends when the server says that one of these was done.
async fn opened(notices: &mut Receiver<Arc<Notice>>, wanted: &[Value]) {
    loop {
        match notices.recv().await.as_deref() {
            Ok(Notice::Said { method, params: Some(params) }) if method == COMPLETE => {
                let id = text_member(params, "elicitationId").map(Value::from);
                if id.is_some_and(|id| wanted.iter().any(|one| one["elicitationId"] == id)) {
                    return;
                }
            }
            // What was lost may have been it; the server is asked again and knows.
            Err(RecvError::Lagged(_) | RecvError::Closed) => return,
            Ok(_) => {}
        }
    }
}

/// The answer of a server that wants a URL opened, as a result that wants input.
fn wants_input(stateless: &Stateless, answer: Answer) -> Answer {
    let fault = match &answer {
        Err(fault) if fault.code() == URL_REQUIRED => fault,
        _ => return answer,
    };
    let wanted = required(&answer);
    if wanted.is_empty() {
        // The code must not reach a client of the newer era.
        let error: Value = serde_json::from_slice(fault.json()).unwrap_or_default();
        let message = error["message"].as_str().unwrap_or("the server wants a URL to be opened");
        return Err(Fault::with(INTERNAL, message, error.get("data").cloned()));
    }
    let mut requests = serde_json::Map::new();
    for (at, mut params) in wanted.into_iter().enumerate() {
        // That by which the older era knows that it is done; the newer one just tries again.
        params.as_object_mut().map(|params| params.remove("elicitationId"));
        let text = params.to_string();
        let method = "elicitation/create";
        if let Some(fault) = stateless.abilities.lacks_capability(method, Some(text.as_bytes())) {
            return Err(fault);
        }
        requests.insert(format!("url{}", at + 1), json!({"method": method, "params": params}));
    }
    let result =
        json!({"resultType": "input_required", "inputRequests": requests, "requestState": STATE});
    Ok(result.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::super::capabilities::Abilities;
    use super::*;

    fn error(data: Value) -> Answer {
        Err(Fault::with(URL_REQUIRED, "Open it.", Some(data)))
    }

    fn convert(capabilities: &str, answer: Answer) -> Answer {
        let stateless = Stateless {
            client: cofer_mcp::ClientId(1),
            abilities: Abilities::read(capabilities.as_bytes()),
            level: None,
            headers: axum::http::HeaderMap::new(),
        };
        wants_input(&stateless, answer)
    }

    const ABLE: &str = r#"{"elicitation":{"url":{}}}"#;

    #[test]
    fn an_error_that_wants_a_url_opened_becomes_a_result_that_wants_input() {
        let data = json!({"elicitations": [
            {"mode": "url", "elicitationId": "e", "url": "https://x.example/1", "message": "Please"},
            {"mode": "form"}, 7,
        ]});
        let result = convert(ABLE, error(data.clone())).unwrap();
        let result: Value = serde_json::from_slice(&result).unwrap();
        let params = json!({"mode": "url", "url": "https://x.example/1", "message": "Please"});
        let request = json!({"method": "elicitation/create", "params": params});
        assert_eq!(
            result,
            json!({"resultType": "input_required", "requestState": STATE, "inputRequests": {"url1": request}})
        );
        let fault = convert(r#"{"elicitation":{}}"#, error(data)).unwrap_err();
        assert_eq!(fault.code(), -32021);
    }

    #[test]
    fn the_code_never_reaches_a_client_that_must_not_see_it() {
        for data in [json!({}), json!({"elicitations": []}), json!({"elicitations": "x"})] {
            let fault = convert(ABLE, error(data.clone())).unwrap_err();
            let expected = json!({"code": INTERNAL, "message": "Open it.", "data": data});
            assert_eq!(serde_json::from_slice::<Value>(fault.json()).unwrap(), expected);
        }
        let other = Fault::new(-32000, "something else");
        assert_eq!(convert(ABLE, Err(other.clone())).unwrap_err(), other);
    }

    #[test]
    fn a_next_try_is_known_by_its_state_and_says_what_the_user_said() {
        for (responses, expected) in [
            (r#"{"url1":{"action":"accept"}}"#, Said::Yes),
            (r#"{"url1":{"action":"decline"}}"#, Said::No),
            (r#"{"url1":{"action":"accept"},"url2":{"action":"cancel"}}"#, Said::No),
            (r#"{"url1":{}}"#, Said::No),
            ("{}", Said::Nothing),
            ("7", Said::Nothing),
        ] {
            let params = format!(
                r#"{{"name":"t","requestState":"cofer-url","inputResponses":{responses},"arguments":{{"n":1.0}}}}"#
            );
            let (kept, said) = next_try(params.as_bytes()).unwrap();
            assert_eq!(kept, r#"{"name":"t","arguments":{"n":1.0}}"#);
            assert_eq!(said, expected, "{responses}");
        }
        assert_eq!(next_try(br#"{"name":"t","requestState":"a server's own"}"#), None);
        assert_eq!(next_try(br#"{"name":"t"}"#), None);
    }
}
