//! The pump against a server that plays every part: both eras, and every fault.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod conversation;
mod ends;
mod failures;
mod modern;
mod server;
mod sessions;
mod streams;
mod transport;
