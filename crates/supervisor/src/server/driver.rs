//! The one task that may change a server. Each state is a method; what it returns is the
//! only way out of it.
#![warn(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cofer_model::{DaemonIds, Exit, Failure, FailureKind, RestartPolicy, ServerSpec, Status};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::TaskTracker;

use super::failure::{NotReady, crashed, cycle, launched_too_slowly, not_ready};
use super::handle::HandleParts;
use super::inbox::{Change, Order, Place, Standing, Step, configured, restarted};
use super::report::Reporter;
use super::restart::{CrashHistory, STABLE, patience};
use super::run::{Opened, Outlets, Run};
use super::start_clock::open_in_time;
use super::stateless::close_stateless;
use crate::fence::FENCE_GRACE;
use crate::launch::Launcher;
use crate::supervisor::Graces;

/// How long a runtime may take to launch a server. Engines have limits of their own, and work
/// off many starts one after the other; this is for one that hangs.
pub(super) const LAUNCH: Duration = Duration::from_secs(300);

/// What a driver works with.
pub(crate) struct DriverParts {
    pub(crate) reporter: Reporter,
    pub(crate) handle: Arc<HandleParts>,
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) tasks: TaskTracker,
    pub(crate) graces: Graces,
    /// Where a start by order waits for its turn.
    pub(crate) order_slots: Arc<Semaphore>,
}

/// See the module.
pub(crate) struct Driver {
    parts: Arc<DriverParts>,
    spec: Arc<ServerSpec>,
    orders: mpsc::Receiver<Order>,
    crashes: CrashHistory,
    /// Where its next start waits for its turn; none after a crash.
    slots: Option<Arc<Semaphore>>,
    /// Those who wait until nothing of it runs.
    suspenders: Vec<oneshot::Sender<()>>,
}

/// How a driver begins.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) spec: Arc<ServerSpec>,
    /// Whether the server had been ready in an earlier daemon.
    pub(crate) proven: bool,
    /// Where its first start waits for its turn.
    pub(crate) slots: Option<Arc<Semaphore>>,
}

/// Where to go from a state.
enum Next {
    Idle,
    Starting(Standing),
    Ready(Box<(Run, Opened)>),
    BackingOff { failure: Failure, well: Duration },
    Waiting { failure: Failure, standing: Standing },
    Failed,
    Suspended,
    Ended { remove: bool },
}

/// An order that leads to another state, and how long what runs is given to end before.
struct Leave {
    next: Next,
    grace: Duration,
}

/// What ends the wait in `ready`.
enum Wake {
    Ended(Option<Exit>),
    Order(Option<Order>),
    Responsive(bool),
    Stable,
    Cycle(DaemonIds),
}

impl Driver {
    /// Runs until the server is removed or the daemon ends.
    pub(crate) async fn run(
        parts: DriverParts,
        beginning: Beginning,
        orders: mpsc::Receiver<Order>,
    ) {
        let Beginning { spec, proven, slots } = beginning;
        let mut driver = Self {
            parts: Arc::new(parts),
            spec,
            orders,
            crashes: CrashHistory::default(),
            slots,
            suspenders: Vec::new(),
        };
        // Raised before the drivers are ordered to suspend: one that begins later finds it here.
        let mut next = match driver.parts.handle.means.fence.reason() {
            Some(_) => Next::Suspended,
            None => driver.first_state(proven),
        };
        loop {
            next = match next {
                Next::Idle => driver.idle().await,
                Next::Starting(standing) => driver.starting(standing).await,
                Next::Ready(ready) => driver.ready(*ready).await,
                Next::BackingOff { failure, well } => driver.backing_off(failure, well).await,
                Next::Waiting { failure, standing } => driver.waiting(failure, standing).await,
                Next::Failed => driver.orders_in(Place::Failed).await,
                Next::Suspended => driver.suspended().await,
                Next::Ended { remove } => return driver.ended(remove),
            };
        }
    }

    fn first_state(&self, proven: bool) -> Next {
        if self.parts.reporter.status() == Status::Error {
            Next::Failed
        } else if !self.spec.enabled {
            Next::Idle
        } else {
            Next::Starting(if proven { Standing::Proven } else { Standing::Unproven })
        }
    }

    async fn idle(&mut self) -> Next {
        self.parts.reporter.at_rest().await;
        self.orders_in(Place::Idle).await
    }

    /// Waits in a state that only an order ends.
    async fn orders_in(&mut self, place: Place) -> Next {
        match self.unless_ordered(place, std::future::pending()).await {
            Ok(never) => never,
            Err(leave) => leave.next,
        }
    }

