//! `cofer connect`: the daemon's gateway on stdin and stdout, for clients that start a command.
//! What a daemon does at the wrong moment is played by a stand-in.

use std::path::Path;

use cofer_e2e::{
    Daemon, McpClient, Upstream, alive, cofer, command_line, eventually, follow, parent, pids_in,
    processes_with, run, signal, wait_gone, wayward,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

const TOKEN: &str = "canary-token-0123456789";

/// The data directory of a stand-in: a token, and a socket that answers with its address.
struct DataDir {
    dir: TempDir,
    address: watch::Sender<String>,
    _tasks: JoinSet<()>,
}

fn data_dir(address: &str, token: &str) -> DataDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let socket = UnixListener::bind(dir.path().join("socket")).expect("a socket can be bound");
    let address = watch::Sender::new(address.to_owned());
    let mut tasks = JoinSet::new();
    let current = address.subscribe();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let answer = json!({"url": *current.borrow()}).to_string();
            drop(stream.write_all(answer.as_bytes()).await);
        }
    });
    let data_dir = DataDir { dir, address, _tasks: tasks };
    data_dir.write_token(token);
    data_dir
}

impl DataDir {
    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write_token(&self, token: &str) {
        let new = self.path().join("new");
        std::fs::write(&new, token).expect("it can be written");
        std::fs::rename(new, self.path().join("token")).expect("it can be named");
    }

    /// As a daemon does: the token is there before the address.
    fn point_to(&self, address: &str, token: &str) {
        self.write_token(token);
        self.address.send_replace(address.to_owned());
    }
}

fn connect(dir: &Path, args: &[&str]) -> McpClient {
    let data = dir.to_str().expect("text");
    let args = [&["connect"], args].concat();
    McpClient::start_by(&cofer(), &args, &[("COFER_DATA_DIR", data), ("HOME", data)], dir)
}

async fn says(client: &mut McpClient, text: &str) {
    let result = client.call("echo", json!({ "text": text })).await;
    assert_eq!(result["content"][0]["text"], text, "{result}");
}

#[tokio::test]
async fn messages_pass_with_the_token_of_the_data_directory() {
    // covers: GTW-3
    let gateway = Upstream::start();
    gateway.want_bearer(Some(TOKEN));
    let dir = data_dir(&gateway.base(), TOKEN);
    let mut client = connect(dir.path(), &["--verbose"]);
    assert_eq!(client.initialize().await["serverInfo"]["name"], "upstream");
    says(&mut client, "hej \u{1F469}\u{200D}\u{1F4BB}\u{2028}").await;
    let (code, rest, stderr) = client.close().await;
    assert_eq!((code, rest.len()), (Some(0), 0), "{stderr}");
    assert!(!stderr.contains(TOKEN), "{stderr}");
    assert_eq!(gateway.count("DELETE"), 1, "the session is ended");
}

#[tokio::test]
async fn a_daemon_that_was_restarted_elsewhere_is_found_again() {
    // covers: GTW-3
    let mut before = Upstream::start();
    let after = Upstream::start();
    after.want_bearer(Some("another-token"));
    let dir = data_dir(&before.base(), TOKEN);
    let mut client = connect(dir.path(), &[]);
    client.initialize().await;
    says(&mut client, "one").await;
    before.die();
    // Asked while there is none: the answer comes when there is one again.
    let id = client.ask("tools/list", json!({})).await;
    dir.point_to(&after.base(), "another-token");
    let listed = client.answer(id).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "echo", "{listed}");
    says(&mut client, "two").await;
    assert_eq!(after.count("initialize"), 1);
    let (code, _, stderr) = client.close().await;
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test]
async fn a_token_that_was_replaced_is_read_again() {
    let gateway = Upstream::start();
    gateway.want_bearer(Some("new-token"));
    let dir = data_dir(&gateway.base(), TOKEN);
    let mut client = connect(dir.path(), &[]);
    let answer = client.request("initialize", json!({})).await;
    assert_eq!(answer["error"]["data"]["kind"], "auth", "{answer}");
    assert!(answer["error"]["data"]["hint"].to_string().contains("--data-dir"), "{answer}");
    dir.point_to(&gateway.base(), "new-token");
    client.initialize().await;
    says(&mut client, "in").await;
}

