//! The shared parts of the API around small handlers, as a client sees them.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use cofer_model::{Budget, FieldError, Status};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::extract::{BodyLimit, JsonBody, Params, RawBody};
use super::*;
use crate::connections::Connections;
use crate::guard::{Guard, guarded};
use crate::token::Token;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[derive(Deserialize)]
struct Wait {
    wait: Option<u32>,
}

fn routes() -> Router {
    let routes = Router::new()
        .route("/json", post(async |JsonBody(body): JsonBody| axum::Json(body)))
        .route("/raw", post(async |RawBody(body): RawBody| body.len().to_string()))
        .route("/wait", get(async |Params(wait): Params<Wait>| format!("{:?}", wait.wait)))
        .route("/panic", get(panics))
        .route("/healthz", get(async || "ok"))
        .with_state(BodyLimit { cap: 64, memory: Budget::unlimited() });
    complete(routes)
}

async fn panics() -> &'static str {
    std::future::ready(()).await;
    panic!("the handler's own words")
}

async fn send(method: &str, path: &str, body: impl Into<Body>) -> (StatusCode, HeaderMap, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1:8787")
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(body.into())
        .unwrap();
    answer(request).await
}

async fn answer(request: Request) -> (StatusCode, HeaderMap, Value) {
    let guard = Guard::new("127.0.0.1:8787".parse().unwrap(), Token::new(TOKEN).unwrap());
    let connection = Connections::for_tests().admit().unwrap();
    let inner = async |request| routes().oneshot(request).await.unwrap();
    let (parts, body) = guarded(&guard, request, &connection, inner).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8(bytes.to_vec()).unwrap()));
    (parts.status, parts.headers, body)
}

fn kind(body: &Value) -> &str {
    body["error"]["kind"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_are_told_in_json() {
    let (status, _, body) = send("GET", "/nothing", "").await;
    assert_eq!((status.as_u16(), kind(&body)), (404, "not_found"));
    let (status, headers, body) = send("DELETE", "/json", "").await;
    assert_eq!((status.as_u16(), kind(&body)), (405, "method_not_allowed"));
    assert_eq!(headers[header::ALLOW], "POST");
}

#[test]
fn a_call_is_known_by_its_path() {
    assert_eq!(called_in("/api/v1/mcp/servers/fs/call").as_deref(), Some("fs"));
    assert_eq!(called_in("/api/v1/mcp/servers/My%20files/call").as_deref(), Some("My files"));
    for path in ["fs", "fs/tools", "fs/call/", "a/b/call", "/call"] {
        assert_eq!(called_in(&format!("/api/v1/mcp/servers/{path}")), None, "{path}");
    }
}

#[tokio::test]
async fn without_a_token_nobody_learns_which_routes_there_are() {
    for path in ["/json", "/nothing"] {
        let request = Request::builder().uri(path).header(header::HOST, "127.0.0.1:8787");
        let (status, headers, body) = answer(request.body(Body::empty()).unwrap()).await;
        assert_eq!((status.as_u16(), kind(&body)), (401, "unauthorized"));
        assert_eq!(headers[header::WWW_AUTHENTICATE], "Bearer");
        assert_eq!(headers[header::CACHE_CONTROL], "no-store");
    }
    let foreign = Request::builder().uri("/json").header(header::HOST, "evil.example");
    let (status, _, body) = answer(foreign.body(Body::empty()).unwrap()).await;
    assert_eq!((status.as_u16(), kind(&body)), (403, "forbidden"));
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    for path in ["/healthz", "/nothing", "/panic"] {
        let (_, headers, _) = send("GET", path, "").await;
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        assert_eq!(headers[header::CACHE_CONTROL], "no-store", "{path}");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
    }
}

#[tokio::test]
async fn a_body_is_read_whatever_its_content_type() {
    let (status, _, body) = send("POST", "/json", r#"{"a": [1, "x"]}"#).await;
    assert_eq!((status.as_u16(), body), (200, json!({"a": [1, "x"]})));
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_with_the_place() {
    let (status, _, body) = send("POST", "/json", "{\"a\": 1,\n \"b\" 2}").await;
    assert_eq!((status.as_u16(), kind(&body)), (422, "invalid_request"));
    let details = &body["error"]["details"];
    assert_eq!((&details["line"], &details["column"]), (&json!(2), &json!(6)));
    assert_eq!(details["fields"][0]["field"], "");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("line 2 column 6"), "{message}");

    let (status, _, body) = send("POST", "/json", "").await;
    assert_eq!((status.as_u16(), kind(&body)), (422, "invalid_request"));
}

#[tokio::test]
async fn a_body_over_the_cap_is_refused_with_and_without_a_length() {
    let fits = "x".repeat(64);
    let (status, _, body) = send("POST", "/raw", fits.clone()).await;
    assert_eq!((status.as_u16(), body), (200, json!(64)));

    let chunked = || {
        let chunks = [fits.clone(), "y".to_owned()];
        Body::from_stream(futures_util::stream::iter(chunks.map(Ok::<_, std::io::Error>)))
    };
    for path in ["/raw", "/json"] {
        let (status, _, body) = send("POST", path, chunked()).await;
        assert_eq!((status.as_u16(), kind(&body)), (413, "too_large"), "{path}");
    }
    let request = Request::post("/raw")
        .header(header::HOST, "127.0.0.1:8787")
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .header(header::CONTENT_LENGTH, "65");
    let (status, _, body) = answer(request.body(chunked()).unwrap()).await;
    assert_eq!((status.as_u16(), kind(&body)), (413, "too_large"));
    assert_eq!(body["error"]["details"]["limit_bytes"], 64);
}

/// Far more than the sockets' buffers hold, so that the client is still sending when the
/// daemon has long decided.
#[tokio::test]
async fn a_client_that_sends_far_too_much_still_reads_the_answer() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move { axum::serve(listener, routes()).await });

    let body = vec![b'x'; 32 * 1024 * 1024];
    for framing in [format!("content-length: {}", body.len()), "connection: close".to_owned()] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let chunked = framing.starts_with("connection");
        let coding = if chunked { "\r\ntransfer-encoding: chunked" } else { "" };
        let head = format!(
            "POST /raw HTTP/1.1\r\nhost: 127.0.0.1:8787\r\nauthorization: Bearer {TOKEN}\r\n\
             {framing}{coding}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        if chunked {
            stream.write_all(format!("{:x}\r\n", body.len()).as_bytes()).await.unwrap();
        }
        stream.write_all(&body).await.unwrap();
        if chunked {
            stream.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        }
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, *b"HTTP/1.1 413");
    }
}

