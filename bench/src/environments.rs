//! What an environment costs: creating and destroying it against a bare container of the same
//! image, a command in it against `podman exec`, and whether any of it grows with the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::Instant;

use crate::process::{self, Running, command};
use crate::report::{Goal, Wanted};
use crate::sample::median;

const FEW: usize = 1_000;
const MANY: usize = 80_000;
const CREATIONS: usize = 7;
const COMMANDS: usize = 200;
const EXECS: usize = 15;
const GIB: u64 = 1 << 30;

/// Measures everything there is to measure of environments.
pub async fn goals(bin: &Path, image: &str) -> io::Result<Vec<Goal>> {
    let cofer = bin.join("cofer");
    let mut server = Server::start(&cofer).await?;
    let folder = tempfile::tempdir()?;
    let few = repository(&cofer, &folder.path().join("few"), FEW).await?;
    let many = repository(&cofer, &folder.path().join("many"), MANY).await?;
    let mut goals = life_goals(&mut server, &few, &many, image).await?;
    goals.extend(command_goals(&mut server, &few, image).await?);
    goals.extend(memory_goals(&mut server, &few, image).await?);
    server.running.stop().await?;
    Ok(goals)
}

/// A prepared repository with that many small files.
async fn repository(cofer: &Path, folder: &Path, files: usize) -> io::Result<PathBuf> {
    for number in 0..files {
        let below = folder.join(format!("d{}", number / 200));
        if number % 200 == 0 {
            fs::create_dir_all(&below)?;
        }
        fs::write(below.join(format!("f{number}")), format!("{number}\n"))?;
    }
    fs::write(folder.join(".gitignore"), "big/\n")?;
    let git = async |args: &[&str]| run(command("git").arg("-C").arg(folder).args(args)).await;
    git(&["init", "-q"]).await?;
    git(&["add", "-A"]).await?;
    git(&["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-q", "-m", "one"]).await?;
    git(&["status"]).await?;
    run(command(cofer).arg("init").arg(folder)).await?;
    Ok(folder.to_owned())
}

async fn run(command: &mut tokio::process::Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output().await?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))))
}

/// Creating and destroying, over a bare `podman run -d` and `podman rm -f`, in turns.
async fn life_goals(
    server: &mut Server,
    few: &Path,
    many: &Path,
    image: &str,
) -> io::Result<Vec<Goal>> {
    let mut times: [Vec<f64>; 6] = Default::default();
    // The first round makes the bases and warms what the others find warm.
    for round in 0..=CREATIONS {
        let bare = bare(image).await?;
        let (create_few, destroy_few) = life(server, few, image).await?;
        let (create_many, destroy_many) = life(server, many, image).await?;
        let all = [bare.0, create_few, create_many, bare.1, destroy_few, destroy_many];
        if round > 0 {
            times
                .iter_mut()
                .zip(all)
                .for_each(|(times, time)| times.push(time.as_secs_f64() * 1e3));
        }
    }
    let [bare_run, create_few, create_many, bare_rm, destroy_few, destroy_many] = times.map(median);
    let over = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    Ok(vec![
        goal("bare `podman run -d`", bare_run, Wanted::Nothing, " ms"),
        goal("create, 1,000 files", create_few, Wanted::Nothing, " ms"),
        goal("create, 80,000 files", create_many, Wanted::Nothing, " ms"),
        goal(
            "create over bare `podman run -d`",
            over(create_few, bare_run),
            Wanted::AtMost(1.3),
            " times",
        ),
        goal(
            "create: 80,000 over 1,000 files",
            over(create_many, create_few),
            Wanted::AtMost(1.2),
            " times",
        ),
        goal("bare `podman rm -f`", bare_rm, Wanted::Nothing, " ms"),
        goal("destroy, 1,000 files", destroy_few, Wanted::Nothing, " ms"),
        goal(
            "destroy over bare `podman rm -f`",
            over(destroy_few, bare_rm),
            Wanted::AtMost(1.2),
            " times",
        ),
        goal(
            "destroy: 80,000 over 1,000 files",
            over(destroy_many, destroy_few),
            Wanted::AtMost(1.2),
            " times",
        ),
    ])
}

async fn bare(image: &str) -> io::Result<(Duration, Duration)> {
    const NAME: &str = "cofer-bench-bare";
    let begin = Instant::now();
    run(command("podman").args([
        "run",
        "-d",
        "--name",
        NAME,
        "--entrypoint",
        "sleep",
        image,
        "1000",
    ]))
    .await?;
    let started = begin.elapsed();
    let begin = Instant::now();
    run(command("podman").args(["rm", "-f", "-t", "0", NAME])).await?;
    Ok((started, begin.elapsed()))
}

