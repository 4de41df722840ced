//! The one task that may change a server. Each state is a method; what it returns is the
//! only way out of it.
#![warn(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use async_trait::async_trait;
use cofer_mcp::Bridge;
use cofer_model::{
    Exit, Failure, FailureKind, HeartbeatSpec, Redactor, RestartPolicy, ServerId, ServerSpec,
    Status,
};
use time::OffsetDateTime;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handle::{HandleParts, Live};
use super::health::change_of_health;
use super::log::ServerLog;
use super::restart::{CrashHistory, STABLE};
use super::snapshot::{Publisher, Snapshot};
use super::start::{Attempt, NotReady, Ready, exited};
use super::stop::{Stopped, stop};
use crate::launch::{Launcher, Running};
use crate::supervisor::Graces;

/// Keeps what outlives the daemon. Told before the event goes out, so that whoever hears the
/// event finds it stored.
#[async_trait]
pub trait Recorder: Send + Sync + 'static {
    /// The server is ready.
    async fn ready(&self, id: ServerId);
    /// The server is stopped.
    async fn stopped(&self, id: ServerId);
    /// The server is in error; `disable` also switches it off, in the same change.
    async fn failed(&self, id: ServerId, failure: &Failure, disable: bool);
}

/// What a driver is told to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Be what `spec` says. `forgive` takes an error off a server that stays off.
    Configure { spec: Arc<ServerSpec>, forgive: bool, ack: oneshot::Sender<()> },
    /// Run anew; acknowledged with whether it will.
    Restart { ack: oneshot::Sender<bool> },
    /// The daemon ends: stop, and do not come back.
    ShutDown,
    /// The server is removed: stop, take the log away, and do not come back.
    Remove,
}

/// What a driver works with.
pub(crate) struct DriverParts {
    pub(crate) id: ServerId,
    pub(crate) publisher: Publisher,
    pub(crate) handle: Arc<HandleParts>,
    pub(crate) log: Arc<ServerLog>,
    pub(crate) noise: Arc<AtomicU64>,
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) tasks: TaskTracker,
    /// How many servers start at once when the daemon does.
    pub(crate) boot_slots: Arc<Semaphore>,
    pub(crate) max_message: usize,
    pub(crate) graces: Graces,
}

/// See the module.
pub(crate) struct Driver {
    parts: Arc<DriverParts>,
    spec: Arc<ServerSpec>,
    orders: mpsc::Receiver<Order>,
    crashes: CrashHistory,
}

/// Why a server is being started, which decides what a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A person switched it on or changed it. A failure switches it off again.
    SwitchedOn,
    /// The daemon started, and the server had been ready before. A failure is a crash.
    Boot,
    /// It crashed. Another failure is another crash.
    Crash,
    /// A person restarted it. A failure is a crash.
    Restarted,
}

/// Where to go from a state.
enum Next {
    Idle,
    Starting(Cause),
    Ready(Ready),
    BackingOff { failure: Failure, well: Duration },
    Failed,
    Ended { remove: bool },
}

/// What ends the wait in `ready`.
enum Wake {
    Exited(Exit),
    StdoutClosed,
    Order(Option<Order>),
    Responsive(bool),
    Stable,
}

impl Driver {
    pub(crate) fn new(
        parts: DriverParts,
        spec: Arc<ServerSpec>,
        orders: mpsc::Receiver<Order>,
    ) -> Self {
        Self { parts: Arc::new(parts), spec, orders, crashes: CrashHistory::default() }
    }

    /// Runs until the server is removed or the daemon ends. `proven` is whether it had been
    /// ready in an earlier daemon.
    pub(crate) async fn run(mut self, proven: bool) {
        let mut next = if self.parts.publisher.current().status == Status::Error {
            Next::Failed
        } else if !self.spec.enabled {
            Next::Idle
        } else if proven {
            Next::Starting(Cause::Boot)
        } else {
            Next::Starting(Cause::SwitchedOn)
        };
        loop {
            next = match next {
                Next::Idle => self.idle().await,
                Next::Starting(cause) => self.starting(cause).await,
                Next::Ready(ready) => self.ready(ready).await,
                Next::BackingOff { failure, well } => self.backing_off(failure, well).await,
                Next::Failed => self.failed().await,
                Next::Ended { remove } => {
                    if remove {
                        self.parts.log.remove_files();
                    }
                    return;
                }
            };
        }
    }

