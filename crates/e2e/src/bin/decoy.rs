//! Runs a command beside a stand-in for the user's own daemon, and fails if anything found it:
//!
//! ```sh
//! decoy cargo nextest run
//! ```
//!
//! It listens on the default address, serves the socket of the default data directory, and has all
//! variables by which a command finds a daemon point there. A test that uses a default instead of a
//! port and a directory of its own reaches it. If a daemon of the user has the default port, that
//! is the one beside which the command runs.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

const ADDRESS: &str = "127.0.0.1:8787";
const URL: &str = "http://127.0.0.1:8787";
const TOKEN: &str = "decoy-0123456789abcdef0123456789abcdef";
/// How long a connection may take to send its first bytes, which name it in the report.
const FIRST_BYTES: Duration = Duration::from_secs(2);

/// Connections that reached the decoy, by their first line.
type Visits = Arc<Mutex<Vec<String>>>;

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(program) = args.next() else {
        report("usage: decoy COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    match run(program, args.collect()).await {
        Ok(code) => code,
        Err(error) => {
            report(&format!("decoy: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(program: OsString, args: Vec<OsString>) -> std::io::Result<ExitCode> {
    let home = tempfile::tempdir()?;
    let data = home.path().join("cofer");
    fs::create_dir(&data)?;
    fs::write(data.join("token"), TOKEN)?;
    let visits = Visits::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve_socket(UnixListener::bind(data.join("socket"))?, Arc::clone(&visits)));
    match TcpListener::bind(ADDRESS).await {
        Ok(listener) => drop(tasks.spawn(serve_port(listener, Arc::clone(&visits)))),
        Err(error) => report(&format!(
            "decoy: {ADDRESS} is taken ({error}); the tests run beside the program that listens there"
        )),
    }
    let status = wait(&mut spawn(program, args, home.path(), &data)?).await?;
    tasks.shutdown().await;
    let visits = visits.lock().unwrap_or_else(PoisonError::into_inner);
    if visits.is_empty() {
        return Ok(code_of(status));
    }
    report(
        "decoy: tests reached the default daemon; use a port and a data directory of their own:",
    );
    for visit in visits.iter() {
        report(&format!("decoy:   {visit}"));
    }
    Ok(ExitCode::FAILURE)
}

#[expect(clippy::disallowed_methods, reason = "it runs the tests, not a server")]
fn spawn(
    program: OsString,
    args: Vec<OsString>,
    home: &Path,
    data: &Path,
) -> std::io::Result<Child> {
    // Not HOME, in which cargo and npm have their caches.
    let mut command = Command::new(program);
    command.args(args).env("XDG_DATA_HOME", home).env("COFER_DATA_DIR", data);
    command.env("COFER_URL", URL).env("COFER_LISTEN", ADDRESS).env("COFER_TOKEN", TOKEN);
    command.spawn()
}

/// Waits for the command, and passes on the signals that end it.
async fn wait(child: &mut Child) -> std::io::Result<ExitStatus> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let received = tokio::select! {
            status = child.wait() => return status,
            _ = interrupt.recv() => Signal::INT,
            _ = terminate.recv() => Signal::TERM,
        };
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        if let Some(pid) = pid {
            kill_process(pid, received).unwrap_or_default();
        }
    }
}

fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

async fn serve_socket(listener: UnixListener, visits: Visits) {
    while let Ok((mut stream, _)) = listener.accept().await {
        note(&visits, "the socket of the default data directory".to_owned());
        let answer = format!(r#"{{"url": "{URL}"}}"#);
        stream.write_all(answer.as_bytes()).await.unwrap_or_default();
    }
}

async fn serve_port(listener: TcpListener, visits: Visits) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, Arc::clone(&visits)));
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, visits: Visits) {
    let mut start = vec![0; 4096];
    let read = tokio::time::timeout(FIRST_BYTES, stream.read(&mut start)).await;
    let read = read.ok().and_then(Result::ok).unwrap_or(0);
    let text = String::from_utf8_lossy(&start[..read]);
    note(&visits, format!("{ADDRESS}: {}", text.lines().next().unwrap_or("(no bytes)")));
    let refusal = "HTTP/1.1 418 I'm a teapot\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.write_all(refusal.as_bytes()).await.unwrap_or_default();
}

fn note(visits: &Visits, visit: String) {
    visits.lock().unwrap_or_else(PoisonError::into_inner).push(visit);
}

fn report(text: &str) {
    writeln!(std::io::stderr(), "{text}").unwrap_or_default();
}
