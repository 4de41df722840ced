//! `cofer mcp environments` with real git and real containers: what agents and people ask of it,
//! what a hostile container tries, and that nothing is left.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod create;
mod destroy;
mod gvisor;
mod hostile;
mod isolation;
mod parallel;
mod person;
mod planted;
mod run;
mod secrets;
mod shown;
mod workshop;
