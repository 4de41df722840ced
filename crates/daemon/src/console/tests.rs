//! The console as a browser gets it, whichever console this daemon was built with.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

async fn send(method: &str, path: &str, more: &[(HeaderName, &str)]) -> Answer {
    let token = crate::token::Token::random().unwrap();
    let guard = crate::guard::Guard::new("127.0.0.1:8787".parse().unwrap(), token);
    let routes = crate::api::complete(routes());
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost:8787");
    for (name, value) in more {
        request = request.header(name, *value);
    }
    let request = request.body(Body::empty()).unwrap();
    let connection = crate::connections::Connections::for_tests().admit().unwrap();
    let inner = async |request| routes.oneshot(request).await.unwrap();
    let answer = crate::guard::guarded(&guard, request, &connection, inner).await;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

async fn page(path: &str) -> String {
    let answer = send("GET", path, &[]).await;
    assert_eq!(answer.status, 200, "{path}");
    assert_eq!(answer.headers[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
    String::from_utf8(answer.body.to_vec()).unwrap()
}

#[tokio::test]
async fn every_page_and_all_it_refers_to_is_there_without_a_token() {
    let home = page("/").await;
    for path in [
        "/servers/my%20server/tools",
        "/chat",
        "/chat/7",
        "/activity",
        "/environments",
        "/settings",
    ] {
        assert_eq!(page(path).await, home, "{path}");
    }
    let references: Vec<&str> = ["href=\"", "src=\""]
        .into_iter()
        .flat_map(|mark| home.split(mark).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert!(!references.is_empty());
    for reference in references {
        let answer = send("GET", reference, &[]).await;
        assert_eq!(answer.status, 200, "{reference}");
        assert_ne!(answer.headers[CONTENT_TYPE], "application/octet-stream", "{reference}");
    }
}

#[tokio::test]
async fn what_is_not_the_consoles_is_not_shown() {
    for (path, status) in [
        ("/assets/none.js", 404),
        ("/nothing", 401),
        ("/serversandmore", 401),
        ("/index.html", 401),
    ] {
        assert_eq!(send("GET", path, &[]).await.status, status, "{path}");
    }
    assert_eq!(send("POST", "/settings", &[]).await.status, 401);
}

#[tokio::test]
async fn a_page_may_only_run_what_the_daemon_serves() {
    let answer = send("GET", "/activity", &[]).await;
    let policies: Vec<_> = answer.headers.get_all(CONTENT_SECURITY_POLICY).iter().collect();
    assert_eq!(policies, [&POLICY]);
    let policy = POLICY.to_str().unwrap().to_owned();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ] {
        assert!(policy.split("; ").any(|part| part == rule), "{rule}: {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'));
    assert_eq!(answer.headers[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(answer.headers[REFERRER_POLICY], "no-referrer");
    let text = page("/").await;
    for tag in text.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let inline =
            tag.starts_with("script") && !tag.contains("src=\"/") || tag.starts_with("style");
        assert!(!inline && !tag.contains("style=") && !tag.contains(" on"), "{tag}");
    }
}

#[tokio::test]
async fn a_browser_that_has_a_file_is_told_so_with_the_same_headers() {
    let whole = send("GET", "/", &[(ACCEPT_ENCODING, "br")]).await;
    let tag = whole.headers[ETAG].to_str().unwrap().to_owned();
    let known = [(ACCEPT_ENCODING, "br"), (IF_NONE_MATCH, tag.as_str())];
    let nothing = send("GET", "/", &known).await;
    assert_eq!((nothing.status, nothing.body.len()), (304, 0));
    for name in [ETAG, CACHE_CONTROL, VARY, CONTENT_SECURITY_POLICY] {
        assert_eq!(nothing.headers[&name], whole.headers[&name], "{name}");
    }
    assert_eq!(send("GET", "/", &[(IF_NONE_MATCH, "\"other\"")]).await.status, 200);
}

#[tokio::test]
async fn head_says_what_get_would_send() {
    let whole = send("GET", "/", &[]).await;
    let head = send("HEAD", "/", &[]).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.headers[CONTENT_LENGTH], whole.body.len().to_string());
    assert_eq!(head.headers[ETAG], whole.headers[ETAG]);
}

#[tokio::test]
async fn only_files_with_a_hash_in_their_name_are_kept_for_ever() {
    for file in FILES.iter().filter(|file| file.path != "/index.html") {
        let answer = send("GET", file.path, &[]).await;
        let expected = if is_hashed(file.path) { FOR_EVER } else { ASK_FIRST };
        assert_eq!(answer.headers[CACHE_CONTROL], expected, "{}", file.path);
    }
    assert_eq!(send("GET", "/", &[]).await.headers[CACHE_CONTROL], ASK_FIRST);
    for (path, hashed) in [
        ("/assets/index-BkQdnLsC.js", true),
        ("/assets/tool-runner-a_-0BCDE.js", true),
        ("/assets/console.css", false),
        ("/assets/-short.js", false),
        ("/first-paint-BkQdnLsC.js", false),
    ] {
        assert_eq!(is_hashed(path), hashed, "{path}");
    }
}

const SAMPLE: File =
    File { path: "/assets/x.js", version: "v", plain: b"plain", brotli: Some(b"b"), gzip: None };

#[tokio::test]
async fn a_compressed_copy_is_sent_to_those_who_take_it() {
    for (accepted, encoding, body, tag) in [
        ("br", Some("br"), "b", "\"v-br\""),
        ("gzip", None, "plain", "\"v\""),
        ("", None, "plain", "\"v\""),
    ] {
        let mut request = HeaderMap::new();
        request.insert(ACCEPT_ENCODING, accepted.parse().unwrap());
        let (parts, sent) = SAMPLE.answer(&request).into_parts();
        let found = parts.headers.get(CONTENT_ENCODING).map(|name| name.to_str().unwrap());
        assert_eq!((found, &parts.headers[ETAG]), (encoding, &tag.parse().unwrap()), "{accepted}");
        assert_eq!(sent.collect().await.unwrap().to_bytes(), body, "{accepted}");
    }
}