    async fn starting(&mut self, standing: Standing) -> Next {
        let place = Place::Starting(standing);
        let slots = self.slots.take();
        let (parts, spec) = (Arc::clone(&self.parts), Arc::clone(&self.spec));
        // An order drops the launch, which leaves nothing behind.
        let launch = prepare_and_launch(&parts, &spec, slots);
        let Launch { mut run, deadline, _slot } = match self.unless_ordered(place, launch).await {
            Ok(Ok(launched)) => launched,
            Ok(Err(failure)) => return self.not_started(failure, standing).await,
            Err(leave) => return leave.next,
        };
        match self.unless_ordered(place, open(&parts, &mut run, deadline)).await {
            Ok(Ok(opened)) => Next::Ready(Box::new((run, opened))),
            Ok(Err(error)) => {
                let out_of_time = parts.handle.means.fence.out_of_time();
                let failure = not_ready(run, &error, parts.graces.stop, out_of_time).await;
                self.not_started(failure, standing).await
            }
            Err(leave) => self.stop(run, leave).await,
        }
    }

    async fn not_started(&mut self, failure: Failure, standing: Standing) -> Next {
        self.parts.reporter.failure(&failure, "did not start");
        // That its engine is away is nothing a server can be blamed for.
        if failure.kind == FailureKind::EngineUnavailable {
            return Next::Waiting { failure, standing };
        }
        match standing {
            // A cycle does not end by trying again.
            _ if failure.kind == FailureKind::Cycle => {
                self.give_up(failure, true).await;
                Next::Failed
            }
            Standing::Unproven => {
                self.give_up(failure, true).await;
                Next::Failed
            }
            Standing::Proven => self.after_crash(failure, Duration::ZERO).await,
        }
    }

    /// Looks again and again for what the server runs on.
    async fn waiting(&mut self, failure: Failure, standing: Standing) -> Next {
        self.parts.reporter.waiting(failure, patience(0));
        let (parts, spec) = (Arc::clone(&self.parts), Arc::clone(&self.spec));
        match self.unless_ordered(Place::Waiting(standing), until_available(&parts, &spec)).await {
            Ok(()) => {
                self.parts.reporter.wait_is_over();
                Next::Starting(standing)
            }
            Err(leave) => leave.next,
        }
    }

    async fn ready(&mut self, (run, opened): (Run, Opened)) -> Next {
        self.parts.handle.set_live(Some(run.live()));
        self.parts.reporter.ready(opened, run.pid(), run.facts()).await;
        // None while it is silent.
        let mut well_since = Some(Instant::now());
        loop {
            let heartbeat = self.spec.heartbeat;
            let wake = tokio::select! {
                biased;
                exit = run.ended() => Wake::Ended(exit),
                order = self.orders.recv() => Wake::Order(order),
                responsive = run.change_of_health(heartbeat, well_since.is_some()) => Wake::Responsive(responsive),
                () = minute_after(well_since), if self.crashes.is_loop() => Wake::Stable,
                daemons = run.until_cycle() => Wake::Cycle(daemons),
            };
            match wake {
                Wake::Ended(exit) => {
                    let well = well_since.map_or(Duration::ZERO, |since| since.elapsed());
                    return self.crashed(run, exit, well).await;
                }
                Wake::Order(order) => {
                    if let Some(leave) = self.obey(order, Place::Ready).await {
                        return self.stop(run, leave).await;
                    }
                }
                Wake::Responsive(responsive) => {
                    well_since = responsive.then(Instant::now);
                    self.parts.reporter.health(responsive, heartbeat);
                }
                Wake::Stable => {
                    self.crashes.reset();
                    self.parts.reporter.stable();
                }
                Wake::Cycle(daemons) => return self.in_cycle(run, &daemons).await,
            }
        }
    }

    /// Ends a server that leads back to this daemon, and keeps it off: it would be found there again.
    async fn in_cycle(&mut self, run: Run, daemons: &DaemonIds) -> Next {
        let leave = Leave { next: Next::Failed, grace: self.parts.graces.stop };
        let next = self.stop(run, leave).await;
        let failure = cycle(daemons);
        self.parts.reporter.failure(&failure, "is part of a cycle");
        self.give_up(failure, true).await;
        next
    }

    async fn crashed(&mut self, run: Run, exit: Option<Exit>, well: Duration) -> Next {
        let before = self.parts.handle.set_live(None);
        self.parts.reporter.leaving(run.facts());
        close_stateless(before, self.parts.graces.stop).await;
        let explanation = run.explanation().await;
        let stderr = run.clear().await;
        let success = exit.is_some_and(Exit::is_success);
        if success && self.spec.restart_policy != RestartPolicy::Always {
            self.parts.reporter.finished();
            return Next::Idle;
        }
        let failure = crashed(exit, stderr, explanation);
        self.parts.reporter.failure(&failure, "crashed");
        self.after_crash(failure, well).await
    }

