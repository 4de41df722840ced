//! Calls as spans at an OpenTelemetry collector: what they say, and what they never cost.

use std::time::Duration;

use cofer_e2e::{
    AnyValue, Collector, Daemon, DaemonBuilder, GatewayClient, Instead, KeyValue, Upstream,
    eventually, exemplary, stateless, wayward,
};
use reqwest::Method;
use serde_json::json;
use tokio::time::Instant;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0b0902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A daemon that exports to `collector` as soon as there is something.
fn exporting(collector: &Collector) -> DaemonBuilder {
    Daemon::builder()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base())
        .env("OTEL_BSP_SCHEDULE_DELAY", "10")
}

/// The value of a counter of spans.
async fn counted(daemon: &Daemon, result: &str) -> u64 {
    let request = daemon.raw(Method::GET, "/metrics").bearer_auth(daemon.token());
    let text = daemon.send(request).await.body;
    let start = format!("cofer_spans_total{{result=\"{result}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {start} in {text}")).parse().expect("a number")
}

#[tokio::test]
async fn a_call_through_the_gateway_is_a_span_with_everything_but_its_content() {
    let collector = Collector::start();
    let daemon = exporting(&collector)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20collector-key")
        .env("OTEL_SERVICE_NAME", "desk")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        .start()
        .await;
    daemon.register(&exemplary("x", "legacy")).await;
    let mut client = GatewayClient::open(&daemon, "/mcp/x", json!({})).await;
    let said = json!({"region": "canary-argument"});
    assert!(client.call("test_header_argument", said).await.contains("canary-argument"));
    let span = collector.span("tools/call test_header_argument").await;
    let activity = daemon.get("/activity").await.expect(200);
    let call = &activity["calls"][0];
    assert_eq!(call["tool"], "test_header_argument");
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "test_header_argument"),
        ("mcp.session.id", &client.session),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
        ("cofer.server.name", "x"),
        ("cofer.client.name", "e2e-client"),
        ("cofer.call.source", "gateway"),
        ("cofer.call.outcome", "ok"),
        ("cofer.call.id", call["call_id"].as_str().unwrap()),
    ] {
        assert_eq!(span.text(key), Some(value), "{key}");
    }
    assert!(span.text("jsonrpc.request.id").unwrap().parse::<u64>().is_ok());
    assert_eq!(span.text("error.type"), None);
    assert_eq!((span.kind, span.status.code, span.parent_span_id.as_deref()), (3, None, None));
    assert_eq!(span.trace_id, call["call_id"].as_str().unwrap().replace('-', ""));
    for (key, member) in [
        ("cofer.call.queue_ms", &call["stages"]["queue_ms"]),
        ("cofer.call.write_ms", &call["stages"]["write_ms"]),
        ("cofer.call.server_ms", &call["stages"]["server_ms"]),
        ("cofer.call.read_ms", &call["stages"]["read_ms"]),
        ("cofer.request.bytes", &call["request_bytes"]),
        ("cofer.response.bytes", &call["response_bytes"]),
    ] {
        assert_eq!(Some(span.number(key)), member.as_f64(), "{key}");
    }
    assert_eq!(span.nanos() as f64, (call["duration_ms"].as_f64().unwrap() * 1e6).round());
    let exports = collector.exports();
    for export in &exports {
        assert_eq!(export.headers["authorization"], "Bearer collector-key");
        assert!(!export.body.contains("canary"), "{}", export.body);
        for (key, value) in [("service.name", "desk"), ("deployment.environment.name", "test")] {
            let value = AnyValue::StringValue(value.to_owned());
            assert!(export.resource.contains(&KeyValue { key: key.to_owned(), value }), "{key}");
        }
    }
    let log = std::fs::read_to_string(daemon.data_dir().join("logs/cofer.log")).unwrap();
    assert!(log.contains("[START] every call is exported as a span"), "{log}");
    assert!(!log.contains("collector-key"), "{log}");
}

