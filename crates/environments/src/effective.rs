//! The isolation in force in an environment's container, read back from the kernel for answers,
//! lists and the console.

use std::fs;

use cofer_runtime::podman::{RunningContainer, effective_isolation};
use serde_json::Value;

use crate::environment::Environment;

/// The worktree has no quota, and the watch ends with the last server.
const DISK_ENFORCED_BY: &str = "a watch of the environments server while one runs, which kills a container that has written more";

impl Environment {
    /// The isolation in force; null if the container does not run.
    pub(crate) fn effective_isolation(&self) -> Value {
        let (Some(pid), Some(id)) = (self.container_pid(), &self.state.container_id) else {
            return Value::Null;
        };
        effective_isolation(&RunningContainer {
            pid,
            id,
            mount_points: &[&self.state.config.workdir, "/.cofer/run"],
            disk: self.state.disk_limit.map(|bytes| (bytes, DISK_ENFORCED_BY)),
        })
    }

    /// As Podman wrote it at the last start; the kernel may have reused the number since.
    pub(crate) fn container_pid(&self) -> Option<u32> {
        fs::read_to_string(self.home.pidfile()).ok()?.trim().parse().ok()
    }
}
