//! Tells what becomes of a server, everywhere it is to be told: in the store, in its snapshot
//! and the events, in its own log and in the daemon's.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofer_model::{Failure, HeartbeatSpec, Redactor, ServerId, ServerName, ServerSpec, Status};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::log::ServerLog;
use super::restart::Verdict;
use super::run::Opened;
use super::snapshot::Publisher;
use super::stop::Stopped;
use crate::launch::Facts;

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

/// See the module.
pub(crate) struct Reporter {
    pub(crate) id: ServerId,
    pub(crate) publisher: Publisher,
    pub(crate) log: Arc<ServerLog>,
    pub(crate) recorder: Arc<dyn Recorder>,
}

impl Reporter {
    pub(super) fn status(&self) -> Status {
        self.publisher.current().status
    }

    /// The server has another configuration.
    pub(super) fn configured(&self, spec: Arc<ServerSpec>) {
        // What runs now may still tell the secrets that it was given.
        let old = Arc::clone(&self.publisher.current().spec);
        self.log.set_redactor(Redactor::of_specs([&*old, &*spec]));
        self.publisher.amend(|snapshot| snapshot.spec = spec);
    }

    /// A person had it started or started anew: what was, is forgotten.
    pub(super) fn starting(&self) {
        let status = match self.status() {
            Status::Stopped | Status::Starting | Status::Stopping | Status::Error => {
                Status::Starting
            }
            Status::Ready | Status::Unresponsive | Status::Restarting => Status::Restarting,
        };
        self.publisher.status(status, |snapshot| {
            snapshot.next_restart_at = None;
            snapshot.notice = None;
            snapshot.failure = None;
            snapshot.restart_count = 0;
            snapshot.health_reasons.clear();
        });
    }

    /// It is started again after a crash.
    pub(super) fn starting_again(&self) {
        self.publisher.amend(|snapshot| {
            snapshot.next_restart_at = None;
            snapshot.notice = None;
            snapshot.restart_count += 1;
        });
    }

    /// What it needs is being fetched: told to those who watch, and at its beginning in the logs.
    pub(super) fn preparing(&self, message: &str, first: bool) {
        if first {
            tracing::info!(target: "START", server = %self.name(), "{message}");
            self.log.start_step(message);
        }
        self.publisher.preparing(message);
    }

    /// What it needs is there.
    pub(super) fn prepared(&self, took: Duration) {
        if self.publisher.current().preparing.is_some() {
            let told = format!("prepared in {:.1} s", took.as_secs_f32());
            tracing::info!(target: "START", server = %self.name(), "{told}");
            self.log.start_step(told);
            self.publisher.amend(|snapshot| snapshot.preparing = None);
        }
    }

    pub(super) fn launching(&self, spec: &ServerSpec) {
        let what = [&spec.command, &spec.image, &spec.url].into_iter().flatten().next();
        let what = what.map(String::as_str).unwrap_or_default();
        tracing::info!(target: "START", server = %spec.name, what, "starting");
        self.log.start_step("starting");
    }

    pub(super) fn launched(&self, pid: Option<u32>, facts: Facts) {
        let container = facts.container_id.as_deref();
        tracing::info!(target: "START", server = %self.name(), pid, container, "started");
        self.publisher.amend(|snapshot| {
            snapshot.pid = pid;
            snapshot.facts = Some(Arc::new(facts));
            snapshot.started_at = Some(OffsetDateTime::now_utc());
            snapshot.started = Some(Instant::now());
        });
    }

