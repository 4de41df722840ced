//! The task of one container: starts it, sees that it is what it should be, waits for its end
//! or brings it about, tells why it ended, and removes it. It alone acts on the container, and
//! it goes on when whoever asked for the container has gone away.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cofer_model::Exit;
use rustix::process::{Signal, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedMutexGuard, oneshot, watch};
use tokio::time::timeout;

use super::Podman;
use super::bundle::Bundle;
use super::choice::RuntimeChoice;
use super::container::{EndCause, Orders, Progress, Shared};
use super::disk;
use super::error::PodmanError;
use super::info::Info;
use super::inspect::Inspected;
use super::isolation::DiskLimit;
use super::launch::Up;
use super::oom;
use super::plan::ContainerPlan;
use super::witness::Witness;
use crate::orphans;
use crate::pipes::WideShare;
use crate::workload::Streams;

/// How long a killed process may take to be gone.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How often the removal is tried.
const REMOVALS: usize = 3;

/// See the module.
pub(crate) struct Life {
    pub(crate) podman: Podman,
    pub(crate) plan: ContainerPlan,
    pub(crate) info: Arc<Info>,
    pub(crate) runtime: RuntimeChoice,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) orders: Orders,
    /// Nobody else starts a container for the server while this one is not gone.
    pub(crate) _place: OwnedMutexGuard<()>,
}

/// What whoever asked gets.
pub(crate) struct Started {
    pub(crate) shared: Arc<Shared>,
    pub(crate) streams: Streams,
    pub(crate) wide_pipes: Option<WideShare>,
}

impl Life {
    /// Runs until nothing of the container is left.
    pub(crate) async fn run(self, started: oneshot::Sender<Result<Started, PodmanError>>) {
        match self.bring_up().await {
            Ok(up) => {
                let Up { shared, witness, streams, wide_pipes } = *up;
                let told = Started { shared: Arc::clone(&shared), streams, wide_pipes };
                // Where nobody listens any more, the order to end is given already.
                drop(started.send(Ok(told)));
                self.tend(&shared, witness).await;
            }
            Err(error) => drop(started.send(Err(error))),
        }
        self.progress.send_modify(|progress| {
            progress.exit.get_or_insert(Exit { code: None, signal: None });
            progress.gone = true;
        });
    }

    /// From the start to the end.
    async fn tend(&self, shared: &Arc<Shared>, witness: Witness) {
        let Witness { handle, conmon, .. } = witness;
        let handle = handle.and_then(waitable);
        let (mut cause, mut killed_for_memory) = (None, false);
        {
            let mut out_of_memory = pin!(oom::killed(&shared.cgroup));
            let mut ended = pin!(ended(handle.as_ref()));
            let mut watching = pin!(self.watch(shared));
            loop {
                tokio::select! {
                    biased;
                    () = &mut out_of_memory, if !killed_for_memory => {
                        killed_for_memory = true;
                        continue;
                    }
                    () = &mut ended => break,
                    () = self.orders.ending.cancelled() => {}
                    found = &mut watching => cause = Some(found),
                    () = self.orders.terminate.notified() => {
                        self.terminate(shared, handle.as_ref());
                        continue;
                    }
                }
                self.kill(shared, handle.as_ref()).await;
                break;
            }
        }
        self.progress.send_modify(|progress| progress.ended = true);
        // At once: what the kernel counted goes with the cgroup, which is about to be removed.
        killed_for_memory |= shared.cgroup.oom_kills().is_some_and(|count| count > 0);
        let exit = self.exit(shared, killed_for_memory).await;
        self.progress.send_modify(|progress| {
            progress.cause = cause.or(exit.1);
            progress.exit = Some(exit.0);
        });
        self.remove(shared).await;
        forget_conmon(conmon).await;
    }

    /// Gets the engine's word and watches the disk; returns only with a reason to end.
    async fn watch(&self, shared: &Arc<Shared>) -> EndCause {
        tokio::select! {
            cause = self.compare_runtime(shared) => cause,
            cause = watch_disk(shared) => cause,
        }
    }

    async fn compare_runtime(&self, shared: &Shared) -> EndCause {
        match self.inspect(shared).await {
            Err(PodmanError::WrongRuntime { asked, found }) => {
                return EndCause::WrongRuntime { asked, found };
            }
            Err(error) => {
                tracing::warn!(container = shared.name, %error, "the engine does not describe it");
            }
            Ok(_) => {}
        }
        std::future::pending().await
    }

    /// SIGTERM to its first process: by Podman, which knows how to reach one in a sandbox.
    fn terminate(&self, shared: &Arc<Shared>, handle: Option<&AsyncFd<OwnedFd>>) {
        let (podman, id) = (self.podman.clone(), shared.id.clone());
        let handle = handle.and_then(|handle| handle.get_ref().try_clone().ok());
        self.podman.inner.tasks.spawn(async move {
            let args = ["kill", "--signal=TERM", id.as_str()];
            if let Err(error) = podman.inner.client.ask(&args).await {
                tracing::debug!(id, %error, "Podman did not signal the container");
                if let Some(handle) = handle {
                    pidfd_send_signal(&handle, Signal::TERM).ok();
                }
            }
        });
    }

