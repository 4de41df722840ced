//! Keeps in the store what the supervisor says must outlive the daemon, counts calls, and hands
//! them on to be traced.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use cofer_model::{ActivityEntry, Failure, ServerId, ServerName, Status};
use cofer_store::{Store, StoreError};
use cofer_supervisor::{CallObserver, CallTrace, Recorder};
use time::OffsetDateTime;

use crate::metrics::{Metrics, ServerMetrics};
use crate::traces::SpanQueue;

/// The supervisor's memory.
pub(crate) struct StoreRecorder {
    store: Arc<dyn Store>,
}

impl StoreRecorder {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }
}

/// A store that is away does not stop a server: what is true is still told, and at the next
/// start the server is tried again.
fn note(result: Result<(), StoreError>, id: ServerId) {
    match result {
        Ok(()) | Err(StoreError::NotFound { .. }) => {}
        Err(error) => {
            tracing::error!(target: "MCP", %id, %error, "a server's state could not be stored");
        }
    }
}

#[async_trait]
impl Recorder for StoreRecorder {
    async fn ready(&self, id: ServerId) {
        note(self.store.record_status(id, Status::Ready).await, id);
    }

    async fn stopped(&self, id: ServerId) {
        note(self.store.record_status(id, Status::Stopped).await, id);
    }

    async fn failed(&self, id: ServerId, failure: &Failure, disable: bool) {
        let now = OffsetDateTime::now_utc();
        note(self.store.record_failure(id, failure, disable, now).await, id);
    }
}

/// Counts calls by server, and hands them on where somebody traces them.
pub(crate) struct CallCounter {
    metrics: Arc<Metrics>,
    servers: RwLock<HashMap<Arc<str>, ServerMetrics>>,
    spans: Option<SpanQueue>,
}

impl CallCounter {
    pub(crate) fn new(metrics: Arc<Metrics>, spans: Option<SpanQueue>) -> Self {
        Self { metrics, servers: RwLock::default(), spans }
    }

    /// Forgets a server that is removed or renamed.
    pub(crate) fn forget(&self, name: &ServerName) {
        self.servers.write().unwrap_or_else(PoisonError::into_inner).remove(name.as_str());
        self.metrics.remove(name);
    }

    fn count(&self, entry: &ActivityEntry) {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&entry.server) {
            return count(server, entry);
        }
        drop(servers);
        self.add(entry);
    }

    fn add(&self, entry: &ActivityEntry) {
        let Ok(name) = ServerName::new(&entry.server) else {
            return;
        };
        let server = self.metrics.server(&name);
        count(&server, entry);
        self.servers
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(Arc::clone(&entry.server), server);
    }
}

impl CallObserver for CallCounter {
    fn wants_traces(&self) -> bool {
        self.spans.is_some()
    }

    fn finished(&self, entry: &Arc<ActivityEntry>, trace: Option<Box<CallTrace>>) {
        self.count(entry);
        if let (Some(spans), Some(trace)) = (&self.spans, trace) {
            spans.push(entry, trace);
        }
    }
}

fn count(server: &ServerMetrics, entry: &ActivityEntry) {
    server.call_finished(entry.outcome, Duration::from_secs_f64(entry.duration_ms / 1000.0));
}
