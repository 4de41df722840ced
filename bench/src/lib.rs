//! Measures Cofer against its limits and its peers: one load client for all of them.

pub mod containers;
pub mod daemon;
pub mod direct;
pub mod environments;
pub mod gateway;
pub mod goals;
pub mod http;
pub mod message;
pub mod process;
pub mod proxy;
pub mod report;
pub mod sample;
pub mod target;