    pub(super) async fn ready(&self, opened: Opened, pid: Option<u32>, facts: Facts) {
        self.recorder.ready(self.id).await;
        let Opened { peer, mcp_endpoint, .. } = opened;
        let protocol = match &peer {
            Some(peer) => format!("protocol {}", peer.protocol_version),
            None => "its port is open, and no MCP was found there".to_owned(),
        };
        let told = match pid {
            Some(pid) => format!("ready: {protocol}, pid {pid}"),
            None => format!("ready: {protocol}"),
        };
        self.log.lifecycle(&told);
        tracing::info!(target: "MCP", server = %self.name(), "{told}");
        self.publisher.status(Status::Ready, |snapshot| {
            snapshot.peer = peer.map(Arc::new);
            snapshot.mcp_endpoint = mcp_endpoint.or_else(|| snapshot.spec.url.clone());
            snapshot.facts = Some(Arc::new(facts));
            snapshot.failure = None;
        });
    }

    /// It fell silent, or speaks again.
    pub(super) fn health(&self, responsive: bool, heartbeat: HeartbeatSpec) {
        let silence = format!("it did not answer a heartbeat within {} ms", heartbeat.timeout_ms);
        if responsive {
            tracing::info!(target: "MCP", server = %self.name(), "answers again");
            self.log.lifecycle("answers again");
            self.publisher.status(Status::Ready, |snapshot| {
                snapshot.health_reasons.retain(|reason| *reason != silence);
            });
        } else {
            tracing::warn!(target: "MCP", server = %self.name(), "unresponsive: {silence}; it is not restarted");
            self.log.lifecycle(format!("unresponsive: {silence}"));
            self.publisher
                .status(Status::Unresponsive, |snapshot| snapshot.health_reasons.push(silence));
        }
    }

    /// It ran well for long enough to be out of its crash loop.
    pub(super) fn stable(&self) {
        self.publisher.amend(|snapshot| snapshot.health_reasons.clear());
    }

    /// It is about to be gone: what was learned of its image stays.
    pub(super) fn leaving(&self, facts: Facts) {
        if facts.image_digest.is_some() {
            self.publisher.amend(|snapshot| snapshot.image_digest = facts.image_digest);
        }
    }

    /// It is being stopped on somebody's order.
    pub(super) fn stopping(&self) {
        self.publisher.status(Status::Stopping, |_| {});
    }

    /// Its process was stopped on somebody's order.
    pub(super) fn process_stopped(&self, how: Stopped, grace: Duration) {
        let server = self.name();
        let notice = match how {
            Stopped::Gently => {
                tracing::info!(target: "MCP", %server, "stopped");
                self.log.lifecycle("stopped");
                None
            }
            Stopped::ByForce => {
                let seconds = grace.as_secs_f32();
                let text = format!("did not stop within {seconds} s of SIGTERM and was killed");
                tracing::warn!(target: "MCP", %server, "{text}");
                self.log.lifecycle(&text);
                Some(text)
            }
        };
        self.publisher.amend(|snapshot| {
            snapshot.without_process();
            snapshot.notice = notice;
        });
    }

    /// It ended by itself, and is not to be started again.
    pub(super) fn finished(&self) {
        let text = "exited with code 0; its restart policy leaves it stopped";
        tracing::info!(target: "MCP", server = %self.name(), "{text}");
        self.log.lifecycle(text);
    }

    /// It does not run, and nothing more is to come.
    pub(super) async fn at_rest(&self) {
        if self.status() == Status::Stopped {
            return;
        }
        self.recorder.stopped(self.id).await;
        self.publisher.status(Status::Stopped, |snapshot| {
            snapshot.without_process();
            snapshot.failure = None;
            snapshot.next_restart_at = None;
            snapshot.health_reasons.clear();
        });
    }

    /// It may not run. That is not stored: the store belongs to another daemon now, or to none.
    pub(super) fn suspended(&self, failure: Failure) {
        self.log.lifecycle(format!("suspended: {}", failure.message));
        let status =
            if self.publisher.current().spec.enabled { Status::Error } else { self.status() };
        self.publisher.status(status, |snapshot| {
            snapshot.without_process();
            snapshot.next_restart_at = None;
            if status == Status::Error {
                snapshot.failure = Some(failure);
            }
        });
    }

