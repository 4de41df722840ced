//! Starts, contains, measures and ends one workload: a server's process and everything
//! that process ever starts. Knows nothing of MCP, restarts or HTTP: it hands out three
//! byte streams and tells when the process has ended.
//!
//! ```text
//!  daemon ── control socket ── cofer-shim          (subreaper, session of its own)
//!    │                            └─ server        (process group of its own, dies with the shim)
//!    │                                 └─ whatever it starts, also with setsid and double fork
//!    └── stdin, stdout, stderr: pipes straight to the server; the shim keeps no copy
//! ```
//!
//! A tree has three ends, each made for the case in which the one before it is dead:
//! 1. The **shim** kills everything below it when the server exits, when it is told to, and
//!    when its control socket closes, which the kernel sees to when the daemon is killed.
//!    Orphans come back to it because it is a subreaper, so that it knows when all are gone.
//! 2. If the *shim* is killed, the kernel kills the server, orphans come back to the **daemon**,
//!    which knows them by the marker in their environment.
//! 3. If *both* are killed, the next daemon on the same data directory **sweeps** by that marker.
#![warn(missing_docs)]

mod command;
mod environment;
mod heap;
mod host_memory;
mod inherit;
mod isolation;
mod keeper;
mod open_files;
mod orphans;
mod pipes;
pub mod podman;
mod proc;
mod report;
mod resolve;
mod runner;
pub mod shim;
mod terminal;
mod usage;
mod workload;

pub use command::{coprocess, detached, interactive, tool};
pub use environment::{MARKER, server_environment};
pub use heap::{resident_memory, trim_heap};
pub use host_memory::host_memory;
pub use open_files::{
    OpenFiles, OutOfFiles, RAISE_HINT, open_files, out_of_files, out_of_files_in, raise_open_files,
};
pub use orphans::{become_subreaper, sweep};
pub use resolve::{ResolveError, resolve};
pub use runner::{Runner, StartError};
pub use terminal::{Terminal, TerminalSize};
pub use usage::usage_of_all;
pub use workload::{ByteSink, ByteSource, Launch, Streams, Workload};
