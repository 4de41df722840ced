//! Bounds the HTTP connections: their number, and how long one may be idle.
//!
//! A connection is unauthenticated until its first request with the right token. Unauthenticated
//! connections share a small pool; when it is full, its oldest idle connection is closed for the
//! new one, so that whoever opens thousands of them without the token cannot keep out a client with
//! it, nor `/healthz`. A client that opens hundreds of connections at once must not close its own
//! before their first request arrives: the pool has room for such a burst, for a moment. The
//! other half of the cap is for authenticated connections.
//!
//! There is no timer per connection or request: arming one wakes Tokio's timer driver, which costs a
//! call more than its own work. Requests only increment a counter, and one task compares the
//! counters once a second.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How often idle connections are looked for; the unit of the timeouts below.
const SWEEP: Duration = Duration::from_secs(1);

/// Sweeps until an unauthenticated connection is closed that is idle or still sends its headers.
const HEADER_TIMEOUT: u32 = 10;

/// Sweeps until an authenticated connection between two requests is closed. Longer than the idle
/// timeout of common HTTP clients (undici 4 s, hyper 90 s): whoever closes first avoids the race of a
/// request with the close, and that should be the client.
const IDLE_TIMEOUT: u32 = 300;

/// Sweeps without a byte of a request's body until its connection is closed.
const BODY_TIMEOUT: u32 = 30;

/// Sweeps for which a new connection is not closed for another one, unless the burst is full too.
const GRACE: u32 = 2;

/// Between two requests, or in one's headers, or sending a response of known length.
const WAITING: u8 = 0;
/// A request is handled, or its response streamed.
const BUSY: u8 = 1;
/// Closed by the sweep or for another connection.
const CLOSED: u8 = 2;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// More than these are closed once they are a moment old.
    pub(crate) unauthenticated: usize,
    /// More unauthenticated ones there never are.
    pub(crate) burst: usize,
    pub(crate) authenticated: usize,
}

impl ConnectionLimits {
    /// For a process that may open so many files: connections take three eighths of them, as each
    /// server takes about six.
    pub(crate) fn for_open_files(limit: u64) -> Self {
        let total = usize::try_from(limit / 8 * 3).unwrap_or(usize::MAX).clamp(32, 8192);
        let half = total / 2;
        Self { unauthenticated: (total / 4).min(256), burst: half, authenticated: half }
    }
}

/// All connections of the daemon. A cheap clone.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    limits: ConnectionLimits,
    closing: CancellationToken,
    /// Wakes the sweep once there is a connection.
    opened: Notify,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    sweeps: u32,
    /// By id, which is the order in which they were accepted.
    unauthenticated: BTreeMap<u64, Entry>,
    authenticated: BTreeMap<u64, Entry>,
}

struct Entry {
    state: Arc<ConnectionState>,
    /// The counter at the last sweep that found it changed, and that sweep.
    activity: u32,
    since: u32,
    /// The sweep before which it was accepted.
    accepted: u32,
}

/// Shared by a connection's task, its request body and the sweep.
pub(crate) struct ConnectionState {
    phase: AtomicU8,
    is_authenticated: AtomicBool,
    is_reading_body: AtomicBool,
    /// Changes with each sent byte, received request and received part of a body. Received headers
    /// do not count: a client that sends one byte of them at a time makes no progress.
    activity: AtomicU32,
    closing: CancellationToken,
}

impl Connections {
    /// Connections end gracefully once `closing` is cancelled.
    pub(crate) fn new(limits: ConnectionLimits, closing: CancellationToken) -> Self {
        let (opened, table) = (Notify::new(), Mutex::default());
        Self(Arc::new(Shared { limits, closing, opened, table }))
    }

    /// Takes on a connection that was just accepted; none if the pool is full of busy ones.
    pub(crate) fn admit(&self) -> Option<Connection> {
        let limits = &self.0.limits;
        let mut table = self.table();
        let count = table.unauthenticated.len();
        let has_room = count < limits.unauthenticated
            || table.close_unauthenticated(GRACE)
            || count < limits.burst
            || table.close_unauthenticated(0);
        if !has_room {
            return None;
        }
        let state = Arc::new(ConnectionState {
            phase: AtomicU8::new(WAITING),
            is_authenticated: AtomicBool::new(false),
            is_reading_body: AtomicBool::new(false),
            activity: AtomicU32::new(0),
            closing: self.0.closing.child_token(),
        });
        let id = table.next_id;
        table.next_id += 1;
        let (since, accepted) = (table.sweeps, table.sweeps);
        let entry = Entry { state: Arc::clone(&state), activity: 0, since, accepted };
        table.unauthenticated.insert(id, entry);
        self.0.opened.notify_one();
        Some(Connection { id, state, connections: self.clone() })
    }

    /// Frees the descriptor of an idle connection; false if there is none.
    pub(crate) fn close_one(&self) -> bool {
        self.table().close_unauthenticated(0)
    }

