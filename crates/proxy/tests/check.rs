//! `--check` against a server that is well, and against ones that are not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "the pump's tests need more of it")]
#[path = "../../mcp/tests/http/server.rs"]
mod server;

use std::time::Duration;

use cofer_proxy::{CheckFailed, Checked, Options, Step, check, parse_url};
use serde_json::json;

use server::{Reply, Seen, Server, result, status};

fn options(url: &str) -> Options {
    Options {
        url: parse_url(url, true).unwrap(),
        timeout: Duration::from_secs(30),
        audience: None,
        impersonate: None,
        headers: http::HeaderMap::new(),
        no_auth: true,
        cacert: None,
    }
}

async fn run(options: Options) -> (Vec<Checked>, Result<(), CheckFailed>) {
    let mut steps = Vec::new();
    let outcome = check(options, |step| steps.push(step)).await;
    (steps, outcome)
}

fn healthy(seen: &Seen) -> Reply {
    match seen.method().as_str() {
        "initialize" => result(
            seen,
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "weather", "version": "1.4"}}),
        )
        .with("mcp-session-id", "s"),
        "tools/list" => match seen.json()["params"]["cursor"].as_str() {
            None => result(seen, json!({"tools": [{"name": "a"}, {"name": "b"}], "nextCursor": "x"})),
            Some(_) => result(seen, json!({"tools": [{"name": "c"}]})),
        },
        _ => status(202),
    }
}

#[tokio::test]
async fn every_step_is_told_and_the_session_is_ended() {
    let server = Server::start(healthy).await;
    let (steps, outcome) = run(options(&server.url())).await;
    outcome.unwrap();
    let made: Vec<Step> = steps.iter().map(|checked| checked.step).collect();
    assert_eq!(made, [Step::Credentials, Step::Server, Step::Tools]);
    assert!(steps[1].found.starts_with("weather 1.4, protocol 2025-06-18, in "), "{steps:?}");
    assert_eq!(steps[2].found, "3 tools");
    server.wait_for("DELETE", 1).await;
}

#[tokio::test]
async fn a_server_that_refuses_is_the_step_that_failed_with_its_words() {
    let server =
        Server::start(|_| Reply::Full(403, vec![], "<h1>Forbidden</h1> for you".into())).await;
    let (steps, outcome) = run(options(&server.url())).await;
    let failed = outcome.unwrap_err();
    assert_eq!((steps.len(), failed.step), (1, Step::Server));
    assert!(failed.causes[0].contains("HTTP 403"), "{failed:?}");
    assert_eq!(failed.causes[1], "the server says: Forbidden for you");
    assert!(!failed.hint.is_empty());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_as_such() {
    let server = Server::start(healthy).await;
    let url = server.url();
    drop(server);
    let failed = run(options(&url)).await.1.unwrap_err();
    assert_eq!(failed.step, Step::Server);
    assert!(failed.causes[0].contains("could not connect"), "{failed:?}");
}

#[tokio::test]
async fn tools_that_cannot_be_listed_are_the_last_step() {
    let server = Server::start(|seen| match seen.method().as_str() {
        "tools/list" => status(500),
        _ => healthy(seen),
    })
    .await;
    let (steps, outcome) = run(options(&server.url())).await;
    assert_eq!((steps.len(), outcome.unwrap_err().step), (2, Step::Tools));
}

#[tokio::test]
async fn a_file_of_certificates_that_is_none_fails_before_anything_is_asked() {
    let server = Server::start(healthy).await;
    let wrong = Options { cacert: Some("/nonexistent.pem".into()), ..options(&server.url()) };
    let failed = run(wrong).await.1.unwrap_err();
    assert_eq!(failed.step, Step::Credentials);
    assert!(failed.causes[0].contains("/nonexistent.pem"), "{failed:?}");
    assert!(server.seen().is_empty());
}
