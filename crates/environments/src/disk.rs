//! The disk limit of an environment. Neither its worktree nor, with most storage drivers, its
//! container's layer has a quota: they lie on a file system of the machine. So they are measured,
//! about once a second, and a container that has written more than its limit is killed.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofer_runtime::podman::{disk_usage, writable_layer};
use tokio::time::Instant;

use crate::environment::Environment;
use crate::environments::{Environments, locked};
use crate::failure::{Failure, Kind};
use crate::podman::Podman;
use crate::worktree::Mode;

/// The pause between two measurements, at least.
const INTERVAL: Duration = Duration::from_secs(1);

/// A measurement may take this share of the time, so that large trees are measured less often.
const SHARE: u32 = 20;

/// The environments measured by this process, by their folders.
pub(crate) type Watched = Arc<Mutex<HashSet<PathBuf>>>;

impl Environments {
    /// Measures an environment until it is gone or over its limit. Once per process.
    pub(crate) fn watch_disk(&self, environment: &Environment) {
        let folder = environment.home.folder.clone();
        let Some(limit) = environment.state.disk_limit else { return };
        if !locked(&self.watched).insert(folder.clone()) {
            return;
        }
        let (watched, podman) = (Arc::clone(&self.watched), self.podman.clone());
        let environment = environment.clone();
        self.readers.spawn(async move {
            watch(&environment, &podman, limit).await;
            locked(&watched).remove(&folder);
        });
    }
}

async fn watch(environment: &Environment, podman: &Podman, limit: u64) {
    let mut layer = None;
    while environment.home.state().exists() {
        let started = Instant::now();
        layer = environment.layer().or(layer);
        let bytes = measure(environment.written_places(layer.clone())).await;
        if bytes > limit {
            let id = &environment.state.id;
            tracing::warn!(environment = id, bytes, limit, "disk limit exceeded; container killed");
            if let Err(error) = environment.mark_full(bytes, layer.as_ref()) {
                tracing::error!(%error, environment = id, "the disk limit could not be recorded");
            }
            if let Err(error) = podman.kill(&environment.state.container).await {
                tracing::debug!(%error, environment = id, "its container was not running");
            }
            return;
        }
        tokio::time::sleep(INTERVAL.max(started.elapsed() * SHARE)).await;
    }
}

/// Bytes on the disk below `places`.
async fn measure(places: Vec<PathBuf>) -> u64 {
    let sum = move || places.iter().map(|place| disk_usage(place)).sum();
    // Fails only when the Tokio runtime shuts down.
    tokio::task::spawn_blocking(sum).await.unwrap_or(0)
}

impl Environment {
    /// The root layer of its running container.
    fn layer(&self) -> Option<PathBuf> {
        writable_layer(self.container_pid()?, self.state.container_id.as_deref()?)
    }

    /// The directories of this machine that its container can write to.
    fn written_places(&self, layer: Option<PathBuf>) -> Vec<PathBuf> {
        let files = match self.state.mode {
            Mode::Overlay => self.home.upper(),
            Mode::Reflink | Mode::Checkout => self.state.worktree.clone(),
        };
        [Some(files), Some(self.home.run()), layer].into_iter().flatten().collect()
    }

    /// Records that its container was killed over its limit, for every process that uses it.
    fn mark_full(&self, bytes: u64, layer: Option<&PathBuf>) -> std::io::Result<()> {
        let layer = layer.map(|path| path.display().to_string()).unwrap_or_default();
        fs::write(self.home.disk_full(), format!("{bytes}\n{layer}\n"))
    }

    /// The failure of a command in an environment that is over its disk limit. One whose files
    /// were deleted meanwhile can be used again.
    pub(crate) async fn disk_failure(&self) -> Option<Failure> {
        let (limit, mark) = (self.state.disk_limit?, self.home.disk_full());
        let text = fs::read_to_string(&mark).ok()?;
        let layer = text.lines().nth(1).filter(|line| !line.is_empty()).map(PathBuf::from);
        let bytes = measure(self.written_places(layer)).await;
        if bytes <= limit {
            fs::remove_file(mark).ok();
            return None;
        }
        let worktree = self.state.worktree.display();
        let message = format!(
            "environment {:?} has written {bytes} bytes, more than its disk limit of {limit}; its container was killed",
            self.state.id
        );
        let recovery = format!(
            "its commits are on its branch: destroy it and create another one from that branch, delete files below {worktree} on this machine, or ask the user to raise COFER_ENV_DISK for new environments."
        );
        Some(Failure::new(Kind::LimitExceeded, "disk", message, recovery))
    }
}
