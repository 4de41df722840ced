//! `copilot.chat`: the user's own GitHub Copilot CLI as one MCP tool on stdin and stdout.
//!
//! Every request starts the CLI once, contained by the runtime, and gives back exactly what it
//! said. `chat` is the order of a request and reads from top to bottom; what is a rule is pure
//! and stands beside it:
//!
//! ```text
//!  serve ─ tool ─ chat ┬ request, models      what is wrong with it before anything runs
//!                      ├ detect ─ capabilities    what the installed CLI can do
//!                      ├ pipe               `copilot --prompt=… --model=…`
//!                      ├ terminal ─ screen  for a CLI that knows no such flags
//!                      └ diagnose           from what the CLI said to a kind and what to do
//! ```
#![warn(missing_docs)]

mod answer;
mod capabilities;
mod capture;
mod chat;
mod config;
mod detect;
mod diagnose;
mod environment;
mod examine;
mod failure;
mod launcher;
mod limit;
mod models;
mod pipe;
mod progress;
mod request;
mod screen;
mod serve;
mod terminal;
mod tool;

pub use config::{Config, LONGEST};
pub use examine::{Examination, Login, examine};
pub use failure::{Failure, Kind};
pub use serve::{ServeError, serve};