#[tokio::test]
async fn a_body_in_pieces_is_read_whole() {
    for pieces in [vec![], vec!["\"a\""], vec!["\"a", "b", "", "c\""]] {
        let whole: String = pieces.concat();
        let stream = futures_util::stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
        let (status, _, body) = send("POST", "/raw", Body::from_stream(stream)).await;
        assert_eq!((status.as_u16(), body), (200, json!(whole.len())));
    }
}

#[tokio::test]
async fn bodies_are_charged_while_they_are_kept_and_refused_without_memory() {
    let memory = Budget::new(1 << 20);
    let read = async |size: usize| {
        let pieces = (0..4).map(move |_| Ok::<_, std::io::Error>(vec![b' '; size / 4]));
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let limit = BodyLimit { cap: 4 << 20, memory: Arc::clone(&memory) };
        super::extract::read_body(&HeaderMap::new(), body, limit).await
    };
    let first = read(700_000).await.unwrap();
    assert!((700_000..=1 << 20).contains(&memory.used()));
    let (status, headers, body) = body_of(read(700_000).await.unwrap_err()).await;
    assert_eq!((status.as_u16(), kind(&body)), (429, "overloaded"));
    assert!(headers.contains_key(header::RETRY_AFTER));
    assert_eq!(memory.losses(), 1);
    let slice = first.slice(..1);
    drop(first);
    assert!(memory.used() >= 700_000, "a slice keeps the whole body");
    drop(slice);
    assert_eq!(memory.used(), 0);
    assert!(read(700_000).await.is_ok());
}

#[tokio::test]
async fn a_wrong_parameter_is_named() {
    let (status, _, body) = send("GET", "/wait?wait=5", "").await;
    assert_eq!((status.as_u16(), body), (200, json!("Some(5)")));
    let (status, _, body) = send("GET", "/wait?wait=soon", "").await;
    assert_eq!((status.as_u16(), kind(&body)), (422, "invalid_request"));
    assert_eq!(body["error"]["details"]["fields"][0]["field"], "wait");
}

