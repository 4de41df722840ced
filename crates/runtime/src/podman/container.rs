//! One running container, seen from above: its end, the two ways to end it, and what is true
//! of it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cofer_model::{Exit, Usage};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bundle::Bundle;
use super::cgroup::Cgroup;
use super::disk::Measure;
use super::inspect::{Endpoint, Inspected};
use super::isolation::{self, DiskLimit, Subject};
use crate::pipes::WideShare;
use crate::usage::Meter;

/// Why a container ended, where it is more than the exit tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndCause {
    /// The kernel killed it, or a part of it, because its memory was used up.
    OutOfMemory {
        /// The limit that fired, in bytes, where it is known.
        limit: Option<u64>,
    },
    /// It had written more than it may.
    DiskFull {
        /// The limit, in bytes.
        limit: u64,
        /// What it had written.
        used: u64,
    },
    /// The engine says that it ran in something else than it should have.
    WrongRuntime {
        /// What it should have run in.
        asked: String,
        /// What it ran in.
        found: String,
    },
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { limit: Some(limit) } => {
                write!(f, "out of memory: it reached its limit of {}", Bytes(*limit))
            }
            Self::OutOfMemory { limit: None } => f.write_str("out of memory"),
            Self::DiskFull { limit, used } => {
                write!(f, "disk limit exceeded: {} of {}", Bytes(*used), Bytes(*limit))
            }
            Self::WrongRuntime { asked, found } => {
                write!(f, "it was to run in {asked} and ran in {found}")
            }
        }
    }
}

/// Bytes as people write a limit, such as `512M`.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
        let exact = units.iter().find(|(size, _)| self.0 >= *size && self.0.is_multiple_of(*size));
        match exact.or_else(|| units.iter().find(|(size, _)| self.0 >= *size)) {
            Some((size, unit)) if self.0.is_multiple_of(*size) => {
                write!(f, "{}{unit}", self.0 / size)
            }
            Some((size, unit)) => write!(f, "{:.1}{unit}", self.0 as f64 / *size as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// What is known of a container's end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Its first process has ended; how, the engine is still asked.
    pub(crate) ended: bool,
    pub(crate) exit: Option<Exit>,
    pub(crate) cause: Option<EndCause>,
    /// Nothing of it is left.
    pub(crate) gone: bool,
}

/// What does not change while it runs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) provider: &'static str,
    /// Whether the kernel sees a sandbox and not the container's own processes.
    pub(crate) is_sandbox: bool,
    /// The program that conmon runs it by.
    pub(crate) runtime: Option<String>,
    pub(crate) cgroup: Cgroup,
    /// What its runtime was given.
    pub(crate) bundle: Option<Bundle>,
    pub(crate) warnings: Vec<String>,
    /// The engine's word, given soon after the start.
    pub(crate) inspected: OnceLock<Inspected>,
    pub(crate) disk: Measure,
    pub(crate) disk_limit: Option<DiskLimit>,
}

/// A container. Dropping it ends it.
pub struct Container {
    shared: Arc<Shared>,
    control: Control,
    progress: watch::Receiver<Progress>,
    meter: Mutex<Meter>,
    _wide_pipes: Option<WideShare>,
}

impl Container {
    pub(crate) fn new(
        shared: Arc<Shared>,
        control: Control,
        progress: watch::Receiver<Progress>,
        wide_pipes: Option<WideShare>,
    ) -> Self {
        // What its start has used is not its own, and would stand against a moment.
        let meter = Mutex::new(Meter::since(shared.cgroup.cpu_micros().unwrap_or(0)));
        Self { shared, control, progress, meter, _wide_pipes: wide_pipes }
    }

