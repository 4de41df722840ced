//! An HTTP answer, and the shortest way to ask it what a test wants to know.

use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// A client that talks to this machine only, whatever proxies the environment names. Where the
/// workspace is built as a whole, reqwest has TLS without a provider of cryptography and wants
/// to be given one.
pub fn plain_client() -> reqwest::Client {
    plain_client_with(HeaderMap::new())
}

/// The same, with headers that each request has.
pub fn plain_client_with(headers: HeaderMap) -> reqwest::Client {
    // Another test of the same process may have been first.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = reqwest::Client::builder().no_proxy().default_headers(headers);
    builder.build().expect("a client for loopback")
}

/// A whole HTTP answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub body: String,
}

impl Answer {
    pub(crate) async fn read(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.text().await.expect("the body is read");
        Self { status, headers, body }
    }

    /// The body, where the status is as expected; else a failure that shows both.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.short());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body of {}", self.short()))
    }

    /// The `error` object of a failure of this status and kind, with what every failure has.
    pub fn failure(&self, status: u16, kind: &str) -> Value {
        let body = self.expect(status);
        let error = &body["error"];
        assert_eq!(error["kind"], kind, "{}", self.short());
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        assert!(error["trace_id"].is_string(), "{body}");
        error.clone()
    }

    /// The text of the one content block of a tool's result.
    pub fn tool_text(&self) -> String {
        let body = self.expect(200);
        let text = body["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("no text in {}", self.short())).to_owned()
    }

    /// The answer for a message of a failed test: not all of a 16 MiB body.
    fn short(&self) -> String {
        let body: String = self.body.chars().take(2000).collect();
        format!("HTTP {} {body}", self.status)
    }
}

/// The params of `tools/call`.
pub fn tool_params(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}
