//! What is running: one driver task per server that starts it, watches it, restarts it and
//! stops it, and the registry of all of them.
//!
//! The supervisor is told what is wanted (`Supervisor::configure`) and tells what is true
//! (`Snapshot`, `EventBus`). It knows nothing of HTTP, SQL or users: what must be stored it
//! says to a `Recorder`.
#![warn(missing_docs)]

mod calls;
mod container;
mod events;
mod fence;
mod flight;
mod launch;
mod memory;
mod remote;
mod remote_failure;
mod rotating;
mod server;
mod supervisor;
mod trace;

pub use calls::{ActivityLog, CallObserver};
pub use container::ContainerLauncher;
pub use events::{EventBus, Subscription};
pub use flight::{Cut, Flight, FlightRecorder};
pub use launch::{
    Door, Explanation, Facts, Launched, Launcher, LauncherByKind, ProcessLauncher, Running, Tell,
};
pub use memory::Memory;
pub use remote::RemoteLauncher;
pub use rotating::{RotatingFile, Rotation};
pub use server::{
    Asking, CallFailure, LogFeed, Notice, PrivateServer, Recorder, ServerHandle, ServerLog,
    Snapshot, StatelessServer,
};
pub use supervisor::{Supervisor, SupervisorConfig};
pub use trace::{CallTrace, Origin};
