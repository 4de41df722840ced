//! The daemons that are reached through a server, where that is the gateway of a Cofer daemon, and
//! whether this daemon is among them: then the server is part of a cycle.

use bytes::Bytes;
use cofer_mcp::member;
use cofer_model::DaemonIds;
use tokio::sync::watch;
use uuid::Uuid;

/// See the module. Clones share the set.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    own: Uuid,
    daemons: watch::Sender<DaemonIds>,
}

impl Reach {
    /// Of a server of the daemon `own`.
    pub(crate) fn new(own: Uuid) -> Self {
        Self { own, daemons: watch::Sender::default() }
    }

    /// An empty set for a further process of the same server.
    pub(crate) fn fresh(&self) -> Self {
        Self::new(self.own)
    }

    /// Forgets what an earlier process reported.
    pub(crate) fn clear(&self) {
        self.daemons.send_replace(DaemonIds::default());
    }

    /// Takes the params of the notification.
    pub(crate) fn report(&self, params: Option<&Bytes>) {
        let listed = params.and_then(|params| member(params, "daemons"));
        let text: Option<String> = listed.and_then(|text| serde_json::from_slice(text).ok());
        self.daemons.send_replace(DaemonIds::parse(&text.unwrap_or_default()));
    }

    /// The daemons behind the server; none while it is part of a cycle, as it is then ended, and the
    /// other daemons of the cycle must not end their parts of it too.
    pub(crate) fn daemons(&self) -> DaemonIds {
        let daemons = self.daemons.borrow();
        if daemons.contains(self.own) { DaemonIds::default() } else { daemons.clone() }
    }

    /// The daemons of the cycle, if there is one.
    pub(crate) fn cycle(&self) -> Option<DaemonIds> {
        Some(self.daemons.borrow().clone()).filter(|daemons| daemons.contains(self.own))
    }

    /// Ends when there is a cycle.
    pub(crate) async fn until_cycle(&self) -> DaemonIds {
        let mut changes = self.daemons.subscribe();
        let found = changes.wait_for(|daemons| daemons.contains(self.own)).await;
        // The sender lives as long as `self`, so that there is always one.
        found.map(|daemons| daemons.clone()).unwrap_or_default()
    }
}
