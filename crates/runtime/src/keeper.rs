//! The task beside every shim: publishes what it reports, sees to it when it does not obey,
//! collects it, and ends what it left behind if somebody killed it.

use std::pin::pin;
use std::time::Duration;

use cofer_model::Exit;
use rustix::process::{Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::orphans::{self, Claim};
use crate::proc::raw;
use crate::report::Report;
use crate::server_cgroup::ServerCgroup;

/// How long a shim may take to end its tree. It takes milliseconds, unless it was stopped, or
/// a process hangs in the kernel.
const SHIM_GRACE: Duration = Duration::from_secs(5);

/// The few lines a shim ever says are far shorter together.
const MAX_REPORT_BYTES: u64 = 4096;

/// What is known of a workload.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// The server's pid, or the errno with which the system refused to run it.
    pub(crate) started: Option<Result<u32, i32>>,
    pub(crate) exit: Option<Exit>,
    /// Nothing of the tree or the shim is left.
    pub(crate) gone: bool,
}

/// One shim and its books.
pub(crate) struct Keeper {
    pub(crate) child: Child,
    pub(crate) claim: Claim,
    pub(crate) reports: OwnedReadHalf,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) ending: CancellationToken,
    /// The marker of this run.
    pub(crate) marker: String,
    /// The cgroup of this run.
    pub(crate) cgroup: Option<ServerCgroup>,
}

impl Keeper {
    /// Runs until the shim has ended and its tree with it.
    pub(crate) async fn run(self) {
        let Self { mut child, claim, reports, progress, ending, marker, cgroup } = self;
        let orderly = {
            let mut reading = pin!(publish_reports(reports, &progress, &claim));
            let has_hung_up = tokio::select! {
                () = &mut reading => true,
                () = ending.cancelled() => false,
            };
            // A server can stop its shim, which runs as the same user.
            signal_shim(&child, Signal::CONT);
            let ended = timeout(SHIM_GRACE, async {
                if !has_hung_up {
                    reading.await;
                }
                child.wait().await
            });
            ended.await.map(|status| status.is_ok_and(|status| status.success()))
        };
        if orderly.is_err() {
            tracing::warn!(marker, "a shim did not end its tree in time; killing it");
            signal_shim(&child, Signal::KILL);
            drop(child.wait().await);
        }
        if orderly != Ok(true) {
            clean_up_after_shim(&progress, marker, cgroup).await;
        }
        drop(claim);
        progress.send_modify(|progress| {
            progress.exit.get_or_insert(Exit { code: None, signal: None });
            progress.gone = true;
        });
    }
}

/// The number is the shim's for as long as it has not been collected.
fn signal_shim(child: &Child, signal: Signal) {
    if let Some(pid) = child.id().and_then(raw) {
        // A failure means that it has ended, which is what is waited for next.
        kill_process(pid, signal).ok();
    }
}

/// The shim died before its work was done: its orphans are the daemon's now.
async fn clean_up_after_shim(
    progress: &watch::Sender<Progress>,
    marker: String,
    cgroup: Option<ServerCgroup>,
) {
    tracing::warn!(marker, "a shim was killed; ending the process tree of its server");
    let server = progress.borrow().started.and_then(Result::ok);
    let end = move || orphans::end(&marker, cgroup.as_ref(), server);
    let ended = tokio::task::spawn_blocking(end).await;
    if let Ok(Some(exit)) = ended {
        progress.send_modify(|progress| {
            progress.exit.get_or_insert(exit);
        });
    }
}

/// Publishes each line until the shim closes its end.
async fn publish_reports(
    reports: OwnedReadHalf,
    progress: &watch::Sender<Progress>,
    claim: &Claim,
) {
    let mut lines = BufReader::new(reports.take(MAX_REPORT_BYTES)).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match Report::parse(&line) {
            Some(Report::Started(pid)) => {
                claim.add_server(pid);
                progress.send_modify(|progress| progress.started = Some(Ok(pid)));
            }
            Some(Report::Refused(errno)) => {
                progress.send_modify(|progress| progress.started = Some(Err(errno)));
            }
            Some(Report::Ended(exit)) => {
                progress.send_modify(|progress| progress.exit = Some(exit));
            }
            None => tracing::warn!(line, "a shim said something unknown"),
        }
    }
}
