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
//! A tree is ended by the first of these that is alive:
//! 1. The **shim** kills everything below it when the server exits, when it is told to, and
//!    when its control socket closes, which the kernel sees to when the daemon is killed.
//!    Orphans are re-parented to it because it is a subreaper, so that it knows when all are gone.
//! 2. If the *shim* is killed, the kernel kills the server (parent-death signal), orphans are
//!    re-parented to the **daemon**, and the daemon ends the rest of the run.
//! 3. If *both* are killed, the **sweeper**, one process beside the daemon, ends all runs of
//!    that daemon.
//! 4. If *all three* are killed, the next daemon on the same data directory sweeps all runs of
//!    its owner.
//!
//! The processes of a run are identified by the cgroup of that run where cgroups are writable
//! ([`server_cgroup`]), and everywhere by a resource limit ([`mark`]) that, unlike the environment
//! variable beside it, neither `env -i` nor `setsid` removes.
#![warn(missing_docs)]

mod cgroups;
mod command;
mod environment;
mod fetching;
mod heap;
mod host_memory;
mod inherit;
mod isolation;
mod keeper;
mod mark;
mod open_files;
mod orphans;
mod pipes;
pub mod podman;
mod proc;
mod report;
mod resolve;
mod runner;
mod server_cgroup;
pub mod shim;
mod sweeper;
mod terminal;
mod usage;
mod workload;

pub use command::{coprocess, detached, interactive, tool};
pub use environment::{MARKER, server_environment};
pub use fetching::Fetching;
pub use heap::{resident_memory, trim_heap};
pub use host_memory::host_memory;
pub use isolation::{Containment, containment};
pub use open_files::{
    OpenFiles, OutOfFiles, RAISE_HINT, open_files, open_files_of, out_of_files, out_of_files_in,
    raise_open_files,
};
pub use orphans::{become_subreaper, sweep};
pub use resolve::{ResolveError, resolve};
pub use runner::{Runner, StartError};
pub use terminal::{Terminal, TerminalSize};
pub use usage::usage_of_all;
pub use workload::{ByteSink, ByteSource, Launch, Streams, Workload};
