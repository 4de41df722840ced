//! PostgreSQL: one connection that does the work, and one that holds the lease (`lease`).
//!
//! A connection that broke is replaced at the next call. Each change is a transaction that first
//! checks the epoch, so that a daemon whose lease was taken over writes nothing any more.

mod lease;

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::{ConnectOptions as _, Connection as _, Postgres, Row as _};
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio::time::{sleep, timeout};

use crate::chats::{self, ChatSql, Texts};
use crate::lists::{self, ListSql};
use crate::schema::{self, Migration};
use crate::servers::{self, Argument, Backend, Change, Row, Sql};
use crate::{DaemonIdentity, Ownership, StoreError};

/// How long a call may take, waiting for its turn and for a new connection included.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long one renewal may take: a connection that hangs leaves time to try another one within
/// the lease.
const RENEWAL: Duration = Duration::from_secs(3);

/// How often a daemon that starts looks whether the previous lease has ended early.
const WAIT: Duration = Duration::from_secs(1);

/// For each session. A machine that is gone is noticed within a minute. A lease that PostgreSQL
/// confirmed must survive its restart, so a commit is on the disk also where the server's default
/// is not to wait for that.
const SESSION: &str = "SET statement_timeout = '10s';
    SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off'";

/// Long enough for PostgreSQL to notice the end of a daemon that was killed just now.
const LOCK_WAIT: &str = "SET lock_timeout = '2s'";

/// Within the time of a renewal.
const RELOCK_WAIT: &str = "SET lock_timeout = '500ms'";

/// The servers in a PostgreSQL database.
pub struct PgStore {
    options: PgConnectOptions,
    /// Host, port and database, for messages.
    place: String,
    daemon: DaemonIdentity,
    claim: watch::Sender<Claim>,
    /// Does the work; none where it is to be connected at the next call.
    link: Mutex<Option<PgConnection>>,
    /// Holds the advisory lock; none where it broke.
    session: Mutex<Option<PgConnection>>,
}

/// Whether this daemon may use the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// It is the owner, in this epoch.
    Held(i64),
    /// It was fenced, or has not acquired ownership yet.
    Lost,
    /// The store was closed.
    Closed,
}

/// The connection in use. It goes back when its outcome is settled; where that never happens,
/// because the call was given up, it is dropped: an answer may still be on its way in it.
struct Borrowed<'a> {
    link: MutexGuard<'a, Option<PgConnection>>,
    connection: PgConnection,
}

impl PgStore {
    /// Connects, acquires ownership, and brings the tables up to date. Waits for the lease of a
    /// previous owner that is not connected any more.
    pub async fn open(
        options: PgConnectOptions,
        daemon: DaemonIdentity,
    ) -> Result<Self, StoreError> {
        let place = place(&options);
        let options = options.application_name("cofer").disable_statement_logging();
        let store = Self {
            options,
            place,
            daemon,
            claim: watch::Sender::new(Claim::Lost),
            link: Mutex::new(None),
            session: Mutex::new(None),
        };
        let mut announced = false;
        loop {
            match store.acquire().await {
                Err(StoreError::LeaseHeld { owner, remaining, .. }) => {
                    if !announced {
                        let seconds = remaining.as_secs() + 1;
                        tracing::warn!(target: "START", database = store.place, owner, "waiting for the previous owner's lease, up to {seconds} s");
                        announced = true;
                    }
                    sleep(remaining.min(WAIT)).await;
                }
                acquired => break acquired?,
            }
        }
        tracing::debug!(database = store.place, "store opened");
        Ok(store)
    }

