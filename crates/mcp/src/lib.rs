//! The wire: newline-delimited JSON-RPC as MCP servers speak it over two byte streams.
//!
//! Messages are read only as far as needed to route them (`message`); what they carry stays
//! the bytes it came in. `framing` cuts a stream into lines, `bridge` joins many callers to
//! one peer, `handshake` opens a conversation in either protocol era, and `listing` follows
//! a list over its pages. Nothing here knows where the byte streams come from.
#![warn(missing_docs)]

mod bridge;
mod call;
mod caller;
mod concurrency;
mod framing;
mod handshake;
pub mod http;
mod list_cache;
mod listing;
mod members;
mod memory;
mod message;
mod object;
mod off_worker;
mod outbox;
mod outgoing;
mod oversize;
mod params;
mod pending;
mod questions;
mod reader;
mod slots;
mod unattributed;
mod writer;

pub use bridge::Bridge;
pub use call::{BridgeConfig, CallError, Called, Request, Timing};
pub use caller::{Caller, ClientId, Question};
pub use framing::{Frame, LineReader};
pub use handshake::{
    HandshakeError, LATEST_WITH_INITIALIZE, MODERN, Opening, handshake, handshake_as,
    handshake_stateless,
};
pub use listing::{Listing, collect_pages};
pub use members::{member, member_beginning};
pub use memory::{attach, build_charged};
pub use message::{Incoming, Malformed, Message, RpcError};
pub use object::read_object;
pub use oversize::IdScanner;
pub use params::Era;
pub use reader::Listener;
pub use slots::QueueStatus;
