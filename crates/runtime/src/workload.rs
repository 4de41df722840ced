//! One running workload, seen from above: its streams, its end, and the two ways to end it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cofer_model::{Exit, Usage};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::isolation::{self, Containment};
use crate::keeper::Progress;
use crate::pipes::WideShare;
use crate::report::TERMINATE;
use crate::server_cgroup::ServerCgroup;
use crate::usage::{self, Meter};

/// Bytes that come from a server.
pub type ByteSource = Box<dyn AsyncRead + Send + Unpin>;

/// Bytes that go to a server.
pub type ByteSink = Box<dyn AsyncWrite + Send + Unpin>;

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// A name to find on `PATH`, or a path.
    pub program: String,
    /// Its arguments, passed as they are.
    pub args: Vec<String>,
    /// Variables on top of what every server gets of the daemon's.
    pub environment: BTreeMap<String, String>,
    /// Where it runs: an absolute path; the user's home where none is given.
    pub cwd: Option<String>,
    /// `<owner>/<server id>`: what its processes are known by. The runner adds `/<run>`, so
    /// that two runs of one server are told apart, and sets it as `COFER_WORKLOAD`.
    pub marker: String,
}

/// The server's three streams; none of them blocks a thread.
pub struct Streams {
    /// Closed by dropping it.
    pub stdin: ByteSink,
    /// Ends when the whole tree has closed it.
    pub stdout: ByteSource,
    /// Ends when the whole tree has closed it.
    pub stderr: ByteSource,
}

/// A server's process tree. Dropping it ends the tree.
pub struct Workload {
    pub(crate) pid: u32,
    pub(crate) shim: u32,
    pub(crate) cgroup: Option<ServerCgroup>,
    pub(crate) control: Control,
    pub(crate) progress: watch::Receiver<Progress>,
    pub(crate) meter: Mutex<Meter>,
    pub(crate) _wide_pipes: Option<WideShare>,
}

impl Workload {
    /// The server's own process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the end of the server's own process. May be awaited by many, and again.
    pub async fn exited(&self) -> Exit {
        let mut progress = self.progress.clone();
        // The keeper only goes away early when the whole runtime does.
        let unknown = Exit { code: None, signal: None };
        let seen = progress.wait_for(|progress| progress.exit.is_some()).await;
        seen.map_or(unknown, |progress| progress.exit.unwrap_or(unknown))
    }

    /// Waits until nothing of the tree is left, and the shim neither.
    pub async fn gone(&self) {
        let mut progress = self.progress.clone();
        // An error means that the keeper went away, which is the end too.
        drop(progress.wait_for(|progress| progress.gone).await);
    }

    /// Asks the server to end: SIGTERM to its process group.
    pub fn terminate(&self) {
        self.control.terminate();
    }

    /// Ends the whole tree at once, with SIGKILL.
    pub fn kill(&self) {
        self.control.kill();
    }

    /// What the tree uses now; nothing once the server has ended. Reads `/proc`, which takes
    /// about a millisecond: for many workloads, [`usage_of_all`](crate::usage_of_all) looks once.
    pub fn usage(&self) -> Option<Usage> {
        usage::usage_of_all([self]).pop().flatten()
    }

    /// What isolation is in force, read back from the system; null once the server has ended.
    pub fn isolation(&self) -> serde_json::Value {
        let mut facts =
            if self.is_running() { isolation::read(self.pid) } else { serde_json::Value::Null };
        if let Some(facts) = facts.as_object_mut() {
            facts.insert("containment".to_owned(), self.containment().as_str().into());
        }
        facts
    }

    /// The containment in force: a cgroup was made, and the server is a member of it.
    fn containment(&self) -> Containment {
        match &self.cgroup {
            Some(cgroup) if cgroup.contains(self.pid) => Containment::Cgroup,
            _ => Containment::Subreaper,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.progress.borrow().exit.is_none()
    }
}

impl std::fmt::Debug for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workload").field("pid", &self.pid).field("shim", &self.shim).finish()
    }
}

/// The way to the shim. Dropping it ends the tree, also in the middle of a start.
pub(crate) struct Control {
    orders: Mutex<Option<OwnedWriteHalf>>,
    /// Tells the keeper that the end was ordered, so that it sees to a shim that does not obey.
    ending: CancellationToken,
}

impl Control {
    pub(crate) fn new(orders: OwnedWriteHalf, ending: CancellationToken) -> Self {
        Self { orders: Mutex::new(Some(orders)), ending }
    }

    fn terminate(&self) {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = orders.as_ref().map(|orders| orders.try_write(&[TERMINATE])) {
            tracing::debug!(%error, "the shim could not be asked to terminate its server");
        }
    }

    /// Closing the writing half is the order to kill: it cannot fail or be stuck behind others.
    pub(crate) fn kill(&self) {
        drop(self.orders.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.ending.cancel();
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.kill();
    }
}
