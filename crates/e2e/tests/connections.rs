//! Connections without the token, and the limit of open files.

use std::io::Read as _;
use std::net::TcpStream;

use cofer_e2e::{Daemon, eventually, pid_of, wayward, within};
use reqwest::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

/// Connects `count` times and sends `bytes` on each connection.
fn connect(daemon: &Daemon, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    // Our own ends need descriptors too.
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limits.maximum, ..limits };
    setrlimit(Resource::Nofile, raised).expect("the soft limit can be raised");
    let connect = || {
        let stream = TcpStream::connect(daemon.address()).expect("the kernel accepts");
        std::io::Write::write_all(&mut &stream, bytes).ok();
        stream
    };
    (0..count).map(|_| connect()).collect()
}

/// Whether the daemon has closed this connection.
fn is_closed(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can be set");
    match (&mut &*stream).read(&mut [0; 4096]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

fn open_count(streams: &[TcpStream]) -> usize {
    streams.iter().filter(|stream| !is_closed(stream)).count()
}

fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the daemon runs").count()
}

/// The soft and the hard limit of a process.
fn limits(pid: u32) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = text.lines().find(|line| line.starts_with("Max open files")).expect("the limit");
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().expect("soft"), numbers.next().expect("hard"))
}

/// A daemon with these limits of open files.
async fn limited(soft: u64, hard: u64) -> Daemon {
    let limit = format!("--nofile={soft}:{hard}");
    Daemon::builder().under(&["prlimit", &limit]).start().await
}

#[tokio::test]
async fn thousands_of_idle_connections_without_the_token_keep_nobody_out() {
    let daemon = limited(1024, 1024).await;
    daemon.register(&wayward("w", &[])).await;
    let before = open_files(daemon.pid());
    // Idle ones, some in the middle of their headers, and some that wait after a request.
    let mut attacks = connect(&daemon, 2000, b"");
    attacks.extend(connect(&daemon, 500, b"GET /healthz HTTP/1.1\r\nHost: "));
    let host = daemon.address();
    let whole = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    attacks.extend(connect(&daemon, 500, whole.as_bytes()));
    // A connection that makes room is closed by its own task, a moment later on a busy machine.
    let at_most = async |count: usize| {
        let what = format!("at most {count} files more are open");
        let is_so = async || (open_files(daemon.pid()) <= before + count).then_some(());
        eventually(&what, is_so).await;
    };
    at_most(192 + 30).await;
    let health =
        || daemon.send(cofer_e2e::plain_client().get(format!("{}/healthz", daemon.base())));
    assert_eq!(health().await.status, 200);
    daemon.tool("w", "echo", &json!({"text": "hi"})).await.expect(200);
    let clients: Vec<_> = (0..20).map(|_| cofer_e2e::plain_client()).collect();
    for client in &clients {
        let url = format!("{}/api/v1/mcp/servers", daemon.base());
        daemon.send(client.get(url).bearer_auth(daemon.token())).await.expect(200);
    }
    eventually("all but the pool are closed", async || (open_count(&attacks) <= 96).then_some(()))
        .await;
    at_most(96 + 30).await;
}

#[tokio::test]
async fn idle_connections_and_unfinished_headers_are_closed_and_streams_stay_open() {
    let daemon = Daemon::start().await;
    let mut events = daemon.events().await;
    let slow = connect(&daemon, 1, b"GET /healthz HTTP/1.1\r\n");
    let attacks = connect(&daemon, 100, b"");
    eventually("idle connections are closed", async || {
        // A byte at a time is no progress.
        std::io::Write::write_all(&mut &slow[0], b"x").ok();
        (open_count(&attacks) == 0 && is_closed(&slow[0])).then_some(())
    })
    .await;
    daemon.register(&wayward("w", &[])).await;
    within("an event comes on the old stream", events.next()).await;
}

#[tokio::test]
async fn the_daemon_takes_the_hard_limit_of_open_files_and_servers_get_the_soft_one() {
    let daemon = limited(512, 2048).await;
    let server = daemon.register(&wayward("w", &[])).await;
    assert_eq!(limits(daemon.pid()), (2048, 2048));
    assert_eq!(limits(pid_of(&server)), (512, 2048));
    let report = daemon.cli(&["doctor"]).await;
    assert!(report.stdout.contains("hard limit 2048"), "not that of the daemon: {report:?}");
}

#[tokio::test]
async fn out_of_descriptors_the_error_names_the_limit_and_the_daemon_still_answers() {
    let daemon = limited(64, 64).await;
    let mut failed = None;
    for nth in 0..20 {
        let name = format!("w{nth}");
        let server = daemon.post("/mcp/servers?wait=30", &wayward(&name, &[])).await.expect(201);
        if server["status"] == "error" {
            failed = Some(server);
            break;
        }
    }
    let failed = failed.expect("64 descriptors are not enough for 20 servers");
    let error = &failed["error"];
    assert_eq!(error["kind"], "spawn_failed", "{failed}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("too many open files (limit 64)"), "{failed}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("ulimit -n") && hint.contains("LimitNOFILE"), "{failed}");
    // New connections are taken from the reserve, also beside idle ones.
    let _attacks = connect(&daemon, 30, b"");
    let client = cofer_e2e::plain_client();
    let url = format!("{}/api/v1/mcp/servers", daemon.base());
    daemon.send(client.get(url).bearer_auth(daemon.token())).await.expect(200);
    daemon.send(daemon.raw(Method::GET, "/healthz")).await.expect(200);
}
