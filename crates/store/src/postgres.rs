//! PostgreSQL, with one connection that both does the work and holds the lock on the database:
//! whoever lost the lock has lost the connection, so that two daemons never write to one
//! database. It needs a session of its own: a pooler between must not share it.
//!
//! A connection that broke is replaced at the next call, lock included.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use crate::StoreError;
use crate::chats::{self, ChatSql, Texts};
use crate::schema::{self, Migration};
use crate::servers::{self, Argument, Backend, Change, Row, Sql};

/// How long a call may take, waiting for its turn and for a new connection included.
const DEADLINE: Duration = Duration::from_secs(10);

/// The lock of one daemon on one database: "cofer-kb" in ASCII.
const LOCK: i64 = 0x636f_6665_722d_6b62;

/// For each session. The wait for the lock is long enough for PostgreSQL to notice the end of a
/// daemon that was killed just now, and a machine that is gone is noticed within a minute.
const SESSION: &str = "SET lock_timeout = '2s'; SET statement_timeout = '10s';
    SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3";

/// The servers in a PostgreSQL database.
pub struct PgStore {
    options: PgConnectOptions,
    /// Host, port and database, for messages.
    place: String,
    link: Mutex<Link>,
}

enum Link {
    Up(PgConnection),
    /// To be connected at the next call.
    Down,
    /// Never again.
    Closed,
}

/// The connection in use. It goes back when its outcome is settled; where that never happens,
/// because the call was given up, it is dropped: an answer may still be on its way in it.
struct Lease<'a> {
    link: MutexGuard<'a, Link>,
    connection: PgConnection,
}

impl PgStore {
    /// Connects, takes the lock, and brings the tables up to date.
    pub async fn open(options: PgConnectOptions) -> Result<Self, StoreError> {
        let place = place(&options);
        let options = options.application_name("cofer").disable_statement_logging();
        let store = Self { options, place, link: Mutex::new(Link::Down) };
        let attempt = "open the database";
        store
            .in_time(attempt, async {
                let mut lease = store.lease(attempt).await?;
                migrate(&mut lease.connection, schema::POSTGRES, &store.place).await?;
                lease.give_back();
                Ok(())
            })
            .await?;
        tracing::debug!(database = store.place, "store opened");
        Ok(store)
    }

    /// The connection, checked or new.
    async fn lease(&self, attempt: &'static str) -> Result<Lease<'_>, StoreError> {
        let mut link = self.link.lock().await;
        if let Link::Closed = *link {
            return Err(StoreError::Closed);
        }
        if let Link::Up(mut connection) = std::mem::replace(&mut *link, Link::Down)
            && connection.ping().await.is_ok()
        {
            return Ok(Lease { link, connection });
        }
        let connection =
            self.connect().await.map_err(|error| match sql_state(&error).as_deref() {
                Some("55P03") => StoreError::InUse { place: self.place.clone() },
                _ => StoreError::Unavailable { attempt, place: self.place.clone(), source: error },
            })?;
        Ok(Lease { link, connection })
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        sqlx::raw_sql(SESSION).execute(&mut connection).await?;
        let lock = sqlx::query("SELECT pg_advisory_lock($1)").bind(LOCK);
        lock.execute(&mut connection).await?;
        Ok(connection)
    }

    fn silent(&self, attempt: &'static str) -> StoreError {
        let why = format!("no answer within {DEADLINE:?}");
        let source = io::Error::new(io::ErrorKind::TimedOut, why).into();
        StoreError::Unavailable { attempt, place: self.place.clone(), source }
    }

    /// Runs `work` within the deadline.
    async fn in_time<T>(
        &self,
        attempt: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        timeout(DEADLINE, work).await.unwrap_or_else(|_| Err(self.silent(attempt)))
    }
}

impl Lease<'_> {
    fn give_back(mut self) {
        *self.link = Link::Up(self.connection);
    }

    /// Keeps the connection where PostgreSQL answered, if only with an error.
    fn settle<T>(self, outcome: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        if outcome.as_ref().err().is_none_or(|error| !is_broken(error)) {
            self.give_back();
        }
        outcome
    }
}

#[async_trait]
impl Backend for PgStore {
    const SQL: Sql = servers::POSTGRES;
    const CHAT: ChatSql = chats::POSTGRES;

