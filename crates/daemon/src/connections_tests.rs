//! Tests of the pools and timeouts, without sockets.

use super::*;

impl Connections {
    /// With room for a few.
    pub(crate) fn for_tests() -> Self {
        let limits = ConnectionLimits { unauthenticated: 3, burst: 3, authenticated: 2 };
        Self::new(limits, CancellationToken::new())
    }

    fn sweep(&self, times: u32) {
        for _ in 0..times {
            self.table().sweep(self.0.limits.unauthenticated);
        }
    }
}

fn authenticated(connections: &Connections) -> Connection {
    let connection = connections.admit().unwrap();
    assert!(connection.state.begin_request());
    assert!(connection.authenticate());
    connection
}

#[test]
fn connections_take_a_share_of_the_open_files_within_bounds() {
    for (files, unauthenticated, half) in
        [(0, 8, 16), (1024, 96, 192), (20_000, 256, 3750), (u64::MAX, 256, 4096)]
    {
        let expected = ConnectionLimits { unauthenticated, burst: half, authenticated: half };
        assert_eq!(ConnectionLimits::for_open_files(files), expected, "{files}");
    }
}

#[test]
fn a_burst_of_new_connections_is_kept_for_a_moment_and_then_reduced() {
    let limits = ConnectionLimits { unauthenticated: 2, burst: 5, authenticated: 9 };
    let connections = Connections::new(limits, CancellationToken::new());
    let open = |all: &[Connection]| all.iter().filter(|one| !one.is_closed()).count();
    let mut burst: Vec<_> = (0..5).map(|_| connections.admit().unwrap()).collect();
    assert_eq!(open(&burst), 5, "their first requests may be on the way");
    burst.push(connections.admit().unwrap());
    assert_eq!((open(&burst), burst[0].is_closed()), (5, true), "the bound holds at once");
    connections.sweep(GRACE - 1);
    assert_eq!(open(&burst), 5);
    connections.sweep(1);
    assert_eq!(open(&burst), 2);
    let late = connections.admit().unwrap();
    assert_eq!((open(&burst), late.is_closed()), (1, false), "the old make room for the new");
}

#[test]
fn a_full_pool_closes_its_oldest_idle_connection_and_never_a_busy_one() {
    let connections = Connections::for_tests();
    let busy = connections.admit().unwrap();
    assert!(busy.state.begin_request());
    let [oldest, newer] = [connections.admit().unwrap(), connections.admit().unwrap()];
    let newest = connections.admit().unwrap();
    let closed = [&busy, &oldest, &newer, &newest].map(Connection::is_closed);
    assert_eq!(closed, [false, true, false, false]);
    assert!(!oldest.state.begin_request(), "a request on it arrives too late");
    assert!(newer.state.begin_request() && newest.state.begin_request());
    assert!(connections.admit().is_none(), "all three are busy");
    newer.state.end_request();
    assert!(connections.admit().is_some());
    assert!(newer.is_closed());
}

#[test]
fn authenticated_connections_do_not_count_against_the_pool() {
    let connections = Connections::for_tests();
    let clients = [authenticated(&connections), authenticated(&connections)];
    for client in &clients {
        client.state.end_request();
    }
    let strangers: Vec<_> = (0..100).map(|_| connections.admit().unwrap()).collect();
    assert_eq!(strangers.iter().filter(|stranger| !stranger.is_closed()).count(), 3);
    assert!(!clients.iter().any(Connection::is_closed));
    let last = connections.admit().unwrap();
    assert!(last.state.begin_request() && last.authenticate(), "an idle client makes room");
    assert_eq!(clients.each_ref().map(Connection::is_closed), [true, false]);
    assert!(clients[1].state.begin_request());
    let refused = connections.admit().unwrap();
    assert!(refused.state.begin_request() && !refused.authenticate(), "both places are busy");
    drop(last);
    assert!(refused.authenticate(), "an ended connection gives its place back");
}

#[test]
fn idle_connections_are_closed_after_their_timeout() {
    let connections = Connections::for_tests();
    let stranger = connections.admit().unwrap();
    let idle = authenticated(&connections);
    idle.state.end_request();
    let busy = authenticated(&connections);
    connections.sweep(HEADER_TIMEOUT - 1);
    assert!(!stranger.is_closed());
    connections.sweep(1);
    assert!(stranger.is_closed() && !idle.is_closed());
    connections.sweep(IDLE_TIMEOUT + 1);
    assert!(idle.is_closed() && !busy.is_closed(), "a stream or a long call stays open");
    assert_eq!(connections.table().unauthenticated.len(), 0);
}

#[test]
fn sending_counts_as_activity_and_a_stalled_body_does_not() {
    let connections = Connections::for_tests();
    let slow_reader = connections.admit().unwrap();
    for _ in 0..5 {
        connections.sweep(HEADER_TIMEOUT - 1);
        slow_reader.state.progress();
    }
    assert!(!slow_reader.is_closed());
    let stalled = authenticated(&connections);
    stalled.state.set_reading_body(true);
    connections.sweep(1);
    connections.sweep(BODY_TIMEOUT - 1);
    stalled.state.progress();
    connections.sweep(1);
    connections.sweep(BODY_TIMEOUT - 1);
    assert!(!stalled.is_closed(), "bytes arrived in time");
    connections.sweep(1);
    assert!(stalled.is_closed());
}

#[tokio::test(start_paused = true)]
async fn the_sweep_runs_while_there_are_connections_and_ends_with_the_daemon() {
    let connections = Connections::for_tests();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connections.clone().sweep_until_closing());
    tokio::time::sleep(SWEEP * 1000).await;
    assert_eq!(connections.table().sweeps, 0, "nothing to close, nothing to do");
    let stranger = connections.admit().unwrap();
    let began = tokio::time::Instant::now();
    stranger.closing().await;
    assert!(stranger.is_closed());
    assert_eq!(began.elapsed(), SWEEP * HEADER_TIMEOUT);
    connections.0.closing.cancel();
    tasks.join_all().await;
}