    /// Closes idle connections until the daemon closes.
    pub(crate) async fn sweep_until_closing(self) {
        let closing = self.0.closing.clone();
        closing
            .run_until_cancelled(async {
                loop {
                    if self.table().is_empty() {
                        // A daemon without connections does not wake up.
                        self.0.opened.notified().await;
                    }
                    tokio::time::sleep(SWEEP).await;
                    self.table().sweep(self.0.limits.unauthenticated);
                }
            })
            .await;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn is_empty(&self) -> bool {
        self.unauthenticated.is_empty() && self.authenticated.is_empty()
    }

    /// Closes the oldest idle connection without the token that is at least `age` sweeps old.
    fn close_unauthenticated(&mut self, age: u32) -> bool {
        let sweeps = self.sweeps;
        close_oldest(&mut self.unauthenticated, |entry| sweeps.wrapping_sub(entry.accepted) >= age)
    }

    /// Closes connections that are idle for too long, and unauthenticated ones over `keep`.
    fn sweep(&mut self, keep: usize) {
        self.sweeps = self.sweeps.wrapping_add(1);
        let sweeps = self.sweeps;
        self.unauthenticated.retain(|_, entry| !entry.expire(sweeps, HEADER_TIMEOUT));
        self.authenticated.retain(|_, entry| !entry.expire(sweeps, IDLE_TIMEOUT));
        while self.unauthenticated.len() > keep && self.close_unauthenticated(GRACE) {}
    }
}

impl Entry {
    /// Closes the connection if it has been idle for `idle_timeout` sweeps, or its body stalls.
    fn expire(&mut self, sweeps: u32, idle_timeout: u32) -> bool {
        let activity = self.state.activity.load(Ordering::Relaxed);
        if activity != self.activity {
            (self.activity, self.since) = (activity, sweeps);
            return false;
        }
        let idle = sweeps.wrapping_sub(self.since);
        if self.state.is_reading_body.load(Ordering::Relaxed) {
            return idle >= BODY_TIMEOUT && self.state.close();
        }
        idle >= idle_timeout && self.state.close_if_waiting()
    }
}

/// Closes the connection that was accepted first of those that wait and are old enough.
fn close_oldest(pool: &mut BTreeMap<u64, Entry>, is_old: impl Fn(&Entry) -> bool) -> bool {
    let mut old = pool.iter().take_while(|(_, entry)| is_old(entry));
    let idle = old.find(|(_, entry)| entry.state.close_if_waiting());
    let Some(id) = idle.map(|(id, _)| *id) else {
        return false;
    };
    pool.remove(&id);
    true
}

impl ConnectionState {
    /// Bytes were sent, or a part of a body received.
    pub(crate) fn progress(&self) {
        self.activity.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the handler waits for the client to send more of the body.
    pub(crate) fn set_reading_body(&self, is_reading: bool) {
        self.is_reading_body.store(is_reading, Ordering::Relaxed);
    }

    /// A request has arrived; false if the connection was closed meanwhile.
    pub(crate) fn begin_request(&self) -> bool {
        self.progress();
        let begin = |phase| (phase != CLOSED).then_some(BUSY);
        self.phase.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin).is_ok()
    }

    /// The response has been sent, or hyper has all of it.
    pub(crate) fn end_request(&self) {
        self.progress();
        self.set_phase(BUSY, WAITING);
    }

    fn close_if_waiting(&self) -> bool {
        let is_ours = self.set_phase(WAITING, CLOSED);
        if is_ours {
            self.closing.cancel();
        }
        is_ours
    }

    fn close(&self) -> bool {
        self.phase.store(CLOSED, Ordering::Release);
        self.closing.cancel();
        true
    }

    fn set_phase(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// One connection. Dropping it gives its place back.
pub(crate) struct Connection {
    id: u64,
    state: Arc<ConnectionState>,
    connections: Connections,
}

impl Connection {
    pub(crate) fn state(&self) -> &Arc<ConnectionState> {
        &self.state
    }

    /// Moves the connection out of the pool of unauthenticated ones, after a request with the right
    /// token. False if there are too many authenticated connections, none of them idle.
    pub(crate) fn authenticate(&self) -> bool {
        // Every request but the first passes here without the lock.
        if self.state.is_authenticated.load(Ordering::Relaxed) {
            return true;
        }
        let mut table = self.connections.table();
        if table.authenticated.len() >= self.connections.0.limits.authenticated
            && !close_oldest(&mut table.authenticated, |_| true)
        {
            return false;
        }
        if let Some(entry) = table.unauthenticated.remove(&self.id) {
            table.authenticated.insert(self.id, entry);
        }
        self.state.is_authenticated.store(true, Ordering::Relaxed);
        true
    }

    /// Ends when the connection is to be closed.
    pub(crate) async fn closing(&self) {
        self.state.closing.cancelled().await;
    }

    /// Whether it was closed for being idle, and not because the daemon stops.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.phase.load(Ordering::Acquire) == CLOSED
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        table.unauthenticated.remove(&self.id);
        table.authenticated.remove(&self.id);
    }
}

#[cfg(test)]
#[path = "connections_tests.rs"]
mod tests;