    /// Podman's id for it.
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Podman's name for it.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its first process, as this machine numbers it; of a sandbox, the sandbox's.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// The isolation provider: `gvisor`, `krun` or `podman`.
    pub fn provider(&self) -> &'static str {
        self.shared.provider
    }

    /// The digest of its image, once the engine has told it.
    pub fn image_digest(&self) -> Option<String> {
        self.shared.inspected.get()?.digest().map(str::to_owned)
    }

    /// What was asked for and is not so, one sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.shared.warnings
    }

    /// Where its published ports are reached. Known from the start for a container without a
    /// stdio bridge, else a moment later.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.shared.inspected.get().map(Inspected::endpoints).unwrap_or_default()
    }

    /// Waits for the end of its first process. May be awaited by many, and again.
    pub async fn exited(&self) -> Exit {
        let mut progress = self.progress.clone();
        // Its task only goes away early when the whole runtime does.
        let unknown = Exit { code: None, signal: None };
        let seen = progress.wait_for(|progress| progress.exit.is_some()).await;
        seen.map_or(unknown, |progress| progress.exit.unwrap_or(unknown))
    }

    /// Whether its first process has ended, which is known before how it did.
    pub fn has_ended(&self) -> bool {
        self.progress.borrow().ended
    }

    /// Why it ended, where that is known and more than the exit tells.
    pub fn cause(&self) -> Option<EndCause> {
        self.progress.borrow().cause.clone()
    }

    /// Waits until nothing of it is left.
    pub async fn gone(&self) {
        let mut progress = self.progress.clone();
        // An error means that its task went away, which is the end too.
        drop(progress.wait_for(|progress| progress.gone).await);
    }

    /// Asks it to end: SIGTERM.
    pub fn terminate(&self) {
        self.control.terminate();
    }

    /// Ends it at once, with everything in it, and removes it.
    pub fn kill(&self) {
        self.control.kill();
    }

    /// What it uses now; nothing once it has ended, or where cgroups do not tell.
    pub fn usage(&self) -> Option<Usage> {
        if !self.is_running() {
            return None;
        }
        let cgroup = &self.shared.cgroup;
        let (micros, memory_bytes) = (cgroup.cpu_micros()?, cgroup.memory()?);
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Usage {
            cpu_percent: meter.share(micros, Instant::now(), 1_000_000),
            memory_bytes,
            pids: cgroup.pids().and_then(|pids| u32::try_from(pids).ok()).unwrap_or(0),
            disk_bytes: self.shared.disk.bytes(),
        })
    }

    /// What isolation is in force, read back; null once it has ended.
    pub fn isolation(&self) -> Value {
        if !self.is_running() {
            return Value::Null;
        }
        let shared = &self.shared;
        isolation::read(&Subject {
            pid: shared.pid,
            is_sandbox: shared.is_sandbox,
            provider: shared.provider,
            cgroup: &shared.cgroup,
            runtime: shared.runtime.as_deref(),
            bundle: shared.bundle.as_ref(),
            disk: shared.disk_limit,
        })
    }

    fn is_running(&self) -> bool {
        self.progress.borrow().exit.is_none()
    }
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container").field("id", &self.shared.id).field("pid", &self.pid()).finish()
    }
}

/// The way to a container's task. Dropping it ends the container, also in the middle of a start.
#[derive(Debug)]
pub(crate) struct Control(Orders);

/// What the task is told.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) terminate: Arc<Notify>,
    pub(crate) ending: CancellationToken,
}

impl Control {
    pub(crate) fn new() -> (Self, Orders) {
        let orders = Orders { terminate: Arc::default(), ending: CancellationToken::new() };
        (Self(orders.clone()), orders)
    }

    fn terminate(&self) {
        self.0.terminate.notify_one();
    }

    fn kill(&self) {
        self.0.ending.cancel();
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_reads_as_a_sentence_with_the_limit_that_fired() {
        let told = |cause: EndCause| cause.to_string();
        assert_eq!(
            told(EndCause::OutOfMemory { limit: Some(512 << 20) }),
            "out of memory: it reached its limit of 512M"
        );
        assert_eq!(
            told(EndCause::DiskFull { limit: 1 << 30, used: (1 << 30) + (1 << 29) + 1 }),
            "disk limit exceeded: 1.5G of 1G"
        );
    }
}
