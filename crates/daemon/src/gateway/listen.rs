//! `subscriptions/listen`: a client of the newer era hears what it asked to hear, for as long as
//! its connection lasts.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::Response;
use bytes::Bytes;
use cofer_mcp::member;
use cofer_model::{Budget, ServerId};
use cofer_supervisor::ServerHandle;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Gateway;
use super::charged::Charged;
use super::door::Door;
use super::http::Entrance;
use super::lists::ListKind;
use super::modern::Request;
use super::rpc::{self, Fault};
use super::stream::EventStream;
use super::upstream::Upstream;

/// How many may listen at once.
const MAX_LISTENERS: usize = 10_000;
/// How many resources one may watch.
const MAX_WATCHED: usize = 1000;
/// The lists that can change, and what a filter calls them.
const CHANGES: [(ListKind, &str); 3] = [
    (ListKind::Tools, "toolsListChanged"),
    (ListKind::Prompts, "promptsListChanged"),
    (ListKind::Resources, "resourcesListChanged"),
];

/// See the module.
#[derive(Default)]
pub(super) struct Listeners {
    open: Mutex<HashMap<u64, Listener>>,
}

struct Listener {
    door: Door,
    changes: HashSet<ListKind>,
    /// The id of its request, which names the subscription.
    id: Bytes,
    events: Arc<EventStream>,
}

impl Listener {
    fn tell(&self, memory: &Arc<Budget>, method: &str, more: &str) {
        let params = format!(r#"{{"_meta":{}{more}}}"#, self.meta());
        let message = Charged::notification(memory, method, Some(params.as_bytes()));
        if let Some(message) = message {
            self.events.push(message, true);
        }
    }

    fn meta(&self) -> String {
        let id = String::from_utf8_lossy(&self.id);
        format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#)
    }
}

impl Listeners {
    /// A list changed: of one server, or of all of them joined.
    pub(super) fn list_changed(
        &self,
        memory: &Arc<Budget>,
        server: Option<ServerId>,
        kind: ListKind,
    ) {
        for listener in self.lock().values() {
            let is_meant = match server {
                Some(id) => listener.door.is_server(id),
                None => listener.door.is_all(),
            };
            if is_meant
                && CHANGES
                    .iter()
                    .any(|(of, _)| of.changed() == kind.changed() && listener.changes.contains(of))
            {
                listener.tell(memory, kind.changed(), "");
            }
        }
    }

