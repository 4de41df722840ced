//! The server that does the work: the process that all clients share, its connection in the
//! stateless protocol, or one client's own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::{Caller, Era};
use cofer_model::{CallSource, ErrorKind, PeerInfo, ServerId};
use cofer_supervisor::{Asking, Notice, PrivateServer, ServerHandle, StatelessServer};
use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, broadcast};

use super::asker::Asker;
use super::rpc::{Answer, Fault};

/// How long it takes at most until it is known who a server is that answers.
const A_MOMENT: Duration = Duration::from_secs(5);

/// See the module. A cheap clone.
#[derive(Clone)]
pub(super) struct Upstream {
    handle: ServerHandle,
    own: Option<Arc<Own>>,
    /// Its connection for clients of 2026-07-28, beside the one that `initialize` opened.
    stateless: Option<StatelessServer>,
}

/// A private process and its place among the limited number of them. Fields drop in order: the
/// process is ended before its place is free.
struct Own {
    server: PrivateServer,
    _slot: OwnedSemaphorePermit,
}

impl std::ops::Deref for Own {
    type Target = PrivateServer;

    fn deref(&self) -> &PrivateServer {
        &self.server
    }
}

impl Upstream {
    pub(super) fn shared(handle: ServerHandle) -> Self {
        Self { handle, own: None, stateless: None }
    }

    pub(super) fn own(
        handle: ServerHandle,
        server: PrivateServer,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        Self { handle, own: Some(Arc::new(Own { server, _slot: slot })), stateless: None }
    }

    /// The same server over its connection in the stateless protocol; none if it has no second one.
    pub(super) async fn stateless(&self) -> Option<Self> {
        if self.own.is_some() {
            return None;
        }
        let stateless = self.handle.stateless().await?;
        Some(Self { handle: self.handle.clone(), own: None, stateless: Some(stateless) })
    }

    pub(super) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    pub(super) fn handle(&self) -> &ServerHandle {
        &self.handle
    }

    pub(super) fn id(&self) -> ServerId {
        self.handle.id()
    }

    pub(super) fn name(&self) -> String {
        self.handle.spec().name.to_string()
    }

    pub(super) fn peer(&self) -> Option<Arc<PeerInfo>> {
        match (&self.own, &self.stateless) {
            (Some(own), _) => own.peer().cloned().map(Arc::new),
            (None, Some(stateless)) => Some(Arc::clone(stateless.peer())),
            (None, None) => self.handle.peer(),
        }
    }

    /// Who it said it is. That is known a moment after the first call gets through.
    pub(super) async fn peer_when_known(&self) -> Option<Arc<PeerInfo>> {
        match self.peer() {
            Some(peer) => Some(peer),
            None => self.handle.settled(A_MOMENT).await.peer.clone(),
        }
    }

    /// Whether it still runs, where it is one client's own.
    pub(super) fn is_alive(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.ended().now_or_never().is_none())
    }

    /// What it answered to `initialize`, where it is one client's own.
    pub(super) fn answer(&self) -> Option<&Bytes> {
        self.own.as_ref()?.answer()
    }

    /// The era in which it speaks, as soon as it is ready. A server that is on its way is
    /// waited for; one that is not is a failure.
    pub(super) async fn ready(&self) -> Result<Era, Fault> {
        let era = match &self.own {
            Some(own) => own.era(),
            None => self.handle.era(),
        };
        match era {
            Some(era) => Ok(era),
            None if self.own.is_some() => Err(self.gone()),
            None => Box::pin(self.wait_for_it()).await,
        }
    }

    async fn wait_for_it(&self) -> Result<Era, Fault> {
        let limit = self.handle.spec().call_timeout(CallSource::Gateway);
        let waited = self.handle.ready(limit).await;
        waited.map_err(|failure| Fault::of_call(&self.name(), failure))?;
        self.handle.era().ok_or_else(|| self.gone())
    }

    fn gone(&self) -> Fault {
        let message = format!("server “{}” ended", self.name());
        Fault::ours(ErrorKind::NotConnected, message, Some("try again"))
    }

    /// Sends a request for `asker`, or for nobody in particular. Dropping the future cancels it.
    pub(super) async fn call(
        &self,
        method: &str,
        params: Option<Bytes>,
        asker: Option<&Asker>,
    ) -> Answer {
        let asking = Asking {
            caller: asker.map(|asker| Arc::clone(&asker.running) as Arc<dyn Caller>),
            client: asker.map(|asker| Arc::clone(&asker.name)),
            source: CallSource::Gateway,
            origin: asker.map(Asker::origin).unwrap_or_default(),
            ..Asking::new(method, params)
        };
        let called = match (&self.own, &self.stateless) {
            (Some(own), _) => own.call_by(asking).await,
            (None, Some(stateless)) => stateless.call_by(asking).await,
            (None, None) => self.handle.call_by(asking).await,
        };
        called.map_err(|failure| Fault::of_call(&self.name(), failure))
    }

    pub(super) fn notify(&self, method: &str, params: Option<&Bytes>) {
        match &self.own {
            Some(own) => own.notify(method, params),
            None => self.handle.notify(method, params),
        }
    }

    pub(super) fn notices(&self) -> broadcast::Receiver<Arc<Notice>> {
        match &self.own {
            Some(own) => own.notices(),
            None => self.handle.notices(),
        }
    }
}
