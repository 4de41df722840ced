//! Environments for coding agents: a git worktree and a container of one's own, in one call.
//!
//! ```text
//!  serve ─ tool ┬ create ┬ repository, reference, id, config     what is asked for, and of what
//!   (MCP)       │        ├ base ─ worktree ─ overlay              files that cost nothing to make
//!               │        └ podman ─ executor                      the container and its init
//!               ├ command ┬ run ─ output                          a command to its end
//!               │         └ background ─ forward                  one that goes on, and its ports
//!               ├ destroy                                         nothing left
//!               └ environment ─ history ┬ changes                 what changed, found without git
//!                                       └ ignored                 what is not wanted of it
//!  survey ─ registry, journal, work                               all environments of a user
//!  registry ─ discovery                                           which repositories may be a source
//!  git ─ git_view, git_config                                     git without the repository's settings
//! ```
//!
//! What runs in a container is not trusted: it can write everything in its worktree, so that git
//! never runs in one. Changes are found by system calls that follow no link, and are handed to git
//! as bytes. No state is held that another server could not read from the disk.
#![warn(missing_docs)]

mod answer;
mod approvals;
mod arguments;
mod background;
mod base;
mod branch;
mod changes;
mod command;
mod config;
mod create;
mod destroy;
mod discovery;
mod disk;
mod effective;
mod elicitation;
mod environment;
mod environments;
mod executor;
mod failure;
pub mod forward;
mod git;
mod git_config;
mod git_view;
mod history;
mod id;
mod ignored;
mod import;
mod init;
mod isolation;
mod journal;
mod layout;
mod lock;
mod look;
mod output;
mod overlay;
mod podman;
mod progress;
mod provider;
mod reference;
mod registry;
mod repository;
mod run;
mod schema;
mod secrets;
mod serve;
mod settings;
mod setup;
mod state;
mod survey;
#[cfg(test)]
mod testing;
mod tool;
#[path = "../../executor/src/wire.rs"]
#[cfg_attr(not(test), expect(dead_code, reason = "half of it is for the other side"))]
mod wire;
mod work;
mod worktree;

pub use destroy::{Destroyed, Termination};
pub use environments::{Environments, Listed, Pruned};
pub use failure::{Failure, Kind};
pub use init::{Prepared, Undone};
pub use isolation::{CAPABILITIES, Isolation};
pub use repository::Repository;
pub use serve::{ServeError, serve};
pub use settings::Settings;
pub use worktree::Mode;