    async fn idle(&mut self) -> Next {
        self.parts.publisher.status(Status::Stopped, |snapshot| {
            snapshot.without_process();
            snapshot.failure = None;
            snapshot.next_restart_at = None;
            snapshot.health_reasons.clear();
        });
        loop {
            match self.orders.recv().await {
                Some(Order::Configure { spec, ack, .. }) => {
                    self.take(spec);
                    let enabled = self.spec.enabled;
                    if enabled {
                        self.announce(Cause::SwitchedOn);
                    }
                    acknowledge(ack, ());
                    if enabled {
                        return Next::Starting(Cause::SwitchedOn);
                    }
                }
                Some(Order::Restart { ack }) => acknowledge(ack, false),
                Some(Order::Remove) => return Next::Ended { remove: true },
                Some(Order::ShutDown) | None => return Next::Ended { remove: false },
            }
        }
    }

    async fn failed(&mut self) -> Next {
        loop {
            match self.orders.recv().await {
                Some(Order::Configure { spec, forgive, ack }) => {
                    let changed = !self.take(spec);
                    let enabled = self.spec.enabled;
                    if enabled {
                        self.announce(Cause::SwitchedOn);
                    }
                    if !enabled && (forgive || changed) {
                        self.parts.recorder.stopped(self.parts.id).await;
                    }
                    acknowledge(ack, ());
                    if enabled {
                        return Next::Starting(Cause::SwitchedOn);
                    }
                    if forgive || changed {
                        return Next::Idle;
                    }
                }
                Some(Order::Restart { ack }) => {
                    let again = self.spec.enabled;
                    acknowledge(ack, again);
                    if again {
                        return Next::Starting(Cause::SwitchedOn);
                    }
                }
                Some(Order::Remove) => return Next::Ended { remove: true },
                Some(Order::ShutDown) | None => return Next::Ended { remove: false },
            }
        }
    }

    async fn starting(&mut self, cause: Cause) -> Next {
        self.announce(cause);
        let cancel = CancellationToken::new();
        let attempt =
            attempt(Arc::clone(&self.parts), Arc::clone(&self.spec), cause, cancel.clone());
        tokio::pin!(attempt);
        let (next, ack) = loop {
            tokio::select! {
                biased;
                outcome = &mut attempt => return self.started(cause, outcome).await,
                order = self.orders.recv() => if let Some(leave) = self.order_while_starting(order) {
                    break leave;
                },
            }
        };
        // Whatever the attempt had started is gone before anything else happens.
        cancel.cancel();
        attempt.await.ok();
        if matches!(next, Next::Idle) {
            self.parts.recorder.stopped(self.parts.id).await;
        }
        drop(ack);
        next
    }

    /// What an order means while the server starts: nothing, or another state. The
    /// acknowledgement is held back until that state can be seen.
    fn order_while_starting(
        &mut self,
        order: Option<Order>,
    ) -> Option<(Next, Option<oneshot::Sender<()>>)> {
        match order {
            Some(Order::Configure { spec, ack, .. }) => {
                let same = self.take(spec);
                if !self.spec.enabled {
                    self.parts.publisher.status(Status::Stopping, |_| {});
                    acknowledge(ack, ());
                    return Some((Next::Idle, None));
                }
                if same {
                    acknowledge(ack, ());
                    return None;
                }
                Some((Next::Starting(Cause::SwitchedOn), Some(ack)))
            }
            Some(Order::Restart { ack }) => {
                self.crashes.reset();
                acknowledge(ack, true);
                Some((Next::Starting(Cause::Restarted), None))
            }
            Some(Order::Remove) => Some((Next::Ended { remove: true }, None)),
            Some(Order::ShutDown) | None => Some((Next::Ended { remove: false }, None)),
        }
    }

    async fn started(&mut self, cause: Cause, outcome: Result<Ready, NotReady>) -> Next {
        match outcome {
            Ok(ready) => Next::Ready(ready),
            Err(NotReady::Cancelled) => Next::Idle,
            Err(NotReady::Failed(failure)) => {
                self.report(&failure, "did not start");
                match cause {
                    Cause::SwitchedOn => {
                        self.give_up(failure, true).await;
                        Next::Failed
                    }
                    Cause::Boot | Cause::Crash | Cause::Restarted => {
                        self.after_crash(failure, Duration::ZERO).await
                    }
                }
            }
        }
    }

