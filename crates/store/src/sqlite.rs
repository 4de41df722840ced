//! The embedded database: one file, attached as `kb` to a connection whose main database is in
//! memory, so that the table has the same name as in PostgreSQL.
//!
//! Opening it acquires the ownership under a new epoch; each change checks that epoch first.
//!
//! One connection: what is stored changes a few times a minute, and SQLite has one writer anyway.

mod marker;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::chats::{self, ChatSql, Texts};
use crate::lists::{self, ListSql};
use crate::schema::{self, Migration};
use crate::servers::{self, Argument, Backend, Change, Row, Sql};
use crate::{DaemonIdentity, Ownership, StoreError};

/// How long a statement waits while another program, such as `sqlite3`, holds the file locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// `SQLITE_BUSY`.
const BUSY: i32 = 5;

/// `SQLITE_CONSTRAINT_UNIQUE`; a second row of the same id is another code, PRIMARYKEY.
const UNIQUE: i32 = 2067;

/// `SQLITE_CONSTRAINT_TRIGGER`, which only `guard` raises.
const TRIGGER: i32 = 1811;

/// All that the owner alone may change.
const TABLES: [&str; 6] = [
    "agent_workspaces",
    "chat_conversations",
    "chat_messages",
    "chat_providers",
    "chat_results",
    "mcp_server_lists",
];

/// The servers in a SQLite file.
pub struct SqliteStore {
    /// The file, for messages.
    place: String,
    /// None when closed.
    connection: Mutex<Option<SqliteConnection>>,
    _lock: File,
}

impl SqliteStore {
    /// Opens the file, made with mode 0600 where it is missing, and brings its tables up to date.
    pub async fn open(path: &Path, daemon: DaemonIdentity) -> Result<Self, StoreError> {
        let place = path.display().to_string();
        let unusable = |source| StoreError::File { place: place.clone(), source };
        let was_used = marker::is_there(path).map_err(unusable)?;
        if was_used && !path.try_exists().map_err(unusable)? {
            return Err(StoreError::Emptied { place });
        }
        let file = path.to_owned();
        let prepared = tokio::task::spawn_blocking(move || prepare(&file)).await;
        let path =
            prepared.unwrap_or_else(|stopped| Err(io::Error::other(stopped))).map_err(unusable)?;
        let connection = attach(&path).await;
        let mut connection =
            connection.map_err(|error| classify("open the database", &place, error))?;
        let found = version(&mut connection).await;
        if found.map_err(|error| classify("open the database", &place, error))? == 0 && was_used {
            // Closed before the error is seen: it may lead to a restore of this very file.
            connection.close().await.ok();
            return Err(StoreError::Emptied { place });
        }
        migrate(&mut connection, schema::SQLITE, &place).await?;
        let Some(lock) = marker::hold(&path).map_err(unusable)? else {
            return Err(StoreError::InUse { place });
        };
        let owner = daemon.id.to_string();
        let owned = async {
            let epoch = acquire(&mut connection, &owner).await?;
            guard(&mut connection, &owner, epoch).await?;
            Ok(epoch)
        };
        let epoch = owned.await.map_err(|error| classify("acquire the database", &place, error))?;
        tracing::debug!(database = place, epoch, "store opened");
        Ok(Self { place, connection: Mutex::new(Some(connection)), _lock: lock })
    }

    fn superseded(&self) -> StoreError {
        let reason = "another daemon has acquired it".to_owned();
        StoreError::NotOwner { place: self.place.clone(), reason }
    }
}

/// Owned until the process ends: the lock on the file does not depend on a connection.
#[async_trait]
impl Ownership for SqliteStore {
    fn lease(&self) -> Option<Duration> {
        None
    }

