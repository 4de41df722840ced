//! Chats end to end: the real daemon, real MCP servers, and models that do what they are told.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod command;
mod conversations;
mod faults;
mod flights;
mod mock;
mod providers;
mod questions;
mod support;
mod turns;
mod watching;
