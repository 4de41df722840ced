//! What every handler of the API can reach.

use std::sync::Arc;

use axum::extract::FromRef;
use cofer_store::Store;
use cofer_supervisor::{ContainerLauncher, Memory, Supervisor};
use tokio_util::sync::CancellationToken;

use crate::api::extract::BodyLimit;
use crate::chat::Chat;
use crate::gateway::Gateway;
use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::traces::Traces;
use crate::validate::Surroundings;

/// A cheap clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) registry: Registry,
    pub(crate) gateway: Gateway,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) chat: Arc<Chat>,
    pub(crate) containers: Arc<ContainerLauncher>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Traces,
    pub(crate) surroundings: Surroundings,
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) max_message: usize,
    pub(crate) memory: Arc<Memory>,
    /// Ends streams that would otherwise outlive the daemon.
    pub(crate) closing: CancellationToken,
}

impl App {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        self.registry.supervisor()
    }
}

impl std::ops::Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// A body is a message with a small envelope around it.
const ENVELOPE: usize = 64 * 1024;

impl FromRef<App> for BodyLimit {
    fn from_ref(app: &App) -> Self {
        let memory = Arc::clone(app.memory.clients());
        Self { cap: app.max_message + ENVELOPE, memory }
    }
}