    async fn ready(&mut self, ready: Ready) -> Next {
        let Ready { running, bridge, peer, log_position, stderr } = ready;
        let running: Arc<dyn Running> = Arc::from(running);
        let since = Instant::now();
        self.parts
            .handle
            .live
            .store(Some(Arc::new(Live { bridge: bridge.clone(), running: Arc::clone(&running) })));
        self.parts.recorder.ready(self.parts.id).await;
        let told = format!("ready: protocol {}, pid {}", peer.protocol_version, running.pid());
        self.parts.log.lifecycle(&told);
        tracing::info!(target: "MCP", server = %self.spec.name, "{told}");
        self.parts.publisher.status(Status::Ready, |snapshot| {
            snapshot.peer = Some(Arc::new(peer));
            snapshot.failure = None;
            snapshot.next_restart_at = None;
        });
        let mut responsive = true;
        loop {
            let heartbeat = self.spec.heartbeat;
            let wake = tokio::select! {
                biased;
                exit = running.exited() => Wake::Exited(exit),
                () = bridge.closed() => Wake::StdoutClosed,
                order = self.orders.recv() => Wake::Order(order),
                now = change_of_health(&bridge, heartbeat, responsive) => Wake::Responsive(now),
                () = sleep_until(since + STABLE), if self.crashes.is_loop() => Wake::Stable,
            };
            match wake {
                Wake::Exited(exit) => {
                    self.leave(&*running).await;
                    timeout(LAST_WORDS, stderr).await.ok();
                    return self.crashed(exit, since.elapsed(), log_position).await;
                }
                Wake::StdoutClosed => {
                    let exit = end_of_mute(&*running).await;
                    self.leave(&*running).await;
                    timeout(LAST_WORDS, stderr).await.ok();
                    return self.crashed(exit, since.elapsed(), log_position).await;
                }
                Wake::Order(order) => {
                    if let Some(next) = self.order_while_ready(order, &*running, &bridge).await {
                        return next;
                    }
                }
                Wake::Responsive(now) => {
                    responsive = now;
                    self.tell_health(responsive, heartbeat);
                }
                Wake::Stable => {
                    self.crashes.reset();
                    self.parts.publisher.amend(|snapshot| snapshot.health_reasons.clear());
                }
            }
        }
    }

    async fn order_while_ready(
        &mut self,
        order: Option<Order>,
        running: &dyn Running,
        bridge: &Bridge,
    ) -> Option<Next> {
        match order {
            Some(Order::Configure { spec, ack, .. }) => {
                let same = self.take(spec);
                if self.spec.enabled && same {
                    acknowledge(ack, ());
                    return None;
                }
                if self.spec.enabled {
                    self.crashes.reset();
                    self.announce(Cause::Restarted);
                    acknowledge(ack, ());
                    self.stop(running, bridge, self.parts.graces.restart).await;
                    return Some(Next::Starting(Cause::SwitchedOn));
                }
                self.parts.publisher.status(Status::Stopping, |_| {});
                acknowledge(ack, ());
                self.stop(running, bridge, self.parts.graces.stop).await;
                self.parts.recorder.stopped(self.parts.id).await;
                Some(Next::Idle)
            }
            Some(Order::Restart { ack }) => {
                self.crashes.reset();
                self.announce(Cause::Restarted);
                acknowledge(ack, true);
                self.stop(running, bridge, self.parts.graces.restart).await;
                Some(Next::Starting(Cause::Restarted))
            }
            Some(Order::Remove) => {
                self.parts.publisher.status(Status::Stopping, |_| {});
                self.stop(running, bridge, self.parts.graces.stop).await;
                Some(Next::Ended { remove: true })
            }
            Some(Order::ShutDown) | None => {
                self.parts.publisher.status(Status::Stopping, |_| {});
                self.stop(running, bridge, self.parts.graces.shutdown).await;
                Some(Next::Ended { remove: false })
            }
        }
    }

