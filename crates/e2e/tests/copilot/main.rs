//! `cofer mcp copilot` with stand-ins for the Copilot CLI: what they are started with, what is
//! given back, and that nothing is left of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ends;
mod failures;
mod machine;
mod requests;
mod terminal;
