//! A process of its own for one client, beside the one that all others share. It is opened
//! with the client's own words, so that the server knows whom it serves; nobody restarts it:
//! its client, or whoever speaks for it, opens another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use cofer_mcp::{Caller, Era};
use cofer_model::{Failure, PeerInfo, PortMapping, ServerName, ServerSpec};
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::driver::LAUNCH;
use super::failure::{launched_too_slowly, not_ready};
use super::handle::{Asking, CallFailure, ServerHandle};
use super::notices::{Notice, Notices};
use super::run::{Opened, Outlets, Run};
use super::start_clock::open_in_time;
use crate::fence::Fence;
use crate::supervisor::Graces;

/// Tells the processes of one server apart.
static LAST: AtomicU64 = AtomicU64::new(0);

/// See the module. Dropping it ends the process, with everything that it started.
pub struct PrivateServer {
    handle: ServerHandle,
    run: Run,
    notices: Notices,
    opened: Opened,
    _dropped: DropGuard,
}

/// Ends a process when the fence is raised, unless it was dropped before. Holds it by a weak
/// reference only: dropping the last strong one is what ends it otherwise.
fn end_at_fence(
    run: &Run,
    fence: Fence,
    dropped: CancellationToken,
    permit: Option<OwnedSemaphorePermit>,
) -> impl Future<Output = ()> + use<> {
    let running = Arc::downgrade(&run.live().running);
    async move {
        if dropped.run_until_cancelled(fence.raised()).await.is_some()
            && let Some(running) = running.upgrade()
        {
            running.kill();
            running.gone().await;
        }
        drop(permit);
    }
}

impl PrivateServer {
    /// Launches it and opens the conversation with the client's params of `initialize`.
    pub(super) async fn open(
        handle: &ServerHandle,
        initialize: Bytes,
        caller: Option<Arc<dyn Caller>>,
    ) -> Result<Self, Failure> {
        let fence = &handle.parts.means.fence;
        let permit = fence.session().await;
        tokio::select! {
            biased;
            // Dropping the launch leaves nothing behind.
            reason = fence.raised() => Err(reason),
            opened = Self::launch(handle, initialize, caller, permit) => opened,
        }
    }

    async fn launch(
        handle: &ServerHandle,
        initialize: Bytes,
        caller: Option<Arc<dyn Caller>>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Self, Failure> {
        let parts = &handle.parts;
        let spec = spec_of_further_process(&handle.spec(), "session");
        let log_position = parts.log.position();
        let launched = timeout(LAUNCH, parts.means.launcher.launch(parts.id, &spec)).await;
        let launched = launched.map_err(|_| launched_too_slowly(LAUNCH))??;
        let notices = Notices::default();
        let outlets = Outlets {
            config: parts.bridge_config(&spec),
            log: &parts.log,
            log_position,
            noise: &Arc::default(),
            notices: notices.clone(),
            reach: parts.reach.fresh(),
            tasks: &parts.means.tasks,
        };
        let mut run = Run::begin(launched, outlets);
        if let (Some(bridge), Some(caller)) = (run.bridge(), caller) {
            bridge.attend(caller);
        }
        match open_in_time(&mut run, Some(initialize), spec.start_timeout(), |_, _| {}).await {
            Ok(opened) => {
                let dropped = CancellationToken::new();
                let fenced = end_at_fence(&run, parts.means.fence.clone(), dropped.clone(), permit);
                parts.means.tasks.spawn(fenced);
                let _dropped = dropped.drop_guard();
                Ok(Self { handle: handle.clone(), run, notices, opened, _dropped })
            }
            Err(error) => {
                let out_of_time = parts.means.fence.out_of_time();
                Err(not_ready(run, &error, Graces::default().stop, out_of_time).await)
            }
        }
    }

    /// What it answered to `initialize`, as it came; none where it does not speak MCP.
    pub fn answer(&self) -> Option<&Bytes> {
        self.opened.answer.as_ref()
    }

    /// Who it said it is.
    pub fn peer(&self) -> Option<&PeerInfo> {
        self.opened.peer.as_ref()
    }

    /// In which era it is spoken to.
    pub fn era(&self) -> Option<Era> {
        self.run.bridge().map(|bridge| bridge.era())
    }

    /// Sends it a request, like [`ServerHandle::call_by`].
    pub async fn call_by(&self, asking: Asking<'_>) -> Result<Bytes, CallFailure> {
        let bridge = self.run.bridge().ok_or(CallFailure::NoMcp)?;
        let version = || self.peer().map(|peer| peer.protocol_version.clone());
        self.handle.call_over(bridge, asking, version).await
    }

    /// Tells it something.
    pub fn notify(&self, method: &str, params: Option<&Bytes>) {
        if let Some(bridge) = self.run.bridge() {
            bridge.notify(method, params);
        }
    }

    /// What it says of its own accord, from now on.
    pub fn notices(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.notices.subscribe()
    }

    /// Ends when it has ended by itself.
    pub async fn ended(&self) {
        self.run.ended().await;
    }

    /// Ends it, gently first.
    pub async fn end(self) {
        let fence = &self.handle.parts.means.fence;
        self.run.stop(Graces::default().stop, fence.out_of_time()).await;
    }
}

/// The spec of a further process beside the server's first one: its name and its published ports
/// are taken by that. `purpose` becomes part of the name.
pub(super) fn spec_of_further_process(spec: &ServerSpec, purpose: &str) -> ServerSpec {
    numbered(spec, purpose, LAST.fetch_add(1, Ordering::Relaxed))
}

fn numbered(spec: &ServerSpec, purpose: &str, number: u64) -> ServerSpec {
    let suffix = format!("-{purpose}-{number}");
    let kept = spec.name.as_str().chars().take(64 - suffix.len()).collect::<String>();
    let ports = spec.ports.iter().map(|port| PortMapping { host: 0, ..*port }).collect();
    let name = ServerName::new(&format!("{kept}{suffix}")).unwrap_or_else(|_| spec.name.clone());
    ServerSpec { name, ports, ..spec.clone() }
}

#[cfg(test)]
mod tests {
    use cofer_model::parse_registration;
    use serde_json::json;

    use super::*;

    #[test]
    fn beside_itself_a_server_has_another_name_and_other_ports() {
        let name = "n".repeat(64);
        let ports = json!([{"container": 80, "host": 8080}]);
        let body = json!({"name": name, "image": "localhost/i", "ports": ports});
        let spec = parse_registration(body).unwrap();
        let own = numbered(&spec, "session", 12);
        assert_eq!(own.name.as_str(), format!("{}-session-12", &name[..53]));
        assert_eq!((own.ports[0].container, own.ports[0].host), (80, 0));
    }
}
