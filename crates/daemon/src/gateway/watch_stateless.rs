//! Subscriptions of clients of 2026-07-28 at a server's connection in the stateless protocol: one
//! `subscriptions/listen` for all of them, renewed if they watch other resources.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cofer_supervisor::{Notice, ServerHandle};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::Gateway;
use super::lists::ListKind;
use super::rpc::text_member;
use super::ui_uris::joined_uri;
use super::watch::is_within;

/// The pause before a subscription that a server ended is made again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
/// How long a server may take to acknowledge a subscription before its clients get theirs.
const ACKNOWLEDGE: Duration = Duration::from_secs(2);

/// Subscriptions of listeners at a server's stateless connection, and the task that keeps them.
#[derive(Default)]
pub(super) struct StatelessWatch {
    /// Clients by the resources that they watch.
    watched: Mutex<HashMap<String, HashSet<u64>>>,
    relisten: Notify,
    /// How many subscriptions the server acknowledged.
    acknowledged: watch::Sender<u64>,
    /// Whether the last one holds.
    listens: watch::Sender<bool>,
}

impl StatelessWatch {
    /// Runs until it is dropped.
    pub(super) async fn run(&self, handle: &ServerHandle, gateway: &Gateway) {
        let mut notices = handle.stateless_notices();
        self.relisten.notify_one();
        let hear = async {
            loop {
                match notices.recv().await {
                    Ok(notice) => match &*notice {
                        Notice::Said { method, params } => {
                            self.said(handle, gateway, method, params.as_ref());
                        }
                        Notice::Up => self.relisten.notify_one(),
                        Notice::Down => {}
                    },
                    // A change of a list may be among the messages that were lost.
                    Err(RecvError::Lagged(_)) => {
                        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                            self.said(handle, gateway, kind.changed(), None);
                        }
                    }
                    Err(RecvError::Closed) => return,
                }
            }
        };
        tokio::join!(hear, self.listen(handle));
    }

    /// Waits until the server sends changes of its lists, at most for a moment.
    pub(super) async fn ready(&self) {
        let mut listens = self.listens.subscribe();
        drop(timeout(ACKNOWLEDGE, listens.wait_for(|listens| *listens)).await);
    }

    /// Subscribes a client to the changes of a resource.
    pub(super) async fn subscribe(&self, client: u64, uri: &str) {
        let is_new = {
            let mut watched = self.lock();
            let is_new = !watched.contains_key(uri);
            watched.entry(uri.to_owned()).or_default().insert(client);
            is_new
        };
        if is_new {
            let mut acknowledged = self.acknowledged.subscribe();
            acknowledged.mark_unchanged();
            self.relisten.notify_one();
            drop(timeout(ACKNOWLEDGE, acknowledged.changed()).await);
        }
    }

    /// A client is gone.
    pub(super) fn forget_client(&self, client: u64) {
        let mut watched = self.lock();
        let before = watched.len();
        watched.retain(|_, clients| {
            clients.remove(&client);
            !clients.is_empty()
        });
        if watched.len() < before {
            self.relisten.notify_one();
        }
    }

    pub(super) fn knows(&self, client: u64) -> bool {
        self.lock().values().any(|clients| clients.contains(&client))
    }

    fn said(&self, handle: &ServerHandle, gateway: &Gateway, method: &str, params: Option<&Bytes>) {
        let listeners = &gateway.0.listeners;
        match method {
            "notifications/subscriptions/acknowledged" => {
                self.acknowledged.send_modify(|count| *count += 1);
                self.listens.send_replace(true);
            }
            "notifications/resources/updated" => {
                if let Some(uri) = params.and_then(|params| text_member(params, "uri")) {
                    let joined = joined_uri(handle.spec().joined_prefix(), &uri);
                    let joined = joined.as_deref().unwrap_or(&uri);
                    listeners.updated(handle.memory(), &self.watchers_of(&uri), &uri, joined);
                }
            }
            _ => {
                for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
                    if kind.changed() == method {
                        listeners.list_changed(handle.memory(), Some(handle.id()), kind);
                    }
                }
            }
        }
    }

    fn watchers_of(&self, uri: &str) -> HashSet<u64> {
        let watched = self.lock();
        let watched = watched.iter().filter(|(watched, _)| is_within(uri, watched));
        watched.flat_map(|(_, clients)| clients.iter().copied()).collect()
    }

    async fn listen(&self, handle: &ServerHandle) {
        loop {
            self.relisten.notified().await;
            while let Some(server) = handle.open_stateless() {
                let uris: Vec<String> = self.lock().keys().cloned().collect();
                let filter = json!({"toolsListChanged": true, "promptsListChanged": true,
                    "resourcesListChanged": true, "resourceSubscriptions": uris});
                let params = Bytes::from(json!({"notifications": filter}).to_string());
                tokio::select! {
                    ended = server.listen(params) => {
                        tracing::debug!(ended = ended.is_ok(), "a server ended its subscription");
                        self.listens.send_replace(false);
                        // The connection may have ended with it; then `Up` follows.
                        tokio::select! {
                            () = sleep(LISTEN_AGAIN) => {}
                            () = self.relisten.notified() => {}
                        }
                    }
                    () = self.relisten.notified() => {}
                }
            }
            self.listens.send_replace(false);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, HashSet<u64>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
