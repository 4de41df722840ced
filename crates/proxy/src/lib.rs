//! `cofer proxy`: a remote MCP server behind Cloud Run's IAM, as if it were local.
//!
//! `serve` joins this process's stdin and stdout (`stdio`) to the server by the pump of
//! `cofer_mcp::http`, with Google's ID tokens (`auth`), and ends when the client does (`parent`).
//! `check` walks the same way once and says how far it comes. `connect` is the same for the
//! daemon's gateway, which is known by a token and may be restarted meanwhile.
#![warn(missing_docs)]

pub mod auth;
mod check;
mod connect;
mod hops;
mod identity;
mod options;
mod parent;
mod serve;
mod stdio;

pub use check::{CheckFailed, Checked, Step, check};
pub use connect::{Place, Whereabouts, connect, refuse};
pub use identity::GoogleIdentity;
pub use options::{HeaderError, Options, UrlError, parse_header, parse_url};
pub use parent::Parent;
pub use serve::{ProxyError, serve};
