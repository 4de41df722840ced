//! Every failure is an answer: tokens, permissions, pages in HTML, servers that are not there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cofer_mcp::http::{Attendant, AuthFailure, Authorizer, Remote, Trouble};
use cofer_model::Redactor;
use http::{HeaderValue, Uri};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, modern, remote, signed};
use crate::server::{Reply, Server, result, status};

/// Gives `token-N`, and another one once a token was refused.
#[derive(Debug, Default)]
struct Tokens {
    number: AtomicUsize,
    broken: Mutex<bool>,
}

#[async_trait]
impl Authorizer for Tokens {
    async fn authorization(&self) -> Result<Option<HeaderValue>, AuthFailure> {
        if *self.broken.lock().unwrap() {
            return Err(AuthFailure { message: "no token".to_owned(), hint: "log in".to_owned() });
        }
        let number = self.number.load(Ordering::SeqCst);
        Ok(Some(HeaderValue::from_str(&format!("Bearer token-{number}")).unwrap()))
    }

    fn rejected(&self, used: &HeaderValue) {
        let number = self.number.load(Ordering::SeqCst);
        assert_eq!(used, &format!("Bearer token-{number}"));
        self.number.fetch_add(1, Ordering::SeqCst);
    }

    fn principal(&self) -> Option<String> {
        Some("me@example.com".to_owned())
    }

    fn advice(&self, status: u16) -> Option<String> {
        Some(format!("advice for {status}"))
    }
}

const PAGE: &str = "<html><head><title>401 Unauthorized</title></head><body><h1>Error: Unauthorized</h1>\n<p>Your client &amp; you</p></body></html>";

fn page(status: u16) -> Reply {
    Reply::Full(status, vec![("content-type", "text/html".to_owned())], PAGE.into())
}

#[track_caller]
fn check(error: &Value, kind: &str, http_status: Option<u16>) {
    let data = &error["error"]["data"];
    assert_eq!(error["error"]["code"], -32603, "{error}");
    assert_eq!(data["source"], "cofer-proxy", "{error}");
    assert_eq!(data["kind"], kind, "{error}");
    assert_eq!(data.get("http_status"), http_status.map(Value::from).as_ref(), "{error}");
    assert!(!data["hint"].as_str().unwrap().is_empty(), "{error}");
}

