//! The lease of one daemon on a PostgreSQL database: an advisory lock, held by a connection that
//! does nothing else, and the row of `kb.daemon_lease`.
//!
//! PostgreSQL frees the lock the moment the connection ends, while the servers of the daemon still
//! run. The row bridges that time: a new owner waits until it has expired. Its own connection
//! keeps a slow statement from delaying a renewal. A pooler must not share the session.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};

use super::sql_state;
use crate::DaemonIdentity;

/// How long a lease lasts without a renewal.
pub(super) const LEASE: Duration = Duration::from_secs(15);

/// The lock of one daemon on one database: "cofer-kb" in ASCII.
const LOCK: i64 = 0x636f_6665_722d_6b62;

const EXISTS: &str = "SELECT to_regclass('kb.daemon_lease') IS NOT NULL";

const READ: &str = "SELECT owner::text, host, epoch,
        greatest(0, extract(epoch FROM expires_at - clock_timestamp()))::float8
    FROM kb.daemon_lease";

/// Conflicts with `CHECK`: a write that was begun under the previous epoch ends first.
const READ_AND_LOCK: &str = "SELECT owner::text, host, epoch,
        greatest(0, extract(epoch FROM expires_at - clock_timestamp()))::float8
    FROM kb.daemon_lease FOR UPDATE";

/// owner, host, seconds.
const ACQUIRE: &str = "INSERT INTO kb.daemon_lease (owner, host, epoch, expires_at)
    VALUES ($1::uuid, $2, 1, clock_timestamp() + make_interval(secs => $3))
    ON CONFLICT (only_row) DO UPDATE SET owner = excluded.owner, host = excluded.host,
        epoch = daemon_lease.epoch + 1, expires_at = excluded.expires_at
    RETURNING epoch";

/// owner, epoch.
const CLAIM_SERVERS: &str = "UPDATE kb.agent_workspaces SET owner = $1::uuid, epoch = $2
    WHERE container_type = 'mcp_server'";

/// owner, epoch, seconds.
const EXTEND: &str = "UPDATE kb.daemon_lease
    SET expires_at = clock_timestamp() + make_interval(secs => $3)
    WHERE owner = $1::uuid AND epoch = $2";

/// owner, epoch. A key share lock: renewals pass beside it, an acquisition waits for it.
const CHECK: &str = "SELECT epoch FROM kb.daemon_lease WHERE owner = $1::uuid AND epoch = $2
    FOR KEY SHARE";

/// Ends the sessions that hold the lock.
const EVICT: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid <> pg_backend_pid()
        AND ((classid::bigint << 32) | objid::bigint) = $1
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The row of `kb.daemon_lease`.
pub(super) struct LeaseRow {
    pub(super) owner: String,
    host: String,
    epoch: i64,
    pub(super) remaining: Duration,
}

impl LeaseRow {
    fn is_of(&self, daemon: &DaemonIdentity) -> bool {
        self.owner == daemon.id.to_string() && self.host == daemon.host
    }

    /// Whether `daemon` has to wait before it may start its servers.
    pub(super) fn excludes(&self, daemon: &DaemonIdentity) -> bool {
        !self.remaining.is_zero() && !self.is_of(daemon)
    }
}

/// The current lease; none where the database was never owned.
pub(super) async fn read(connection: &mut PgConnection) -> Result<Option<LeaseRow>, sqlx::Error> {
    if !sqlx::query_scalar::<_, bool>(EXISTS).fetch_one(&mut *connection).await? {
        return Ok(None);
    }
    read_by(READ, connection).await
}

async fn read_by(
    sql: &'static str,
    connection: &mut PgConnection,
) -> Result<Option<LeaseRow>, sqlx::Error> {
    let row = sqlx::query_as::<_, (String, String, i64, f64)>(sql);
    let row = row.fetch_optional(connection).await?;
    Ok(row.map(|(owner, host, epoch, seconds)| {
        let remaining = Duration::try_from_secs_f64(seconds).unwrap_or(LEASE);
        LeaseRow { owner, host, epoch, remaining }
    }))
}

/// Takes the advisory lock. A session of `daemon` itself that PostgreSQL has not seen end, because
/// the network went away without a word, is terminated; `epoch` is that session's where it is
/// known.
pub(super) async fn lock(
    connection: &mut PgConnection,
    daemon: &DaemonIdentity,
    epoch: Option<i64>,
) -> Result<(), sqlx::Error> {
    let refused = match take_lock(connection).await {
        Err(error) if sql_state(&error).as_deref() == Some("55P03") => error,
        taken => return taken,
    };
    let row = read(connection).await?;
    let stale =
        row.is_some_and(|row| row.is_of(daemon) && epoch.is_none_or(|epoch| epoch == row.epoch));
    if !stale {
        return Err(refused);
    }
    tracing::info!("terminating this daemon's previous database session");
    sqlx::query(EVICT).bind(LOCK).execute(&mut *connection).await?;
    take_lock(connection).await
}

async fn take_lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let lock = sqlx::query("SELECT pg_advisory_lock($1)").bind(LOCK);
    lock.execute(connection).await.map(drop)
}

/// Makes `daemon` the owner of the database and of all servers, under the next epoch; the
/// current lease where it is another daemon's. The caller holds the lock.
pub(super) async fn acquire(
    connection: &mut PgConnection,
    daemon: &DaemonIdentity,
) -> Result<Result<i64, LeaseRow>, sqlx::Error> {
    let mut change = connection.begin().await?;
    if let Some(row) = read_by(READ_AND_LOCK, &mut change).await?
        && row.excludes(daemon)
    {
        return Ok(Err(row));
    }
    let owner = daemon.id.to_string();
    let epoch: i64 = sqlx::query_scalar(ACQUIRE)
        .bind(&owner)
        .bind(&daemon.host)
        .bind(LEASE.as_secs_f64())
        .fetch_one(&mut *change)
        .await?;
    sqlx::query(CLAIM_SERVERS).bind(&owner).bind(epoch).execute(&mut *change).await?;
    change.commit().await?;
    Ok(Ok(epoch))
}

/// Extends the lease; false where it is no longer this one. Zero releases it.
pub(super) async fn extend(
    connection: &mut PgConnection,
    daemon: &DaemonIdentity,
    epoch: i64,
    lease: Duration,
) -> Result<bool, sqlx::Error> {
    let extend = sqlx::query(EXTEND).bind(daemon.id.to_string()).bind(epoch);
    let done = extend.bind(lease.as_secs_f64()).execute(connection).await?;
    Ok(done.rows_affected() == 1)
}

/// Whether the lease is still this one, until the transaction of `connection` ends.
pub(super) async fn check(
    connection: &mut PgConnection,
    daemon: &DaemonIdentity,
    epoch: i64,
) -> Result<bool, sqlx::Error> {
    let check = sqlx::query(CHECK).bind(daemon.id.to_string()).bind(epoch);
    Ok(check.fetch_optional(connection).await?.is_some())
}
