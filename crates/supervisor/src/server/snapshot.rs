//! What is true of a server now, as everybody but its driver sees it.

use std::sync::Arc;
use std::time::Duration;

use cofer_model::{
    EventKind, Failure, PeerInfo, Preparing, ProcessStatus, ServerId, ServerSpec, Status,
    StatusChange,
};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::events::EventBus;
use crate::launch::Facts;

/// One moment of a server's life.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The server.
    pub id: ServerId,
    /// The configuration it runs with, or would run with.
    pub spec: Arc<ServerSpec>,
    /// Its state.
    pub status: Status,
    /// The event that told of this state.
    pub generation: u64,
    /// Why it is in `error`, or why it last failed while it is being restarted.
    pub failure: Option<Failure>,
    /// What is being fetched for it before it can start.
    pub preparing: Option<String>,
    /// Its process, while it has one.
    pub pid: Option<u32>,
    /// What its runtime told of it, while it has a process.
    pub facts: Option<Arc<Facts>>,
    /// The digest of the image that it last ran.
    pub image_digest: Option<String>,
    /// Where it speaks MCP over HTTP, where it does.
    pub mcp_endpoint: Option<String>,
    /// When that process started.
    pub started_at: Option<OffsetDateTime>,
    /// The same moment on the clock that nobody sets.
    pub(crate) started: Option<Instant>,
    /// How often it was started again after a crash, since a person last started it.
    pub restart_count: u32,
    /// When it last crashed.
    pub last_crash_at: Option<OffsetDateTime>,
    /// When it is to be started next.
    pub next_restart_at: Option<OffsetDateTime>,
    /// Why somebody should look at it.
    pub health_reasons: Vec<String>,
    /// Who it said it is.
    pub peer: Option<Arc<PeerInfo>>,
    /// What a person should know of its last stop.
    pub notice: Option<String>,
}

impl Snapshot {
    pub(crate) fn new(id: ServerId, spec: Arc<ServerSpec>) -> Self {
        Self {
            id,
            spec,
            status: Status::Stopped,
            generation: 0,
            failure: None,
            preparing: None,
            pid: None,
            facts: None,
            image_digest: None,
            mcp_endpoint: None,
            started_at: None,
            started: None,
            restart_count: 0,
            last_crash_at: None,
            next_restart_at: None,
            health_reasons: Vec::new(),
            peer: None,
            notice: None,
        }
    }

    /// Whether something of it runs.
    pub fn process_status(&self) -> ProcessStatus {
        match self.status {
            Status::Restarting => ProcessStatus::Restarting,
            _ if self.started.is_some() => ProcessStatus::Running,
            _ => ProcessStatus::Stopped,
        }
    }

    /// How long its process has been running, also when the wall clock was set meanwhile.
    pub fn uptime(&self) -> Option<Duration> {
        self.started.map(|started| started.elapsed())
    }

    /// Forgets what is true only while there is a process.
    pub(crate) fn without_process(&mut self) {
        self.preparing = None;
        self.pid = None;
        self.facts = None;
        self.mcp_endpoint = None;
        self.started_at = None;
        self.started = None;
        self.peer = None;
    }
}

/// The driver's way to tell what is true. Each change of status is one event.
#[derive(Debug)]
pub(crate) struct Publisher {
    snapshot: watch::Sender<Arc<Snapshot>>,
    events: EventBus,
}

impl Publisher {
    pub(crate) fn new(first: Snapshot, events: EventBus) -> Self {
        Self { snapshot: watch::Sender::new(Arc::new(first)), events }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    pub(crate) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Changes what is known without a change of status.
    pub(crate) fn amend(&self, edit: impl FnOnce(&mut Snapshot)) {
        let mut next = Snapshot::clone(&self.current());
        edit(&mut next);
        self.snapshot.send_replace(Arc::new(next));
    }

    /// Tells how far the preparation is.
    pub(crate) fn preparing(&self, message: &str) {
        self.amend(|snapshot| snapshot.preparing = Some(message.to_owned()));
        let (id, name) = {
            let current = self.current();
            (current.id, current.spec.name.to_string())
        };
        self.events.publish(|generation| {
            let (message, at) = (message.to_owned(), OffsetDateTime::now_utc());
            EventKind::Preparing(Preparing { id, name, message, generation, at })
        });
    }

    /// Moves to `status`; the event goes out after the snapshot, so that whoever hears it
    /// finds at least that state.
    pub(crate) fn status(&self, status: Status, edit: impl FnOnce(&mut Snapshot)) {
        let mut next = Snapshot::clone(&self.current());
        let previous = next.status;
        edit(&mut next);
        next.status = status;
        if previous == status {
            self.snapshot.send_replace(Arc::new(next));
            return;
        }
        self.events.publish(|generation| {
            next.generation = generation;
            let change = StatusChange {
                id: next.id,
                name: next.spec.name.to_string(),
                status,
                previous_status: previous,
                generation,
                at: OffsetDateTime::now_utc(),
                error: next.failure.clone().filter(|_| status == Status::Error),
            };
            self.snapshot.send_replace(Arc::new(next));
            EventKind::Status(change)
        });
    }
}
