//! One daemon owns a database at a time. Each acquisition has an epoch, a number that only grows;
//! a write of a daemon whose epoch is no longer the current one is refused.
//!
//! In PostgreSQL ownership is a lease: it has to be renewed, and it ends with the connection to
//! the database. The owner has stopped its servers before the lease expires, and the next owner
//! waits for that. A SQLite file is locked by the process that has it.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use crate::StoreError;

/// The daemon that opens a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonIdentity {
    /// The id of its data directory.
    pub id: Uuid,
    /// The boot of the machine and the device of the data directory. A daemon with the same id and
    /// host as the previous owner takes over at once: only one process can hold the lock on a data
    /// directory, so the previous owner is dead. A cloned machine has the id, and another boot.
    pub host: String,
}

/// Ownership of the database. The daemon renews it and acts on its loss; the store enforces it.
#[async_trait]
pub trait Ownership: Send + Sync {
    /// How long ownership lasts from the moment a renewal was sent; none where it cannot be lost.
    fn lease(&self) -> Option<Duration>;

    /// Extends the lease, over a new connection where the last one broke.
    /// `StoreError::NotOwner` is final; after any other error the next attempt may succeed.
    async fn renew(&self) -> Result<(), StoreError>;

    /// Gives ownership up without telling the database: every call, also one in progress, fails
    /// with `StoreError::NotOwner` until `acquire` has succeeded.
    fn fence(&self);

    /// Acquires ownership under a new epoch. `StoreError::InUse` while another daemon is
    /// connected, `StoreError::LeaseHeld` while its lease has not expired.
    async fn acquire(&self) -> Result<(), StoreError>;
}