    async fn rows(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Row>, StoreError> {
        self.in_time(attempt, async {
            let mut lease = self.lease(attempt).await?;
            let query = arguments.into_iter().fold(sqlx::query_as(sql), QueryAs::bind);
            let rows = query.fetch_all(&mut lease.connection).await;
            lease.settle(rows).map_err(|error| classify(attempt, &self.place, error))
        })
        .await
    }

    async fn texts(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Texts>, StoreError> {
        self.in_time(attempt, async {
            let mut lease = self.lease(attempt).await?;
            let query = arguments.into_iter().fold(sqlx::query(sql), Query::bind);
            let rows = query.fetch_all(&mut lease.connection).await;
            let rows = lease.settle(rows).and_then(|rows| rows.iter().map(texts).collect());
            rows.map_err(|error| classify(attempt, &self.place, error))
        })
        .await
    }

    async fn change(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Change, StoreError> {
        self.in_time(attempt, async {
            let mut lease = self.lease(attempt).await?;
            let query = arguments.into_iter().fold(sqlx::query(sql), Query::bind);
            let done = query.execute(&mut lease.connection).await;
            match lease.settle(done) {
                Ok(done) => Ok(Change::Rows(done.rows_affected())),
                Err(error) if is_name_taken(&error) => Ok(Change::NameTaken),
                Err(error) => Err(classify(attempt, &self.place, error)),
            }
        })
        .await
    }

    /// A lease is checked when it is taken: nothing more is to be asked.
    async fn ping(&self) -> Result<(), StoreError> {
        let attempt = "reach the database";
        self.in_time(attempt, async {
            self.lease(attempt).await?.give_back();
            Ok(())
        })
        .await
    }

    async fn shut(&self) {
        let link = std::mem::replace(&mut *self.link.lock().await, Link::Closed);
        if let Link::Up(connection) = link
            && let Ok(Err(error)) = timeout(DEADLINE, connection.close()).await
        {
            tracing::warn!(database = self.place, %error, "the database did not close in order");
        }
    }
}

fn texts(row: &PgRow) -> Result<Texts, sqlx::Error> {
    (0..row.len()).map(|column| row.try_get(column)).collect()
}

/// Which database that is, without the user and the password.
fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    let port = options.get_port();
    match options.get_socket() {
        Some(socket) => format!("PostgreSQL database `{database}` in {}", socket.display()),
        None => format!("PostgreSQL database `{database}` at {}:{port}", options.get_host()),
    }
}

/// All that is missing in one transaction; nothing is written where nothing is missing, so that
/// a user who may not create a schema can use one that was made for them.
async fn migrate(
    connection: &mut PgConnection,
    known: &[Migration],
    place: &str,
) -> Result<(), StoreError> {
    let failed = |error| classify("prepare the tables", place, error);
    let found = version(connection).await.map_err(failed)?;
    let pending = schema::pending(known, found, place)?;
    if pending.is_empty() {
        return Ok(());
    }
    let mut change = connection.begin().await.map_err(failed)?;
    if found == 0 {
        sqlx::raw_sql(BOOKKEEPING).execute(&mut *change).await.map_err(failed)?;
    }
    for migration in pending {
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

/// Asks before it creates the schema: `IF NOT EXISTS` wants the right to create one either way.
const BOOKKEEPING: &str = "
    DO $$ BEGIN
        IF to_regnamespace('kb') IS NULL THEN CREATE SCHEMA kb; END IF;
    END $$;
    CREATE TABLE kb.schema_migrations (
        version BIGINT PRIMARY KEY, name TEXT NOT NULL,
        applied_at TIMESTAMPTZ NOT NULL DEFAULT now())";

/// The version of the tables, 0 where there are none.
async fn version(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let there = "SELECT to_regclass('kb.schema_migrations') IS NOT NULL";
    if !sqlx::query_scalar::<_, bool>(there).fetch_one(&mut *connection).await? {
        return Ok(0);
    }
    sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM kb.schema_migrations")
        .fetch_one(connection)
        .await
}

/// Whether the connection can be used no more.
fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        _ => sql_state(error)
            .is_some_and(|state| state.starts_with("08") || state.starts_with("57P")),
    }
}

fn is_name_taken(error: &sqlx::Error) -> bool {
    let constraint = error.as_database_error().and_then(|error| error.constraint());
    constraint == Some("agent_workspaces_name_key")
}

/// Puts a failure under the name a person can act on.
fn classify(attempt: &'static str, place: &str, source: sqlx::Error) -> StoreError {
    let place = place.to_owned();
    if is_broken(&source) {
        return StoreError::Unavailable { attempt, place, source };
    }
    match sql_state(&source).as_deref() {
        Some("53100") => StoreError::DiskFull { attempt, place, source },
        Some("25006") => StoreError::ReadOnly { attempt, place, source },
        Some("55P03" | "57014") => StoreError::Busy { attempt, place, source },
        _ => StoreError::Query { attempt, place, source },
    }
}

fn sql_state(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}