    /// What the restart policy makes of a crash.
    async fn after_crash(&mut self, failure: Failure, well: Duration) -> Next {
        self.parts.reporter.crashed();
        match self.spec.restart_policy {
            RestartPolicy::Always | RestartPolicy::OnFailure => Next::BackingOff { failure, well },
            RestartPolicy::Never => {
                self.give_up(failure, false).await;
                Next::Failed
            }
        }
    }

    async fn backing_off(&mut self, failure: Failure, well: Duration) -> Next {
        let verdict = self.crashes.crashed(Instant::now(), well);
        self.parts.reporter.backing_off(failure, verdict);
        match self.unless_ordered(Place::BackingOff, sleep(verdict.pause)).await {
            Ok(()) => {
                self.parts.reporter.starting_again();
                Next::Starting(Standing::Proven)
            }
            Err(leave) => leave.next,
        }
    }

    /// Nothing runs and nothing is stored until the fence is lowered.
    async fn suspended(&mut self) -> Next {
        if let Some(failure) = self.parts.handle.means.fence.reason() {
            self.parts.reporter.suspended(failure);
        }
        loop {
            self.suspenders.clear();
            match self.orders.recv().await {
                Some(Order::Resume { beginning, failure }) => {
                    let Beginning { spec, proven, slots } = beginning;
                    self.take(spec, false);
                    self.slots = slots;
                    self.crashes.reset();
                    self.parts.reporter.resumed(failure);
                    return self.first_state(proven);
                }
                Some(Order::Suspend { done }) => self.suspenders.push(done),
                Some(Order::Configure { spec, forgive, ack }) => {
                    self.take(spec, forgive);
                    acknowledge(ack, ());
                }
                Some(Order::Restart { ack }) => acknowledge(ack, false),
                Some(Order::Remove) => return Next::Ended { remove: true },
                Some(Order::ShutDown) | None => return Next::Ended { remove: false },
            }
        }
    }

    fn ended(self, remove: bool) {
        self.parts.reporter.ended();
        if remove {
            self.parts.handle.log.remove_files();
        }
    }

    /// Does `work`, and meanwhile what is ordered, until an order leads elsewhere.
    async fn unless_ordered<T>(
        &mut self,
        place: Place,
        work: impl Future<Output = T>,
    ) -> Result<T, Leave> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                order = self.orders.recv() => if let Some(leave) = self.obey(order, place).await {
                    return Err(leave);
                },
            }
        }
    }

    /// Makes an order's effect visible and acknowledges it. What runs is left to the caller.
    async fn obey(&mut self, order: Option<Order>, place: Place) -> Option<Leave> {
        match order {
            Some(Order::Configure { spec, forgive, ack }) => {
                let change = self.take(spec, forgive);
                let leave = self.step(configured(place, change), place).await;
                acknowledge(ack, ());
                leave
            }
            Some(Order::Restart { ack }) => {
                let leave = self.step(restarted(place, self.spec.enabled), place).await;
                acknowledge(ack, leave.is_some());
                leave
            }
            Some(Order::Suspend { done }) => {
                self.suspenders.push(done);
                self.step(Step::Suspend, place).await
            }
            // It was never suspended, or has been resumed.
            Some(Order::Resume { .. }) => None,
            Some(Order::Remove) => self.step(Step::End { remove: true }, place).await,
            Some(Order::ShutDown) | None => self.step(Step::End { remove: false }, place).await,
        }
    }

    async fn step(&mut self, step: Step, place: Place) -> Option<Leave> {
        let Graces { stop, restart, shutdown } = self.parts.graces;
        let reporter = &self.parts.reporter;
        match step {
            Step::Stay => None,
            Step::Start(standing) => {
                self.crashes.reset();
                reporter.starting();
                self.slots = Some(Arc::clone(&self.parts.order_slots));
                Some(Leave { next: Next::Starting(standing), grace: restart })
            }
            Step::Stop => {
                if place.has_process() {
                    reporter.stopping();
                } else {
                    reporter.at_rest().await;
                }
                Some(Leave { next: Next::Idle, grace: stop })
            }
            Step::Suspend => {
                if place.has_process() {
                    reporter.stopping();
                }
                Some(Leave { next: Next::Suspended, grace: FENCE_GRACE })
            }
            Step::End { remove } => {
                if place.has_process() {
                    reporter.stopping();
                }
                let grace = if remove { stop } else { shutdown };
                Some(Leave { next: Next::Ended { remove }, grace })
            }
        }
    }

    /// Takes a configuration over.
    fn take(&mut self, spec: Arc<ServerSpec>, forgive: bool) -> Change {
        let change = Change {
            was_enabled: self.spec.enabled,
            enabled: spec.enabled,
            same: self.spec.runs_like(&spec),
            forgive,
        };
        self.parts.handle.configure(Arc::clone(&spec));
        self.parts.reporter.configured(Arc::clone(&spec));
        self.spec = spec;
        change
    }

    async fn give_up(&mut self, failure: Failure, disable: bool) {
        if !disable {
            return self.parts.reporter.gave_up(failure, None).await;
        }
        self.spec = Arc::new(ServerSpec { enabled: false, ..ServerSpec::clone(&self.spec) });
        self.parts.handle.spec.store(Arc::clone(&self.spec));
        self.parts.reporter.gave_up(failure, Some(Arc::clone(&self.spec))).await;
    }

    /// Stops what runs and goes where an order led.
    async fn stop(&self, run: Run, leave: Leave) -> Next {
        let before = self.parts.handle.set_live(None);
        tracing::info!(target: "MCP", server = %self.spec.name, pid = run.pid(), "stopping");
        self.parts.reporter.leaving(run.facts());
        let fence = &self.parts.handle.means.fence;
        let stopped = run.stop(leave.grace, fence.out_of_time());
        let (how, ()) = tokio::join!(stopped, close_stateless(before, leave.grace));
        self.parts.reporter.process_stopped(how, leave.grace);
        leave.next
    }
}