    async fn backing_off(&mut self, failure: Failure, well: Duration) -> Next {
        let verdict = self.crashes.crashed(Instant::now(), well);
        let at = OffsetDateTime::now_utc() + verdict.pause;
        let reason = format!(
            "it crashes again and again; the next restart is in {} s",
            verdict.pause.as_secs()
        );
        if verdict.looping {
            self.parts.log.lifecycle(&reason);
            tracing::warn!(target: "MCP", server = %self.spec.name, pause = ?verdict.pause, "crash loop: the restart waits");
        }
        self.parts.publisher.status(Status::Restarting, |snapshot| {
            snapshot.without_process();
            snapshot.failure = Some(failure);
            snapshot.next_restart_at = Some(at);
            snapshot.health_reasons = if verdict.looping { vec![reason] } else { Vec::new() };
        });
        let pause = sleep(verdict.pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => {
                    self.parts.publisher.amend(|snapshot| snapshot.restart_count += 1);
                    return Next::Starting(Cause::Crash);
                }
                order = self.orders.recv() => if let Some(next) = self.order_while_waiting(order).await {
                    return next;
                },
            }
        }
    }

    async fn order_while_waiting(&mut self, order: Option<Order>) -> Option<Next> {
        match order {
            Some(Order::Configure { spec, ack, .. }) => {
                let same = self.take(spec);
                if !self.spec.enabled {
                    self.parts.recorder.stopped(self.parts.id).await;
                }
                acknowledge(ack, ());
                match (self.spec.enabled, same) {
                    (false, _) => Some(Next::Idle),
                    (true, true) => None,
                    (true, false) => Some(Next::Starting(Cause::SwitchedOn)),
                }
            }
            Some(Order::Restart { ack }) => {
                self.crashes.reset();
                self.announce(Cause::Restarted);
                acknowledge(ack, true);
                Some(Next::Starting(Cause::Restarted))
            }
            Some(Order::Remove) => Some(Next::Ended { remove: true }),
            Some(Order::ShutDown) | None => Some(Next::Ended { remove: false }),
        }
    }

    /// Takes a configuration over; true where the running process fits it as well.
    fn take(&mut self, spec: Arc<ServerSpec>) -> bool {
        let same = self.spec.runs_like(&spec);
        self.parts.log.set_redactor(Redactor::new(&spec.environment));
        self.parts.handle.spec.store(Arc::clone(&spec));
        self.parts.publisher.amend(|snapshot| snapshot.spec = Arc::clone(&spec));
        self.spec = spec;
        same
    }

    /// Tells that the server is being started, and why.
    fn announce(&self, cause: Cause) {
        let status = match cause {
            Cause::SwitchedOn | Cause::Boot => Status::Starting,
            Cause::Crash | Cause::Restarted => Status::Restarting,
        };
        // A start that follows a restart's stop goes on in the state that was announced.
        let current = self.parts.publisher.current().status;
        let status = if current == Status::Restarting { Status::Restarting } else { status };
        self.parts.publisher.status(status, |snapshot| {
            snapshot.next_restart_at = None;
            snapshot.notice = None;
            if cause != Cause::Crash {
                snapshot.failure = None;
                snapshot.restart_count = 0;
                snapshot.health_reasons.clear();
            }
        });
    }

    async fn crashed(&mut self, exit: Exit, well: Duration, log_position: u64) -> Next {
        let stderr = self.parts.log.stderr_since(log_position);
        let failure = exited(FailureKind::Crashed, exit, "unexpectedly", stderr);
        self.report(&failure, "crashed");
        self.parts
            .publisher
            .amend(|snapshot| snapshot.last_crash_at = Some(OffsetDateTime::now_utc()));
        if exit.is_success() && self.spec.restart_policy != RestartPolicy::Always {
            self.parts.recorder.stopped(self.parts.id).await;
            return Next::Idle;
        }
        self.after_crash(failure, well).await
    }

    /// What the restart policy makes of a crash.
    async fn after_crash(&mut self, failure: Failure, well: Duration) -> Next {
        match self.spec.restart_policy {
            RestartPolicy::Always | RestartPolicy::OnFailure => Next::BackingOff { failure, well },
            RestartPolicy::Never => {
                self.give_up(failure, false).await;
                Next::Failed
            }
        }
    }

    /// Goes to `error`: one stored change, one event.
    async fn give_up(&mut self, failure: Failure, disable: bool) {
        self.parts.recorder.failed(self.parts.id, &failure, disable).await;
        if disable {
            self.spec = Arc::new(ServerSpec { enabled: false, ..ServerSpec::clone(&self.spec) });
            self.parts.handle.spec.store(Arc::clone(&self.spec));
        }
        let spec = Arc::clone(&self.spec);
        self.parts.publisher.status(Status::Error, |snapshot: &mut Snapshot| {
            snapshot.without_process();
            snapshot.spec = spec;
            snapshot.failure = Some(failure);
            snapshot.next_restart_at = None;
        });
    }

    /// Puts a failure in the server's log and in the daemon's.
    fn report(&self, failure: &Failure, what: &str) {
        self.parts.log.lifecycle(format!("{what}: {}", failure.message));
        let stderr = failure.stderr.as_deref().unwrap_or_default();
        let (exit_code, signal) = (failure.exit_code, failure.signal);
        tracing::error!(target: "MCP", server = %self.spec.name, ?exit_code, ?signal, stderr, "{what}: {}", failure.message);
    }

    fn tell_health(&self, responsive: bool, heartbeat: HeartbeatSpec) {
        let silence = format!("it did not answer a heartbeat within {} ms", heartbeat.timeout_ms);
        if responsive {
            tracing::info!(target: "MCP", server = %self.spec.name, "answers again");
            self.parts.log.lifecycle("answers again");
            self.parts.publisher.status(Status::Ready, |snapshot| {
                snapshot.health_reasons.retain(|reason| *reason != silence)
            });
        } else {
            tracing::warn!(target: "MCP", server = %self.spec.name, "unresponsive: {silence}; it is not restarted");
            self.parts.log.lifecycle(format!("unresponsive: {silence}"));
            self.parts
                .publisher
                .status(Status::Unresponsive, |snapshot| snapshot.health_reasons.push(silence));
        }
    }

    /// Stops the server on somebody's order.
    async fn stop(&self, running: &dyn Running, bridge: &Bridge, grace: Duration) {
        self.parts.handle.live.store(None);
        tracing::info!(target: "MCP", server = %self.spec.name, pid = running.pid(), "stopping");
        let how = stop(running, bridge, grace).await;
        let text = match how {
            Stopped::Gently => "stopped".to_owned(),
            Stopped::ByForce => {
                format!("did not stop within {} s of SIGTERM and was killed", grace.as_secs_f32())
            }
        };
        self.parts.log.lifecycle(&text);
        match how {
            Stopped::Gently => tracing::info!(target: "MCP", server = %self.spec.name, "stopped"),
            Stopped::ByForce => tracing::warn!(target: "MCP", server = %self.spec.name, "{text}"),
        }
        self.parts.publisher.amend(|snapshot| {
            snapshot.without_process();
            snapshot.notice = (how == Stopped::ByForce).then_some(text);
        });
    }

    /// Cleans up behind a server that ended by itself.
    async fn leave(&self, running: &dyn Running) {
        self.parts.handle.live.store(None);
        running.kill();
        running.gone().await;
    }
}

