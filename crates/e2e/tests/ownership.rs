//! One owner: two daemons on one PostgreSQL never run one server at the same time, whatever
//! happens to their connections. The server of these tests holds a lock on a file and records
//! every moment at which another copy of it runs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cofer_e2e::{Daemon, alive, command, eventually, pid_of, wait_gone, wayward_path, within};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A PostgreSQL of the test's own, which it can crash.
struct OwnPostgres {
    url: String,
    _script: Child,
}

impl OwnPostgres {
    async fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/with-postgres");
        let mut command = command(&script);
        // `cat` ends with this test's end of the pipe.
        command.args(["sh", "-c", "echo \"$COFER_TEST_POSTGRES_URL\"; exec cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().expect("scripts/with-postgres can be run");
        let mut stdout = BufReader::new(script.stdout.take().expect("stdout is piped"));
        let mut url = String::new();
        within("PostgreSQL starts", stdout.read_line(&mut url)).await.expect("stdout is text");
        Self { url: url.trim().to_owned(), _script: script }
    }

    fn port(&self) -> u16 {
        let (_, port) = self.url.rsplit_once(':').expect("the URL has a port");
        port.split('/').next().and_then(|port| port.parse().ok()).expect("a port is a number")
    }

    /// The same database behind another port.
    fn url_by(&self, port: u16) -> String {
        self.url.replace(&format!(":{}/", self.port()), &format!(":{port}/"))
    }

    async fn connect(&self) -> PgConnection {
        eventually("PostgreSQL answers", async || PgConnection::connect(&self.url).await.ok()).await
    }

    /// Kills one of its processes, upon which it ends all sessions and recovers: a restart.
    async fn crash(&self) {
        let mut connection = self.connect().await;
        let crash = "CREATE TEMPORARY TABLE t (x text); COPY t FROM PROGRAM 'kill -9 $PPID'";
        let crashed = sqlx::raw_sql(AssertSqlSafe(crash)).execute(&mut connection).await;
        assert!(crashed.is_err(), "PostgreSQL did not crash");
    }
}

/// The network between a daemon and its database.
struct Network {
    port: u16,
    is_cut: Arc<AtomicBool>,
    cut: Arc<std::sync::Mutex<CancellationToken>>,
    _tasks: JoinSet<()>,
}

impl Network {
    async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("it is bound").port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::new(std::sync::Mutex::new(CancellationToken::new()));
        let mut tasks = JoinSet::new();
        let (is_cut_now, cut_now) = (is_cut.clone(), cut.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                if is_cut_now.load(Ordering::SeqCst) {
                    continue;
                }
                let cut = cut_now.lock().expect("nobody panics with it").clone();
                connections.spawn(cut.run_until_cancelled_owned(async move {
                    if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                        drop(copy_bidirectional(&mut client, &mut server).await);
                    }
                }));
            }
        });
        Self { port: own, is_cut, cut, _tasks: tasks }
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.cut.lock().expect("nobody panics with it").cancel();
    }

    fn restore(&self) {
        *self.cut.lock().expect("nobody panics with it") = CancellationToken::new();
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

/// A server of which there may be one.
struct Exclusive {
    folder: TempDir,
}

impl Exclusive {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("lock")
    }

    fn registration(&self) -> Value {
        let script =
            r#"exec 9>>"$0"; flock -n 9 || echo two >>"$0.two"; echo >>"$0.starts"; exec "$1""#;
        json!({
            "name": "exclusive",
            "command": "sh",
            "args": ["-c", script, self.file(), wayward_path()],
        })
    }

    fn check(&self) {
        assert!(!self.file().with_extension("two").exists(), "two copies ran at the same time");
    }

    fn starts(&self) -> usize {
        let starts = std::fs::read_to_string(self.file().with_extension("starts"));
        starts.unwrap_or_default().lines().count()
    }
}

fn start(url: &str) -> impl Future<Output = Daemon> {
    Daemon::builder().database_url(url).start()
}