#[tokio::test]
async fn without_a_daemon_the_client_and_the_person_are_told() {
    // covers: GTW-3
    let nobody = {
        let mut gone = Upstream::start();
        gone.die();
        gone.base()
    };
    let dir = data_dir(&nobody, TOKEN);
    let mut client = connect(dir.path(), &[]);
    let answer = client.request("initialize", json!({})).await;
    let error = &answer["error"];
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32603), &json!("connect")));
    assert!(error["data"]["hint"].to_string().contains("cofer serve"), "{answer}");
    let (code, _, stderr) = client.close().await;
    assert_eq!(code, Some(1));
    assert!(stderr.contains("Error:") && stderr.contains("`cofer serve`"), "{stderr}");
    // Nobody on the other side.
    let data = dir.path().to_str().expect("text");
    let ended = run(&cofer(), &["connect"], &[("COFER_DATA_DIR", data)], "").await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
}

#[tokio::test]
async fn an_address_file_that_a_daemon_left_does_not_lead_the_token_to_another_program() {
    let mut daemon = Daemon::start().await;
    let address = std::fs::read_to_string(daemon.data_dir().join("address")).expect("it is there");
    daemon.kill9().await;
    assert_eq!(std::fs::read_to_string(daemon.data_dir().join("address")).ok(), Some(address));
    // Another program takes the port of the daemon that was killed.
    let impostor = std::net::TcpListener::bind(daemon.address()).expect("the port is free");
    impostor.set_nonblocking(true).expect("it can be set");
    for args in [&["server", "list"][..], &["console"], &["connect"], &["chat", "hello"]] {
        let ended = daemon.cli(args).await;
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains("no daemon runs in the data directory"), "{ended:?}");
        assert!(ended.stderr.contains("`cofer serve`"), "{ended:?}");
        assert!(impostor.accept().is_err(), "{args:?} connected to the other program");
    }
}

#[tokio::test]
async fn a_signal_ends_it_at_once() {
    let gateway = Upstream::start();
    let dir = data_dir(&gateway.base(), TOKEN);
    let mut client = connect(dir.path(), &[]);
    client.initialize().await;
    let pid = client.pid();
    signal(pid, Signal::TERM);
    eventually("it ends", async || (!alive(pid)).then_some(())).await;
    assert_eq!(gateway.count("DELETE"), 1, "the session is ended");
}

#[tokio::test]
async fn it_ends_with_whoever_started_it_also_where_stdin_stays_open() {
    let gateway = Upstream::start();
    let dir = data_dir(&gateway.base(), TOKEN);
    let data = dir.path().to_str().expect("text");
    let pid_file = dir.path().join("pid");
    // A shell that starts it in the background, on a pipe that another process holds open.
    let script = r#"sleep 600 | "$0" connect & echo $! >"$1"; wait"#;
    let program = cofer();
    let args = ["-c", script, program.to_str().expect("text"), pid_file.to_str().expect("text")];
    let env = [("COFER_DATA_DIR", data), ("HOME", data)];
    let (mut shell, _) = follow(Path::new("/bin/sh"), &args, &env);
    let pid = eventually("it runs", async || {
        let pid = pids_in(&pid_file).first().copied()?;
        command_line(pid).contains("connect").then_some(pid)
    })
    .await;
    let sleeping = eventually("its pipe is held", async || {
        processes_with("sleep 600").into_iter().find(|held| parent(*held) == shell.id())
    })
    .await;
    // It knows its parent once it serves.
    eventually("it has asked the daemon", async || (gateway.count("GET") > 0).then_some(())).await;
    shell.start_kill().expect("the shell can be killed");
    eventually("it ends", async || (!alive(pid)).then_some(())).await;
    assert!(alive(sleeping), "its stdin was open all the time");
    signal(sleeping, Signal::KILL);
}

