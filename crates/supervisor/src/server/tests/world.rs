//! A supervisor among fakes, and one server in it.

use std::sync::Arc;
use std::time::Duration;

use cofer_model::{Failure, ServerId, ServerSpec, Status, parse_patch, parse_registration};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use uuid::Uuid;

use super::fakes::{FakeLauncher, FakeObserver, FakeRecorder, Note, statuses};
use super::puppet::{Manners, Puppet, Script};
use crate::events::EventBus;
use crate::memory::Memory;
use crate::server::{ServerHandle, Snapshot};
use crate::supervisor::{Supervisor, SupervisorConfig};

/// On paused time this passes at once, and only where something never happens.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The longest message that servers may send.
/// The id of the daemon under test.
pub(super) const DAEMON: Uuid = Uuid::from_u128(7);

pub(super) const LONGEST_MESSAGE: usize = 1 << 20;

pub(super) struct World {
    pub(super) supervisor: Supervisor,
    pub(super) launcher: Arc<FakeLauncher>,
    pub(super) recorder: Arc<FakeRecorder>,
    pub(super) observer: Arc<FakeObserver>,
    logs: TempDir,
}

impl World {
    pub(super) fn new() -> Self {
        Self::starting_at_most(16)
    }

    /// A world in which so many servers start at once when the daemon does.
    pub(super) fn starting_at_most(start_parallelism: usize) -> Self {
        let logs = tempfile::tempdir().unwrap();
        let config = SupervisorConfig {
            log_dir: logs.path().to_owned(),
            max_message: LONGEST_MESSAGE,
            max_in_flight: cofer_model::MaxInFlight::default(),
            start_parallelism,
            daemon_id: DAEMON,
            memory: Memory::new(1 << 30, LONGEST_MESSAGE),
        };
        let events = EventBus::new(0);
        let launcher = Arc::new(FakeLauncher::default());
        let recorder = Arc::new(FakeRecorder::new(events.clone()));
        let observer = Arc::new(FakeObserver::default());
        let supervisor = Supervisor::new(
            config,
            Arc::clone(&launcher) as _,
            Arc::clone(&recorder) as _,
            Arc::clone(&observer) as _,
            events,
        );
        Self { supervisor, launcher, recorder, observer, logs }
    }

    /// Adds a server that is switched on.
    pub(super) fn add(&self, script: Script) -> Server<'_> {
        self.add_with(Manners::good(script), json!({}))
    }

    /// Adds a server with manners, and with more in its registration.
    pub(super) fn add_with(&self, manners: Manners, more: Value) -> Server<'_> {
        let id = ServerId(Uuid::new_v4());
        self.launcher.teach(id, manners);
        let handle = self.supervisor.add(id, spec(id, more));
        Server { world: self, handle }
    }

    /// Adds a server that an earlier daemon knew.
    pub(super) fn restore(
        &self,
        script: Script,
        more: Value,
        failure: Option<Failure>,
        proven: bool,
    ) -> Server<'_> {
        let id = ServerId(Uuid::new_v4());
        self.launcher.teach(id, Manners::good(script));
        let handle = self.supervisor.restore(id, spec(id, more), failure, proven);
        Server { world: self, handle }
    }

    /// Adds a server and waits until it is ready.
    pub(super) async fn ready(&self) -> Server<'_> {
        let server = self.add(Script::Serves);
        server.until(Status::Ready).await;
        server
    }

    /// How many log files there are.
    pub(super) fn log_files(&self) -> usize {
        std::fs::read_dir(self.logs.path()).unwrap().count()
    }
}

fn spec(id: ServerId, more: Value) -> ServerSpec {
    // Heartbeats would be in the way wherever time passes.
    let heartbeat = json!({"interval_ms": 0});
    let name = format!("server-{id}");
    let least =
        parse_registration(json!({"name": name, "command": "puppet", "heartbeat": heartbeat}));
    parse_patch(&least.unwrap(), more).unwrap()
}

pub(super) struct Server<'a> {
    world: &'a World,
    pub(super) handle: ServerHandle,
}

impl Server<'_> {
    pub(super) fn id(&self) -> ServerId {
        self.handle.id()
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.handle.snapshot()
    }

    pub(super) fn status(&self) -> Status {
        self.snapshot().status
    }

    /// Waits for a status.
    pub(super) async fn until(&self, status: Status) -> Arc<Snapshot> {
        self.until_that(&format!("is {status}"), |snapshot| snapshot.status == status).await
    }

    /// Waits until something is true of it.
    pub(super) async fn until_that(
        &self,
        what: &str,
        is_true: impl Fn(&Snapshot) -> bool,
    ) -> Arc<Snapshot> {
        let mut snapshot = self.handle.parts.snapshot.clone();
        let seen = timeout(FOREVER, snapshot.wait_for(|snapshot| is_true(snapshot))).await;
        let seen = seen.map(|seen| seen.map(|snapshot| Arc::clone(&snapshot)));
        match seen {
            Ok(Ok(seen)) => seen,
            _ => panic!("it never {what}: {:?}", self.snapshot()),
        }
    }

    /// Crashes it once it is ready, and waits until that was noticed.
    pub(super) async fn crash(&self) -> Arc<Snapshot> {
        self.until(Status::Ready).await;
        self.run().exit(1);
        self.until(Status::Restarting).await
    }

    /// How it behaves when it is next launched.
    pub(super) fn teach(&self, manners: Manners) {
        self.world.launcher.teach(self.id(), manners);
    }

    /// Its runs so far.
    pub(super) fn runs(&self) -> Vec<Arc<Puppet>> {
        self.world.launcher.runs(self.id())
    }

    /// Its present run, or its last one.
    pub(super) fn run(&self) -> Arc<Puppet> {
        self.runs().pop().unwrap()
    }

    /// Whether nothing of it is left.
    pub(super) fn has_gone(&self) -> bool {
        self.runs().iter().all(|run| !run.is_there())
    }

    /// Changes what `patch` names, as an edit does.
    pub(super) async fn patch(&self, patch: Value) {
        self.configure(patch, false).await;
    }

    /// Uses the switch.
    pub(super) async fn switch(&self, on: bool) {
        self.configure(json!({"enabled": on}), true).await;
    }

    async fn configure(&self, patch: Value, forgive: bool) {
        let spec = parse_patch(&self.handle.spec(), patch).unwrap();
        self.world.supervisor.configure(self.id(), spec, forgive).await;
    }

    /// What the events told of it.
    pub(super) fn told(&self) -> Vec<Status> {
        statuses(self.world.supervisor.events(), self.id())
    }

    /// What was stored of it.
    pub(super) fn stored(&self) -> Vec<Note> {
        self.world.recorder.notes(self.id())
    }

    /// Its log as one text.
    pub(super) fn log(&self) -> String {
        let lines: Vec<_> =
            self.handle.log().tail(1000).iter().map(|entry| entry.line.clone()).collect();
        lines.join("\n")
    }
}
