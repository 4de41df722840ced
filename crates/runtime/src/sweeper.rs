//! The sweeper: one process beside a daemon that outlives it by the moment it takes to end what
//! daemon and shims left when both were killed at once. It is the shim's binary, waits for a
//! socket to close, which the kernel sees to when the daemon ends, and ends the runs of that
//! daemon process only: the next daemon of the same owner may be running already.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::sync::{Mutex, PoisonError};

use rustix::process::setsid;

use crate::{command, orphans};

/// The name in `ps -o comm`; see the shim's.
const THREAD_NAME: &std::ffi::CStr = c"mcp-sweeper";

/// The sweepers of this process, by owner: one, unless tests have several. Their sockets close
/// with the process and never before: a sweeper ends what it finds, also what still runs.
static SWEEPERS: Mutex<BTreeMap<String, Sweeper>> = Mutex::new(BTreeMap::new());

struct Sweeper {
    child: Child,
    _control: UnixStream,
}

/// Starts the owner's sweeper unless it runs already; one that was killed is replaced by the
/// next start of a workload. Without one, what daemon and shim leave together waits for the
/// sweep of the next daemon.
pub(crate) fn ensure(shim: &Path, owner: &str) {
    let mut sweepers = SWEEPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let runs = |sweeper: &mut Sweeper| matches!(sweeper.child.try_wait(), Ok(None));
    if sweepers.get_mut(owner).is_some_and(runs) {
        return;
    }
    match start(shim, owner) {
        Ok(sweeper) => drop(sweepers.insert(owner.to_owned(), sweeper)),
        Err(error) => tracing::warn!(%error, owner, "could not start the sweeper"),
    }
}

fn start(shim: &Path, owner: &str) -> io::Result<Sweeper> {
    let (ours, its) = UnixStream::pair()?;
    let child = command::sweeper(shim, owner, std::process::id(), its.into())?.spawn()?;
    Ok(Sweeper { child, _control: ours })
}

/// The sweeper's own life: waits for the end of its daemon, then ends that daemon's runs.
pub(crate) fn run(owner: &OsStr, daemon: &OsStr, mut control: UnixStream) -> ExitCode {
    // Both only help those who read a list of processes.
    rustix::thread::set_name(THREAD_NAME).ok();
    setsid().ok();
    let Some(daemon) = daemon.to_str().and_then(|pid| pid.parse().ok()) else {
        return ExitCode::from(2);
    };
    let mut nothing = [0];
    while control.read(&mut nothing).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted)
    {
    }
    orphans::sweep_after(&owner.to_string_lossy(), daemon);
    ExitCode::SUCCESS
}