/// Joins all servers of a daemon.
fn joined(daemon: &Daemon, args: &[&str]) -> McpClient {
    connect(&daemon.data_dir(), args)
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().expect("a list of tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn all_servers_are_joined_and_one_is_whole() {
    // covers: GTW-1, GTW-2, GTW-3
    let daemon = Daemon::start().await;
    daemon.register(&wayward("way", &[])).await;
    let mut all = joined(&daemon, &[]);
    all.initialize().await;
    let answer = all.request("tools/list", json!({})).await;
    assert!(names(&answer).contains(&"way__echo"), "{answer}");
    let told = all.call("way__echo", json!({"text": "joined"})).await;
    assert!(told.to_string().contains("joined"), "{told}");
    let mut one = joined(&daemon, &["way"]);
    assert!(one.initialize().await["serverInfo"]["name"].is_string());
    let answer = one.request("tools/list", json!({})).await;
    assert!(names(&answer).contains(&"echo"), "{answer}");
    let told = one.call("echo", json!({"text": "whole"})).await;
    assert!(told.to_string().contains("whole"), "{told}");
    for client in [all, one] {
        let (code, rest, stderr) = client.close().await;
        // The lists of a server are read one after the other: a client that is quick sees them change.
        let is_change = |line: &String| line.contains("/list_changed\"");
        assert!(code == Some(0) && rest.iter().all(is_change), "{code:?} {rest:?} {stderr}");
        assert!(!stderr.contains(daemon.token()), "{stderr}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_be_so() {
    let daemon = Daemon::start().await;
    let mut client = joined(&daemon, &["nobody"]);
    let answer = client.request("initialize", json!({})).await;
    assert!(answer["error"]["message"].to_string().contains("nobody"), "{answer}");
    let (code, _, stderr) = client.close().await;
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("nobody"), "{stderr}");
}

#[tokio::test]
async fn a_restart_of_the_daemon_goes_unnoticed() {
    // covers: GTW-3
    let mut daemon = Daemon::start().await;
    daemon.register(&wayward("way", &[])).await;
    let mut client = joined(&daemon, &["way"]);
    client.initialize().await;
    client.call("echo", json!({"text": "before"})).await;
    assert!(daemon.terminate().await.success());
    let again = Daemon::builder().data_dir(&daemon.data_dir()).start().await;
    again.wait_status("way", "ready").await;
    let told = client.call("echo", json!({"text": "after"})).await;
    assert!(told.to_string().contains("after"), "{told}");
}

/// Ends the daemon that serves a data directory, also where the test fails.
struct Ends<'a>(&'a str);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        for pid in processes_with(self.0) {
            signal(pid, Signal::TERM);
        }
    }
}

#[tokio::test]
async fn a_daemon_is_started_where_that_is_asked_for_and_outlives_the_client() {
    // covers: GTW-3
    let home = tempfile::tempdir().expect("a temporary folder");
    let data = home.path().join("data");
    let data = data.to_str().expect("text");
    let _ends = Ends(data);
    let env = [
        ("COFER_DATA_DIR", data),
        ("COFER_LISTEN", "127.0.0.1:0"),
        ("HOME", home.path().to_str().expect("text")),
    ];
    let start = || McpClient::start_by(&cofer(), &["connect", "--start"], &env, home.path());
    // Two at once: one daemon.
    let (mut one, mut two) = (start(), start());
    tokio::join!(one.initialize(), two.initialize());
    let serving = processes_with(data);
    for client in [one, two] {
        let (code, _, stderr) = client.close().await;
        assert_eq!(code, Some(0), "{stderr}");
    }
    let ended = run(&cofer(), &["server", "list"], &env, "").await;
    assert_eq!(ended.code, Some(0), "the daemon is there still: {}", ended.stderr);
    let daemons: Vec<u32> = serving.into_iter().filter(|pid| alive(*pid)).collect();
    assert_eq!(daemons.len(), 1, "{daemons:?}");
    signal(daemons[0], Signal::TERM);
    wait_gone(&daemons).await;
}
