//! Runs Podman's command line: with an environment of its own, a time limit and a bound on
//! what is read. A client that is no longer wanted is asked to end, then killed; a container
//! is never ended that way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::complaint;
use super::error::PodmanError;
use crate::command::{self, EnginePlan};
use crate::proc::raw;

/// Which daemon a client works for, in its environment: the guard waits for, or ends, the
/// clients of a daemon that was killed.
pub(crate) const CLIENT_OF: &str = "COFER_ENGINE_CLIENT";

/// What Podman, its helpers and its network need of the daemon's environment.
const PASSED: [&str; 29] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DBUS_SESSION_BUS_ADDRESS",
    "STORAGE_DRIVER",
    "STORAGE_OPTS",
    "CONTAINERS_CONF",
    "CONTAINERS_CONF_OVERRIDE",
    "CONTAINERS_REGISTRIES_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINER_HOST",
    "CONTAINER_CONNECTION",
    "REGISTRY_AUTH_FILE",
    "NETAVARK_FW",
];

/// Families of variables that Podman, its helpers or the Go runtime read, for which a server's
/// own value must not be put into the client's environment.
const READ_BY_CLIENT: [&str; 15] = [
    "XDG_",
    "CONTAINER_",
    "CONTAINERS_",
    "_CONTAINERS_",
    "_OCI_",
    "STORAGE_",
    "REGISTRY_",
    "DOCKER_",
    "BUILDAH_",
    "PODMAN_",
    "NETAVARK_",
    "LD_",
    "DBUS_",
    "LISTEN_",
    "COFER_",
];

/// Single variables of the same sort.
const READ_BY_CLIENT_TOO: [&str; 9] = [
    "NOTIFY_SOCKET",
    "INVOCATION_ID",
    "LANG",
    "LANGUAGE",
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOTRACEBACK",
];

/// How long most commands may take. They take a tenth of a second; the rest is for machines
/// that are busy, and for commands that wait for each other's locks.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long a client that was asked to end may take.
const CLIENT_GRACE: Duration = Duration::from_secs(5);

/// The most that is read of what a command prints.
const MAX_OUTPUT: u64 = 16 * 1024 * 1024;
/// The most that is read of its complaints.
pub(crate) const MAX_COMPLAINT: u64 = 64 * 1024;

/// What a command answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// The way to Podman.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) program: PathBuf,
    pub(crate) environment: Arc<BTreeMap<OsString, OsString>>,
    /// Clients that were given up are ended by tasks of their own.
    tasks: TaskTracker,
}

impl Client {
    /// `daemon` names this daemon among all that ever ran.
    pub(crate) fn new(
        program: PathBuf,
        base: impl IntoIterator<Item = (OsString, OsString)>,
        daemon: &str,
        tasks: TaskTracker,
    ) -> Self {
        let mut environment: BTreeMap<OsString, OsString> =
            base.into_iter().filter(|(key, _)| is_passed(key)).collect();
        // Its complaints are read.
        environment.insert("LC_ALL".into(), "C.UTF-8".into());
        environment.insert(CLIENT_OF.into(), daemon.into());
        Self { program, environment: Arc::new(environment), tasks }
    }

    /// Runs a command to its end; what it answers may be a failure.
    pub(crate) async fn run<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        limit: Duration,
    ) -> Result<Answer, PodmanError> {
        let mut running = self.spawn(args, &self.environment, Stdio::null(), None)?;
        let (stdout, stderr) = (running.child.stdout.take(), running.child.stderr.take());
        let work = async {
            let (stdout, stderr, status) = tokio::join!(
                read_some(stdout, MAX_OUTPUT),
                read_some(stderr, MAX_COMPLAINT),
                running.child.wait()
            );
            let stderr = String::from_utf8_lossy(&stderr).into_owned();
            status.map(|status| Answer { status, stdout, stderr })
        };
        match timeout(limit, work).await {
            Ok(answer) => answer.map_err(|source| self.unrunnable(source)),
            Err(_) => {
                running.end().await;
                Err(PodmanError::Timeout { action: action(args), after: limit })
            }
        }
    }

    /// Runs a command that is to succeed; returns what it printed.
    pub(crate) async fn ask<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>, PodmanError> {
        let answer = self.run(args, PATIENCE).await?;
        if answer.status.success() {
            return Ok(answer.stdout);
        }
        Err(complaint::general(&action(args), &answer.stderr))
    }

    /// The same for text, without the line's end.
    pub(crate) async fn ask_text<S: AsRef<OsStr>>(
        &self,
        args: &[S],
    ) -> Result<String, PodmanError> {
        let stdout = self.ask(args).await?;
        Ok(String::from_utf8_lossy(&stdout).trim().to_owned())
    }

    /// Starts a command: on the streams that are given, else on pipes that are read later.
    pub(crate) fn spawn<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        environment: &BTreeMap<OsString, OsString>,
        stdin: Stdio,
        output: Option<(Stdio, Stdio)>,
    ) -> Result<RunningClient, PodmanError> {
        let args: Vec<OsString> = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
        let (stdout, stderr) = output.unwrap_or_else(|| (Stdio::piped(), Stdio::piped()));
        let program = &self.program;
        let plan = EnginePlan { program, args: &args, environment, stdin, stdout, stderr };
        let child = command::engine(plan).spawn().map_err(|source| self.unrunnable(source))?;
        Ok(RunningClient { child, tasks: self.tasks.clone() })
    }

    fn unrunnable(&self, source: io::Error) -> PodmanError {
        let program = self.program.display().to_string();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT | Errno::NOTDIR) => PodmanError::NotInstalled { program },
            Some(Errno::TOOBIG) => PodmanError::BadPlan {
                what: "arguments and environment".to_owned(),
                why: "they are too long together",
            },
            _ => PodmanError::Spawn { program, source },
        }
    }
}

