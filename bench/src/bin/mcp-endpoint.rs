//! The smallest Streamable HTTP MCP server: `/mcp` answers each request as JSON, with one tool
//! that gives its text back. Beside it stands a metadata server like Google's, so that proxies
//! which want credentials find some. Prints its port.

use std::io::{self, Write as _};

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Router, serve};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

const WELCOME: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"mcp-endpoint","version":"0"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Answers its text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;
/// A token that nobody checks: `{"alg":"none"}` and a far `exp`.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDAsImVtYWlsIjoiYkB4LmlvIn0.eA";

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    let account = "/computeMetadata/v1/instance/service-accounts/default";
    let routes = Router::new()
        .route("/mcp", post(answer))
        .route("/", google(""))
        .route("/computeMetadata/v1/instance", google("{}"))
        .route(&format!("{account}/identity"), google(TOKEN))
        .route(&format!("{account}/email"), google("b@x.io"))
        .layer(DefaultBodyLimit::disable());
    serve(listener, routes).await
}

fn google(body: &'static str) -> MethodRouter {
    get(move || std::future::ready(([("Metadata-Flavor", "Google")], body)))
}

async fn answer(body: Bytes) -> Response {
    let Ok(Request { id, method: Some(method), params }) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = id else {
        return StatusCode::ACCEPTED.into_response();
    };
    let text = params.and_then(|params| params.arguments?.text).map_or("\"\"", RawValue::get);
    let result: &[&str] = match method {
        "initialize" => &[WELCOME],
        "tools/list" => &[TOOLS],
        "tools/call" => &[r#"{"content":[{"type":"text","text":"#, text, "}]}"],
        _ => &["{}"],
    };
    let mut json = String::with_capacity(text.len() + 256);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id.get(), r#","result":"#] {
        json.push_str(part);
    }
    json.extend(result.iter().copied());
    json.push('}');
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}
