//! Containers by a real Podman, each case with runc and with gVisor. Wants what `scripts/test`
//! sets up: Podman's settings in the environment, and the test images.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;
#[macro_use]
mod world;

mod daemon_death;
mod ending;
mod engine;
mod images;
mod isolation;
mod limits;
mod starting;
mod storage;
mod streams;
