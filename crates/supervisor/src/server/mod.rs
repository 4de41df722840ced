//! The life of one server.
//!
//! ```text
//!            switched on            handshake              silent
//!  stopped ─────────────► starting ──────────► ready ◄────────────► unresponsive
//!     ▲                      │                  │  └──────┬─────────────┘
//!     │      first start     ▼        crash     │         │ switched off
//!     │        failed      error   ◄────────┐   ▼         ▼
//!     │                      ▲     (policy) └─ restarting  stopping
//!     │                      └────────────────────┘           │
//!     └───────────────────────────────────────────────────────┘
//! ```
//! `driver` is the only one that changes a server; it is one task, and each state is one of
//! its methods. `restart` decides how long to wait after a crash and `start` makes one
//! attempt; `health` tells a silent server from a busy one; none of them knows the others. `snapshot` is what everybody else sees, `handle`
//! the way in, `log` what the server said.

mod driver;
mod handle;
mod health;
mod log;
mod restart;
mod snapshot;
mod start;
mod stop;

pub use driver::Recorder;
pub(crate) use driver::{Driver, DriverParts, Order};
pub(crate) use handle::HandleParts;
pub use handle::{CallFailure, ServerHandle};
pub use log::{LogFeed, ServerLog};
pub(crate) use snapshot::Publisher;
pub use snapshot::Snapshot;

#[cfg(test)]
mod driver_tests;
