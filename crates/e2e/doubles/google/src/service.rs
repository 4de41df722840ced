//! A service behind the front door: as small an MCP server as answers a client, with one tool.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::server::with_status;
use crate::state::Seen;

/// Answers a message of the protocol; anything else is answered with nothing in particular.
pub(crate) fn answer(seen: &Seen) -> Response<Body> {
    if seen.method == "GET" {
        return with_status(Response::new(Body::empty()), StatusCode::METHOD_NOT_ALLOWED);
    }
    let message = seen.json();
    let Some(method) = message["method"].as_str() else {
        return Response::new(Body::from("{}"));
    };
    if message["id"].is_null() {
        return with_status(Response::new(Body::empty()), StatusCode::ACCEPTED);
    }
    let mut reply = json!({"jsonrpc": "2.0", "id": message["id"]});
    match result(method, &message["params"]) {
        Some(result) => reply["result"] = result,
        None => reply["error"] = json!({"code": -32601, "message": "no such method"}),
    }
    let mut response = Response::new(Body::from(reply.to_string()));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", kind);
    response
}

fn result(method: &str, params: &Value) -> Option<Value> {
    match method {
        "initialize" => Some(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake-service", "version": "1"},
        })),
        "tools/list" => Some(json!({"tools": [{
            "name": "echo", "description": "Says it again", "inputSchema": {"type": "object"},
        }]})),
        "tools/call" => {
            let said = params["arguments"].to_string();
            Some(json!({"content": [{"type": "text", "text": said}]}))
        }
        "ping" => Some(json!({})),
        _ => None,
    }
}
