//! A call as a span, in OTLP's JSON, by OpenTelemetry's conventions for MCP: the call as seen by
//! a client of the server, which the daemon is. What only Cofer knows stands in `cofer.*`.
//!
//! Names, numbers and words of our own: nothing of what was asked or answered, nor an error's
//! message, which may quote either.

use cofer_model::{ActivityEntry, Outcome};
use cofer_supervisor::CallTrace;
use serde_json::{Value, json};

use super::Ended;

/// `SPAN_KIND_CLIENT`.
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;
/// The call is kept; it is known whether its parent is of another process.
const FLAGS: u32 = 0x101;
/// It is.
const REMOTE_PARENT: u32 = 0x200;
/// A name that a client or a server made up is cut there.
const MAX_CHARS: usize = 256;

/// The trace that a call belongs to: its caller's, or one of its own, named like the call.
pub(super) fn trace_id(entry: &ActivityEntry, trace: &CallTrace) -> [u8; 16] {
    trace.parent.map_or(*entry.call_id.as_bytes(), |parent| parent.trace_id)
}

/// One request's body.
pub(super) fn request(resource: &[(String, String)], batch: &[Ended]) -> Value {
    let resource: Vec<_> = resource.iter().map(|(key, value)| text(key, value)).collect();
    let spans: Vec<_> = batch.iter().map(|ended| span(&ended.entry, &ended.trace)).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{
            "scope": {"name": "cofer", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

fn span(entry: &ActivityEntry, trace: &CallTrace) -> Value {
    let start = entry.started_at.unix_timestamp_nanos();
    // Milliseconds with three decimals: whole microseconds.
    let end = start + ((entry.duration_ms + entry.stages.input_ms) * 1000.0).round() as i128 * 1000;
    let remote = if trace.parent.is_some() { REMOTE_PARENT } else { 0 };
    let mut span = json!({
        "traceId": hex(&trace_id(entry, trace)),
        // Of a random UUID, and never all zero.
        "spanId": hex(&entry.call_id.as_bytes()[8..]),
        "flags": FLAGS | remote,
        "name": name(entry, trace),
        "kind": CLIENT,
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": end.to_string(),
        "attributes": attributes(entry, trace),
        "status": {},
    });
    if let Some(parent) = trace.parent {
        span["parentSpanId"] = hex(&parent.span_id).into();
    }
    if entry.outcome != Outcome::Ok {
        span["status"] = json!({"code": ERROR});
    }
    span
}

/// The method, and what it is about where that is one of a few.
fn name(entry: &ActivityEntry, trace: &CallTrace) -> String {
    let method = cut(&entry.method);
    match entry.tool.as_deref().or(trace.prompt.as_deref()) {
        Some(target) => format!("{method} {}", cut(target)),
        None => method,
    }
}

fn attributes(entry: &ActivityEntry, trace: &CallTrace) -> Vec<Value> {
    let mut all = of_mcp(entry, trace);
    all.push(text("cofer.server.name", &entry.server));
    all.extend(entry.client.as_deref().map(|client| text("cofer.client.name", client)));
    all.push(text("cofer.call.id", &entry.call_id.to_string()));
    all.push(text("cofer.call.source", &word(&entry.source)));
    all.push(text("cofer.call.outcome", &word(&entry.outcome)));
    let stages = &entry.stages;
    all.push(number("cofer.call.queue_ms", stages.queue_ms));
    all.push(number("cofer.call.write_ms", stages.write_ms));
    all.push(number("cofer.call.server_ms", stages.server_ms));
    all.push(number("cofer.call.read_ms", stages.read_ms));
    if stages.input_ms > 0.0 {
        all.push(number("cofer.call.input_ms", stages.input_ms));
    }
    all.push(count("cofer.request.bytes", entry.request_bytes));
    all.push(count("cofer.response.bytes", entry.response_bytes));
    all
}

/// What the conventions name.
fn of_mcp(entry: &ActivityEntry, trace: &CallTrace) -> Vec<Value> {
    let mut all = vec![text("mcp.method.name", &entry.method)];
    if let Some(tool) = &entry.tool {
        all.push(text("gen_ai.operation.name", "execute_tool"));
        all.push(text("gen_ai.tool.name", tool));
    }
    all.extend(trace.prompt.as_deref().map(|prompt| text("gen_ai.prompt.name", prompt)));
    all.extend(trace.session.as_deref().map(|session| text("mcp.session.id", session)));
    let version = trace.protocol_version.as_deref();
    all.extend(version.map(|version| text("mcp.protocol.version", version)));
    all.extend(trace.rpc_id.map(|id| text("jsonrpc.request.id", &id.to_string())));
    all.push(text("network.transport", if trace.over_http { "tcp" } else { "pipe" }));
    if trace.over_http {
        all.push(text("network.protocol.name", "http"));
    }
    let code = trace.error_code.map(|code| code.to_string());
    all.extend(code.as_deref().map(|code| text("rpc.response.status_code", code)));
    if entry.outcome != Outcome::Ok {
        all.push(text("error.type", &code.unwrap_or_else(|| word(&entry.outcome))));
    }
    all
}

/// The word that the API has for a value that is one of a few.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": cut(value)}})
}

fn number(key: &str, value: f64) -> Value {
    json!({"key": key, "value": {"doubleValue": value}})
}

/// 64-bit numbers are texts in OTLP's JSON.
fn count(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use cofer_model::{CallSource, ServerId, Stages, TraceParent};
    use time::macros::datetime;
    use uuid::uuid;

    use super::*;

    pub(in super::super) fn entry() -> ActivityEntry {
        ActivityEntry {
            call_id: uuid!("0190a1b2-c3d4-4e5f-8a6b-7c8d9e0f1a2b"),
            server_id: ServerId(uuid::Uuid::nil()),
            server: "fs".into(),
            method: "tools/call".into(),
            tool: Some("read_file".into()),
            client: Some("claude-code".into()),
            source: CallSource::Gateway,
            recorded: true,
            started_at: datetime!(2026-11-16 08:00:00.5 UTC),
            duration_ms: 12.345,
            stages: Stages {
                queue_ms: 1.5,
                write_ms: 0.25,
                server_ms: 10.0,
                read_ms: 0.595,
                ..Stages::default()
            },
            outcome: Outcome::Ok,
            error: Some("must not be told".to_owned()),
            request_bytes: 120,
            response_bytes: 4096,
        }
    }

    fn attribute(span: &Value, key: &str) -> Option<Value> {
        let all = span["attributes"].as_array().unwrap();
        let found: Vec<_> = all.iter().filter(|one| one["key"] == key).collect();
        assert!(found.len() < 2, "{key} stands there twice");
        Some(found.first()?["value"].as_object()?.values().next()?.clone())
    }

    #[test]
    fn a_call_of_a_tool_is_a_span_as_the_conventions_want_it() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0b0902b7-01";
        let trace = CallTrace {
            parent: TraceParent::parse(parent),
            session: Some("s1".into()),
            protocol_version: Some("2025-11-25".to_owned()),
            rpc_id: Some(7),
            ..CallTrace::default()
        };
        let span = span(&entry(), &trace);
        assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span["parentSpanId"], "00f067aa0b0902b7");
        assert_eq!(span["spanId"], "8a6b7c8d9e0f1a2b");
        assert_eq!(span["flags"], 0x301);
        assert_eq!(span["name"], "tools/call read_file");
        assert_eq!(span["kind"], 3);
        assert_eq!(span["startTimeUnixNano"], "1794816000500000000");
        assert_eq!(span["endTimeUnixNano"], "1794816000512345000");
        assert_eq!(span["status"], json!({}));
        for (key, value) in [
            ("mcp.method.name", json!("tools/call")),
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!("read_file")),
            ("mcp.session.id", json!("s1")),
            ("mcp.protocol.version", json!("2025-11-25")),
            ("jsonrpc.request.id", json!("7")),
            ("network.transport", json!("pipe")),
            ("cofer.server.name", json!("fs")),
            ("cofer.client.name", json!("claude-code")),
            ("cofer.call.source", json!("gateway")),
            ("cofer.call.outcome", json!("ok")),
            ("cofer.call.queue_ms", json!(1.5)),
            ("cofer.call.server_ms", json!(10.0)),
            ("cofer.request.bytes", json!("120")),
            ("cofer.response.bytes", json!("4096")),
        ] {
            assert_eq!(attribute(&span, key), Some(value), "{key}");
        }
        for key in ["error.type", "gen_ai.prompt.name", "network.protocol.name"] {
            assert_eq!(attribute(&span, key), None, "{key}");
        }
    }

    #[test]
    fn a_call_without_a_parent_begins_a_trace_that_is_named_like_it() {
        let span = span(&entry(), &CallTrace::default());
        assert_eq!(span["traceId"], "0190a1b2c3d44e5f8a6b7c8d9e0f1a2b");
        assert_eq!(span["flags"], 0x101);
        assert!(span.get("parentSpanId").is_none(), "{span}");
    }

    #[test]
    fn a_failure_says_its_type_and_never_its_message() {
        for (outcome, code, expected) in [
            (Outcome::McpError, Some(-32602), "-32602"),
            (Outcome::McpError, None, "mcp_error"),
            (Outcome::ToolError, None, "tool_error"),
            (Outcome::Timeout, None, "timeout"),
            (Outcome::Cancelled, None, "cancelled"),
        ] {
            let trace = CallTrace { error_code: code, ..CallTrace::default() };
            let span = span(&ActivityEntry { outcome, ..entry() }, &trace);
            assert_eq!(span["status"], json!({"code": 2}));
            assert_eq!(attribute(&span, "error.type").unwrap(), expected);
            let code = code.map(|code: i64| json!(code.to_string()));
            assert_eq!(attribute(&span, "rpc.response.status_code"), code);
            assert!(!span.to_string().contains("must not"), "{span}");
        }
    }

    #[test]
    fn what_a_call_is_about_stands_in_its_name_and_is_cut_where_it_is_endless() {
        let plain = ActivityEntry { tool: None, method: "prompts/get".into(), ..entry() };
        let prompt =
            CallTrace { prompt: Some("é".repeat(5000)), over_http: true, ..CallTrace::default() };
        let told = span(&plain, &prompt);
        assert_eq!(told["name"], format!("prompts/get {}", "é".repeat(256)));
        assert_eq!(attribute(&told, "gen_ai.prompt.name").unwrap(), "é".repeat(256));
        assert_eq!(attribute(&told, "network.transport").unwrap(), "tcp");
        assert_eq!(attribute(&told, "network.protocol.name").unwrap(), "http");
        assert_eq!(span(&plain, &CallTrace::default())["name"], "prompts/get");
    }

    #[test]
    fn spans_stand_below_who_sends_them() {
        let resource = [("service.name".to_owned(), "mine".to_owned())];
        let ended = || Ended { entry: Arc::new(entry()), trace: Box::default() };
        let body = request(&resource, &[ended(), ended()]);
        let one = &body["resourceSpans"][0];
        let name = json!({"key": "service.name", "value": {"stringValue": "mine"}});
        assert_eq!(one["resource"]["attributes"], json!([name]));
        assert_eq!(one["scopeSpans"][0]["scope"]["name"], "cofer");
        assert_eq!(one["scopeSpans"][0]["spans"].as_array().unwrap().len(), 2);
    }
}
