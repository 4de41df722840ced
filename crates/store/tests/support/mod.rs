//! A place for a store, of either database, and what is needed to look at it from outside.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::str::FromStr as _;
use std::sync::Arc;

use cofer_model::{Failure, FailureKind, ServerId, ServerSpec, Status};
use cofer_store::{DaemonIdentity, ServerRecord, Store, StoreError};
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, SqliteConnection};
use tempfile::TempDir;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

/// Long after the epoch, and with a fraction that PostgreSQL can keep.
pub(crate) const NOON: OffsetDateTime = datetime!(2026-11-15 12:00:00.123456 UTC);
pub(crate) const LATER: OffsetDateTime = datetime!(2026-11-15 13:00:00 UTC);

/// Where one test's store lives.
pub(crate) struct Home {
    pub(crate) directory: TempDir,
    /// For PostgreSQL.
    pub(crate) database: Option<PgConnectOptions>,
}

impl Home {
    pub(crate) fn sqlite() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), database: None }
    }

    /// A database of its own on the server that is there for tests.
    pub(crate) async fn postgres() -> Self {
        let name = format!("cofer_{}", Uuid::new_v4().simple());
        let mut admin = admin().await;
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::raw_sql(create).execute(&mut admin).await.unwrap();
        Self { directory: tempfile::tempdir().unwrap(), database: Some(server().database(&name)) }
    }

    pub(crate) fn url(&self) -> Option<String> {
        self.database.as_ref().map(|options| options.to_url_lossy().into())
    }

    /// Opens it as the daemon of this data directory does, also after that was killed.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.open_as(daemon()).await
    }

    pub(crate) async fn open_as(
        &self,
        daemon: DaemonIdentity,
    ) -> Result<Arc<dyn Store>, StoreError> {
        cofer_store::open(self.url().as_deref(), self.directory.path(), daemon).await
    }

    /// Runs `sql` the way a person with a client of the database would.
    pub(crate) async fn by_hand(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.database {
            Some(options) => {
                let mut connection: PgConnection = options.connect().await.unwrap();
                sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
            None => {
                let mut connection = self.file().await;
                sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
        }
    }

    /// The one value that `sql` selects, as text.
    pub(crate) async fn look(&self, sql: &str) -> String {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.database {
            Some(options) => {
                let mut connection: PgConnection = options.connect().await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
            None => sqlx::query_scalar(sql).fetch_one(&mut self.file().await).await.unwrap(),
        }
    }

    /// A connection to the SQLite file that has it as `kb`, as the daemon has.
    pub(crate) async fn file(&self) -> SqliteConnection {
        let path = self.directory.path().join("kb.db");
        let memory = SqliteConnectOptions::new().filename(":memory:");
        let mut connection = memory.connect().await.unwrap();
        sqlx::query("ATTACH DATABASE $1 AS kb")
            .bind(path.to_str().unwrap())
            .execute(&mut connection)
            .await
            .unwrap();
        connection
    }

    /// Leaves nothing on the server.
    pub(crate) async fn remove(self) {
        let Some(options) = &self.database else { return };
        let name = options.get_database().unwrap();
        let drop = AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"));
        sqlx::raw_sql(drop).execute(&mut admin().await).await.unwrap();
    }
}

/// The server for tests.
pub(crate) fn server() -> PgConnectOptions {
    let url = std::env::var("COFER_TEST_POSTGRES_URL").unwrap_or_else(|_| {
        panic!(
            "COFER_TEST_POSTGRES_URL is not set: run `make test`, or this test alone with \
             `scripts/with-postgres cargo test -p cofer-store`"
        )
    });
    PgConnectOptions::from_str(&url).unwrap()
}

/// A connection to the server that may do everything.
pub(crate) async fn admin() -> PgConnection {
    server().connect().await.unwrap()
}

/// The daemon that owns a test's store.
pub(crate) fn daemon() -> DaemonIdentity {
    DaemonIdentity { id: Uuid::nil(), host: "test".to_owned() }
}

/// A daemon on another machine.
pub(crate) fn other_daemon() -> DaemonIdentity {
    DaemonIdentity { id: Uuid::max(), host: "elsewhere".to_owned() }
}

pub(crate) fn id() -> ServerId {
    ServerId(Uuid::new_v4())
}

pub(crate) fn spec(name: &str) -> ServerSpec {
    serde_json::from_value(json!({"name": name, "command": "npx", "args": ["-y", "x"]})).unwrap()
}

pub(crate) fn record(name: &str) -> ServerRecord {
    ServerRecord {
        id: id(),
        spec: spec(name),
        status: Status::Stopped,
        last_error: None,
        created_at: NOON,
        updated_at: NOON,
        // What the store writes when it was opened once.
        owner: Some(daemon().id),
        epoch: 1,
    }
}

pub(crate) fn failure(stderr: &str) -> Failure {
    Failure {
        kind: FailureKind::ExitedEarly,
        message: "`npx` exited with code 3".to_owned(),
        hint: "look at its stderr".to_owned(),
        exit_code: Some(3),
        signal: None,
        stderr: Some(stderr.to_owned()),
    }
}

/// The names of the servers that can be read, in order.
pub(crate) async fn names(store: &Arc<dyn Store>) -> Vec<String> {
    let listed = store.list().await.unwrap();
    listed.into_iter().flatten().map(|record| record.spec.name.to_string()).collect()
}

/// Each promise becomes two tests.
#[allow(unused_macros, reason = "not every suite is a list of promises")]
macro_rules! contract {
    ($($promise:ident,)+) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise(&super::Home::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $promise() {
                let home = super::Home::postgres().await;
                super::$promise(&home).await;
                home.remove().await;
            })+
        }
    };
}
