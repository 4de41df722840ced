//! Opens a conversation with a server of either era.
//!
//! `initialize` goes first: nearly every server of today knows it, and one that knows
//! 2026-07-28 only answers it with an error at once, upon which `server/discover` is asked.
//! The other order would make each older server that ignores unknown requests cost a timeout.

use std::time::Duration;

use bytes::Bytes;
use cofer_model::PeerInfo;
use serde_json::{Value, json};

use crate::bridge::Bridge;
use crate::call::{CallError, Request};
use crate::message::RpcError;
use crate::params::Era;

/// The largest answer to `initialize`: it is kept, parsed, while the server runs.
const MAX_ANSWER: usize = 1 << 20;

/// The newest revision that is opened by `initialize`.
pub const LATEST_WITH_INITIALIZE: &str = "2025-11-25";
/// The revision that has no opening.
pub const MODERN: &str = "2026-07-28";

/// Why a conversation could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// It runs and says nothing.
    #[error("no answer to `{method}` within {timeout:?}")]
    Silent {
        /// What was asked.
        method: &'static str,
        /// How long the answer was waited for.
        timeout: Duration,
    },
    /// It knows neither way.
    #[error("it refused `initialize` ({initialize}) and `server/discover` ({discover})")]
    Refused {
        /// Its answer to the one.
        initialize: Box<RpcError>,
        /// Its answer to the other.
        discover: Box<RpcError>,
    },
    /// It refused `server/discover` on a connection of its own.
    #[error("it refused `server/discover` ({0})")]
    NotStateless(Box<RpcError>),
    /// It speaks only revisions that we do not.
    #[error("it speaks only the protocol revisions {0:?}")]
    NoCommonRevision(Vec<String>),
    /// Its answer is not what the protocol says.
    #[error("its answer to `{method}` is not one: {reason}")]
    Nonsense {
        /// What was asked.
        method: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// It went away.
    #[error("it ended before the conversation was open")]
    Ended,
}

/// A conversation that is open.
#[derive(Debug)]
pub struct Opening {
    /// Who is there.
    pub peer: PeerInfo,
    /// The answer to `initialize` or `server/discover`, as it came.
    pub answer: Bytes,
}

/// Opens the conversation within `timeout` and tells who is there. What clients behind us can
/// do is offered: a server asks it of the client whose call it works on.
pub async fn handshake(bridge: &Bridge, timeout: Duration) -> Result<PeerInfo, HandshakeError> {
    let params = json!({
        "protocolVersion": LATEST_WITH_INITIALIZE,
        "capabilities": {
            "sampling": {"tools": {}},
            "elicitation": {"form": {}, "url": {}},
            "roots": {"listChanged": true},
        },
        "clientInfo": {"name": "cofer", "title": "Cofer", "version": env!("CARGO_PKG_VERSION")},
    });
    Ok(handshake_as(bridge, Bytes::from(params.to_string()), timeout).await?.peer)
}

/// Opens the conversation as one client, whose params of `initialize` are given.
pub async fn handshake_as(
    bridge: &Bridge,
    params: Bytes,
    timeout: Duration,
) -> Result<Opening, HandshakeError> {
    match ask(bridge, "initialize", params, timeout).await? {
        Ok(answer) => {
            let peer = read_initialize(&answer.value)?;
            bridge.notify("notifications/initialized", None);
            Ok(Opening { peer, answer: answer.bytes })
        }
        Err(refusal) => discover(bridge, refusal, timeout).await,
    }
}

/// Opens a connection in the stateless protocol, without `initialize`: the SDKs fix the protocol
/// of a stdio connection by its first request.
pub async fn handshake_stateless(
    bridge: &Bridge,
    timeout: Duration,
) -> Result<Opening, HandshakeError> {
    ask_discover(bridge, timeout).await?.map_err(HandshakeError::NotStateless)
}

async fn discover(
    bridge: &Bridge,
    initialize: RpcError,
    timeout: Duration,
) -> Result<Opening, HandshakeError> {
    ask_discover(bridge, timeout)
        .await?
        .map_err(|discover| HandshakeError::Refused { initialize: Box::new(initialize), discover })
}

async fn ask_discover(
    bridge: &Bridge,
    timeout: Duration,
) -> Result<Result<Opening, Box<RpcError>>, HandshakeError> {
    bridge.set_era(Era::Discover);
    match ask(bridge, "server/discover", Bytes::from_static(b"{}"), timeout).await? {
        Ok(answer) => Ok(Ok(Opening { peer: read_discover(&answer.value)?, answer: answer.bytes })),
        Err(refusal) => Ok(Err(Box::new(refusal))),
    }
}

/// An answer, read and as it came.
struct Answer {
    value: Value,
    bytes: Bytes,
}

/// The server's answer or its error; what kept it from answering at all ends the handshake.
async fn ask(
    bridge: &Bridge,
    method: &'static str,
    params: Bytes,
    timeout: Duration,
) -> Result<Result<Answer, RpcError>, HandshakeError> {
    match bridge.call(Request::new(method, Some(params), timeout).urgent()).await.result {
        Ok(bytes) if bytes.len() > MAX_ANSWER => {
            let reason = format!("it has {} bytes, more than {MAX_ANSWER}", bytes.len());
            Err(HandshakeError::Nonsense { method, reason })
        }
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Ok(Answer { value, bytes })),
            Err(error) => Err(HandshakeError::Nonsense { method, reason: error.to_string() }),
        },
        Err(CallError::Rpc(error)) => Ok(Err(error)),
        Err(CallError::Timeout(_)) => Err(HandshakeError::Silent { method, timeout }),
        Err(CallError::AnswerTooLarge { .. }) => {
            Err(HandshakeError::Nonsense { method, reason: "it is over the size cap".to_owned() })
        }
        Err(_) => Err(HandshakeError::Ended),
    }
}

fn read_initialize(answer: &Value) -> Result<PeerInfo, HandshakeError> {
    let Some(version) = answer.get("protocolVersion").and_then(Value::as_str) else {
        let reason = "it has no `protocolVersion`".to_owned();
        return Err(HandshakeError::Nonsense { method: "initialize", reason });
    };
    Ok(peer_info(answer, version.to_owned(), answer.get("serverInfo")))
}

fn read_discover(answer: &Value) -> Result<PeerInfo, HandshakeError> {
    let Some(versions) = answer.get("supportedVersions").and_then(Value::as_array) else {
        let reason = "it has no `supportedVersions`".to_owned();
        return Err(HandshakeError::Nonsense { method: "server/discover", reason });
    };
    if !versions.iter().any(|version| version == MODERN) {
        let versions = versions.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        return Err(HandshakeError::NoCommonRevision(versions));
    }
    let stamped =
        answer.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
    Ok(peer_info(answer, MODERN.to_owned(), answer.get("serverInfo").or(stamped)))
}

fn peer_info(answer: &Value, protocol_version: String, server_info: Option<&Value>) -> PeerInfo {
    PeerInfo {
        protocol_version,
        capabilities: answer.get("capabilities").cloned().unwrap_or_else(|| json!({})),
        server_info: server_info.cloned().unwrap_or(Value::Null),
        instructions: answer.get("instructions").and_then(Value::as_str).map(str::to_owned),
    }
}
