//! Where what is wanted meets what runs: each change goes to the store first, and to the
//! supervisor once it is safe there. A crash between the two heals at the next start, when
//! `boot` makes the supervisor run what the store says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use cofer_model::{
    EventKind, FieldError, MASK, ServerId, ServerNotice, ServerSpec, Status, parse_patch,
    parse_registration, unmask_args,
};
use cofer_store::{ServerRecord, Store, StoreError};
use cofer_supervisor::{ServerHandle, Supervisor};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

use crate::api::error::ApiError;
use crate::own_endpoint::OwnEndpoint;
use crate::prefixes::{PrefixClaim, PrefixClaims, prefix_clash};
use crate::recorder::CallCounter;

/// See the module.
pub(crate) struct Registry {
    store: Arc<dyn Store>,
    supervisor: Supervisor,
    counter: Arc<CallCounter>,
    own: OwnEndpoint,
    /// One change of a server at a time, so that store and supervisor see the same order.
    locks: SyncMutex<HashMap<ServerId, Arc<Mutex<()>>>>,
    prefixes: PrefixClaims,
    /// Counts the changes, for those who follow them.
    changes: watch::Sender<u64>,
}

impl Registry {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        supervisor: Supervisor,
        counter: Arc<CallCounter>,
        own: OwnEndpoint,
    ) -> Self {
        let changes = watch::Sender::new(0);
        let (locks, prefixes) = (SyncMutex::default(), PrefixClaims::default());
        Self { store, supervisor, counter, own, locks, prefixes, changes }
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Tells whenever a server was registered, changed, switched or removed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Starts everything that is registered and switched on.
    pub(crate) async fn boot(&self) -> Result<usize, StoreError> {
        let records = self.store.list().await?;
        let mut count = 0;
        for record in records {
            match record {
                Ok(ServerRecord { id, spec, status, last_error, .. }) => {
                    self.supervisor.restore(id, spec, last_error, status == Status::Ready);
                    count += 1;
                }
                Err(bad) => {
                    tracing::error!(target: "START", error = %bad, "a stored server was left out");
                }
            }
        }
        Ok(count)
    }

    /// Begins all servers anew after the database was owned by nobody or by another daemon, which
    /// may have changed them.
    pub(crate) async fn resume(&self) -> Result<(), StoreError> {
        let records: Vec<_> = self.store.list().await?.into_iter().flatten().collect();
        self.supervisor.resume();
        for handle in self.supervisor.list() {
            let (id, name) = (handle.id(), handle.spec().name.to_string());
            if !records.iter().any(|record| record.id == id) {
                self.supervisor.remove(id).await;
                self.counter.forget(&handle.spec().name);
                self.tell(EventKind::Removed, id, name);
            }
        }
        for ServerRecord { id, spec, status, last_error, .. } in records {
            let (known, name) = (self.supervisor.get(id).is_some(), spec.name.to_string());
            let proven = status == Status::Ready;
            self.supervisor.resume_server(id, spec, last_error, proven).await;
            let kind = if known { EventKind::Changed } else { EventKind::Added };
            self.tell(kind, id, name);
        }
        Ok(())
    }

    /// The server with this id or name.
    pub(crate) fn find(&self, id_or_name: &str) -> Result<ServerHandle, ApiError> {
        self.supervisor.find(id_or_name).ok_or_else(|| ApiError::no_such_server(id_or_name))
    }

    /// Whether a server has this name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.supervisor.list().iter().any(|handle| handle.spec().name.as_str() == name)
    }

    /// Why a registration's prefix or name cannot be joined with the other servers', if so. A
    /// server of the same name counts as the registration itself.
    pub(crate) fn prefix_clash(&self, spec: &ServerSpec) -> Option<FieldError> {
        let handles = self.supervisor.list().into_iter().map(|handle| handle.spec());
        handles.filter(|other| other.name != spec.name).find_map(|other| prefix_clash(spec, &other))
    }

    /// Reserves a server's name and prefix until they are the supervisor's.
    fn claim(&self, id: ServerId, spec: &ServerSpec) -> Result<PrefixClaim<'_>, ApiError> {
        let handles = self.supervisor.list();
        let current = handles.iter().map(|handle| (handle.id(), handle.spec()));
        self.prefixes.claim(id, spec, current).map_err(|error| {
            ApiError::conflict(error.message.clone())
                .hint("choose another prefix or name, or change the server that has it")
                .details(json!({ "fields": [error] }))
        })
    }

    /// All records, those that cannot be read left out.
    pub(crate) async fn records(&self) -> Result<Vec<ServerRecord>, ApiError> {
        let records = self.store.list().await.map_err(store_failed)?;
        Ok(records.into_iter().flatten().collect())
    }

    pub(crate) async fn record(&self, handle: &ServerHandle) -> Result<ServerRecord, ApiError> {
        let record = self.store.get(handle.id()).await.map_err(store_failed)?;
        record.ok_or_else(|| ApiError::no_such_server(&handle.id().to_string()))
    }

    /// Registers a server; it is on the disk before it is started.
    pub(crate) async fn register(&self, body: Value) -> Result<ServerHandle, ApiError> {
        let spec = parse_registration(body).map_err(ApiError::invalid)?;
        self.refuse_own(&spec)?;
        let now = OffsetDateTime::now_utc();
        let id = ServerId(Uuid::new_v4());
        let _claim = self.claim(id, &spec)?;
        let status = if spec.enabled { Status::Starting } else { Status::Stopped };
        let record = ServerRecord {
            id,
            spec: spec.clone(),
            status,
            last_error: None,
            created_at: now,
            updated_at: now,
            owner: None,
            epoch: 0,
        };
        self.store.insert(&record).await.map_err(store_failed)?;
        tracing::info!(target: "MCP", server = %spec.name, %id, "registered");
        let name = spec.name.to_string();
        let handle = self.supervisor.add(id, spec);
        self.tell(EventKind::Added, id, name);
        Ok(handle)
    }

    /// This daemon's own gateway is no server.
    fn refuse_own(&self, spec: &ServerSpec) -> Result<(), ApiError> {
        self.own.find_in(spec).map_or(Ok(()), |error| Err(ApiError::invalid(vec![error])))
    }

    /// Changes the fields that `body` names.
    pub(crate) async fn change(&self, handle: &ServerHandle, body: Value) -> Result<(), ApiError> {
        let id = handle.id();
        let lock = self.lock(id);
        let _one_at_a_time = lock.lock().await;
        let current = self.record(handle).await?.spec;
        let spec = parse_patch(&current, unmask(body, &current)).map_err(ApiError::invalid)?;
        // One that was stored before the daemon had this address can still be renamed or disabled.
        if (&spec.url, &spec.args) != (&current.url, &current.args) {
            self.refuse_own(&spec)?;
        }
        let renamed = (&spec.name, &spec.prefix) != (&current.name, &current.prefix);
        let _claim = renamed.then(|| self.claim(id, &spec)).transpose()?;
        self.store.update_spec(id, &spec, OffsetDateTime::now_utc()).await.map_err(store_failed)?;
        if spec.name != current.name {
            self.counter.forget(&current.name);
        }
        tracing::info!(target: "MCP", server = %spec.name, "changed");
        self.configure(handle, spec, false).await
    }

    /// Switches a server on or off.
    pub(crate) async fn switch(&self, handle: &ServerHandle, on: bool) -> Result<(), ApiError> {
        let id = handle.id();
        let lock = self.lock(id);
        let _one_at_a_time = lock.lock().await;
        self.store.set_enabled(id, on, OffsetDateTime::now_utc()).await.map_err(store_failed)?;
        let spec = self.record(handle).await?.spec;
        tracing::info!(target: "MCP", server = %spec.name, "switched {}", if on { "on" } else { "off" });
        self.configure(handle, spec, true).await
    }

    /// Tells the supervisor what is wanted now, and everybody that it is something else.
    async fn configure(
        &self,
        handle: &ServerHandle,
        spec: ServerSpec,
        forgive: bool,
    ) -> Result<(), ApiError> {
        let name = spec.name.to_string();
        self.supervisor.configure(handle.id(), spec, forgive).await;
        let aligned = self.align(handle).await;
        self.tell(EventKind::Changed, handle.id(), name);
        aligned
    }

    /// A start that failed may have switched the server off in the store after this change was
    /// stored and before the driver took it: the driver has the last word.
    async fn align(&self, handle: &ServerHandle) -> Result<(), ApiError> {
        let stored = self.record(handle).await?.spec.enabled;
        let wanted = handle.spec().enabled;
        if stored != wanted {
            let now = OffsetDateTime::now_utc();
            self.store.set_enabled(handle.id(), wanted, now).await.map_err(store_failed)?;
        }
        Ok(())
    }

    /// Stops a server and forgets it. It is off the disk first: a daemon that is killed
    /// meanwhile does not bring it back.
    pub(crate) async fn remove(&self, handle: &ServerHandle) -> Result<(), ApiError> {
        let id = handle.id();
        let lock = self.lock(id);
        let _one_at_a_time = lock.lock().await;
        let name = handle.spec().name.clone();
        if !self.store.delete(id).await.map_err(store_failed)? {
            return Err(ApiError::no_such_server(name.as_str()));
        }
        self.supervisor.remove(id).await;
        self.counter.forget(&name);
        self.locks.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        tracing::info!(target: "MCP", server = %name, "removed");
        self.tell(EventKind::Removed, id, name.to_string());
        Ok(())
    }

    /// Told when it is so: whoever hears it and looks finds it.
    fn tell(&self, kind: impl FnOnce(ServerNotice) -> EventKind, id: ServerId, name: String) {
        let at = OffsetDateTime::now_utc();
        self.changes.send_modify(|count| *count += 1);
        self.supervisor
            .events()
            .publish(|generation| kind(ServerNotice { id, name, generation, at }));
    }

    fn lock(&self, id: ServerId) -> Arc<Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(id).or_default())
    }
}