/// Whoever asked may have gone: then nobody waits for the acknowledgement.
fn acknowledge<T>(ack: oneshot::Sender<T>, answer: T) {
    ack.send(answer).ok();
}

/// A server that was launched.
struct Launch {
    run: Run,
    /// When it has to be ready.
    deadline: Instant,
    /// Its turn, which ends when this is dropped.
    _slot: Option<OwnedSemaphorePermit>,
}

/// Tries to launch before anything else: nearly always the image is here, and looking for it
/// first would cost every start.
async fn prepare_and_launch(
    parts: &DriverParts,
    spec: &ServerSpec,
    slots: Option<Arc<Semaphore>>,
) -> Result<Launch, Failure> {
    match launch(parts, spec, slots.clone()).await {
        Err(failure) if failure.kind == FailureKind::ImageMissing => {
            prepare(parts, spec).await?;
            launch(parts, spec, slots).await
        }
        launched => launched,
    }
}

/// Fetches what the server needs, for as long as that takes.
async fn prepare(parts: &DriverParts, spec: &ServerSpec) -> Result<(), Failure> {
    let begun = Instant::now();
    let told = AtomicBool::new(false);
    let tell = |message: &str| {
        let first = !told.swap(true, Ordering::Relaxed);
        parts.reporter.preparing(message, first);
    };
    let prepared = parts.launcher.prepare(spec, &tell).await;
    parts.reporter.prepared(begun.elapsed());
    prepared
}

/// Starts the process when its turn has come.
async fn launch(
    parts: &DriverParts,
    spec: &ServerSpec,
    slots: Option<Arc<Semaphore>>,
) -> Result<Launch, Failure> {
    let slot = match slots {
        Some(slots) => slots.acquire_owned().await.ok(),
        None => None,
    };
    let DriverParts { reporter, handle, .. } = parts;
    let log_position = handle.log.position();
    reporter.launching(spec);
    handle.memory.forgive();
    let launched = timeout(LAUNCH, parts.launcher.launch(handle.id, spec)).await;
    let launched = launched.map_err(|_| launched_too_slowly(LAUNCH))??;
    // Only now is it the server's turn: what an engine took for it is not held against it.
    let deadline = Instant::now() + spec.start_timeout();
    reporter.launched(launched.running.pid(), launched.running.facts());
    let config = handle.bridge_config(spec);
    let outlets = Outlets {
        config,
        log: &handle.log,
        log_position,
        noise: &handle.noise,
        notices: handle.notices.clone(),
        reach: handle.reach.clone(),
        tasks: &parts.tasks,
    };
    Ok(Launch { run: Run::begin(launched, outlets), deadline, _slot: slot })
}

/// Opens the conversation. The time in which packages are fetched is a phase of its own, like the
/// pull of an image.
async fn open(parts: &DriverParts, run: &mut Run, deadline: Instant) -> Result<Opened, NotReady> {
    let begun = Instant::now();
    let limit = deadline.saturating_duration_since(begun);
    let tell = |message: &str, first: bool| parts.reporter.preparing(message, first);
    let opened = open_in_time(run, None, limit, tell).await;
    parts.reporter.prepared(begun.elapsed());
    opened
}

/// Ends when there is what the server runs on.
async fn until_available(parts: &DriverParts, spec: &ServerSpec) {
    for attempt in 0.. {
        let pause = patience(attempt);
        parts.reporter.waiting_on(pause);
        sleep(pause).await;
        if parts.launcher.available(spec).await.is_ok() {
            return;
        }
    }
}

/// Ends when a server that is well since then is out of its crash loop.
async fn minute_after(well_since: Option<Instant>) {
    match well_since {
        Some(since) => sleep_until(since + STABLE).await,
        None => std::future::pending().await,
    }
}
