//! The guard: one process beside the daemon that outlives it by the moment it takes to end
//! the daemon's containers. It is the shim's binary, and waits for a socket to close, which
//! the kernel sees to when the daemon is killed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::process::{Signal, setsid};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::CLIENT_OF;
use super::error::PodmanError;
use super::image::PULLING;
use super::label;
use super::{Inner, Podman};
use crate::command;
use crate::orphans::Claim;
use crate::proc::{Process, Snapshot};

/// Daemon to guard: everything is gone, there is nothing to do.
const DISMISSED: u8 = b'D';

/// The name in `ps -o comm`.
const THREAD_NAME: &std::ffi::CStr = c"mcp-guard";

/// How often it is looked whether something is left, at most.
const MAX_LOOKS: usize = 300;
/// The pause between two looks.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A guard that was killed is replaced after this.
const REPLACE_AFTER: Duration = Duration::from_secs(1);

/// The daemon's side: at most one guard at a time.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    held: Mutex<Option<Held>>,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Held {
    /// The guard acts when this closes.
    control: UnixStream,
    ended: CancellationToken,
}

impl Guard {
    /// Tells the guard that nothing is left, and waits for its end.
    pub(crate) async fn dismiss(&self) {
        let Some(held) = self.held.lock().await.take() else {
            return;
        };
        // Where it cannot be told it looks for itself.
        drop(io::Write::write(&mut &held.control, &[DISMISSED]));
        drop(held.control);
        held.ended.cancelled().await;
    }
}

impl Podman {
    /// Sees to it that there is a guard, before there is something to guard.
    pub(crate) async fn guard(&self) -> Result<(), PodmanError> {
        let mut held = self.inner.guard.held.lock().await;
        if held.as_ref().is_some_and(|held| !held.ended.is_cancelled()) {
            return Ok(());
        }
        let started = start(&self.inner);
        let (control, mut child, claim) = started
            .map_err(|source| PodmanError::Internal { action: "start the guard", source })?;
        let ended = CancellationToken::new();
        *held = Some(Held { control, ended: ended.clone() });
        let weak = std::sync::Arc::downgrade(&self.inner);
        self.inner.guard.tasks.spawn(async move {
            drop(child.wait().await);
            drop(claim);
            ended.cancel();
            tokio::time::sleep(REPLACE_AFTER).await;
            if let Some(inner) = weak.upgrade() {
                Self { inner }.replace_guard().await;
            }
        });
        Ok(())
    }

    /// Starts a new guard where the last was killed.
    fn replace_guard(self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let was_dismissed = self.inner.guard.held.lock().await.is_none();
            if was_dismissed {
                return;
            }
            tracing::warn!("the guard of the containers was killed; starting another");
            if let Err(error) = self.guard().await {
                tracing::warn!(%error, "there is no guard; the next start tries again");
            }
        })
    }
}

fn start(inner: &Inner) -> io::Result<(UnixStream, tokio::process::Child, Claim)> {
    let (ours, its) = UnixStream::pair()?;
    let client = &inner.client;
    let command = command::guard(
        &inner.shim,
        &client.program,
        &inner.daemon,
        &client.environment,
        its.into(),
    )?;
    let (child, claim) = Claim::spawn(command)?;
    Ok((ours, child, claim))
}

/// The guard's own life: waits for the end of its daemon, then ends the daemon's containers.
pub(crate) fn run(engine: &OsStr, daemon: &OsStr, mut control: UnixStream) -> ExitCode {
    // Both only help those who look at it.
    rustix::thread::set_name(THREAD_NAME).ok();
    setsid().ok();
    if was_dismissed(&mut control) {
        return ExitCode::SUCCESS;
    }
    let daemon = daemon.to_string_lossy();
    for _ in 0..MAX_LOOKS {
        let clients = end_clients(engine, &daemon);
        let left = containers(engine, &daemon);
        if clients == 0 && left.as_ref().is_some_and(Vec::is_empty) {
            return ExitCode::SUCCESS;
        }
        remove(engine, &left.unwrap_or_default());
        poll(&mut [], Some(&PAUSE)).ok();
    }
    ExitCode::FAILURE
}

/// Waits until the daemon says so, or is gone.
fn was_dismissed(control: &mut UnixStream) -> bool {
    let mut order = [0];
    loop {
        match control.read(&mut order) {
            Ok(1) => return order[0] == DISMISSED,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Ends the daemon's clients that pull, and counts those that may yet make a container.
fn end_clients(engine: &OsStr, daemon: &str) -> usize {
    let pulling = format!("{daemon}{PULLING}");
    let me = std::process::id();
    let snapshot = Snapshot::take();
    let clients = snapshot.all().filter(|process| process.pid != me && !process.is_dead);
    let mut starting = 0;
    for process in clients {
        match process.variable(CLIENT_OF) {
            Some(mark) if mark == pulling => {
                process.signal(Signal::TERM);
            }
            Some(mark) if mark == daemon && is_starting(process, engine) => starting += 1,
            _ => {}
        }
    }
    starting
}

/// Helpers that Podman leaves running have its environment too; only a `podman run` counts.
fn is_starting(process: &Process, engine: &OsStr) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let mut args = line.split(|byte| *byte == 0);
    args.next() == Some(engine.as_encoded_bytes()) && args.any(|arg| arg == b"run")
}

/// The daemon's containers, where the engine tells.
fn containers(engine: &OsStr, daemon: &str) -> Option<Vec<OsString>> {
    let filter = OsString::from(format!("label={}={daemon}", label::DAEMON));
    let args = ["ps", "--all", "--quiet", "--no-trunc", "--filter"].map(OsStr::new);
    let args: Vec<&OsStr> = args.into_iter().chain([filter.as_os_str()]).collect();
    let output = command::guards_engine(engine, &args).stdout(Stdio::piped()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.split_ascii_whitespace().map(OsString::from).collect())
}

fn remove(engine: &OsStr, ids: &[OsString]) {
    if ids.is_empty() {
        return;
    }
    let args = ["rm", "--force", "--time=0", "--volumes", "--ignore"].map(OsStr::new);
    let args: Vec<&OsStr> = args.into_iter().chain(ids.iter().map(OsString::as_os_str)).collect();
    // What could not be removed is still there at the next look.
    command::guards_engine(engine, &args).stdout(Stdio::null()).status().ok();
}
