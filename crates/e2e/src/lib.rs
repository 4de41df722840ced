//! The harness of the end-to-end tests: starts the real `cofer` binary on a data directory of
//! its own, talks to it over HTTP and its command line, and looks at the process table.
//!
//! The other side of the tests is `wayward` (`src/bin/wayward`), the MCP server that misbehaves
//! on order, and `exemplary`, the one that does everything right. Tests wait for conditions, never for time to pass.

mod builder;
mod client;
mod collector;
mod containers;
mod daemon;
mod door;
mod events;
mod gateway;
mod http;
mod model;
mod mortal;
mod order;
mod peer;
mod process;
mod programs;
mod registry;
mod upstream;
mod wait;

pub use builder::{DaemonBuilder, Refusal};
pub use client::{McpClient, double};
pub use collector::{AnyValue, Collector, Export, Instead, KeyValue, Span, Status};
pub use containers::{
    Runtime, container_of, containers_folder, containers_of, image, inspect, podman, try_podman,
    volumes_of, wait_no_container, with,
};
pub use daemon::{Daemon, pid_of};
pub use door::OpenDoor;
pub use events::{Event, Events};
pub use gateway::{Exchange, GatewayClient, Messages, stateless};
pub use http::{Answer, plain_client, plain_client_with, tool_params};
pub use model::{FakeModel, Reply};
pub use order::OrderLog;
pub use peer::Peer;
pub use process::{
    alive, command_line, is_session_leader, kill, mentions, parent, pids_in, processes_with,
    signal, wait_gone,
};
pub use programs::{
    Ended, cofer, command, exemplary, follow, run, tests_folder, wayward, wayward_path,
};
pub use registry::Registry;
pub use upstream::{Asked, Upstream};
pub use wait::{DEADLINE, eventually, within};
