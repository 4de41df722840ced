//! The servers: the rows of `kb.agent_workspaces` with `container_type = 'mcp_server'`.
//!
//! The logic is here once, for both databases; they differ in their SQL (`sql.rs`) and in how
//! they run it (`Backend`).

mod record;
mod sql;

use async_trait::async_trait;
use cofer_model::{Failure, ServerId, ServerSpec, Status};
use time::OffsetDateTime;

pub(crate) use record::Row;
pub use record::ServerRecord;
pub(crate) use sql::{POSTGRES, SQLITE, Sql};

use crate::chats::{ChatSql, Texts};
use crate::lists::ListSql;
use crate::{BadRow, Ownership, Store, StoreError};
use record::json_text;
pub(crate) use record::{parse, parse_time, time_text};

/// A value for a statement. All values go as text, and the statement casts them.
pub(crate) type Argument = Option<String>;

/// What came of a statement that changes something.
pub(crate) enum Change {
    /// So many rows are now different.
    Rows(u64),
    /// None, because another server has the name.
    NameTaken,
}

/// A database that can run the statements.
#[async_trait]
pub(crate) trait Backend: Ownership {
    /// The statements in its dialect.
    const SQL: Sql;
    /// Those for chats.
    const CHAT: ChatSql;
    /// Those for the lists of servers.
    const LISTS: ListSql;

    async fn rows(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Row>, StoreError>;

    /// Rows of any shape, each column of which is text or NULL.
    async fn texts(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Texts>, StoreError>;

    async fn change(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Change, StoreError>;

    async fn ping(&self) -> Result<(), StoreError>;

    async fn shut(&self);
}

#[async_trait]
impl<B: Backend> Store for B {
    async fn list(&self) -> Result<Vec<Result<ServerRecord, BadRow>>, StoreError> {
        let rows = self.rows("list the servers", B::SQL.list, vec![]).await?;
        Ok(rows.into_iter().map(ServerRecord::from_row).collect())
    }

    async fn get(&self, id: ServerId) -> Result<Option<ServerRecord>, StoreError> {
        let rows = self.rows("read a server", B::SQL.get, vec![Some(id.to_string())]).await?;
        first(rows)
    }

    async fn find_by_name(&self, name: &str) -> Result<Option<ServerRecord>, StoreError> {
        // No stored name has a NUL, and PostgreSQL refuses to look for one.
        if name.contains('\0') {
            return Ok(None);
        }
        let name = vec![Some(name.to_owned())];
        first(self.rows("find a server by its name", B::SQL.find_by_name, name).await?)
    }

    async fn insert(&self, record: &ServerRecord) -> Result<(), StoreError> {
        let arguments = vec![
            Some(record.id.to_string()),
            Some(record.spec.name.to_string()),
            record.spec.image.clone(),
            Some(json_text(&record.spec)?),
            Some(record.status.to_string()),
            Some(record.spec.enabled.to_string()),
            record.last_error.as_ref().map(json_text).transpose()?,
            Some(time_text(record.created_at)),
            Some(time_text(record.updated_at)),
        ];
        match self.change("store a server", B::SQL.insert, arguments).await? {
            Change::Rows(_) => Ok(()),
            Change::NameTaken => Err(name_taken(&record.spec)),
        }
    }

    async fn update_spec(
        &self,
        id: ServerId,
        spec: &ServerSpec,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let arguments = vec![
            Some(id.to_string()),
            Some(spec.name.to_string()),
            spec.image.clone(),
            Some(json_text(spec)?),
            Some(spec.enabled.to_string()),
            Some(time_text(updated_at)),
        ];
        let change = self.change("change a server", B::SQL.update_spec, arguments).await?;
        if let Change::NameTaken = change {
            return Err(name_taken(spec));
        }
        found(id, &change)
    }

    async fn set_enabled(
        &self,
        id: ServerId,
        enabled: bool,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let arguments =
            vec![Some(id.to_string()), Some(enabled.to_string()), Some(time_text(updated_at))];
        found(id, &self.change("switch a server", B::SQL.set_enabled, arguments).await?)
    }

    async fn record_failure(
        &self,
        id: ServerId,
        failure: &Failure,
        disable: bool,
        updated_at: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let sql = if disable { B::SQL.fail_and_disable } else { B::SQL.fail };
        let mut arguments = vec![Some(id.to_string()), Some(json_text(failure)?)];
        if disable {
            arguments.push(Some(time_text(updated_at)));
        }
        found(id, &self.change("store why a server failed", sql, arguments).await?)
    }

    async fn record_status(&self, id: ServerId, status: Status) -> Result<(), StoreError> {
        let settles_well = matches!(status, Status::Ready | Status::Stopped);
        let sql = if settles_well { B::SQL.recover } else { B::SQL.record_status };
        let arguments = vec![Some(id.to_string()), Some(status.to_string())];
        found(id, &self.change("store a server's status", sql, arguments).await?)
    }

    async fn delete(&self, id: ServerId) -> Result<bool, StoreError> {
        let id = vec![Some(id.to_string())];
        let change = self.change("remove a server", B::SQL.delete, id).await?;
        Ok(matches!(change, Change::Rows(1..)))
    }

    async fn health(&self) -> Result<(), StoreError> {
        self.ping().await
    }

    async fn close(&self) {
        self.shut().await;
    }
}

fn first(rows: Vec<Row>) -> Result<Option<ServerRecord>, StoreError> {
    Ok(rows.into_iter().next().map(ServerRecord::from_row).transpose()?)
}

fn found(id: ServerId, change: &Change) -> Result<(), StoreError> {
    match change {
        Change::Rows(1..) => Ok(()),
        Change::Rows(0) | Change::NameTaken => Err(StoreError::NotFound { id }),
    }
}

fn name_taken(spec: &ServerSpec) -> StoreError {
    StoreError::NameTaken { name: spec.name.to_string() }
}