    /// Kills its first process, and with it all others in it.
    async fn kill(&self, shared: &Shared, handle: Option<&AsyncFd<OwnedFd>>) {
        let direct =
            handle.is_some_and(|handle| pidfd_send_signal(handle.get_ref(), Signal::KILL).is_ok());
        if !direct {
            let args = ["kill", "--signal=KILL", &shared.id];
            if let Err(error) = self.podman.inner.client.ask(&args).await {
                tracing::debug!(id = shared.id, %error, "Podman did not kill the container");
            }
        }
        if timeout(KILL_LIMIT, ended(handle)).await.is_err() {
            tracing::warn!(container = shared.name, "it does not end when killed; removing it");
        }
    }

    /// How it ended, from the engine, and why, where the kernel killed it for memory.
    async fn exit(&self, shared: &Shared, killed_for_memory: bool) -> (Exit, Option<EndCause>) {
        let args = ["wait", "--interval=20ms", &shared.id];
        let code = match self.podman.inner.client.ask_text(&args).await {
            Ok(text) => text.parse::<i32>().ok(),
            Err(error) => {
                tracing::debug!(container = shared.name, %error, "its exit code is not known");
                None
            }
        };
        let exit = exit_of(code);
        let by_engine = async {
            // Only a kill is worth the question.
            if exit.signal != Some(libc::SIGKILL) || self.orders.ending.is_cancelled() {
                return false;
            }
            let answer = self.podman.inner.client.ask(&["container", "inspect", &shared.id]).await;
            let inspected = answer.ok().and_then(|answer| Inspected::parse(&answer));
            inspected.is_some_and(|inspected| inspected.was_killed_for_memory())
        };
        let for_memory = killed_for_memory || by_engine.await;
        let limit = self.plan.limits.memory_bytes();
        (exit, for_memory.then_some(EndCause::OutOfMemory { limit }))
    }

    async fn remove(&self, shared: &Shared) {
        for _ in 0..REMOVALS {
            match self.podman.remove([shared.id.as_str()].into_iter()).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(container = shared.name, %error, "it could not be removed");
                }
            }
        }
    }
}

async fn watch_disk(shared: &Shared) -> EndCause {
    match shared.disk_limit {
        Some(DiskLimit::Watched(limit) | DiskLimit::Quota(limit)) => {
            let places = shared.bundle.as_ref().and_then(Bundle::writable_places);
            let used = disk::watch(places.unwrap_or_default(), limit, shared.disk.clone()).await;
            EndCause::DiskFull { limit, used }
        }
        Some(DiskLimit::NothingToWriteTo) => {
            shared.disk.set(0);
            std::future::pending().await
        }
        None => std::future::pending().await,
    }
}

/// Waits for the end of the process; one without a handle has ended already.
async fn ended(handle: Option<&AsyncFd<OwnedFd>>) {
    if let Some(handle) = handle {
        // A handle that cannot be waited on says nothing, so that the engine is asked.
        drop::<io::Result<_>>(handle.readable().await);
    }
}

/// A handle on a process, as the runtime waits for its end.
fn waitable(handle: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the descriptor has to stay the same while it is waited on")]
    // SAFETY: an `OwnedFd` is open and stays the same for as long as it lives, which is inside.
    let waitable = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
    waitable.ok()
}

/// The engine tells a signal as 128 and its number, as shells do.
fn exit_of(code: Option<i32>) -> Exit {
    match code {
        Some(code @ 129..=192) => Exit { code: None, signal: Some(code - 128) },
        code => Exit { code, signal: None },
    }
}

/// conmon came to this process when Podman's command ended, where this process is the one that
/// orphans come to, and ends a moment after its container.
async fn forget_conmon(conmon: Option<OwnedFd>) {
    let handle = conmon.and_then(waitable);
    drop(timeout(KILL_LIMIT, ended(handle.as_ref())).await);
    drop(tokio::task::spawn_blocking(orphans::collect_strangers).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_told_apart_from_a_code() {
        let exit = |code, signal| Exit { code, signal };
        assert_eq!(exit_of(Some(0)), exit(Some(0), None));
        assert_eq!(exit_of(Some(127)), exit(Some(127), None));
        assert_eq!(exit_of(Some(137)), exit(None, Some(9)));
        assert_eq!(exit_of(Some(143)), exit(None, Some(15)));
        assert_eq!(exit_of(Some(255)), exit(Some(255), None));
        assert_eq!(exit_of(None), exit(None, None));
    }
}