/// How long the end of a process may lag behind the end of its stdout, and its last words
/// behind its end.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(1000);

/// Whoever asked may have gone: then nobody waits for the acknowledgement.
fn acknowledge<T>(ack: oneshot::Sender<T>, answer: T) {
    ack.send(answer).ok();
}

/// One attempt to start, with a place among those that start at boot.
async fn attempt(
    parts: Arc<DriverParts>,
    spec: Arc<ServerSpec>,
    cause: Cause,
    cancel: CancellationToken,
) -> Result<Ready, NotReady> {
    let slot = async {
        match cause {
            Cause::Boot => parts.boot_slots.acquire().await.ok(),
            Cause::SwitchedOn | Cause::Crash | Cause::Restarted => None,
        }
    };
    let Some(_slot) = cancel.run_until_cancelled(slot).await else {
        return Err(NotReady::Cancelled);
    };
    tracing::info!(target: "START", server = %spec.name, command = spec.command.as_deref().unwrap_or_default(), "starting");
    parts.log.lifecycle("starting");
    let attempt = Attempt {
        id: parts.id,
        spec: &spec,
        launcher: &*parts.launcher,
        log: &parts.log,
        max_message: parts.max_message,
        noise: &parts.noise,
        tasks: &parts.tasks,
        cancel,
    };
    let spawned = |pid| {
        tracing::info!(target: "START", server = %spec.name, pid, "process started");
        parts.publisher.amend(|snapshot| {
            snapshot.pid = Some(pid);
            snapshot.started_at = Some(OffsetDateTime::now_utc());
        });
    };
    attempt.run(spawned).await
}

/// A server that closed its stdout can be asked nothing any more: it gets a moment to exit.
async fn end_of_mute(running: &dyn Running) -> Exit {
    if let Ok(exit) = timeout(LAST_WORDS, running.exited()).await {
        return exit;
    }
    running.kill();
    running.exited().await
}
