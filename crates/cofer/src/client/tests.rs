//! The client against a daemon of canned answers on a real socket.

use std::path::PathBuf;

use super::*;
use crate::failure::Failure;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Answers one request with `status` and `body`; gives the client's answer and what it sent.
async fn exchange<T>(
    status: &str,
    body: &str,
    token: Option<&str>,
    ask: impl AsyncFnOnce(&Client) -> T,
) -> (T, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}", listener.local_addr().unwrap()), token);
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_request(&mut stream).await;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        request
    };
    tokio::join!(ask(&client), serve)
}

/// The head, and as much body as it announces.
async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut request = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return request;
            }
        }
        let count = stream.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "the request ended early: {request}");
        request.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
}

fn client(url: &str, token: Option<&str>) -> Client {
    let token = token.map(str::to_owned);
    let token_file = PathBuf::from("/d/token");
    let target = Target { url: url.to_owned(), public_url: None, token, token_file, absent: None };
    Client::new(target).unwrap()
}

fn plain(error: ClientError) -> String {
    anstream::adapter::strip_str(&Failure::from(error).render()).to_string()
}

#[tokio::test]
async fn a_registration_is_posted_with_the_token_and_the_wait() {
    let wait = Some(Duration::from_secs(75));
    let (answer, request) = exchange("201 Created", r#"{"a":1}"#, Some("secret"), async |client| {
        client.register(r#"{"name":"x"}"#.to_owned(), wait).await
    })
    .await;
    assert_eq!(answer.unwrap().json(), r#"{"a":1}"#);
    assert!(request.starts_with("POST /api/v1/mcp/servers?wait=75 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nauthorization: Bearer secret\r\n"), "{request}");
    assert!(request.contains("\r\ncontent-type: application/json\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"name\":\"x\"}"), "{request}");
}

#[tokio::test]
async fn a_name_stays_one_part_of_the_path() {
    let (_, request) = exchange("200 OK", "{}", None, async |client| {
        client.switch("a b/../c?d", Switch::Restart, None).await
    })
    .await;
    let line = request.lines().next().unwrap();
    assert_eq!(line, "POST /api/v1/mcp/servers/a%20b%2F..%2Fc%3Fd/restart HTTP/1.1");
}

#[tokio::test]
async fn health_is_asked_at_the_root_and_without_the_token() {
    let (_, request) =
        exchange("200 OK", "{}", Some("secret"), async |client| client.health().await).await;
    assert!(request.starts_with("GET /healthz HTTP/1.1\r\n"), "{request}");
    assert!(!request.contains("secret"), "{request}");
}

#[tokio::test]
async fn a_failure_of_the_api_keeps_its_kind() {
    let body = r#"{"error":{"kind":"not_found","message":"there is no server `x`","trace_id":"01990000-0000-7000-8000-000000000001"}}"#;
    let (answer, _) =
        exchange("404 Not Found", body, None, async |client| client.server("x", false).await).await;
    let failure = Failure::from(answer.unwrap_err());
    assert_eq!(failure.kind(), Some(ErrorKind::NotFound));
}

#[tokio::test]
async fn no_token_is_told_apart_from_a_wrong_one() {
    let body = r#"{"error":{"kind":"unauthorized","message":"the token is wrong","trace_id":"01990000-0000-7000-8000-000000000001"}}"#;
    for (token, expected) in [
        (None, "Error: the daemon at http://127.0.0.1:"),
        (Some("wrong"), "Error: the token is wrong\n"),
    ] {
        let (answer, _) =
            exchange("401 Unauthorized", body, token, async |client| client.servers().await).await;
        let shown = plain(answer.unwrap_err());
        assert!(shown.starts_with(expected), "{shown}");
    }
}

#[tokio::test]
async fn something_else_at_the_address_is_told_as_that() {
    let (answer, _) =
        exchange("502 Bad Gateway", "<html>", None, async |client| client.servers().await).await;
    let shown = plain(answer.unwrap_err());
    assert!(shown.contains("answered 502 Bad Gateway and not as a Cofer daemon would"), "{shown}");
}

#[tokio::test]
async fn no_daemon_is_told_with_the_address_and_the_way_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = client(&format!("http://{address}"), None).servers().await.unwrap_err();
    let shown = plain(error).replace(&address.to_string(), "ADDRESS");
    insta::assert_snapshot!(shown, @"
    Error: no daemon answers at http://ADDRESS
    Caused by:
    1: Connection refused (os error 111)
    Hint: start it with `cofer serve`.
    ");
}

#[test]
fn an_address_that_is_none_is_refused() {
    for url in ["", "127.0.0.1:8787", "https://example.com", "ftp://x", "http://"] {
        let token_file = PathBuf::new();
        let target =
            Target { url: url.to_owned(), public_url: None, token: None, token_file, absent: None };
        assert!(matches!(Client::new(target), Err(ClientError::BadUrl { .. })), "{url}");
    }
}

#[tokio::test]
async fn a_followed_log_comes_line_by_line() {
    let line = |seq: u64| {
        format!(
            "id: {seq}\nevent: logLine\ndata: {{\"seq\":{seq},\"at\":\"2026-01-01T00:00:00Z\",\"stream\":\"stderr\",\"line\":\"x\"}}\n\n"
        )
    };
    let (lines, request) =
        exchange("200 OK", &format!("{}:\n\n{}", line(4), line(5)), None, async |client| {
            let mut follower = client.follow("fs", 2).await.unwrap();
            let mut seqs = Vec::new();
            while let Some(entry) = follower.next().await.unwrap() {
                seqs.push(entry.seq);
            }
            seqs
        })
        .await;
    assert_eq!(lines, [4, 5]);
    assert!(
        request.starts_with("GET /api/v1/mcp/servers/fs/logs?tail=2&follow=true "),
        "{request}"
    );
}

#[tokio::test]
async fn a_daemon_that_is_not_well_says_why() {
    let body = r#"{"status":"degraded","version":"0.1.0","reason":"the store does not answer"}"#;
    let (answer, _) =
        exchange("503 Service Unavailable", body, None, async |client| client.health().await).await;
    let shown = plain(answer.unwrap_err());
    assert!(shown.contains("is not well\nCaused by:\n1: the store does not answer\n"), "{shown}");
}

#[tokio::test]
async fn no_longer_wait_is_asked_for_than_the_daemon_accepts() {
    let (_, request) = exchange("200 OK", "{}", None, async |client| {
        client.switch("fs", Switch::Enable, Some(Duration::from_secs(86_400))).await
    })
    .await;
    assert!(request.contains("/enable?wait=600 "), "{request}");
}