    async fn renew(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn fence(&self) {}

    async fn acquire(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Makes `owner` the owner of the database and of all servers, under the next epoch.
async fn acquire(connection: &mut SqliteConnection, owner: &str) -> Result<i64, sqlx::Error> {
    let mut change = connection.begin_with("BEGIN IMMEDIATE").await?;
    let acquire = "INSERT INTO kb.daemon_lease (only_row, owner, epoch) VALUES (1, $1, 1)
        ON CONFLICT (only_row) DO UPDATE SET owner = excluded.owner, epoch = epoch + 1
        RETURNING epoch";
    let epoch: i64 = sqlx::query_scalar(acquire).bind(owner).fetch_one(&mut *change).await?;
    let claim = "UPDATE kb.agent_workspaces SET owner = $1, epoch = $2
        WHERE container_type = 'mcp_server'";
    sqlx::query(claim).bind(owner).bind(epoch).execute(&mut *change).await?;
    change.commit().await?;
    Ok(epoch)
}

/// Has this connection refuse every change as soon as another epoch is current. By triggers, so
/// that check and change are one statement: a transaction around both would be rolled back by
/// SQLite itself where the disk is full, and would stay open where a call is given up.
async fn guard(
    connection: &mut SqliteConnection,
    owner: &str,
    epoch: i64,
) -> Result<(), sqlx::Error> {
    for table in TABLES {
        for change in ["INSERT", "UPDATE", "DELETE"] {
            let sql = format!(
                "CREATE TEMPORARY TRIGGER {table}_{change} BEFORE {change} ON kb.{table}
                 WHEN NOT EXISTS (SELECT 1 FROM kb.daemon_lease
                     WHERE owner = '{owner}' AND epoch = {epoch})
                 BEGIN SELECT RAISE(ABORT, 'another daemon owns the database'); END"
            );
            // A table's name, a UUID and a number.
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

#[async_trait]
impl Backend for SqliteStore {
    const SQL: Sql = servers::SQLITE;
    const CHAT: ChatSql = chats::SQLITE;
    const LISTS: ListSql = lists::SQLITE;

    async fn rows(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut guard = self.connection.lock().await;
        let connection = guard.as_mut().ok_or(StoreError::Closed)?;
        let query = arguments.into_iter().fold(sqlx::query_as(sql), QueryAs::bind);
        let rows = query.fetch_all(connection).await;
        rows.map_err(|error| classify(attempt, &self.place, error))
    }

    async fn texts(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Texts>, StoreError> {
        let mut guard = self.connection.lock().await;
        let connection = guard.as_mut().ok_or(StoreError::Closed)?;
        let query = arguments.into_iter().fold(sqlx::query(sql), Query::bind);
        let rows = query.fetch_all(connection).await;
        let rows = rows.and_then(|rows| rows.iter().map(texts).collect());
        rows.map_err(|error| classify(attempt, &self.place, error))
    }

    async fn change(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Change, StoreError> {
        let mut guard = self.connection.lock().await;
        let connection = guard.as_mut().ok_or(StoreError::Closed)?;
        let query = arguments.into_iter().fold(sqlx::query(sql), Query::bind);
        match query.execute(connection).await {
            Ok(done) => Ok(Change::Rows(done.rows_affected())),
            Err(error) if result_code(&error) == Some(TRIGGER) => Err(self.superseded()),
            Err(error) if result_code(&error) == Some(UNIQUE) => Ok(Change::NameTaken),
            Err(error) => Err(classify(attempt, &self.place, error)),
        }
    }

    async fn ping(&self) -> Result<(), StoreError> {
        let mut guard = self.connection.lock().await;
        let connection = guard.as_mut().ok_or(StoreError::Closed)?;
        // Reads the file, which `SELECT 1` would not.
        let query = sqlx::query("SELECT count(*) FROM kb.sqlite_master");
        let answer = query.execute(connection).await;
        answer.map(drop).map_err(|error| classify("reach the database", &self.place, error))
    }

    /// Ends the connection, which also moves the write-ahead log into the file.
    async fn shut(&self) {
        let connection = self.connection.lock().await.take();
        if let Some(connection) = connection
            && let Err(error) = connection.close().await
        {
            tracing::warn!(database = self.place, %error, "the database did not close in order");
        }
    }
}

fn texts(row: &SqliteRow) -> Result<Texts, sqlx::Error> {
    (0..row.len()).map(|column| row.try_get(column)).collect()
}

/// Makes the file where it is missing, takes away what others may do with it, and returns its
/// absolute path: a relative one that begins with `file:` would be read as a URI.
fn prepare(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().create_new(true).open(&path) {
        Ok(file) => {
            // The umask may have taken more than it should.
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            close_to_others(&path)?;
            options.open(&path)?;
        }
        Err(error) => return Err(error),
    }
    for suffix in ["-wal", "-shm"] {
        // SQLite gives these the mode of the file, but leaves one alone that is there already.
        let mut beside = path.clone().into_os_string();
        beside.push(suffix);
        match close_to_others(Path::new(&beside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(path)
}

fn close_to_others(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(mode & 0o700))?;
    }
    Ok(())
}

async fn attach(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let path = path
        .to_str()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"))?;
    // Not `in_memory`: that would hold for what is attached as well.
    let memory = SqliteConnectOptions::new()
        .filename(":memory:")
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .thread_name(|_| "store".to_owned());
    let mut connection = memory.disable_statement_logging().connect().await?;
    sqlx::query("ATTACH DATABASE $1 AS kb").bind(path).execute(&mut connection).await?;
    write_ahead(&mut connection).await?;
    // FULL: each commit is on the disk before it is answered, also when the power fails.
    sqlx::raw_sql("PRAGMA kb.synchronous = FULL").execute(&mut connection).await?;
    Ok(connection)
}

/// Switches the file to a write-ahead log, which it then has for ever. SQLite does not wait for
/// the lock that this needs, so that it is tried again here.
async fn write_ahead(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        let switch = sqlx::raw_sql("PRAGMA kb.journal_mode = WAL");
        match switch.execute(&mut *connection).await {
            Err(error) if result_code(&error) == Some(BUSY) && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            outcome => return outcome.map(drop),
        }
    }
}

/// All that is missing in one transaction; nothing is written where nothing is missing.
async fn migrate(
    connection: &mut SqliteConnection,
    known: &[Migration],
    place: &str,
) -> Result<(), StoreError> {
    let failed = |error| classify("prepare the tables", place, error);
    if schema::pending(known, version(connection).await.map_err(failed)?, place)?.is_empty() {
        return Ok(());
    }
    // Immediate, and looked at again: another process may be doing the same.
    let mut change = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    let found = version(&mut change).await.map_err(failed)?;
    let bookkeeping = "CREATE TABLE IF NOT EXISTS kb.schema_migrations (
        version INTEGER PRIMARY KEY, name TEXT NOT NULL,
        applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))) STRICT";
    sqlx::query(bookkeeping).execute(&mut *change).await.map_err(failed)?;
    for migration in schema::pending(known, found, place)? {
        sqlx::raw_sql(migration.sql).execute(&mut *change).await.map_err(failed)?;
        sqlx::query("INSERT INTO kb.schema_migrations (version, name) VALUES ($1, $2)")
            .bind(migration.version)
            .bind(migration.name)
            .execute(&mut *change)
            .await
            .map_err(failed)?;
    }
    change.commit().await.map_err(failed)
}

/// The version of the tables, 0 where there are none.
async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let there = "SELECT count(*) FROM kb.sqlite_master WHERE name = 'schema_migrations'";
    if sqlx::query_scalar::<_, i64>(there).fetch_one(&mut *connection).await? == 0 {
        return Ok(0);
    }
    sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM kb.schema_migrations")
        .fetch_one(connection)
        .await
}

/// Puts a failure under the name a person can act on, by SQLite's primary result code.
fn classify(attempt: &'static str, place: &str, source: sqlx::Error) -> StoreError {
    let place = place.to_owned();
    match result_code(&source).map(|code| code & 0xff) {
        Some(BUSY | 6) => StoreError::Busy { attempt, place, source },
        Some(8) => StoreError::ReadOnly { attempt, place, source },
        Some(10 | 14) => StoreError::Unavailable { attempt, place, source },
        Some(11 | 26) => StoreError::Corrupt { attempt, place, source },
        Some(13) => StoreError::DiskFull { attempt, place, source },
        _ => StoreError::Query { attempt, place, source },
    }
}

/// SQLite's extended result code.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn opened() -> (tempfile::TempDir, SqliteStore) {
        let directory = tempfile::tempdir().unwrap();
        let daemon = DaemonIdentity { id: uuid::Uuid::nil(), host: String::new() };
        let store = SqliteStore::open(&directory.path().join("kb.db"), daemon).await.unwrap();
        (directory, store)
    }

    async fn fails(store: &SqliteStore, sql: &'static str) -> StoreError {
        let mut guard = store.connection.lock().await;
        let error = sqlx::raw_sql(sql).execute(guard.as_mut().unwrap()).await.unwrap_err();
        classify("try", &store.place, error)
    }

    #[tokio::test]
    async fn commits_are_synced_to_the_attached_file() {
        let (_directory, store) = opened().await;
        let mut guard = store.connection.lock().await;
        let connection = guard.as_mut().unwrap();
        let journal = sqlx::query_scalar::<_, String>("PRAGMA kb.journal_mode");
        assert_eq!(journal.fetch_one(&mut *connection).await.unwrap(), "wal");
        let synchronous = sqlx::query_scalar::<_, i64>("PRAGMA kb.synchronous");
        assert_eq!(synchronous.fetch_one(connection).await.unwrap(), 2, "2 is FULL");
    }

    #[tokio::test]
    async fn every_table_is_guarded() {
        let (_directory, store) = opened().await;
        let mut guard = store.connection.lock().await;
        let tables = "SELECT name FROM kb.sqlite_master WHERE type = 'table'
            AND name NOT IN ('schema_migrations', 'daemon_lease') ORDER BY name";
        let tables = sqlx::query_scalar::<_, String>(tables).fetch_all(guard.as_mut().unwrap());
        assert_eq!(tables.await.unwrap(), TABLES);
    }

    #[tokio::test]
    async fn a_full_disk_is_called_so() {
        let (_directory, store) = opened().await;
        let sql = "PRAGMA kb.max_page_count = 1; CREATE TABLE kb.big (x);
            INSERT INTO kb.big VALUES (zeroblob(1000000))";
        let error = fails(&store, sql).await;
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn a_database_that_takes_no_changes_is_called_read_only() {
        let (_directory, store) = opened().await;
        let error = fails(&store, "PRAGMA query_only = 1; DELETE FROM kb.agent_workspaces").await;
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    }
}