    /// It may run again, as the store says now.
    pub(super) fn resumed(&self, failure: Option<Failure>) {
        self.log.lifecycle("resumed");
        let enabled = self.publisher.current().spec.enabled;
        let status = match &failure {
            _ if enabled => Status::Starting,
            Some(_) => Status::Error,
            None => Status::Stopped,
        };
        self.publisher.status(status, |snapshot| {
            snapshot.failure = failure.filter(|_| !enabled);
            snapshot.notice = None;
            snapshot.restart_count = 0;
            snapshot.health_reasons.clear();
        });
    }

    /// Its driver ends. That is not stored: the next daemon runs what this one ran.
    pub(super) fn ended(&self) {
        if self.status() != Status::Error {
            self.publisher.status(Status::Stopped, |snapshot| {
                snapshot.without_process();
                snapshot.next_restart_at = None;
            });
        }
    }

    /// What it runs on is not there. That is not stored: the next daemon looks for itself.
    pub(super) fn waiting(&self, failure: Failure, pause: Duration) {
        self.publisher.status(Status::Error, |snapshot| {
            snapshot.without_process();
            snapshot.failure = Some(failure);
            snapshot.next_restart_at = Some(OffsetDateTime::now_utc() + pause);
        });
    }

    /// What it runs on is still not there.
    pub(super) fn waiting_on(&self, pause: Duration) {
        self.publisher.amend(|snapshot| {
            snapshot.next_restart_at = Some(OffsetDateTime::now_utc() + pause);
        });
    }

    /// What it runs on is back.
    pub(super) fn wait_is_over(&self) {
        tracing::info!(target: "MCP", server = %self.name(), "what it runs on is back");
        self.log.lifecycle("what it runs on is back");
        self.publisher.status(Status::Starting, |snapshot| {
            snapshot.failure = None;
            snapshot.next_restart_at = None;
        });
    }

    /// It did not start, or crashed: the words for the two logs.
    pub(super) fn failure(&self, failure: &Failure, what: &str) {
        self.log.lifecycle(format!("{what}: {}", failure.message));
        let stderr = failure.stderr.as_deref().unwrap_or_default();
        let (exit_code, signal) = (failure.exit_code, failure.signal);
        tracing::error!(target: "MCP", server = %self.name(), ?exit_code, ?signal, stderr, "{what}: {}", failure.message);
    }

    /// It crashed, whatever comes of that.
    pub(super) fn crashed(&self) {
        self.publisher.amend(|snapshot| {
            snapshot.without_process();
            snapshot.last_crash_at = Some(OffsetDateTime::now_utc());
        });
    }

    /// It crashed and will be started again.
    pub(super) fn backing_off(&self, failure: Failure, verdict: Verdict) {
        let seconds = verdict.pause.as_secs();
        let reason = format!("it crashes again and again; a restart waits for {seconds} s");
        if verdict.looping {
            self.log.lifecycle(&reason);
            tracing::warn!(target: "MCP", server = %self.name(), pause = ?verdict.pause, "crash loop: the restart waits");
        }
        self.publisher.status(Status::Restarting, |snapshot| {
            snapshot.without_process();
            snapshot.failure = Some(failure);
            snapshot.next_restart_at = Some(OffsetDateTime::now_utc() + verdict.pause);
            snapshot.health_reasons = if verdict.looping { vec![reason] } else { Vec::new() };
        });
    }

    /// It is in error: one stored change, one event. `switched_off` is its configuration
    /// where it is switched off with that.
    pub(super) async fn gave_up(&self, failure: Failure, switched_off: Option<Arc<ServerSpec>>) {
        self.recorder.failed(self.id, &failure, switched_off.is_some()).await;
        self.publisher.status(Status::Error, |snapshot| {
            snapshot.without_process();
            snapshot.failure = Some(failure);
            snapshot.next_restart_at = None;
            if let Some(spec) = switched_off {
                snapshot.spec = spec;
            }
        });
    }

    fn name(&self) -> ServerName {
        self.publisher.current().spec.name.clone()
    }
}
