//! What the tests of real processes share: a runner, shell scripts as servers, and ways to
//! wait for what they do.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use cofer_runtime::{ByteSource, Launch, Runner, Streams, Workload};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{sleep, timeout};

/// Far longer than anything takes, so that a test that waits in vain fails and does not hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Three processes that do not end by themselves or by SIGTERM, and tell their pids: a child
/// in the server's group, one that was orphaned by a double fork into its own session, and
/// one that in addition has an empty environment, so that no marker gives it away.
pub(crate) const FAMILY: &str = r#"
sh -c 'trap "" TERM; echo $$; exec sleep 1000' &
(setsid sh -c 'trap "" TERM HUP; echo $$; exec sleep 1000' &)
(env -i setsid sh -c 'trap "" TERM HUP; echo $$; exec sleep 1000' &)
"#;

/// How many `FAMILY` has.
pub(crate) const FAMILY_SIZE: usize = 3;

pub(crate) fn runner() -> Runner {
    Runner::new(env!("CARGO_BIN_EXE_cofer-shim").into())
}

/// A launch of `script` by the shell, whose processes are marked with `owner`.
pub(crate) fn sh(owner: &str, script: &str) -> Launch {
    program(owner, "/bin/sh", &["-c", script])
}

pub(crate) fn program(owner: &str, program: &str, args: &[&str]) -> Launch {
    Launch {
        program: program.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        environment: BTreeMap::new(),
        cwd: None,
        marker: format!("{owner}/server"),
    }
}

/// An owner that no other test and no other run has.
pub(crate) fn owner(test: &str) -> String {
    format!("test-{}-{test}", std::process::id())
}

/// A running script and its output by lines.
pub(crate) struct Running {
    pub(crate) workload: Workload,
    pub(crate) stdin: cofer_runtime::ByteSink,
    pub(crate) stdout: BufReader<ByteSource>,
    pub(crate) stderr: ByteSource,
}

pub(crate) async fn start(launch: &Launch) -> Running {
    let (workload, streams) = runner().start(launch).await.unwrap();
    let Streams { stdin, stdout, stderr } = streams;
    Running { workload, stdin, stdout: BufReader::new(stdout), stderr }
}

impl Running {
    /// The next line of its output.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.stdout.read_line(&mut line)).await.unwrap().unwrap();
        line.trim_end().to_owned()
    }

    /// The pids in its next lines.
    pub(crate) async fn pids(&mut self, count: usize) -> Vec<u32> {
        let mut pids = Vec::new();
        for _ in 0..count {
            pids.push(self.line().await.parse().unwrap());
        }
        assert!(pids.iter().all(|pid| exists(*pid)));
        pids
    }

    pub(crate) async fn exited(&self) -> cofer_model::Exit {
        timeout(PATIENCE, self.workload.exited()).await.unwrap()
    }

    pub(crate) async fn gone(&self) {
        timeout(PATIENCE, self.workload.gone()).await.unwrap();
    }

    pub(crate) fn shim(&self) -> u32 {
        parent(self.workload.pid())
    }
}

/// Whether there is such a process, be it only as a zombie.
pub(crate) fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether a process of this number still runs. A zombie does not: whoever is the parent of
/// what a dead test helper left may be slow to collect it.
pub(crate) fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with('Z'))
}

pub(crate) fn parent(pid: u32) -> u32 {
    status(pid, "PPid").parse().unwrap()
}

/// A field of `/proc/PID/status`.
pub(crate) fn status(pid: u32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

/// The session of a process, innermost number; "0" where its leader is outside this pid namespace.
pub(crate) fn session(pid: u32) -> String {
    status(pid, "NSsid").split_ascii_whitespace().last().unwrap_or_default().to_owned()
}

/// The set of signals a process ignores, without those past 31, which belong to the C library.
pub(crate) fn ignored_signals(pid: u32) -> u64 {
    u64::from_str_radix(&status(pid, "SigIgn"), 16).unwrap() & 0x7fff_ffff
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Stops a process and waits until each of its threads has.
pub(crate) async fn stop(pid: u32) {
    signal(pid, Signal::STOP);
    let is_stopped = || {
        let mut threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        threads.all(|thread| {
            let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T')
        })
    };
    until("the process is stopped", is_stopped).await;
}

/// Waits for `condition`.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
