//! Starts the daemon in the background: in a session of its own, so that it outlives whoever
//! wanted it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::config::Target;
use crate::failure::Failure;

/// How long a daemon that somebody else is starting may take.
const OTHERS: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);
/// How much of what a daemon says is kept, and how much of that is shown.
const MAX_WORDS: usize = 64 * 1024;
const LAST_WORDS: usize = 10;

/// Starts a daemon on this data directory and waits until it is ready.
pub(super) async fn daemon(data_dir: &Path) -> Result<(), Failure> {
    let dir = data_dir.to_owned();
    let failed = || Failure::new("could not start the daemon in the background");
    let launched = tokio::task::spawn_blocking(move || launch(&dir)).await;
    let launched = launched.map_err(|error| failed().caused_by(error))?;
    let Some(said) = launched.map_err(|error| failed().caused_by(error))? else {
        return Ok(());
    };
    // Another client may have started one at the same moment.
    let deadline = Instant::now() + OTHERS;
    while said.contains("in use by another daemon") && Instant::now() < deadline {
        if answers(data_dir).await {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    Err(not_ready(&said))
}

/// Runs `cofer serve` and waits for its ready line; what it said where it ended instead.
fn launch(data_dir: &Path) -> io::Result<Option<String>> {
    let nothing = File::open("/dev/null")?;
    // Not the path of the binary: an upgrade may have put another one there.
    let mut command = cofer_runtime::detached("/proc/self/exe", nothing.into());
    command.arg0("cofer").arg("serve").arg("--data-dir").arg(data_dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let words = std::thread::Builder::new().spawn(move || stderr.map(words).unwrap_or_default())?;
    let mut line = String::new();
    if let Some(stdout) = stdout {
        BufReader::new(stdout.take(4096)).read_line(&mut line)?;
    }
    if line.starts_with("cofer: listening on ") {
        // What it says from now on is in its log, and nobody has to read its stderr.
        return Ok(None);
    }
    child.wait()?;
    Ok(Some(words.join().unwrap_or_default()))
}

/// Reads to the end, so that nobody who writes has to wait, and keeps the beginning.
fn words(mut stream: impl Read) -> String {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut chunk) {
        let room = MAX_WORDS.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&chunk[..room]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

async fn answers(data_dir: &Path) -> bool {
    let target = Target::find(data_dir, None);
    let Ok(client) = target.and_then(|target| Ok(Client::new(target)?)) else {
        return false;
    };
    client.health().await.is_ok()
}

fn not_ready(said: &str) -> Failure {
    let failure = Failure::new("the daemon was started and did not become ready");
    let lines: Vec<&str> = said.lines().collect();
    let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
    let failure = last.iter().fold(failure.showing("Its last words:"), |failure, line| {
        failure.showing(format!("  {line}"))
    });
    failure.hint("run `cofer serve` in a terminal to see what keeps it from starting.")
}
