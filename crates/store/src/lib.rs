//! What is wanted: the registered servers; and what was said: the chats. Kept in SQLite
//! (embedded, the default) or in PostgreSQL. Both have the same tables, in the schema `kb`, and
//! answer alike: the contract suites (`tests/contract.rs`, `tests/chats.rs`) run against both.
//!
//! The store answers, it never acts, and it has no clock: every time is passed in. Times are
//! kept in UTC and to the microsecond, which is what PostgreSQL keeps.
#![warn(missing_docs)]

mod chats;
mod error;
mod lists;
mod ownership;
mod postgres;
mod schema;
mod servers;
mod sqlite;
mod target;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use cofer_model::{Failure, ServerId, ServerSpec, Status};
use time::OffsetDateTime;

pub use chats::{ChatStore, ConversationRecord, Cursor, ProviderRecord};
pub use error::{BadRow, StoreError};
pub use lists::{ListStore, StoredLists};
pub use ownership::{DaemonIdentity, Ownership};
pub use postgres::PgStore;
pub use servers::ServerRecord;
pub use sqlite::SqliteStore;

use target::Target;

/// The registered servers. What a method has returned `Ok` for is on the disk.
#[async_trait]
pub trait Store: ChatStore + ListStore + Ownership {
    /// All servers by name, in the order of their bytes. A row that cannot be read stands among
    /// them as a `BadRow`, so that one hand-edited row does not take the others down.
    async fn list(&self) -> Result<Vec<Result<ServerRecord, BadRow>>, StoreError>;

    /// The server with this id.
    async fn get(&self, id: ServerId) -> Result<Option<ServerRecord>, StoreError>;

    /// The server with exactly this name.
    async fn find_by_name(&self, name: &str) -> Result<Option<ServerRecord>, StoreError>;

    /// Adds a server; its name must be free.
    async fn insert(&self, record: &ServerRecord) -> Result<(), StoreError>;

    /// Replaces what is asked for, `enabled` and the name included.
    async fn update_spec(
        &self,
        id: ServerId,
        spec: &ServerSpec,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError>;

    /// Switches a server on or off.
    async fn set_enabled(
        &self,
        id: ServerId,
        enabled: bool,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError>;

    /// Keeps why a server failed, with status `error`; with `disable` also switches it off, in
    /// the same change. `updated_at` is kept only then: a failure alone changes no registration.
    async fn record_failure(
        &self,
        id: ServerId,
        failure: &Failure,
        disable: bool,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError>;

    /// Keeps the last settled status; `ready` and `stopped` forget the last failure.
    async fn record_status(&self, id: ServerId, status: Status) -> Result<(), StoreError>;

    /// Removes a server; false where it was not there.
    async fn delete(&self, id: ServerId) -> Result<bool, StoreError>;

    /// Whether the database answers.
    async fn health(&self) -> Result<(), StoreError>;

    /// Releases the ownership and the connections; every later call is `StoreError::Closed`.
    async fn close(&self);
}

/// Opens the store for `daemon`, which then owns the database, and brings its tables up to date.
/// Without `url` that is SQLite in `data_dir/kb.db`; with one, `postgres://…`, `postgresql://…` or
/// `sqlite://path`. Waits for the lease of a previous owner on PostgreSQL.
pub async fn open(
    url: Option<&str>,
    data_dir: &Path,
    daemon: DaemonIdentity,
) -> Result<Arc<dyn Store>, StoreError> {
    match Target::parse(url, data_dir)? {
        Target::Sqlite(path) => Ok(Arc::new(SqliteStore::open(&path, daemon).await?)),
        Target::Postgres(options) => Ok(Arc::new(PgStore::open(*options, daemon).await?)),
    }
}
