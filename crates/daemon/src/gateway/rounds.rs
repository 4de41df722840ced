//! A client of the older era and a server of the newer one, which does not ask questions while
//! it works but answers that it wants input: the client is asked, and the request sent again.

use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{build_charged, member, read_object};
use futures_util::future::try_join_all;
use uuid::Uuid;

use super::asker::Asker;
use super::charged::overloaded;
use super::forward::send;
use super::rpc::{Answer, Fault, INTERNAL, text_member, with_members};
use super::upstream::Upstream;

/// How often a server may want more input for one request.
const MAX_ROUNDS: u32 = 32;
/// How many questions it may have in one round.
const MAX_QUESTIONS: usize = 64;
/// The pause before a request is sent again where nobody was asked anything.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends the request until its result is whole.
pub(super) async fn call(
    upstream: &Upstream,
    asker: &Asker,
    method: &str,
    params: Bytes,
) -> Answer {
    let mut next = params.clone();
    for _ in 0..MAX_ROUNDS {
        let result = send(upstream, asker, method, Some(next)).await?;
        if member(&result, "resultType") != Some(br#""input_required""#) {
            return Ok(result);
        }
        let responses = gather(asker, &result).await?;
        let mut members = [br#""inputResponses":"#, &responses[..]].concat();
        if let Some(state) = member(&result, "requestState") {
            members.extend([br#","requestState":"#, state].concat());
        }
        next = with_members(&params, &members);
    }
    Err(Fault::new(INTERNAL, format!("the server wanted more input {MAX_ROUNDS} times")))
}

/// Asks the client everything at once: the `inputResponses`.
async fn gather(asker: &Asker, result: &[u8]) -> Answer {
    let mut questions = Vec::new();
    if let Some(requests) = member(result, "inputRequests") {
        let read = read_object(requests, |key, request| questions.push((key, request)));
        read.map_err(|error| Fault::new(INTERNAL, format!("the server's inputRequests: {error}")))?;
    }
    if questions.len() > MAX_QUESTIONS {
        let message = format!("the server has {} questions at once", questions.len());
        return Err(Fault::new(INTERNAL, message));
    }
    if questions.is_empty() {
        tokio::time::sleep(PAUSE).await;
    }
    let asked = questions.into_iter().map(|(key, request)| ask(asker, key, request));
    let responses: Vec<Vec<u8>> = try_join_all(asked).await?;
    Ok([b"{".as_slice(), &responses.join(&b","[..]), b"}"].concat().into())
}

/// The params of a question as the older era wants them: there a URL that is to be opened has
/// an id, by which its server may say later that it is done.
fn as_older(method: &str, params: &[u8]) -> Bytes {
    let is_url =
        method == "elicitation/create" && text_member(params, "mode").as_deref() == Some("url");
    if !is_url || member(params, "elicitationId").is_some() {
        return Bytes::copy_from_slice(params);
    }
    with_members(params, format!(r#""elicitationId":"{}""#, Uuid::new_v4()).as_bytes())
}

/// One question: its member of the `inputResponses`.
async fn ask(asker: &Asker, key: &[u8], request: &[u8]) -> Result<Vec<u8>, Fault> {
    let method = text_member(request, "method");
    let Some(method) = method else {
        return Err(Fault::new(INTERNAL, "the server asks something without saying what"));
    };
    let params = match member(request, "params") {
        Some(params) => Some(charged(asker, params.len(), || as_older(&method, params))?),
        None => None,
    };
    let answer = asker.running.ask(method, params).await;
    let answer = answer.map_err(|error| Fault::of_peer(&error))?;
    Ok([b"\"", key, b"\":", &answer[..]].concat())
}

/// A copy of a part of the server's result, charged to the server.
fn charged(asker: &Asker, length: usize, copy: impl FnOnce() -> Bytes) -> Answer {
    let Some(memory) = asker.running.memory.get() else {
        return Ok(copy());
    };
    let bytes = build_charged(memory, length, copy);
    bytes.ok_or_else(|| overloaded(memory, "the request to the client"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_to_be_opened_gets_the_id_that_the_older_era_wants() {
        let older = |method: &str, params: &str| {
            String::from_utf8(as_older(method, params.as_bytes()).to_vec()).unwrap()
        };
        let url = r#"{"mode":"url","url":"https://x.example"}"#;
        let given = older("elicitation/create", url);
        let id = text_member(given.as_bytes(), "elicitationId").unwrap();
        assert_eq!(given.replace(&format!(r#""elicitationId":"{id}","#), ""), url);
        assert_ne!(given, older("elicitation/create", url), "each has its own");
        for (method, params) in [
            ("elicitation/create", r#"{"mode":"form"}"#),
            ("elicitation/create", r#"{"mode":"url","elicitationId":"theirs"}"#),
            ("sampling/createMessage", url),
        ] {
            assert_eq!(older(method, params), params);
        }
    }
}
