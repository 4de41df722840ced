//! The one message that everything is measured with: a tool call whose text has the wanted size.

/// A text of `size` bytes that needs no escaping.
pub fn text(size: usize) -> String {
    "the quick brown fox jumps over a lazy dog ".chars().cycle().take(size).collect()
}

/// The params of the tool call.
pub fn params(size: usize) -> String {
    format!(r#"{{"name":"echo","arguments":{{"text":"{}"}}}}"#, text(size))
}

/// The body of `POST …/call`.
pub fn call_body(size: usize) -> String {
    format!(r#"{{"method":"tools/call","params":{}}}"#, params(size))
}

/// The JSON-RPC request, as it stands on a pipe or in the body of Streamable HTTP.
pub fn request(id: usize, size: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{}}}"#, params(size))
}

/// What a client says first.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"cofer-bench","version":"0"}}}"#;

/// What a client says when it was answered.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
