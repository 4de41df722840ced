//! Bytes through the gateway: what a server sends is what its client gets.

use cofer_e2e::{Daemon, GatewayClient, wayward};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Sends params as the bytes they are, under an id as it is, and returns the result's bytes.
async fn round_trip(daemon: &Daemon, client: &GatewayClient<'_>, id: &str, params: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo/raw","params":{params}}}"#);
    let answer = daemon.send(client.post(body)).await;
    assert_eq!(answer.status, 200, "{}", &answer.body[..answer.body.len().min(500)]);
    // On a slow machine a large answer takes long enough to come on a stream.
    let event = answer.body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    let envelope: Envelope<'_> =
        serde_json::from_str(event.unwrap_or(&answer.body)).expect("it is an answer");
    assert_eq!(envelope.id.get(), id);
    envelope.result.get().to_owned()
}

#[tokio::test]
async fn bytes_pass_through_the_gateway_untouched() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
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
    for (params, id) in corpus.iter().zip([
        "1",
        "\"a\"",
        "-7",
        "1.50",
        r#""\ud800\u2028""#,
        "9007199254740993",
        "0",
        "\"\"",
    ]) {
        assert_eq!(round_trip(&daemon, &client, id, params).await, *params);
    }
}

#[tokio::test]
async fn sixteen_mebibytes_pass_through_the_gateway_both_ways() {
    // covers: GTW-2
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let mut client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let size = 16 << 20;
    let params = format!(r#"{{"s":"{}"}}"#, "é".repeat(size / 2));
    assert!(round_trip(&daemon, &client, "1", &params).await == params, "the result differs");
    assert_eq!(client.call("big", json!({"n": size})).await.len(), size);
}

#[tokio::test]
async fn a_message_over_the_cap_fails_alone_and_its_session_goes_on() {
    let cap = 1 << 20;
    let daemon = Daemon::builder().env("COFER_MAX_MESSAGE_BYTES", cap.to_string()).start().await;
    daemon.register(&wayward("w", &[])).await;
    let mut client = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let params = json!({"name": "over", "arguments": {"n": cap}});
    let answer = client.answer("tools/call", params).await;
    assert_eq!(answer["error"]["data"]["kind"], "too_large", "{answer}");
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"echo/raw","params":{{"s":"{}"}}}}"#,
        "x".repeat(2 * cap)
    );
    assert_eq!(daemon.send(client.post(huge)).await.status, 413);
    assert_eq!(client.call("echo", json!({"a": 1})).await, r#"{"a":1}"#);
}
