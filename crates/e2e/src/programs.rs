//! Where the programs under test are, and how one is run to its end.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::wait::within;

/// The `cofer` binary: `COFER_BIN`, else the one built beside this test.
pub fn cofer() -> PathBuf {
    match std::env::var_os("COFER_BIN") {
        Some(path) => PathBuf::from(path),
        None => beside_the_test("cofer"),
    }
}

/// The `wayward` server.
pub fn wayward_path() -> PathBuf {
    beside_the_test("wayward")
}

/// The registration of an `exemplary` of this era, which takes several requests at once.
pub fn exemplary(name: &str, era: &str) -> Value {
    let command = beside_the_test("exemplary");
    json!({"name": name, "command": command, "args": ["--era", era], "max_in_flight": 8})
}

/// A folder that `scripts/setup-tests` fills.
pub fn tests_folder(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).unwrap_or_else(|| {
        panic!("{variable} is not set: run this under scripts/test, which installs what it needs")
    });
    PathBuf::from(path)
}

/// A test runs from `target/debug/deps`, programs are one folder up.
fn beside_the_test(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let found = test.ancestors().skip(1).take(2).map(|dir| dir.join(name)).find(|p| p.is_file());
    found.unwrap_or_else(|| {
        panic!("no `{name}` beside {}: run `cargo build -p cofer` or set COFER_BIN", test.display())
    })
}

/// The registration of a `wayward` with these flags.
pub fn wayward(name: &str, flags: &[&str]) -> Value {
    json!({"name": name, "command": wayward_path(), "args": flags})
}

/// How a program ended, and what it wrote.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// Runs a program to its end, with `PATH` and these variables as its whole environment.
pub async fn run(program: &Path, args: &[&str], env: &[(&str, &str)], input: &str) -> Ended {
    let mut command = command(program);
    command.args(args).envs(env.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A program that does not read its input closes the pipe, which is its right.
    let written = stdin.write_all(input.as_bytes()).await;
    drop((written, stdin));
    let what = format!("{} {args:?} ends", program.display());
    let output = within(&what, child.wait_with_output()).await.expect("its output is read");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Starts a program that goes on, and gives its stdout line by line. It ends with the child.
pub fn follow(
    program: &Path,
    args: &[&str],
    env: &[(&str, &str)],
) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = command(program);
    command.args(args).envs(env.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let stdout = child.stdout.take().expect("stdout is piped");
    (child, BufReader::new(stdout).lines())
}

/// Where programs and Podman's settings for the tests are.
const KEPT: [&str; 8] = [
    "PATH",
    "LANG",
    "LLVM_PROFILE_FILE",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    // Podman without root finds its user's systemd by them.
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// A command that knows nothing of this test's environment but where programs are found.
#[expect(clippy::disallowed_methods, reason = "the harness starts what it tests")]
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().kill_on_drop(true);
    for kept in KEPT {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command
}
