//! A wall clock that jumps: what waits goes on waiting, what counts goes on counting.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cofer_e2e::{
    Daemon, DaemonBuilder, Event, OrderLog, alive, kill, pid_of, signal, tool_params, wayward,
};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

/// The pause of a server that crashed for the fourth time within a minute.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The wall clock of the daemons that a test starts, in a folder of its own.
struct Clock {
    folder: tempfile::TempDir,
}

impl Clock {
    fn new() -> Self {
        let clock = Self { folder: tempfile::tempdir().expect("a temporary directory") };
        clock.set(0);
        clock
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// Makes the clock jump to so many days from now. The file is replaced as a whole, because
    /// daemons read it all the time.
    fn set(&self, days: i64) {
        let next = self.folder.path().join("next");
        std::fs::write(&next, format!("{days:+}d\n")).expect("the clock can be written");
        std::fs::rename(&next, self.file()).expect("the clock can be set");
    }

    /// A daemon that lives by this clock. The monotonic clock stays what it is, as on a machine
    /// whose time is set.
    fn daemon(&self) -> DaemonBuilder {
        let library = std::env::var("COFER_TEST_FAKETIME").unwrap_or_else(|_| {
            panic!("COFER_TEST_FAKETIME is not set: run this under scripts/test, which installs libfaketime")
        });
        assert!(Path::new(&library).is_file(), "COFER_TEST_FAKETIME: there is no {library}");
        Daemon::builder()
            .data_dir(&self.folder.path().join("data"))
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", self.file().to_str().expect("temporary paths are text"))
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }

    /// Makes the clock jump, and sees by the server `sundial` that the daemon lives by it.
    async fn jump(&self, daemon: &Daemon, days: i64) {
        self.set(days);
        let change = json!({"description": format!("day {days}")});
        let server = daemon.patch("/mcp/servers/sundial", &change).await.expect(200);
        let told = server["updated_at"].as_str().expect("a time");
        let told = OffsetDateTime::parse(told, &Rfc3339).expect("times are RFC 3339");
        let off = told - OffsetDateTime::now_utc() - time::Duration::days(days);
        assert!(off.abs() < time::Duration::hours(1), "day {days}: the daemon says {told}");
    }
}

async fn register_sundial(daemon: &Daemon) {
    let mut sundial = wayward("sundial", &[]);
    sundial["enabled"] = false.into();
    daemon.post("/mcp/servers", &sundial).await.expect(201);
}

fn uptime(server: &Value) -> Duration {
    let seconds = server["uptime_seconds"].as_f64().expect("it runs");
    Duration::try_from_secs_f64(seconds).unwrap_or_else(|error| panic!("{error}: {seconds} s"))
}

/// Crashes a server until its restart waits; the moment of the last crash.
async fn crash_into_back_off(daemon: &Daemon, name: &str) -> Instant {
    for count in 1..=3 {
        kill(daemon.server_pid(name).await);
        let back = |server: &Value| server["status"] == "ready" && server["restart_count"] == count;
        daemon.wait_server(name, "another process", back).await;
    }
    let moment = Instant::now();
    kill(daemon.server_pid(name).await);
    let waits = |server: &Value| server["health"] == "warning" && server["pid"].is_null();
    daemon.wait_server(name, "a pause before its restart", waits).await;
    moment
}

#[tokio::test]
async fn a_clock_that_jumps_disturbs_neither_calls_nor_heartbeats_nor_back_off() {
    // covers: HST-3.3, HST-4.1, HST-4.3
    let clock = Clock::new();
    let mut daemon = clock.daemon().start().await;
    register_sundial(&daemon).await;
    let log = OrderLog::new();
    let mut beating = log.wayward("beating", &[]);
    beating["heartbeat"] = json!({"interval_ms": 150, "timeout_ms": 10_000});
    let registered = Instant::now();
    let beating = daemon.register(&beating).await;
    let busy = daemon.register(&wayward("busy", &[])).await;
    daemon.register(&wayward("looping", &[])).await;
    let crash = crash_into_back_off(&daemon, "looping").await;

    // Stopped, the server keeps its call until both jumps are over.
    let mut events = daemon.events().await;
    signal(pid_of(&busy), Signal::STOP);
    let call = json!({"method": "tools/call", "params": tool_params("sleep", &json!({"ms": 100}))});
    let call = daemon.send(daemon.request(Method::POST, "/mcp/servers/busy/call").json(&call));
    let jumps = async {
        events.until("the call is on its way", |event| event.name == "toolCallStarted").await;
        for days in [1, -2] {
            clock.jump(&daemon, days).await;
            let beats = log.count("receive ping");
            log.wait("receive ping", beats + 2).await;
        }
        signal(pid_of(&busy), Signal::CONT);
    };
    let (answer, ()) = tokio::join!(call, jumps);
    assert_eq!(answer.tool_text(), "slept");

    let back = |server: &Value| server["status"] == "ready" && server["restart_count"] == 4;
    daemon.wait_server("looping", "its fourth restart", back).await;
    assert!(crash.elapsed() >= FIRST_PAUSE, "{:?}", crash.elapsed());
    let seen = events.until("the call ends", |event| event.name == "toolCallFinished").await;
    let took = seen.last().and_then(|event| event.data["duration_ms"].as_f64()).expect("a number");
    assert!((0.0..registered.elapsed().as_secs_f64() * 1e3).contains(&took), "{took} ms");
    for (name, before) in [("beating", beating), ("busy", busy)] {
        let after = daemon.server(name).await;
        assert_eq!((&after["pid"], &after["restart_count"]), (&before["pid"], &json!(0)));
        assert_eq!((&after["status"], &after["health"]), (&json!("ready"), &json!("ok")));
        let span = uptime(&before)..registered.elapsed();
        assert!(span.contains(&uptime(&after)), "{name}: {:?} in {span:?}", uptime(&after));
        let told =
            |event: &Event| event.name == "mcpServerStatusChanged" && event.data["name"] == name;
        assert!(!seen.iter().any(told), "{name} changed its status: {seen:#?}");
    }
    assert!(daemon.terminate().await.success());
}

#[tokio::test]
async fn generations_grow_although_the_clock_was_set_back_between_two_daemons() {
    // covers: HST-3.1, MGR-29
    let clock = Clock::new();
    let mut daemon = clock.daemon().start().await;
    register_sundial(&daemon).await;
    let mut events = daemon.events().await;
    daemon.register(&wayward("w", &[])).await;
    let mut seen = events.until("it is ready", |event| event.is_status("w", "ready")).await;
    for days in [-2, -4] {
        let last: u64 = seen.last().expect("an event").id.parse().expect("a generation");
        assert!(daemon.terminate().await.success());
        clock.set(days);
        daemon = clock.daemon().start().await;
        clock.jump(&daemon, days).await;
        let mut events = daemon.events_after(Some(&last.to_string())).await;
        seen = events.until("it is ready again", |event| event.is_status("w", "ready")).await;
        assert_eq!(seen[0].name, "reset", "what the earlier daemon did not tell is lost: {seen:?}");
        let generations: Vec<u64> =
            seen[1..].iter().map(|event| event.id.parse().expect("a generation")).collect();
        assert!(generations[0] > last && generations.is_sorted(), "{last} then {generations:?}");
        assert!(alive(daemon.server_pid("w").await));
    }
    assert!(daemon.terminate().await.success());
}