async fn life(server: &mut Server, source: &Path, image: &str) -> io::Result<(Duration, Duration)> {
    let begin = Instant::now();
    server.create(source, image).await?;
    let created = begin.elapsed();
    let begin = Instant::now();
    server.destroy(source).await?;
    Ok((created, begin.elapsed()))
}

/// A command that does nothing, over the engine's way of running one.
async fn command_goals(server: &mut Server, source: &Path, image: &str) -> io::Result<Vec<Goal>> {
    let container = server.create(source, image).await?;
    let small = server.commands(source).await?;
    let mut execs = Vec::new();
    for _ in 0..EXECS {
        let begin = Instant::now();
        run(command("podman").args(["exec", &container, "sh", "-c", "true"])).await?;
        execs.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let exec = median(execs);
    let big = source.join(".cofer/worktrees/bench/big");
    fs::create_dir(&big)?;
    for number in 0..500 {
        fs::File::create(big.join(number.to_string()))?.set_len(5 * GIB / 500)?;
    }
    server.commands(source).await?;
    let large = server.commands(source).await?;
    server.destroy(source).await?;
    let over = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    Ok(vec![
        goal("`podman exec` of `true`", exec, Wanted::Nothing, " ms"),
        goal("environment_run_cmd of `true`: p50", small, Wanted::Nothing, " ms"),
        goal("the same over `podman exec`", over(small, exec), Wanted::AtMost(0.1), " times"),
        goal(
            "the same in a workdir of 5 GB over one of 1 MB",
            over(large, small),
            Wanted::AtMost(1.3),
            " times",
        ),
    ])
}

/// The server's memory while a command prints 10 GB.
async fn memory_goals(server: &mut Server, source: &Path, image: &str) -> io::Result<Vec<Goal>> {
    server.create(source, image).await?;
    process::reset_peak(server.running.pid())?;
    server.run(source, "dd if=/dev/zero bs=1048576 count=10240").await?;
    let peak = process::memory(server.running.pid(), "status", "VmHWM")? as f64 / 1024.0 / 1024.0;
    server.destroy(source).await?;
    Ok(vec![goal(
        "memory of the server while a command prints 10 GB",
        Some(peak),
        Wanted::AtMost(30.0),
        " MiB",
    )])
}

fn goal(what: &str, is: Option<f64>, wanted: Wanted, unit: &'static str) -> Goal {
    Goal { what: what.to_owned(), is, wanted, unit }
}

/// `cofer mcp environments`, talked to in lines.
struct Server {
    running: Running,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    last: u64,
}

impl Server {
    async fn start(cofer: &Path) -> io::Result<Self> {
        let mut command = command(cofer);
        command.args(["mcp", "environments"]).env("COFER_LOG", "error");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command)?;
        let missing = || io::Error::other("no pipe");
        let stdin = running.child().stdin.take().ok_or_else(missing)?;
        let stdout = BufReader::new(running.child().stdout.take().ok_or_else(missing)?).lines();
        let mut server = Self { running, stdin, stdout, last: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}});
        server.ask("initialize", hello).await?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(server)
    }

    async fn send(&mut self, message: &Value) -> io::Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await
    }

    async fn ask(&mut self, method: &str, params: Value) -> io::Result<Value> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        while let Some(line) = self.stdout.next_line().await? {
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                return Ok(answer["result"].take());
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    async fn tool(&mut self, name: &str, source: &Path, mut arguments: Value) -> io::Result<Value> {
        arguments["environment_source"] = json!(source);
        let mut result =
            self.ask("tools/call", json!({"name": name, "arguments": arguments})).await?;
        if result["isError"] == true {
            return Err(io::Error::other(result["content"][0]["text"].to_string()));
        }
        Ok(result["structuredContent"].take())
    }

    async fn create(&mut self, source: &Path, image: &str) -> io::Result<String> {
        let told = self
            .tool("environment_create", source, json!({"title": "bench", "image": image}))
            .await?;
        Ok(told["container_id"].as_str().unwrap_or_default().to_owned())
    }

    async fn run(&mut self, source: &Path, command: &str) -> io::Result<()> {
        let arguments = json!({"environment_id": "bench", "command": command});
        self.tool("environment_run_cmd", source, arguments).await.map(drop)
    }

    /// The median of many commands that do nothing, in milliseconds.
    async fn commands(&mut self, source: &Path) -> io::Result<Option<f64>> {
        let mut times = Vec::new();
        for _ in 0..COMMANDS {
            let begin = Instant::now();
            self.run(source, "true").await?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        Ok(median(times))
    }

    async fn destroy(&mut self, source: &Path) -> io::Result<()> {
        self.tool("environment_destroy", source, json!({"environment_id": "bench"})).await.map(drop)
    }
}