    /// The connection that does the work, checked or new.
    async fn borrow(&self, attempt: &'static str) -> Result<Borrowed<'_>, StoreError> {
        let mut link = self.link.lock().await;
        if let Some(mut connection) = link.take()
            && connection.ping().await.is_ok()
        {
            return Ok(Borrowed { link, connection });
        }
        let connection = self.connect(LOCK_WAIT).await;
        let connection = connection.map_err(|error| self.unavailable(attempt, error))?;
        Ok(Borrowed { link, connection })
    }

    async fn connect(&self, lock_wait: &'static str) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.options.connect().await?;
        sqlx::raw_sql(SESSION).execute(&mut connection).await?;
        sqlx::raw_sql(lock_wait).execute(&mut connection).await?;
        Ok(connection)
    }

    /// Runs `work` within the deadline, and while this daemon is the owner.
    async fn owned<T>(
        &self,
        attempt: &'static str,
        work: impl AsyncFnOnce(i64) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Claim::Held(epoch) = *self.claim.borrow() else {
            return Err(self.not_owner());
        };
        let mut claim = self.claim.subscribe();
        tokio::select! {
            biased;
            _ = claim.wait_for(|claim| *claim != Claim::Held(epoch)) => Err(self.not_owner()),
            done = timeout(DEADLINE, work(epoch)) => done.unwrap_or_else(|_| Err(self.silent(attempt, DEADLINE))),
        }
    }

    /// Acquires ownership over a new session, which releases the lock where that fails.
    async fn take_over(&self, session: &mut Option<PgConnection>) -> Result<i64, StoreError> {
        let attempt = "acquire the ownership of the database";
        let failed = |error| classify(attempt, &self.place, error);
        *session = None;
        let mut connection =
            self.connect(LOCK_WAIT).await.map_err(|error| self.unavailable(attempt, error))?;
        self.lock(&mut connection, attempt, None).await?;
        // Before the tables are changed: the previous owner may still be writing.
        if let Some(row) = lease::read(&mut connection).await.map_err(failed)?
            && row.excludes(&self.daemon)
        {
            return Err(self.held(row));
        }
        migrate(&mut connection, schema::POSTGRES, &self.place).await?;
        let acquired = lease::acquire(&mut connection, &self.daemon).await.map_err(failed)?;
        let epoch = acquired.map_err(|row| self.held(row))?;
        *session = Some(connection);
        Ok(epoch)
    }

    /// Extends the lease of `epoch`; a session that broke is replaced, lock included.
    async fn extend(
        &self,
        session: &mut Option<PgConnection>,
        epoch: i64,
    ) -> Result<(), StoreError> {
        let attempt = "renew the ownership of the database";
        let mut connection = match session.take() {
            Some(connection) => connection,
            None => {
                let connection = self.connect(RELOCK_WAIT).await;
                let mut connection =
                    connection.map_err(|error| self.unavailable(attempt, error))?;
                self.lock(&mut connection, attempt, Some(epoch)).await?;
                connection
            }
        };
        let extended = lease::extend(&mut connection, &self.daemon, epoch, lease::LEASE).await;
        if !extended.map_err(|error| classify(attempt, &self.place, error))? {
            return Err(self.superseded());
        }
        *session = Some(connection);
        Ok(())
    }

    async fn lock(
        &self,
        connection: &mut PgConnection,
        attempt: &'static str,
        epoch: Option<i64>,
    ) -> Result<(), StoreError> {
        lease::lock(connection, &self.daemon, epoch).await.map_err(|error| {
            match sql_state(&error).as_deref() {
                Some("55P03") => StoreError::InUse { place: self.place.clone() },
                _ => classify(attempt, &self.place, error),
            }
        })
    }

    fn unavailable(&self, attempt: &'static str, source: sqlx::Error) -> StoreError {
        StoreError::Unavailable { attempt, place: self.place.clone(), source }
    }

    fn silent(&self, attempt: &'static str, limit: Duration) -> StoreError {
        let why = format!("no answer within {limit:?}");
        self.unavailable(attempt, io::Error::new(io::ErrorKind::TimedOut, why).into())
    }

    fn held(&self, row: lease::LeaseRow) -> StoreError {
        let (owner, remaining) = (row.owner, row.remaining);
        StoreError::LeaseHeld { place: self.place.clone(), owner, remaining }
    }

    fn superseded(&self) -> StoreError {
        let reason = "another daemon has acquired it".to_owned();
        StoreError::NotOwner { place: self.place.clone(), reason }
    }

    fn not_owner(&self) -> StoreError {
        if *self.claim.borrow() == Claim::Closed {
            return StoreError::Closed;
        }
        let reason = "its lease could not be renewed in time".to_owned();
        StoreError::NotOwner { place: self.place.clone(), reason }
    }
}

impl Borrowed<'_> {
    fn give_back(mut self) {
        *self.link = Some(self.connection);
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
impl Ownership for PgStore {
    fn lease(&self) -> Option<Duration> {
        Some(lease::LEASE)
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let Claim::Held(epoch) = *self.claim.borrow() else {
            return Err(self.not_owner());
        };
        let renewed =
            timeout(RENEWAL, async { self.extend(&mut *self.session.lock().await, epoch).await });
        renewed.await.unwrap_or_else(|_| Err(self.silent("renew the ownership", RENEWAL)))
    }

    fn fence(&self) {
        self.claim.send_if_modified(|claim| {
            let held = matches!(claim, Claim::Held(_));
            if held {
                *claim = Claim::Lost;
            }
            held
        });
    }

    async fn acquire(&self) -> Result<(), StoreError> {
        if *self.claim.borrow() == Claim::Closed {
            return Err(StoreError::Closed);
        }
        let attempt = "open the database";
        let mut session = self.session.lock().await;
        let acquired = timeout(DEADLINE, self.take_over(&mut session)).await;
        let epoch = acquired.unwrap_or_else(|_| Err(self.silent(attempt, DEADLINE)))?;
        // Not where `close` was called meanwhile.
        self.claim.send_if_modified(|claim| {
            let open = *claim != Claim::Closed;
            if open {
                *claim = Claim::Held(epoch);
            }
            open
        });
        tracing::info!(target: "START", database = self.place, epoch, "acquired the ownership of the database");
        Ok(())
    }
}

/// Runs one statement in a transaction that holds `epoch`; none where another epoch is current.
async fn write(
    connection: &mut PgConnection,
    (daemon, epoch): (&DaemonIdentity, i64),
    query: Query<'_, Postgres, PgArguments>,
) -> Result<Option<u64>, sqlx::Error> {
    let mut change = connection.begin().await?;
    if !lease::check(&mut change, daemon, epoch).await? {
        change.rollback().await?;
        return Ok(None);
    }
    match query.execute(&mut *change).await {
        Ok(done) => {
            change.commit().await?;
            Ok(Some(done.rows_affected()))
        }
        Err(error) => {
            // Where the connection broke, PostgreSQL rolls back by itself.
            change.rollback().await.ok();
            Err(error)
        }
    }
}

#[async_trait]
impl Backend for PgStore {
    const SQL: Sql = servers::POSTGRES;
    const CHAT: ChatSql = chats::POSTGRES;
    const LISTS: ListSql = lists::POSTGRES;

    async fn rows(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Row>, StoreError> {
        self.owned(attempt, async |_| {
            let mut borrowed = self.borrow(attempt).await?;
            let query = arguments.into_iter().fold(sqlx::query_as(sql), QueryAs::bind);
            let rows = query.fetch_all(&mut borrowed.connection).await;
            borrowed.settle(rows).map_err(|error| classify(attempt, &self.place, error))
        })
        .await
    }

    async fn texts(
        &self,
        attempt: &'static str,
        sql: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Vec<Texts>, StoreError> {
        self.owned(attempt, async |_| {
            let mut borrowed = self.borrow(attempt).await?;
            let query = arguments.into_iter().fold(sqlx::query(sql), Query::bind);
            let rows = query.fetch_all(&mut borrowed.connection).await;
            let rows = borrowed.settle(rows).and_then(|rows| rows.iter().map(texts).collect());
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
        self.owned(attempt, async |epoch| {
            let mut borrowed = self.borrow(attempt).await?;
            let query = arguments.into_iter().fold(sqlx::query(sql), Query::bind);
            let done = write(&mut borrowed.connection, (&self.daemon, epoch), query).await;
            match borrowed.settle(done) {
                Ok(Some(rows)) => Ok(Change::Rows(rows)),
                Ok(None) => Err(self.superseded()),
                Err(error) if is_name_taken(&error) => Ok(Change::NameTaken),
                Err(error) => Err(classify(attempt, &self.place, error)),
            }
        })
        .await
    }

    /// A connection is checked when it is borrowed: no further query is needed.
    async fn ping(&self) -> Result<(), StoreError> {
        let attempt = "reach the database";
        self.owned(attempt, async |_| {
            self.borrow(attempt).await?.give_back();
            Ok(())
        })
        .await
    }

    /// Releases the lease, so that the next owner need not wait for it.
    async fn shut(&self) {
        let claim = self.claim.send_replace(Claim::Closed);
        let closed = timeout(DEADLINE, async {
            if let Some(connection) = self.link.lock().await.take() {
                connection.close().await?;
            }
            let Some(mut session) = self.session.lock().await.take() else {
                return Ok(());
            };
            if let Claim::Held(epoch) = claim {
                lease::extend(&mut session, &self.daemon, epoch, Duration::ZERO).await?;
            }
            session.close().await
        });
        if let Ok(Err(error)) = closed.await {
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
