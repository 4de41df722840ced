//! The flight recorder: a call down to the wire, from its card, and made again.

use cofer_e2e::{Reply, eventually, tool_params};
use serde_json::{Value, json};

use crate::support::{say, world};

#[tokio::test]
async fn a_card_leads_to_the_exact_exchange_its_stages_and_its_stderr() {
    let (daemon, _model) = world([
        Reply::calls(&[("way__stderr", json!({"text": "the cause stands here"}))]),
        Reply::text(&["ok"]),
    ])
    .await;
    daemon.tool("way", "stderr", &json!({"text": "before"})).await.expect(200);
    let seen = say(&daemon, "x").await;
    let card = seen.one("toolCallFinished");
    assert_eq!(card["recorded"], true);
    let path = format!("/activity/{}", card["call_id"].as_str().unwrap());
    // Stderr is another pipe than the answer's.
    let flight = eventually("the line is with the call", async || {
        let flight = daemon.get(&path).await.expect(200);
        flight["stderr"].as_array().is_some_and(|lines| !lines.is_empty()).then_some(flight)
    })
    .await;
    let lines: Vec<&str> = flight["stderr"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["line"].as_str().unwrap())
        .collect();
    assert!(lines.contains(&"the cause stands here") && !lines.contains(&"before"), "{lines:?}");
    let request: Value = serde_json::from_str(flight["request"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&request["method"], &request["params"]),
        (&json!("tools/call"), &tool_params("stderr", &json!({"text": "the cause stands here"})))
    );
    assert!(request["id"].is_u64());
    let response: Value =
        serde_json::from_str(flight["response"]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&response["id"], &response["result"]), (&request["id"], &card["result"]));
    for stage in ["queue_ms", "write_ms", "server_ms", "read_ms"] {
        assert!(
            flight["stages"][stage].as_f64().is_some_and(|ms| ms >= 0.0),
            "{stage} in {flight}"
        );
    }
    assert_eq!((&flight["source"], &flight["client"]), (&json!("chat"), &json!("chat")));
    let listed = daemon.get("/activity").await.expect(200);
    assert_eq!(
        (&listed["calls"][0]["recorded"], &listed["calls"][1]["source"]),
        (&json!(true), &json!("api"))
    );
}

#[tokio::test]
async fn a_replay_sends_the_same_bytes_again_or_others() {
    let (daemon, _model) = world([Reply::text(&["ok"])]).await;
    // Bytes that a rewriting would change: spaces, order, escapes, a number of many digits.
    let odd =
        r#"{"name":"echo", "arguments":{"z":1.50, "a":"\u00e9", "n":12345678901234567890123}}"#;
    let body = format!(r#"{{"method":"tools/call","params":{odd}}}"#);
    let request = daemon.request(reqwest::Method::POST, "/mcp/servers/way/call").body(body);
    let first = daemon.send(request.header("sec-fetch-site", "same-origin")).await;
    let activity = daemon.get("/activity").await.expect(200);
    assert_eq!(activity["calls"][0]["source"], "console");
    let call = activity["calls"][0]["call_id"].as_str().unwrap().to_owned();
    let recorded = daemon.get(&format!("/activity/{call}")).await.expect(200);
    assert!(
        recorded["request"]["text"].as_str().unwrap().contains(odd),
        "{}",
        recorded["request"]["text"]
    );
    assert_eq!(recorded["replayable"], true);
    let again = daemon
        .send(daemon.request(reqwest::Method::POST, &format!("/activity/{call}/replay")))
        .await;
    let result = |body: &str| body.split_once(r#""result":"#).unwrap().1.to_owned();
    assert_eq!(result(&again.body), result(&first.body), "the same answer, byte for byte");
    let again = again.expect(200);
    let new =
        daemon.get(&format!("/activity/{}", again["call_id"].as_str().unwrap())).await.expect(200);
    assert!(new["request"]["text"].as_str().unwrap().contains(odd));
    let edited = json!({"params": tool_params("echo", &json!({"edited": true}))});
    let edited = daemon.post(&format!("/activity/{call}/replay"), &edited).await.expect(200);
    assert_eq!(edited["result"]["content"][0]["text"], r#"{"edited":true}"#);
    let failing = json!({"params": tool_params("rpc_error", &json!({}))});
    let failed =
        daemon.post(&format!("/activity/{call}/replay"), &failing).await.failure(502, "mcp_error");
    assert!(failed["details"]["call_id"].is_string() && failed["details"]["code"] == -32000);
}

#[tokio::test]
async fn what_is_not_kept_is_said_to_be_not_kept() {
    let (daemon, _model) = world([Reply::text(&["ok"])]).await;
    daemon.get("/activity/nonsense").await.failure(404, "not_found");
    let large = json!({"text": "x".repeat(2 << 20)});
    daemon.tool("way", "echo", &large).await.expect(200);
    let activity = daemon.get("/activity").await.expect(200);
    let call = activity["calls"][0]["call_id"].as_str().unwrap();
    let flight = daemon.get(&format!("/activity/{call}")).await.expect(200);
    assert_eq!(
        (&flight["request"]["truncated"], &flight["replayable"]),
        (&json!(true), &json!(false))
    );
    assert!(flight["request"]["bytes"].as_u64().unwrap() > 2 << 20);
    daemon.post(&format!("/activity/{call}/replay"), &json!({})).await.failure(409, "conflict");
}

#[tokio::test]
async fn the_secrets_of_a_server_are_not_in_its_records() {
    let (daemon, _model) = world([Reply::text(&["ok"])]).await;
    let mut body = cofer_e2e::wayward("secretive", &[]);
    body["environment"] = json!({"API_KEY": "canary-secret-0123456789"});
    daemon.register(&body).await;
    daemon.tool("secretive", "env", &json!({"name": "API_KEY"})).await.expect(200);
    let activity = daemon.get("/activity").await.expect(200);
    let call = activity["calls"][0]["call_id"].as_str().unwrap();
    let flight = daemon.get(&format!("/activity/{call}")).await;
    assert!(!flight.body.contains("canary"), "{}", flight.body);
    assert_eq!(flight.expect(200)["response"]["redacted"], true);
}
