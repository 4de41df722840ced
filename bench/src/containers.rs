//! What a container costs: calls through one against the same server as a process, and the time
//! until it is ready against a bare `podman run` of the same image.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::{Instant, timeout};

use crate::daemon::Daemon;
use crate::http;
use crate::message;
use crate::process::command;
use crate::report::{Goal, Wanted};
use crate::sample::{Figures, median};

const SIZE: usize = 100;
const STARTS: usize = 9;
const AT_ONCE: usize = 20;
/// The longest wait for a bare container's first word.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures everything there is to measure of containers.
pub async fn goals(
    bin: &Path,
    image: &str,
    rounds: usize,
    time: Duration,
) -> io::Result<Vec<Goal>> {
    let daemon = Daemon::start(&bin.join("cofer")).await?;
    let mut goals = call_goals(&daemon, bin, image, rounds, time).await?;
    for (provider, wanted) in [("podman", Wanted::AtMost(1.3)), ("gvisor", Wanted::Nothing)] {
        goals.extend(start_goals(&daemon, image, provider, wanted).await?);
    }
    goals.extend(parallel_goals(&daemon, image).await?);
    daemon.stop().await?;
    Ok(goals)
}

/// A call of one line: through runc and through runsc, over the same call to a process.
async fn call_goals(
    daemon: &Daemon,
    bin: &Path,
    image: &str,
    rounds: usize,
    time: Duration,
) -> io::Result<Vec<Goal>> {
    const SERVERS: [&str; 3] = ["process", "podman", "gvisor"];
    daemon.register(SERVERS[0], &bin.join("echo-server"), 1).await?;
    for provider in &SERVERS[1..] {
        daemon.register_as(&registration(provider, image, provider)).await?;
    }
    let mut samples = [const { Vec::new() }; SERVERS.len()];
    for _ in 0..rounds {
        for (server, figures) in SERVERS.iter().zip(&mut samples) {
            let request = daemon.call_request(server, &message::call_body(SIZE));
            let sample = http::load(daemon.port, vec![request], &message::text(SIZE), time).await?;
            figures.push(sample.figures());
        }
    }
    for server in SERVERS {
        daemon.disable(server).await?;
    }
    let p50 = |at: usize| Figures::median(&samples[at]).map(|all| all.p50.as_secs_f64() * 1e6);
    let over = |at: usize| Some(p50(at)? / p50(0)?);
    let goal = |what: &str, is, wanted, unit| Goal { what: what.to_owned(), is, wanted, unit };
    Ok(vec![
        goal("call of 100 B to a process: p50", p50(0), Wanted::Nothing, " µs"),
        goal("the same through runc: p50", p50(1), Wanted::Nothing, " µs"),
        goal("the same through runsc: p50", p50(2), Wanted::Nothing, " µs"),
        goal("runc over process", over(1), Wanted::AtMost(2.0), " times"),
        goal("runsc over process", over(2), Wanted::Nothing, " times"),
    ])
}

/// From a registration to ready, over a bare `podman run` until the same answer came, in turns.
async fn start_goals(
    daemon: &Daemon,
    image: &str,
    provider: &str,
    wanted: Wanted,
) -> io::Result<Vec<Goal>> {
    let (mut ready, mut bare) = (Vec::new(), Vec::new());
    // The first of each warms what the others find warm.
    for number in 0..=STARTS {
        let name = format!("start-{provider}-{number}");
        let begin = Instant::now();
        daemon.register_as(&registration(&name, image, provider)).await?;
        let took = begin.elapsed();
        daemon.disable(&name).await?;
        let alone = bare_start(image, provider).await?;
        if number > 0 {
            ready.push(took.as_secs_f64() * 1e3);
            bare.push(alone.as_secs_f64() * 1e3);
        }
    }
    let (ready, bare) = (median(ready), median(bare));
    let goal = |what: String, is, wanted, unit| Goal { what, is, wanted, unit };
    Ok(vec![
        goal(format!("{provider}: registration to ready"), ready, Wanted::Nothing, " ms"),
        goal(format!("{provider}: bare `podman run` to answer"), bare, Wanted::Nothing, " ms"),
        goal(
            format!("{provider}: ready over bare (medians of {STARTS})"),
            ready.zip(bare).map(|(ready, bare)| ready / bare),
            wanted,
            " times",
        ),
    ])
}

/// From starting `podman run` to the answer to `initialize`.
async fn bare_start(image: &str, provider: &str) -> io::Result<Duration> {
    let mut podman = command("podman");
    if provider == "gvisor" {
        // Its own network stack does not work on every kernel; this one does.
        podman.args(["--runtime", "runsc", "--runtime-flag", "network=host"]);
    }
    podman.args(["run", "--rm", "--interactive", image]);
    let begin = Instant::now();
    let mut child = podman.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let missing = || io::Error::other("no pipe");
    let mut stdin = child.stdin.take().ok_or_else(missing)?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or_else(missing)?);
    stdin.write_all(format!("{}\n", message::INITIALIZE).as_bytes()).await?;
    let mut line = String::new();
    timeout(PATIENCE, stdout.read_line(&mut line)).await??;
    let took = begin.elapsed();
    drop(stdin);
    timeout(PATIENCE, child.wait()).await??;
    if line.contains("protocolVersion") {
        Ok(took)
    } else {
        Err(io::Error::other(format!("a bare container of {image} said {line:?}")))
    }
}

/// Twenty at once; the first that does not become ready fails the run.
async fn parallel_goals(daemon: &Daemon, image: &str) -> io::Result<Vec<Goal>> {
    let begin = Instant::now();
    let bodies = (0..AT_ONCE).map(|n| registration(&format!("at-once-{n}"), image, "podman"));
    let bodies: Vec<_> = bodies.collect();
    let starting = bodies.iter().map(|body| daemon.register_as(body));
    let failed = join_all(starting).await.into_iter().filter(Result::is_err).count();
    let together = begin.elapsed().as_secs_f64();
    let bare = join_all((0..AT_ONCE).map(|_| bare_start(image, "podman"))).await;
    let bare = bare.into_iter().collect::<io::Result<Vec<Duration>>>()?;
    let alone = bare.into_iter().max().unwrap_or_default().as_secs_f64();
    let goal = |what: String, is, wanted, unit| Goal { what, is: Some(is), wanted, unit };
    Ok(vec![
        goal(
            format!("{AT_ONCE} containers at once: that did not become ready"),
            failed as f64,
            Wanted::AtMost(0.0),
            "",
        ),
        goal("the same: until all are ready".to_owned(), together, Wanted::Nothing, " s"),
        goal("the same with bare `podman run`".to_owned(), alone, Wanted::Nothing, " s"),
    ])
}

fn registration(name: &str, image: &str, provider: &str) -> serde_json::Value {
    json!({"name": name, "image": image, "provider": provider})
}
