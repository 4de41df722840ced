//! MCP over Streamable HTTP, seen from the client's side: a remote server as two byte streams.
//!
//! `pump` takes the client's lines and gives each message its task; `request` carries one to
//! its answer, in the older era within a `session` that `renew` opens again where it is lost,
//! in the newer one as `modern` says; `stream` and `listen` read what the server says over
//! time. All of them share one `wire`, which sends through a `client` and its `transport`; `pool` keeps
//! the connections, which come back when the `body` of an answer was read.
//! Nothing here knows whose token signs a request (`auth`).

mod attendant;
mod auth;
mod body;
mod client;
mod connect;
mod cookies;
mod endpoint_stream;
mod failure;
mod headers;
mod in_flight;
mod listen;
mod modern;
mod output;
mod pool;
mod proxy_env;
mod pulse;
mod pump;
mod raw;
mod renew;
mod request;
mod session;
mod sse;
mod stream;
mod tls;
mod tools;
mod transport;
mod wire;

pub use attendant::{Attendant, Trouble, Unattended};
pub use auth::{AuthFailure, Authorizer, Identity, Unsigned};
pub use body::Body;
pub use failure::FailureKind;
pub use proxy_env::{ProxyError, ProxySettings};
pub use pump::{Remote, pump};
pub use tls::CaError;
pub use tools::MirroredArguments;
pub use transport::{SetupError, Transport, TransportError, TransportOptions};