#[tokio::test]
async fn a_call_belongs_to_the_span_that_its_caller_names() {
    let collector = Collector::start();
    let daemon = exporting(&collector).start().await;
    daemon.register(&exemplary("x", "legacy")).await;
    daemon.register(&exemplary("y", "modern")).await;
    let client = GatewayClient::open(&daemon, "/mcp", json!({})).await;
    let call = |tool: &str, meta: serde_json::Value| {
        let params = json!({"name": tool, "arguments": {}, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    // In the request itself, which counts before what its transport says.
    let both = client.post(call("x__test_simple_text", json!({"traceparent": PARENT})));
    daemon.send(both.header("traceparent", OTHER)).await.expect(200);
    let span = collector.span("tools/call test_simple_text").await;
    assert_eq!(span.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(span.parent_span_id.as_deref(), Some("00f067aa0b0902b7"));
    assert_eq!(span.flags, 0x301);
    // In the header of the HTTP request.
    let header = client.post(call("x__test_image_content", json!({})));
    daemon.send(header.header("traceparent", OTHER)).await.expect(200);
    let span = collector.span("tools/call test_image_content").await;
    assert_eq!(span.trace_id, "0af7651916cd43dd8448eb211c80319c");
    // Over the API.
    let body = json!({"method": "tools/call", "params": {"name": "test_audio_content"}});
    let api = daemon.request(Method::POST, "/mcp/servers/x/call").json(&body);
    daemon.send(api.header("traceparent", OTHER)).await.expect(200);
    let span = collector.span("tools/call test_audio_content").await;
    assert_eq!(span.parent_span_id.as_deref(), Some("b7ad6b7169203331"));
    assert_eq!(span.text("cofer.call.source"), Some("api"));
    // Of a client and a server of the newer era, which have no session.
    let params = json!({"name": "test_embedded_resource", "arguments": {}, "_meta": {"traceparent": PARENT}});
    let (status, _) = stateless(&daemon, "/mcp/y", "tools/call", params, json!({})).await;
    assert_eq!(status, 200);
    let span = collector.span("tools/call test_embedded_resource").await;
    assert_eq!(span.parent_span_id.as_deref(), Some("00f067aa0b0902b7"));
    assert_eq!(span.text("mcp.protocol.version"), Some("2026-07-28"));
    assert_eq!(span.text("mcp.session.id"), None);
    // One that its caller does not keep is not kept here either.
    let unsampled = PARENT.replace("-01", "-00");
    let unkept = client.post(call("x__test_simple_text", json!({"traceparent": unsampled})));
    daemon.send(unkept).await.expect(200);
    let last = client.post(call("x__test_multiple_content_types", json!({})));
    daemon.send(last).await.expect(200);
    collector.span("tools/call test_multiple_content_types").await;
    let spans = collector.spans();
    assert_eq!(spans.iter().filter(|span| span.name.ends_with("test_simple_text")).count(), 1);
}

#[tokio::test]
async fn a_failure_is_told_by_its_type_and_a_remote_server_by_its_transport() {
    let (collector, upstream) = (Collector::start(), Upstream::start());
    let daemon = exporting(&collector).start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.register(&json!({"name": "far", "url": upstream.url()})).await;
    daemon.tool("w", "fail", &json!({})).await.expect(200);
    let span = collector.span("tools/call fail").await;
    assert_eq!((span.status.code, span.text("error.type")), (Some(2), Some("tool_error")));
    daemon.tool("w", "rpc_error", &json!({})).await;
    let span = collector.span("tools/call rpc_error").await;
    let code = span.text("rpc.response.status_code").expect("a code").to_owned();
    assert!(code.parse::<i64>().is_ok() && span.text("error.type") == Some(&code), "{code}");
    assert_eq!((span.status.code, &span.status.message), (Some(2), &None));
    daemon.tool("far", "echo", &json!({"text": "hello"})).await.expect(200);
    let span = collector.span("tools/call echo").await;
    assert_eq!(span.text("network.transport"), Some("tcp"));
    assert_eq!(span.text("network.protocol.name"), Some("http"));
}

#[tokio::test]
async fn a_collector_that_is_away_costs_spans_and_no_call_and_is_named_once() {
    let mut collector = Collector::start();
    collector.die();
    let daemon = exporting(&collector).env("OTEL_BSP_MAX_QUEUE_SIZE", "4").start().await;
    daemon.register(&wayward("w", &[])).await;
    let began = Instant::now();
    for _ in 0..40 {
        daemon.tool("w", "pid", &json!({})).await.expect(200);
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(counted(&daemon, "dropped").await > 0);
    assert_eq!(counted(&daemon, "exported").await, 0);
    collector.rise();
    collector.span("tools/call pid").await;
    eventually("what arrives is counted", async || {
        (counted(&daemon, "exported").await > 0).then_some(())
    })
    .await;
    let complaints = || {
        let said = daemon.stderr();
        ["do not arrive", "arrive at the collector again"].map(|words| said.matches(words).count())
    };
    eventually("it is said", async || (complaints() == [1, 1]).then_some(())).await;
}

#[tokio::test]
async fn a_busy_collector_is_asked_again_and_one_that_refuses_is_not() {
    let collector = Collector::start();
    collector.order(Instead::Answer(503, ""));
    collector.order(Instead::Answer(429, ""));
    let daemon = exporting(&collector).start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    collector.span("tools/call pid").await;
    assert_eq!(collector.requests(), 3);
    collector.order(Instead::Answer(400, ""));
    daemon.tool("w", "cwd", &json!({})).await.expect(200);
    eventually("the refused one is counted", async || {
        (counted(&daemon, "failed").await == 1).then_some(())
    })
    .await;
    assert_eq!(collector.requests(), 4);
    collector.order(Instead::Answer(200, r#"{"partialSuccess":{"rejectedSpans":"1"}}"#));
    daemon.tool("w", "env", &json!({})).await.expect(200);
    eventually("the unwanted one is counted", async || {
        (counted(&daemon, "failed").await == 2).then_some(())
    })
    .await;
    assert_eq!(counted(&daemon, "exported").await, 1);
}

#[tokio::test]
async fn what_waits_is_sent_when_the_daemon_ends() {
    let collector = Collector::start();
    let an_hour = "3600000";
    let mut daemon = exporting(&collector)
        .env("OTEL_BSP_SCHEDULE_DELAY", an_hour)
        .env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
        .start()
        .await;
    daemon.register(&wayward("w", &[])).await;
    for _ in 0..11 {
        daemon.tool("w", "pid", &json!({})).await.expect(200);
    }
    assert!(daemon.terminate().await.success());
    let sizes: Vec<_> = collector.exports().iter().map(|export| export.spans.len()).collect();
    assert_eq!(sizes, [4, 4, 3]);
    let mut ids: Vec<_> = collector.spans().into_iter().map(|span| span.span_id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 11);
}

#[tokio::test]
async fn a_collector_that_hangs_does_not_keep_the_daemon_from_ending() {
    let collector = Collector::start();
    for _ in 0..10 {
        collector.order(Instead::Hang);
    }
    let mut daemon = exporting(&collector).start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    eventually("the collector hangs", async || (collector.requests() > 0).then_some(())).await;
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    let began = Instant::now();
    assert!(daemon.terminate().await.success());
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

#[tokio::test]
async fn nothing_is_exported_unless_it_is_asked_for() {
    let collector = Collector::start();
    for builder in [Daemon::builder(), exporting(&collector).env("OTEL_SDK_DISABLED", "true")] {
        let mut daemon = builder.start().await;
        daemon.register(&wayward("w", &[])).await;
        daemon.tool("w", "pid", &json!({})).await.expect(200);
        let request = daemon.raw(Method::GET, "/metrics").bearer_auth(daemon.token());
        let metrics = daemon.send(request).await.body;
        assert!(!metrics.contains("cofer_spans_total"), "{metrics}");
        assert!(daemon.terminate().await.success());
        assert!(!daemon.stderr().contains("span"), "{}", daemon.stderr());
    }
    assert_eq!(collector.requests(), 0);
}

#[tokio::test]
async fn a_setting_that_cannot_be_meant_is_said_and_the_daemon_serves() {
    let builder = Daemon::builder()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let daemon = builder.start().await;
    let warning = "OTEL_EXPORTER_OTLP_PROTOCOL: only `http/json` is spoken";
    eventually(warning, async || daemon.stderr().contains(warning).then_some(())).await;
}
