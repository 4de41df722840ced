//! The start timeout of a server. It does not run while a package manager below the server (`npx`,
//! `uvx`, `pip` …) moves bytes: a first start downloads packages, and killing it in the middle leaves
//! a lock or half a package, with which the next start fails as well.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::HandshakeError;
use cofer_runtime::Fetching;
use tokio::time::{Instant, sleep};

use super::failure::NotReady;
use super::run::{Opened, Run};
use crate::launch::Running;

/// How often the package managers are looked for.
const TICK: Duration = Duration::from_secs(1);
/// Fewer bytes in one tick are no progress: event loops write a few bytes to wake themselves up.
const PROGRESS: u64 = 1024;
/// The longest time in which packages are fetched that is not counted.
const MAX_FETCHING: Duration = Duration::from_secs(15 * 60);

/// Opens the conversation with a server within `limit`. `tell` receives how far the download of
/// packages is, and whether this is its first report.
pub(super) async fn open_in_time(
    run: &mut Run,
    client: Option<Bytes>,
    limit: Duration,
    tell: impl Fn(&str, bool),
) -> Result<Opened, NotReady> {
    let running = run.running();
    if !running.may_fetch_packages() {
        return run.open(client, Instant::now() + limit).await;
    }
    let latest = Instant::now() + limit + MAX_FETCHING;
    tokio::select! {
        biased;
        opened = run.open(client, latest) => opened,
        () = expired(running, limit, tell) => {
            Err(NotReady::Handshake(HandshakeError::Silent { method: "initialize", timeout: limit }))
        }
    }
}

async fn expired(running: Arc<dyn Running>, limit: Duration, tell: impl Fn(&str, bool)) {
    let mut clock = StartClock::default();
    while clock.counted < limit {
        let pause = TICK.min(limit - clock.counted);
        let begun = Instant::now();
        sleep(pause).await;
        let fetching = running.fetching().await;
        if let Some(progress) = clock.tick(begun.elapsed(), &fetching) {
            tell(&progress.message, progress.is_first);
        }
    }
}

/// How much of the start timeout is used.
#[derive(Debug, Default)]
struct StartClock {
    counted: Duration,
    uncounted: Duration,
    /// The bytes that each package manager had moved at the last tick.
    last: HashMap<u32, u64>,
    moved: u64,
    told: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Progress {
    message: String,
    is_first: bool,
}

impl StartClock {
    /// Takes `elapsed` into account; returns how far the download is if it makes progress.
    fn tick(&mut self, elapsed: Duration, fetching: &[Fetching]) -> Option<Progress> {
        let is_new = self.last.is_empty();
        let grown: u64 = fetching
            .iter()
            .map(|one| one.bytes.saturating_sub(self.last.get(&one.pid).copied().unwrap_or(0)))
            .sum();
        self.last = fetching.iter().map(|one| (one.pid, one.bytes)).collect();
        self.moved += grown;
        let program = fetching.first().map(|one| one.program);
        let Some(program) = program.filter(|_| grown >= PROGRESS && self.uncounted < MAX_FETCHING)
        else {
            self.counted += elapsed;
            return None;
        };
        self.uncounted += elapsed;
        // A start from a warm cache is over before the second tick.
        if is_new {
            return None;
        }
        let megabytes = self.moved as f64 / 1e6;
        let message =
            format!("{program} is fetching packages ({megabytes:.1} MB read and written)");
        let is_first = !std::mem::replace(&mut self.told, true);
        Some(Progress { message, is_first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npx(pid: u32, bytes: u64) -> Vec<Fetching> {
        vec![Fetching { pid, program: "npx", bytes }]
    }

    #[test]
    fn time_counts_unless_bytes_move() {
        let mut clock = StartClock::default();
        assert_eq!(clock.tick(TICK, &[]), None);
        assert_eq!(clock.tick(TICK, &npx(7, 5000)), None, "it may be over in a moment");
        let first = clock.tick(TICK, &npx(7, 2_000_000)).unwrap();
        assert_eq!(first.message, "npx is fetching packages (2.0 MB read and written)");
        assert!(first.is_first);
        assert!(!clock.tick(TICK, &npx(7, 3_000_000)).unwrap().is_first);
        assert_eq!(clock.counted, TICK);
        assert_eq!(clock.tick(TICK, &npx(7, 3_000_100)), None, "that is no progress");
        assert_eq!(clock.tick(TICK, &[]), None, "it became the server");
        assert_eq!(clock.counted, 3 * TICK);
        assert!(clock.tick(TICK, &npx(8, 9000)).is_none(), "another one begins");
        assert_eq!(clock.counted, 3 * TICK);
    }

    #[test]
    fn a_download_without_end_is_a_timeout_after_all() {
        let mut clock = StartClock::default();
        let mut bytes = 0;
        for _ in 0..MAX_FETCHING.as_secs() {
            bytes += 10_000;
            clock.tick(TICK, &npx(7, bytes));
        }
        assert_eq!(clock.counted, Duration::ZERO);
        assert_eq!(clock.tick(TICK, &npx(7, bytes + 10_000)), None);
        assert_eq!(clock.counted, TICK);
    }
}
