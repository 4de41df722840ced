//! The smallest Streamable HTTP MCP server: `/mcp` answers each request as JSON, with one tool
//! that gives its text back. Prints its port.

use std::io::{self, Write as _};

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
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

#[tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    let routes = Router::new().route("/mcp", post(answer)).layer(DefaultBodyLimit::disable());
    serve(listener, routes).await
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