/// Waits until a daemon that was fenced owns its database again.
async fn regained(daemon: &Daemon) -> Value {
    let path = "/mcp/servers/exclusive";
    eventually("the daemon regains its database", async || {
        let answer = daemon.get(path).await;
        (answer.status == 200).then_some(())
    })
    .await;
    daemon.wait_status("exclusive", "ready").await
}

#[tokio::test]
async fn a_daemon_without_its_database_stops_its_servers_before_another_starts_them() {
    let postgres = OwnPostgres::start().await;
    let network = Network::to(postgres.port()).await;
    let server = Exclusive::new();
    let mut first = start(&postgres.url_by(network.port)).await;
    let before = first.register(&server.registration()).await;
    assert_eq!(before["epoch"], 1, "{before}");
    assert!(before["owner"].is_string(), "{before}");

    network.cut();
    let mut second = start(&postgres.url).await;
    let taken = second.wait_status("exclusive", "ready").await;
    assert!(second.stderr().contains("waiting for the previous owner's lease, up to"));
    assert_eq!(taken["epoch"], 2, "{taken}");
    assert_ne!(taken["owner"], before["owner"]);
    assert!(!alive(pid_of(&before)));
    server.check();

    // The first daemon writes nothing, also when it reaches the database again.
    network.restore();
    eventually("it finds the other daemon", async || {
        first.stderr().contains("in use by another Cofer daemon").then_some(())
    })
    .await;
    first.get("/mcp/servers").await.failure(503, "store_unavailable");
    let refused = first.post("/mcp/servers", &json!({"name": "stray", "command": "true"})).await;
    refused.failure(503, "store_unavailable");
    let health = first.send(first.raw(reqwest::Method::GET, "/healthz")).await;
    assert_eq!(health.json()["reason"], "the daemon does not own its database");
    second
        .post("/mcp/servers", &json!({"name": "new", "command": "true", "enabled": false}))
        .await
        .expect(201);

    // It takes over at once when the second has ended.
    assert!(second.terminate().await.success());
    let after = regained(&first).await;
    assert_eq!((&after["epoch"], &after["owner"]), (&json!(3), &before["owner"]));
    assert_eq!(first.server("new").await["status"], "stopped");
    assert_eq!(server.starts(), 3);
    server.check();
    assert!(first.terminate().await.success());
    wait_gone(&[pid_of(&after)]).await;
}

#[tokio::test]
async fn a_restart_of_the_database_changes_neither_the_owner_nor_its_servers() {
    let postgres = OwnPostgres::start().await;
    let server = Exclusive::new();
    let first = start(&postgres.url).await;
    let before = first.register(&server.registration()).await;
    for round in 0..3 {
        postgres.crash().await;
        // Another daemon that is started in this moment waits, and finds the first one back.
        let refusal = eventually("another daemon is refused", async || {
            let second = Daemon::builder().database_url(&postgres.url).try_start().await;
            let Err(refusal) = second else {
                panic!("round {round}: two daemons own one database");
            };
            refusal.stderr.contains("in use by another Cofer daemon").then_some(refusal)
        })
        .await;
        assert_eq!(refusal.code, Some(1), "{refusal:?}");
        let after = first.wait_status("exclusive", "ready").await;
        assert_eq!((&after["pid"], &after["epoch"]), (&before["pid"], &json!(1)), "{round}");
        first.tool("exclusive", "pid", &json!({})).await.expect(200);
    }
    assert_eq!(server.starts(), 1);
    server.check();
}

#[tokio::test]
async fn a_daemon_that_was_killed_is_started_again_without_waiting_for_its_lease() {
    let postgres = OwnPostgres::start().await;
    let server = Exclusive::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let start =
        || Daemon::builder().data_dir(&folder.path().join("data")).database_url(&postgres.url);
    let mut killed = start().start().await;
    killed.register(&server.registration()).await;
    killed.kill9().await;
    let restarted = start().start().await;
    let after = restarted.wait_status("exclusive", "ready").await;
    assert_eq!(after["epoch"], 2);
    assert!(!restarted.stderr().contains("waiting for the previous owner's lease"));
    server.check();
}
