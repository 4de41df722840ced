//! The driver's neighbours: a launcher of puppets, and a store that only takes notes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofer_model::{ActivityEntry, EventKind, Failure, FailureKind, ServerId, ServerSpec, Status};
use cofer_runtime::{ResolveError, StartError, Streams};
use tokio::io::duplex;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::puppet::{Manners, Pipes, Puppet, PuppetWorkload, Script};
use crate::calls::CallObserver;
use crate::events::EventBus;
use crate::launch::{Launched, Launcher, Tell};
use crate::server::Recorder;
use crate::server::failure::not_launched;
use crate::trace::CallTrace;

/// Launches puppets, and notices when one server has two at a time.
#[derive(Default)]
pub(super) struct FakeLauncher {
    manners: Mutex<HashMap<ServerId, Manners>>,
    runs: Mutex<Vec<Arc<Puppet>>>,
    overlaps: AtomicU32,
    living: TaskTracker,
    /// Whether what servers run on is away.
    pub(super) engine_is_away: AtomicBool,
    /// How often somebody looked whether it is back.
    pub(super) looks: AtomicU32,
    /// Whether the image was fetched.
    pub(super) image_is_here: AtomicBool,
}

fn failure(kind: FailureKind) -> Failure {
    let (message, hint) = ("it cannot be".to_owned(), "make it possible".to_owned());
    Failure { kind, message, hint, exit_code: None, signal: None, stderr: None }
}

/// How long an image takes to come: longer than any start may take.
pub(super) const FETCHING: Duration = Duration::from_secs(3600);

impl FakeLauncher {
    /// How a server behaves when it is next launched, and later.
    pub(super) fn teach(&self, id: ServerId, manners: Manners) {
        self.manners.lock().unwrap().insert(id, manners);
    }

    /// All runs of a server so far.
    pub(super) fn runs(&self, id: ServerId) -> Vec<Arc<Puppet>> {
        self.runs.lock().unwrap().iter().filter(|run| run.id == id).cloned().collect()
    }

    /// Only containers need the engine.
    fn engine(&self, spec: &ServerSpec) -> Result<(), Failure> {
        if spec.image.is_none() || !self.engine_is_away.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(failure(FailureKind::EngineUnavailable))
    }

    /// How many runs there were, of all servers.
    pub(super) fn launches(&self) -> usize {
        self.runs.lock().unwrap().len()
    }

    /// How often a server was launched while an earlier run of it was still there.
    pub(super) fn overlaps(&self) -> u32 {
        self.overlaps.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Launcher for FakeLauncher {
    async fn available(&self, spec: &ServerSpec) -> Result<(), Failure> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.engine(spec)
    }

    async fn prepare(&self, spec: &ServerSpec, tell: Tell<'_>) -> Result<(), Failure> {
        self.engine(spec)?;
        tell("fetching the image");
        sleep(FETCHING / 2).await;
        tell("fetching the image: half of it");
        sleep(FETCHING / 2).await;
        self.image_is_here.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn launch(&self, id: ServerId, spec: &ServerSpec) -> Result<Launched, Failure> {
        self.engine(spec)?;
        if spec.image.is_some() && !self.image_is_here.load(Ordering::Relaxed) {
            return Err(failure(FailureKind::ImageMissing));
        }
        let manners = self.manners.lock().unwrap()[&id];
        match manners.script {
            Script::IsMissing => {
                let program = spec.command.clone().unwrap();
                let searched = Vec::new();
                let missing = ResolveError::NotFound { program, searched };
                return Err(not_launched(&StartError::CommandNotFound(missing)));
            }
            Script::IsNeverLaunched => std::future::pending().await,
            Script::Serves | Script::Exits { .. } | Script::LeavesChild | Script::IsMute => {}
        }
        if self.runs(id).iter().any(|run| run.is_there()) {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        let (stdin, stdin_end) = duplex(64 * 1024);
        let (stdout, stdout_end) = duplex(64 * 1024);
        let (stderr, stderr_end) = duplex(64 * 1024);
        let pipes = Pipes { stdin: stdin_end, stdout: stdout_end, stderr: stderr_end };
        let pid = 1000 + u32::try_from(self.launches()).unwrap();
        let (puppet, living) = Puppet::new(id, spec.clone(), pid, manners, pipes);
        self.living.spawn(living);
        self.runs.lock().unwrap().push(Arc::clone(&puppet));
        let streams =
            Streams { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) };
        Ok(Launched { running: Box::new(PuppetWorkload(puppet)), streams, door: None })
    }
}

/// What a recorder was told, and which status had been told of by then.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    Ready { told: Status },
    Stopped { told: Status },
    Failed { told: Status, disable: bool, failure: Failure },
}

/// How long the store takes for a change.
pub(super) const STORING: Duration = Duration::from_millis(1);

/// Notes what it is told.
pub(super) struct FakeRecorder {
    pub(super) events: EventBus,
    notes: Mutex<Vec<(ServerId, Note)>>,
}

impl FakeRecorder {
    pub(super) fn new(events: EventBus) -> Self {
        Self { events, notes: Mutex::default() }
    }

    /// What it was told of a server.
    pub(super) fn notes(&self, id: ServerId) -> Vec<Note> {
        let notes = self.notes.lock().unwrap();
        notes.iter().filter(|(of, _)| *of == id).map(|(_, note)| note.clone()).collect()
    }

    async fn note(&self, id: ServerId, note: impl FnOnce(Status) -> Note) {
        sleep(STORING).await;
        let told = statuses(&self.events, id).last().copied().unwrap_or(Status::Stopped);
        self.notes.lock().unwrap().push((id, note(told)));
    }
}

/// The statuses that the events told of a server, in order.
pub(super) fn statuses(events: &EventBus, id: ServerId) -> Vec<Status> {
    let events = events.subscribe(Some(0)).backlog;
    let of_server = events.iter().filter_map(|event| match &event.kind {
        EventKind::Status(change) if change.id == id => Some(change.status),
        _ => None,
    });
    of_server.collect()
}

#[async_trait]
impl Recorder for FakeRecorder {
    async fn ready(&self, id: ServerId) {
        self.note(id, |told| Note::Ready { told }).await;
    }

    async fn stopped(&self, id: ServerId) {
        self.note(id, |told| Note::Stopped { told }).await;
    }

    async fn failed(&self, id: ServerId, failure: &Failure, disable: bool) {
        self.note(id, |told| Note::Failed { told, disable, failure: failure.clone() }).await;
    }
}

/// Notes the calls it hears of.
#[derive(Default)]
pub(super) struct FakeObserver {
    pub(super) calls: Mutex<Vec<ActivityEntry>>,
}

impl CallObserver for FakeObserver {
    fn finished(&self, entry: &Arc<ActivityEntry>, _: Option<Box<CallTrace>>) {
        self.calls.lock().unwrap().push((**entry).clone());
    }
}