#[tokio::test]
async fn a_panic_is_an_answer_that_keeps_its_reason_to_itself() {
    let (status, _, body) = send("GET", "/panic", "").await;
    assert_eq!((status.as_u16(), kind(&body)), (500, "internal"));
    assert!(!body.to_string().contains("own words"), "{body}");
}

#[test]
fn a_failure_is_logged_once_with_its_trace_id_and_its_cause() {
    let error = crate::data_dir::DataDirError::NoRandomness(std::io::Error::other("disk on fire"));
    let mut answers = Vec::new();
    let lines = crate::log_line::logged(|| {
        for error in [ApiError::store(&error), ApiError::internal("a bug"), ApiError::conflict("x")]
        {
            answers.push(axum::response::IntoResponse::into_response(error));
        }
    });
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with(" WARN request failed trace_id="), "{}", lines[0]);
    assert!(lines[0].ends_with("cause=\"could not make a token: disk on fire\""), "{}", lines[0]);
    assert!(lines[1].starts_with("ERROR request failed trace_id="), "{}", lines[1]);
    assert!(lines[2].starts_with("DEBUG request refused trace_id="), "{}", lines[2]);
}

async fn body_of(error: ApiError) -> (StatusCode, HeaderMap, Value) {
    use axum::response::IntoResponse as _;
    let (parts, body) = error.into_response().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn kinds_have_the_statuses_of_the_contract() {
    // covers: HST-2.2, HST-2.3
    let second = Duration::from_secs(1);
    for (error, status, name) in [
        (ApiError::invalid_part("name", "Name is required"), 422, "invalid_request"),
        (ApiError::conflict("taken"), 409, "conflict"),
        (ApiError::not_connected("fs", Status::Stopped), 409, "not_connected"),
        (ApiError::no_such_server("fs"), 404, "not_found"),
        (ApiError::mcp(-32601, "no such method", None), 404, "mcp_error"),
        (ApiError::mcp(-32600, "bad request", None), 400, "mcp_error"),
        (ApiError::mcp(-32602, "bad params", None), 400, "mcp_error"),
        (ApiError::mcp(-32603, "oops", None), 502, "mcp_error"),
        (ApiError::mcp(7, "own code", None), 502, "mcp_error"),
        (ApiError::timeout("fs", second), 504, "timeout"),
        (ApiError::request_too_large(1), 413, "too_large"),
        (ApiError::answer_too_large("fs", 1), 502, "too_large"),
        (ApiError::overloaded("fs", second), 429, "overloaded"),
        (ApiError::unauthorized("no token"), 401, "unauthorized"),
        (ApiError::forbidden("foreign"), 403, "forbidden"),
        (ApiError::store(&std::io::Error::other("disk")), 503, "store_unavailable"),
        (ApiError::internal("a bug"), 500, "internal"),
    ] {
        let (got, _, body) = body_of(error).await;
        assert_eq!((got.as_u16(), kind(&body)), (status, name));
        let trace_id = body["error"]["trace_id"].as_str().unwrap();
        assert_eq!(uuid::Uuid::parse_str(trace_id).unwrap().get_version_num(), 4);
    }
}

#[tokio::test]
async fn what_a_server_answered_is_passed_on() {
    // covers: HST-2.2
    let error = ApiError::mcp(-32602, "bad params", Some(json!({"at": "x"})));
    let (_, _, body) = body_of(error).await;
    let details = json!({"code": -32602, "message": "bad params", "data": {"at": "x"}});
    assert_eq!(body["error"]["details"], details);
}

#[tokio::test]
async fn every_wrong_field_is_named_in_the_details_and_in_the_message() {
    // covers: MGR-5
    let fields = vec![
        FieldError::new("name", "Name is required"),
        FieldError::new("max_in_flight", "is not between 1 and 4096"),
        FieldError::new("colour", "unknown field `colour`"),
    ];
    let (_, _, body) = body_of(ApiError::invalid(fields.clone())).await;
    assert_eq!(body["error"]["details"]["fields"], json!(fields));
    let message =
        "Name is required; `max_in_flight`: is not between 1 and 4096; unknown field `colour`";
    assert_eq!(body["error"]["message"], message);
}

#[tokio::test]
async fn an_overloaded_server_says_when_to_come_back() {
    let (_, headers, _) = body_of(ApiError::overloaded("fs", Duration::from_millis(1))).await;
    assert_eq!(headers[header::RETRY_AFTER], "1");
}