/// A client that sends back what it was shown does not mean the mask: those values stay.
fn unmask(mut body: Value, current: &ServerSpec) -> Value {
    for (field, kept) in [("environment", &current.environment), ("headers", &current.headers)] {
        let shown = body.get_mut(field).and_then(Value::as_object_mut);
        for (key, value) in shown.into_iter().flatten() {
            if let (true, Some(known)) = (value == MASK, kept.get(key)) {
                *value = Value::from(known.as_str());
            }
        }
    }
    let texts = |args: &Vec<Value>| {
        args.iter().map(|arg| arg.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    };
    if let Some(shown) = body.get("args").and_then(Value::as_array).and_then(texts) {
        body["args"] = unmask_args(&shown, &current.args).into();
    }
    body
}

fn store_failed(error: StoreError) -> ApiError {
    match error {
        StoreError::NameTaken { name } => {
            ApiError::conflict(format!("A server named “{name}” already exists"))
                .hint("choose another name, or change the server that has it")
        }
        StoreError::NotFound { id } => ApiError::no_such_server(&id.to_string()),
        error => ApiError::store(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_that_is_sent_back_keeps_the_value() {
        let current = parse_registration(
            json!({"name": "x", "command": "y", "environment": {"KEY": "real"}}),
        )
        .unwrap();
        let body = json!({"environment": {"KEY": MASK, "NEW": MASK, "OTHER": "z"}});
        assert_eq!(
            unmask(body, &current),
            json!({"environment": {"KEY": "real", "NEW": MASK, "OTHER": "z"}})
        );
        let current = json!({"name": "x", "url": "https://y", "headers": {"X-Key": "real"}});
        let current = parse_registration(current).unwrap();
        let body = json!({"headers": {"X-Key": MASK}});
        assert_eq!(unmask(body, &current), json!({"headers": {"X-Key": "real"}}));
        let current = json!({"name": "x", "command": "y", "args": ["--token", "real", "-v"]});
        let current = parse_registration(current).unwrap();
        let body = json!({"args": ["--token", MASK]});
        assert_eq!(unmask(body, &current), json!({"args": ["--token", "real"]}));
    }
}
