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
//! its methods. Beside it stand what it is made of, none of which knows the others: `inbox`
//! says what an order means in a state, `restart` how long to wait after a crash, `health`
//! whether a server is silent or busy; `run` is one process with the way it is spoken to,
//! `door` the port of one that has no stdio bridge, `stop` ends it, `failure` finds the words
//! for why it did not last (`package_cache` those for a damaged cache of npm or uv), and `report` tells them;
//! `start_clock` is the start timeout. `snapshot` is what everybody else sees,
//! `handle` the way in, `log` what the server said, `notices` what it said unasked, `private`
//! a further process of it that serves one client, `stateless` its connection in the stateless
//! protocol beside the one that `initialize` opened, and `reach` the Cofer daemons behind it.
//!
//! A container whose engine is away is in `error` and stays switched on: its driver looks
//! again and again, and starts it when the engine is back.

mod door;
mod driver;
pub(crate) mod failure;
mod handle;
mod health;
mod inbox;
mod log;
mod notices;
mod package_cache;
mod private;
mod reach;
mod report;
mod restart;
mod run;
mod snapshot;
mod start_clock;
mod stateless;
mod stop;
mod tool_lines;

pub(crate) use door::SOURCE;
pub(crate) use driver::{Beginning, Driver, DriverParts};
pub use handle::{Asking, CallFailure, ServerHandle};
pub(crate) use handle::{HandleParts, Means};
pub(crate) use inbox::Order;
pub use log::{LogFeed, ServerLog};
pub use notices::Notice;
pub(crate) use notices::Notices;
pub use private::PrivateServer;
pub(crate) use reach::Reach;
pub use report::Recorder;
pub(crate) use report::Reporter;
pub(crate) use snapshot::Publisher;
pub use snapshot::Snapshot;
pub use stateless::StatelessServer;
pub(crate) use tool_lines::ToolStep;

#[cfg(test)]
mod tests;
