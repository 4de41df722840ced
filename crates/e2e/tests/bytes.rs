//! Messages as bytes: what goes in comes out untouched, up to a size, whatever else is on the pipe.

use std::time::Duration;

use cofer_e2e::{Daemon, OrderLog, pid_of, wayward};
use futures_util::future::join_all;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// Sends params as the bytes they are, and returns the bytes of the result.
async fn round_trip(daemon: &Daemon, params: &str) -> String {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let body = format!(r#"{{"method":"echo/raw","params":{params}}}"#);
    let request = daemon.request(Method::POST, "/mcp/servers/w/call").body(body);
    let answer = daemon.send(request.header("Content-Type", "application/json")).await;
    assert_eq!(answer.status, 200, "{}", &answer.body[..answer.body.len().min(500)]);
    let body: Body<'_> = serde_json::from_str(&answer.body).expect("the body has a result");
    body.result.get().to_owned()
}

#[tokio::test]
async fn bytes_pass_untouched() {
    // covers: HST-2.1
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let corpus = [
        r#"{"z":1,"a":2,"m":3}"#,
        r#"{"same":1,"same":2,"same":1}"#,
        r#"{"n":[9007199254740993,123456789012345678901234567890,-0,-0.0,1.0,1e400,1E+2,0.1000]}"#,
        "{\"s\":\"\u{1F469}\u{200D}\u{1F469}\u{200D}\u{1F467}\u{200D}\u{1F466} a\u{a0}b \u{2028}\u{2029} \u{feff}\"}",
        r#"{"s":"\ud83d\ude00 \ud800 \udc00x \u0000 \u001f \/ \u00e9 \b\f\n\r\t"}"#,
        r#"{"empty":{},"list":[],"null":null,"":"","deep":[[[[[[[[]]]]]]]]}"#,
        "{ \"spaces\" :\t[ 1 , 2 ] , \"more\":  { } }",
        r#"{"id":99,"jsonrpc":"1.0","method":"x","result":{},"error":{},"params":{}}"#,
    ];
    for params in corpus {
        assert_eq!(round_trip(&daemon, params).await, params);
    }
}

#[tokio::test]
async fn params_on_many_lines_are_sent_as_one() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let pretty = "{\n  \"a\": [\r\n    1.50,\n\t2\n  ],\n  \"s\": \"one  \\n line\"\n}\n";
    let squeeze = |text: &str| text.replace(['\n', '\r', '\t', ' '], "");
    let result = round_trip(&daemon, pretty).await;
    assert_eq!(squeeze(&result), squeeze(pretty));
    assert!(result.contains("\"one  \\n line\""), "what is in a string stays: {result}");
}

#[tokio::test]
async fn a_body_that_is_no_call_is_refused_and_never_reaches_the_server() {
    let daemon = Daemon::start().await;
    let log = OrderLog::new();
    daemon.register(&log.wayward("w", &[])).await;
    let bodies: [&[u8]; 6] = [
        b"",
        b"[]",
        b"{\"params\":{}}",
        b"{\"method\":7}",
        b"{\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}",
        b"{\"method\":\"ping\"} x",
    ];
    for body in bodies {
        let request = daemon.request(Method::POST, "/mcp/servers/w/call").body(body.to_vec());
        let answer = daemon.send(request.header("Content-Type", "application/json")).await;
        assert!(
            (400..500).contains(&answer.status),
            "{}: {answer:?}",
            String::from_utf8_lossy(body)
        );
        assert_eq!(answer.json()["error"]["kind"], "invalid_request");
    }
    daemon.call("w", "ping", &json!({})).await.expect(200);
    assert_eq!(log.lines().iter().filter(|line| *line == "receive ping").count(), 1);
}

#[tokio::test]
async fn sixteen_mebibytes_pass_in_both_directions() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let size = 16 << 20;
    let text = daemon.tool("w", "big", &json!({"n": size})).await.tool_text();
    assert_eq!(text.len(), size);
    let params = format!(r#"{{"s":"{}"}}"#, "é".repeat(size / 2));
    assert!(round_trip(&daemon, &params).await == params, "the result differs");
}

#[tokio::test]
async fn a_message_over_the_cap_fails_alone() {
    let cap = 1 << 20;
    let daemon = Daemon::builder().env("COFER_MAX_MESSAGE_BYTES", cap.to_string()).start().await;
    let server = daemon.register(&wayward("w", &[])).await;
    daemon.tool("w", "over", &json!({"n": cap})).await.failure(502, "too_large");
    daemon.tool("w", "over", &json!({"n": 40 * cap})).await.failure(502, "too_large");
    let text = "x".repeat(cap + 1);
    daemon.tool("w", "echo", &json!({"text": text})).await.failure(413, "too_large");
    let below = daemon.tool("w", "big", &json!({"n": cap / 2})).await.tool_text();
    assert_eq!(below.len(), cap / 2);
    let pid = daemon.tool("w", "pid", &json!({})).await.tool_text();
    assert_eq!(pid, pid_of(&server).to_string());
}

#[tokio::test]
async fn noise_on_stdout_harms_nothing_and_is_shown() {
    let daemon = Daemon::start().await;
    let server = daemon.register(&wayward("w", &["--noise"])).await;
    for n in 0..3 {
        let echoed = daemon.tool("w", "echo", &json!({"n": n})).await.tool_text();
        assert_eq!(echoed, json!({"n": n}).to_string());
    }
    let page = daemon.get("/mcp/servers/w/logs?tail=1000").await.expect(200);
    let lines = page["lines"].as_array().unwrap();
    assert!(
        lines.iter().any(|line| line["line"].as_str().unwrap().contains("this line is noise")
            && line["stream"] == "stdout"),
        "{page}"
    );
    assert_eq!(pid_of(&daemon.server("w").await), pid_of(&server));
}

#[tokio::test]
async fn both_pipes_full_at_once_do_not_lock_up() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    daemon.patch("/mcp/servers/w?wait=30", &json!({"max_in_flight": 8})).await.expect(200);
    daemon.wait_status("w", "ready").await;
    // Far more than a pipe holds, both ways at the same time.
    let params = format!(r#"{{"s":"{}"}}"#, "p".repeat(1 << 20));
    let results = join_all((0..8).map(|_| round_trip(&daemon, &params)));
    let results = tokio::time::timeout(Duration::from_secs(40), results).await.unwrap();
    assert!(results.iter().all(|result| *result == params));
}