/// A command that runs. Dropped before its end, it is asked to end, and killed where it does not.
pub(crate) struct RunningClient {
    pub(crate) child: Child,
    tasks: TaskTracker,
}

impl RunningClient {
    /// Asks it to end, with what it works through; kills it where it does not.
    pub(crate) async fn end(&mut self) {
        end(&mut self.child).await;
    }
}

impl Drop for RunningClient {
    fn drop(&mut self) {
        let Some(pid) = self.child.id().and_then(raw) else {
            return;
        };
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if kill_process_group(pid, Signal::TERM).is_ok()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.tasks.spawn(async move { end_group(pid).await });
        }
    }
}

async fn end(child: &mut Child) {
    let Some(pid) = child.id().and_then(raw) else {
        return;
    };
    kill_process_group(pid, Signal::TERM).ok();
    if timeout(CLIENT_GRACE, child.wait()).await.is_err() {
        kill_process_group(pid, Signal::KILL).ok();
        drop(child.wait().await);
    }
}

/// For a client that nobody waits for any more: the runtime collects it when it ends.
async fn end_group(group: rustix::process::Pid) {
    tokio::time::sleep(CLIENT_GRACE).await;
    let number = group.as_raw_nonzero().get().unsigned_abs();
    let is_still_a_client = crate::proc::Process::read(number)
        .and_then(|process| process.variable(CLIENT_OF))
        .is_some();
    if is_still_a_client {
        kill_process_group(group, Signal::KILL).ok();
    }
}

/// Reads to the end, and keeps the first `most` bytes of it.
pub(crate) async fn read_some(source: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut source) = source {
        // What was read before an error is all there is.
        drop((&mut source).take(most).read_to_end(&mut kept).await);
        drop(tokio::io::copy(&mut source, &mut tokio::io::sink()).await);
    }
    kept
}

/// The words of a command without its flags and what they are about, for messages.
pub(crate) fn action<S: AsRef<OsStr>>(args: &[S]) -> String {
    let words = args.iter().map(|arg| arg.as_ref().to_string_lossy());
    let words: Vec<_> = words.skip_while(|word| word.starts_with('-')).collect();
    let count = usize::from(words.get(1).is_some_and(|word| {
        matches!(words[0].as_ref(), "volume" | "container" | "image") && !word.starts_with('-')
    }));
    words[..words.len().min(1 + count)].join(" ")
}

/// Whether a variable of the daemon's reaches Podman.
fn is_passed(key: &OsStr) -> bool {
    let Some(key) = key.to_str() else {
        return false;
    };
    PASSED.contains(&key) || key.starts_with("XDG_")
}

/// Whether Podman itself would read a variable of this name.
pub(crate) fn is_read_by_client(key: &str) -> bool {
    PASSED.contains(&key)
        || READ_BY_CLIENT_TOO.contains(&key)
        || key.starts_with("LC_")
        || READ_BY_CLIENT.iter().any(|family| key.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_secrets_do_not_reach_podman() {
        let base = [("PATH", "/bin"), ("OPENAI_API_KEY", "k"), ("XDG_RUNTIME_DIR", "/run/user/1")];
        let base = base.into_iter().map(|(key, value)| (key.into(), value.into()));
        let client = Client::new("podman".into(), base, "d", TaskTracker::new());
        let keys: Vec<_> = client.environment.keys().map(|key| key.to_str().unwrap()).collect();
        assert_eq!(keys, [CLIENT_OF, "LC_ALL", "PATH", "XDG_RUNTIME_DIR"]);
    }

    #[test]
    fn what_podman_reads_is_told_apart_from_what_it_only_hands_on() {
        for key in ["PATH", "HOME", "XDG_DATA_HOME", "LD_PRELOAD", "GODEBUG", "LC_ALL", "TMPDIR"] {
            assert!(is_read_by_client(key), "{key}");
        }
        for key in ["API_KEY", "NODE_ENV", "GOOGLE_API_KEY", "home"] {
            assert!(!is_read_by_client(key), "{key}");
        }
    }

    #[test]
    fn a_command_is_named_without_its_arguments() {
        for (args, expected) in [
            (&["--log-level=error", "run", "-d", "--env", "A"][..], "run"),
            (&["volume", "create", "x"], "volume create"),
            (&["rm", "-f", "x"], "rm"),
            (&[], ""),
        ] {
            assert_eq!(action(args), expected);
        }
    }
}
