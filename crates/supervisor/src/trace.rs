//! What a trace says of a call beside what stands in the activity. It is gathered only where an
//! observer wants it, and holds neither arguments nor results.

use std::sync::Arc;

use bytes::Bytes;
use cofer_mcp::{CallError, Called, member};
use cofer_model::{Kind, ServerSpec, TraceParent};

/// Who asks, as far as traces are concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The span that the caller's request belongs to, where its transport says so.
    pub parent: Option<TraceParent>,
    /// The caller's MCP session.
    pub session: Option<Arc<str>>,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTrace {
    /// The span that caused the call: what the request itself names, else its transport.
    pub parent: Option<TraceParent>,
    /// The caller's MCP session.
    pub session: Option<Arc<str>>,
    /// The prompt, for `prompts/get`.
    pub prompt: Option<String>,
    /// Whether the server is reached over HTTP, and not by pipes.
    pub over_http: bool,
    /// The revision that is spoken with the server.
    pub protocol_version: Option<String>,
    /// The id under which the server saw the call.
    pub rpc_id: Option<u64>,
    /// The code of the error that it answered.
    pub error_code: Option<i64>,
}

impl CallTrace {
    /// What is known when the call begins.
    pub(crate) fn begin(
        spec: &ServerSpec,
        method: &str,
        params: Option<&Bytes>,
        origin: Origin,
        protocol_version: Option<String>,
    ) -> Self {
        let prompt = params.filter(|_| method == "prompts/get").and_then(|params| {
            member(params, "name").and_then(|name| serde_json::from_slice(name).ok())
        });
        Self {
            parent: params.and_then(named_parent).or(origin.parent),
            session: origin.session,
            prompt,
            over_http: spec.kind() == Kind::Remote || !spec.stdio_bridge,
            protocol_version,
            rpc_id: None,
            error_code: None,
        }
    }

    /// What is known when it has ended.
    pub(crate) fn end(&mut self, called: &Called) {
        self.rpc_id = called.id;
        if let Err(CallError::Rpc(error)) = &called.result {
            self.error_code = Some(error.code);
        }
    }
}

/// The `traceparent` in the `_meta` of a request's params.
fn named_parent(params: &Bytes) -> Option<TraceParent> {
    const KEY: &str = "traceparent";
    // Most requests name none; a search is much cheaper than a walk.
    memchr::memmem::find(params, KEY.as_bytes())?;
    let text = member(member(params, "_meta")?, KEY)?;
    TraceParent::parse(serde_json::from_slice(text).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0b0902b7-01";
    const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn parent_of(params: &str, transport: Option<TraceParent>) -> Option<TraceParent> {
        let spec = serde_json::from_str(r#"{"name":"s","command":"x"}"#).unwrap();
        let params = Bytes::copy_from_slice(params.as_bytes());
        let origin = Origin { parent: transport, session: None };
        CallTrace::begin(&spec, "tools/call", Some(&params), origin, None).parent
    }

    #[test]
    fn the_request_itself_says_whom_it_belongs_to_before_its_transport_does() {
        let named = format!(r#"{{"name":"t","_meta":{{"traceparent":"{PARENT}"}}}}"#);
        let (inner, outer) = (TraceParent::parse(PARENT), TraceParent::parse(OTHER));
        assert!(inner.is_some() && outer.is_some());
        assert_eq!(parent_of(&named, outer), inner);
        assert_eq!(parent_of(&named, None), inner);
        assert_eq!(parent_of(r#"{"name":"t"}"#, outer), outer);
        assert_eq!(parent_of(r#"{"name":"t","_meta":{"traceparent":7}}"#, outer), outer);
    }

    #[test]
    fn an_argument_of_that_name_is_none_of_our_business() {
        let text =
            format!(r#"{{"name":"t","arguments":{{"_meta":{{"traceparent":"{PARENT}"}}}}}}"#);
        assert_eq!(parent_of(&text, None), None);
    }
}
