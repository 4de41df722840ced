//! The daemon behind `cofer serve`: it joins the store, the supervisor and the HTTP API, and
//! sees to it that they begin and end in the right order.
//!
//! It knows nothing of command lines, stdout or signals: it is given a `Config`, says when it
//! is ready, and runs until a future that it is given ends.

mod api;
mod app;
mod chat;
mod connection_io;
mod connections;
mod console;
mod data_dir;
mod failure;
mod front;
mod gateway;
mod guard;
mod heap;
mod import;
mod inline;
mod json_body;
mod jsonc;
mod listen;
mod local_socket;
mod log_line;
mod log_queue;
mod machine;
mod metrics;
mod own_endpoint;
mod ownership;
mod prefixes;
mod public_url;
mod recorder;
mod registry;
mod reserve;
mod run;
mod telemetry;
mod token;
mod traces;
mod validate;
mod validate_container;
mod validate_remote;
mod view;

pub use api::openapi;
pub use data_dir::DataDirError;
pub use failure::DaemonError;
pub use local_socket::{LocalDaemon, find_daemon};
pub use machine::{EnvironmentRef, Machine, MachineFailure};
pub use public_url::{PublicUrl, PublicUrlError};
pub use run::{Config, Ready, run};
pub use telemetry::TelemetryError;