    /// A resource changed that these clients watch; `joined` is its URI for those at the endpoint
    /// of all servers.
    pub(super) fn updated(
        &self,
        memory: &Arc<Budget>,
        clients: &HashSet<u64>,
        uri: &str,
        joined: &str,
    ) {
        let listeners = self.lock();
        for listener in clients.iter().filter_map(|client| listeners.get(client)) {
            let uri = if listener.door.is_all() { joined } else { uri };
            let more = format!(r#","uri":{}"#, Value::from(uri));
            listener.tell(memory, "notifications/resources/updated", &more);
        }
    }

    /// Ends all of them, and says so.
    pub(super) fn close(&self, memory: &Arc<Budget>) {
        for (_, listener) in self.lock().drain() {
            let result = format!(r#"{{"resultType":"complete","_meta":{}}}"#, listener.meta());
            let response = Charged::response(memory, &listener.id, &Ok(result.into()));
            listener.events.push(response, false);
            listener.events.finish();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Listener>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a subscription with its connection.
struct Listening {
    gateway: Gateway,
    client: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.gateway.0.listeners.lock().remove(&self.client);
        self.gateway.forget_client(self.client);
    }
}

/// Opens a subscription: the stream, whose first event says what will be told.
pub(super) async fn open(
    gateway: &Gateway,
    entrance: &Entrance,
    request: &Request,
    client: u64,
) -> Result<Response, Fault> {
    if !entrance.accepts.events {
        return Err(Fault::bad_params("`Accept` has no text/event-stream, on which this is told"));
    }
    if gateway.0.listeners.lock().len() >= MAX_LISTENERS {
        return Err(Fault::new(rpc::INTERNAL, "too many clients listen already"));
    }
    let filter = request.params.as_ref().and_then(|params| member(params, "notifications"));
    let filter: Value =
        filter.and_then(|filter| serde_json::from_slice(filter).ok()).unwrap_or_default();
    let wants = |key: &str| filter.get(key) == Some(&Value::Bool(true));
    let can = abilities(gateway, &entrance.door).await?;
    let changes: HashSet<ListKind> = CHANGES
        .into_iter()
        .filter(|(kind, key)| wants(key) && can.changes.contains(kind))
        .map(|(kind, _)| kind)
        .collect();
    // Whatever becomes of this request from here on, nothing of it stays behind.
    let listening = Listening { gateway: gateway.clone(), client };
    let watched = watch_all(gateway, &entrance.door, client, &filter, can.subscribe).await;

    let mut honoured = json!({});
    for (kind, key) in CHANGES {
        if changes.contains(&kind) {
            honoured[key] = true.into();
        }
    }
    if !watched.is_empty() {
        honoured["resourceSubscriptions"] = json!(watched);
    }
    let events = Arc::new(EventStream::new(0));
    let door = entrance.door.clone();
    let listener = Listener { door, changes, id: request.id.clone(), events: Arc::clone(&events) };
    listener.tell(
        gateway.memory(),
        "notifications/subscriptions/acknowledged",
        &format!(r#","notifications":{honoured}"#),
    );
    gateway.0.listeners.lock().insert(client, listener);
    Ok(events.read(None, false).plain(listening).into_response(CancellationToken::new()))
}

/// What can be told at a door.
struct CanTell {
    changes: Vec<ListKind>,
    subscribe: bool,
}

async fn abilities(gateway: &Gateway, door: &Door) -> Result<CanTell, Fault> {
    match door {
        Door::All => {
            gateway.want_catalogue();
            Ok(CanTell { changes: CHANGES.map(|(kind, _)| kind).to_vec(), subscribe: true })
        }
        Door::One(handle) => {
            let watcher = gateway.watch(handle);
            let peer = if handle.peer().is_none() { gateway.known_peer(handle) } else { None };
            let peer = match peer {
                Some(peer) => Some(peer),
                None => {
                    let mut upstream = Upstream::shared(handle.clone());
                    upstream.ready().await?;
                    if let Some(second) = upstream.stateless().await {
                        watcher.stateless.ready().await;
                        upstream = second;
                    }
                    upstream.peer_when_known().await
                }
            };
            let says = |kind: &str, what: &str| {
                let capability = peer.as_ref().and_then(|peer| peer.capabilities.get(kind));
                capability.and_then(|capability| capability.get(what)) == Some(&Value::Bool(true))
            };
            let changes = CHANGES.map(|(kind, _)| kind).into_iter();
            let changes = changes.filter(|kind| says(kind.capability(), "listChanged")).collect();
            Ok(CanTell { changes, subscribe: says("resources", "subscribe") })
        }
    }
}

/// Watches the resources that the filter names: those that can be.
async fn watch_all(
    gateway: &Gateway,
    door: &Door,
    client: u64,
    filter: &Value,
    can: bool,
) -> Vec<String> {
    let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
    let uris = uris.into_iter().flatten().filter_map(Value::as_str);
    let mut watched = Vec::new();
    for uri in uris.filter(|_| can).take(MAX_WATCHED) {
        let Some((handle, own_uri)) = owner(gateway, door, uri).await else {
            continue;
        };
        let watcher = gateway.watch(&handle);
        if handle.stateless().await.is_some() {
            watcher.stateless.subscribe(client, &own_uri).await;
            watched.push(uri.to_owned());
        } else if watcher.subscribe(client, &own_uri).await.is_ok() {
            watched.push(uri.to_owned());
        }
    }
    watched
}

/// The server of a resource, and the URI that it has there.
async fn owner(gateway: &Gateway, door: &Door, uri: &str) -> Option<(ServerHandle, String)> {
    match door {
        Door::One(handle) => Some((handle.clone(), uri.to_owned())),
        Door::All => {
            let joined = gateway.catalogue().complete().await;
            let handle = gateway.0.supervisor.get(*joined.resource_owners(uri).first()?)?;
            Some((handle, joined.own_uri(uri)))
        }
    }
}