#[tokio::test]
async fn a_refused_token_is_renewed_and_the_request_sent_once_more() {
    // covers: PRX-2.4, PRX-2.5
    let server = Server::start(|seen| match seen.header("authorization") {
        Some("Bearer token-1") => result(seen, json!("in")),
        _ => page(401),
    })
    .await;
    let mut client = Client::start(signed(&server.url(), Arc::new(Tokens::default())));
    assert_eq!(client.ask(1, "tools/call", json!({})).await["result"], "in");
    let used: Vec<_> =
        server.seen().iter().map(|seen| seen.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(used, ["Bearer token-0", "Bearer token-1"]);
    client.ask(2, "tools/call", json!({})).await;
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_second_refusal_is_an_error_without_markup() {
    // covers: PRX-5.2
    let server = Server::start(|_| page(401)).await;
    let mut client = Client::start(signed(&server.url(), Arc::new(Tokens::default())));
    let error = client.ask(1, "tools/call", json!({})).await;
    check(&error, "auth", Some(401));
    assert_eq!(
        error["error"]["data"]["body"],
        "401 Unauthorized Error: Unauthorized Your client & you"
    );
    assert_eq!(error["error"]["data"]["hint"], "advice for 401");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn who_may_not_is_told_who_they_are_and_not_tried_again() {
    // covers: PRX-5.2
    let server = Server::start(|_| page(403)).await;
    let mut client = Client::start(signed(&server.url(), Arc::new(Tokens::default())));
    let error = client.ask(1, "tools/call", json!({})).await;
    check(&error, "forbidden", Some(403));
    assert_eq!(error["error"]["message"], "me@example.com may not use this server (HTTP 403)");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn no_token_is_an_error_of_that_request_and_the_next_tries_again() {
    // covers: PRX-5.2
    let server = Server::start(|seen| result(seen, json!({}))).await;
    let tokens = Arc::new(Tokens::default());
    *tokens.broken.lock().unwrap() = true;
    let mut client =
        Client::start(signed(&server.url(), Arc::clone(&tokens) as Arc<dyn Authorizer>));
    let error = client.ask(1, "tools/call", json!({})).await;
    check(&error, "auth", None);
    assert_eq!(error["error"]["data"]["hint"], "log in");
    *tokens.broken.lock().unwrap() = false;
    assert!(client.ask(2, "tools/call", json!({})).await.get("result").is_some());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn the_tokens_place_is_another_where_the_server_has_its_own() {
    let server = Server::start(|seen| result(seen, json!({}))).await;
    let mut remote = signed(&server.url(), Arc::new(Tokens::default()));
    remote.headers.insert("authorization", HeaderValue::from_static("Basic mine"));
    remote.headers.insert("accept", HeaderValue::from_static("nothing"));
    let mut client = Client::start(remote);
    client.ask(1, "x", json!({})).await;
    let seen = &server.seen()[0];
    assert_eq!(seen.header("authorization"), Some("Basic mine"));
    assert_eq!(seen.header("x-serverless-authorization"), Some("Bearer token-0"));
    assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
}

#[tokio::test]
async fn other_failures_are_told_with_their_status_and_words() {
    // covers: PRX-4.5, PRX-5.3
    let server = Server::start(|seen| {
        let code = u16::try_from(seen.json()["params"]["status"].as_u64().unwrap()).unwrap();
        page(code).with("retry-after", "7")
    })
    .await;
    let mut client = Client::of(&server);
    for code in [400, 404, 405, 429, 500, 502, 503] {
        let error = client.ask(code, "tools/call", json!({"status": code})).await;
        check(&error, "http", Some(code));
        assert!(error["error"]["data"]["body"].as_str().unwrap().starts_with("401 Unauthorized"));
        assert!(error["error"]["message"].as_str().unwrap().contains(&code.to_string()));
        let hint = error["error"]["data"]["hint"].as_str().unwrap();
        assert_eq!(hint.contains("after 7"), [429, 503].contains(&code), "{hint}");
    }
    assert_eq!(server.seen().len(), 7, "nothing is sent twice");
}

#[tokio::test]
async fn a_success_that_is_no_answer_is_told_as_such() {
    // covers: PRX-5.5
    let server = Server::start(|seen| match seen.json()["id"].as_u64() {
        Some(1) => page(200),
        Some(2) => status(202),
        Some(3) => Reply::Full(
            200,
            vec![("content-type", "application/json".to_owned())],
            "{\"id\":".into(),
        ),
        Some(4) => Reply::Full(
            200,
            vec![("content-type", "application/json".to_owned())],
            r#"{"id":77,"result":{}}"#.into(),
        ),
        // Some servers forget what they send.
        _ => Reply::Full(200, vec![], r#"{"id":5,"result":{}}"#.into()),
    })
    .await;
    let mut client = Client::of(&server);
    for (id, code) in [(1, 200), (2, 202), (3, 200), (4, 200)] {
        check(&client.ask(id, "tools/call", json!({})).await, "protocol", Some(code));
    }
    assert_eq!(client.ask(5, "tools/call", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_and_the_next_request_tries_again() {
    // covers: PRX-5.1
    let server = Server::start(|seen| result(seen, json!({}))).await;
    let url = server.url();
    drop(server);
    let mut client = Client::start(remote(&url));
    for id in 0..3 {
        let error = client.ask(id, "tools/call", json!({})).await;
        check(&error, "connect", None);
        assert!(error["error"]["message"].as_str().unwrap().contains("refused"), "{error}");
    }
    let error = Client::start(remote("http://host.invalid/mcp")).ask(1, "x", json!({})).await;
    check(&error, "connect", None);
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_not_tried_again_for_a_call() {
    let (url, accepted, _tasks) = hangs_up().await;
    let mut client = Client::start(remote(&url));
    let error = client.ask(1, "tools/call", json!({})).await;
    check(&error, "connect", None);
    assert_eq!(accepted.load(Ordering::SeqCst), 1, "it may have run");
    check(&client.ask(2, "tools/list", json!({})).await, "connect", None);
    assert_eq!(accepted.load(Ordering::SeqCst), 3, "a list may be asked for again, once");
}

/// A server that hears requests to their end and answers none: where it is, and how many
/// connections it took.
async fn hangs_up() -> (String, Arc<AtomicUsize>, JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let accepted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&accepted);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            // Reads the request whole, and hangs up.
            let mut heard = Vec::new();
            while !heard.ends_with(b"}}") {
                tokio::io::AsyncReadExt::read_buf(&mut stream, &mut heard).await.unwrap();
            }
        }
    });
    (url, accepted, tasks)
}

#[tokio::test]
async fn redirects_stay_on_the_origin_and_the_token_too() {
    let other = Server::start(|seen| result(seen, json!("stolen"))).await;
    let elsewhere = other.url();
    let server =
        Server::start(move |seen| match (seen.path.as_str(), seen.json()["id"].as_u64()) {
            ("/moved", _) => result(seen, json!("moved")),
            ("/loop", _) => status(307).with("location", "/loop"),
            (_, Some(1)) => status(308).with("location", "/moved"),
            (_, Some(2)) => status(307).with("location", elsewhere.clone()),
            (_, Some(3)) => status(302).with("location", "/moved"),
            (_, Some(4)) => status(307).with("location", "/loop"),
            _ => status(307).with("location", "//host.invalid/x"),
        })
        .await;
    let mut client = Client::start(signed(&server.url(), Arc::new(Tokens::default())));
    assert_eq!(client.ask(1, "tools/call", json!({})).await["result"], "moved");
    for (id, code) in [(2, 307), (3, 302), (4, 307), (5, 307)] {
        check(&client.ask(id, "tools/call", json!({})).await, "http", Some(code));
    }
    assert!(other.seen().is_empty(), "no other origin is asked");
    let turns = server.seen().iter().filter(|seen| seen.path == "/loop").count();
    assert_eq!(turns, 5, "a circle is left");
}

#[tokio::test]
async fn too_many_at_once_are_turned_away_one_by_one() {
    let server = Server::start(|_| Reply::Silence).await;
    let mut client = Client::start(Remote { source: "cofer".to_owned(), ..remote(&server.url()) });
    for id in 0..=4096 {
        client.send(modern(id, "tools/call", json!({"name": "t"}))).await;
    }
    let error = client.next().await;
    assert_eq!(error["id"], 4096);
    assert_eq!(error["error"]["data"]["source"], "cofer");
}

/// Notes what failed, and knows one other place.
#[derive(Debug, Default)]
struct Notes {
    failed: Mutex<Vec<(String, Trouble)>>,
    elsewhere: Mutex<Option<Uri>>,
}

#[async_trait]
impl Attendant for Notes {
    fn failed(&self, method: &str, trouble: &Trouble) {
        self.failed.lock().unwrap().push((method.to_owned(), trouble.clone()));
    }

    async fn moved(&self) -> Option<Uri> {
        self.elsewhere.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_server_that_moved_is_followed_and_its_session_opened_again() {
    let script = |id: &'static str| {
        move |seen: &crate::server::Seen| match (&*seen.method(), seen.header("mcp-session-id")) {
            ("initialize", _) => {
                let opened = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
                result(seen, opened).with("mcp-session-id", id)
            }
            ("GET", _) => status(405),
            (_, Some(known)) if known == id => result(seen, json!("here")),
            _ => status(404),
        }
    };
    let before = Server::start(script("old")).await;
    let notes = Arc::new(Notes::default());
    let attendant = Arc::clone(&notes) as Arc<dyn Attendant>;
    let mut client = Client::start(Remote { attendant, ..remote(&before.url()) });
    client.ask(1, "initialize", json!({})).await;
    assert_eq!(client.ask(2, "tools/call", json!({})).await["result"], "here");
    drop(before);
    check(&client.ask(3, "tools/call", json!({})).await, "connect", None);
    let after = Server::start(script("new")).await;
    *notes.elsewhere.lock().unwrap() = Some(after.url().parse().unwrap());
    assert_eq!(client.ask(4, "tools/call", json!({})).await["result"], "here");
    let failed = notes.failed.lock().unwrap().clone();
    assert_eq!(failed[0].0, "tools/call");
    assert_eq!(failed[0].1.kind, cofer_mcp::http::FailureKind::Connect);
}

#[tokio::test]
async fn a_call_that_may_have_run_is_not_taken_to_where_the_server_went() {
    let (url, accepted, _tasks) = hangs_up().await;
    let elsewhere = Server::start(|seen| result(seen, json!("ran twice"))).await;
    let notes =
        Notes { elsewhere: Mutex::new(Some(elsewhere.url().parse().unwrap())), ..Notes::default() };
    let mut client = Client::start(Remote { attendant: Arc::new(notes), ..remote(&url) });
    check(&client.ask(1, "tools/call", json!({})).await, "connect", None);
    assert_eq!((accepted.load(Ordering::SeqCst), elsewhere.seen().len()), (1, 0));
}

#[tokio::test]
async fn a_secret_that_a_server_repeats_is_not_repeated_by_us() {
    let server = Server::start(|_| {
        let words = "no such key: canary-0123456789";
        Reply::Full(401, vec![("content-type", "text/plain".to_owned())], words.into())
    })
    .await;
    let environment = [("API_KEY".to_owned(), "canary-0123456789".to_owned())];
    let redactor = Redactor::new(environment.iter().map(|(key, value)| (key, value)));
    let mut client = Client::start(Remote { redactor, ..remote(&server.url()) });
    let error = client.ask(1, "tools/call", json!({})).await;
    assert_eq!(error["error"]["data"]["body"], "no such key: ********");
}

#[tokio::test]
async fn an_error_of_another_api_is_none_of_the_protocol() {
    let server = Server::start(|seen| {
        let id = &seen.json()["id"];
        match id.as_u64() {
            Some(1) => crate::server::json(404, json!({"error": {"kind": "not_found"}})),
            Some(2) => crate::server::json(
                401,
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no key"}}),
            ),
            _ => crate::server::json(
                400,
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "bad"}}),
            ),
        }
    })
    .await;
    let mut client = Client::start(remote(&server.url()));
    check(&client.ask(1, "tools/call", json!({})).await, "http", Some(404));
    let refused = client.ask(2, "tools/call", json!({})).await;
    check(&refused, "auth", Some(401));
    assert!(refused["error"]["data"]["body"].to_string().contains("no key"), "{refused}");
    assert_eq!(client.ask(3, "tools/call", json!({})).await["error"]["code"], -32602);
}
