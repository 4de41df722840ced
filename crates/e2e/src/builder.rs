//! Starting a daemon: its settings, its ready line, or what it said instead.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::task::JoinSet;

use crate::daemon::Daemon;
use crate::http::plain_client;
use crate::programs::{cofer, command};
use crate::wait::within;

/// How a daemon is to be started.
#[derive(Debug, Default)]
pub struct DaemonBuilder {
    args: Vec<String>,
    env: Vec<(String, String)>,
    data: Option<PathBuf>,
    prefix: Vec<String>,
}

impl DaemonBuilder {
    /// One more argument of `cofer serve`.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// One more variable of its environment.
    pub fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.env.push((key.to_owned(), value.into()));
        self
    }

    /// A command that becomes the daemon: a program with arguments, to which the daemon's own
    /// are added.
    pub fn under(mut self, prefix: &[&str]) -> Self {
        self.prefix = prefix.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// In a mount namespace in which no cgroup hierarchy is mounted.
    pub fn without_cgroups(self) -> Self {
        let script = r#"mount -t tmpfs none /sys/fs/cgroup && exec "$0" "$@""#;
        if rustix::process::geteuid().is_root() {
            return self.under(&["unshare", "--mount", "sh", "-c", script]);
        }
        self.under(&["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script])
    }

    /// The database to use instead of the embedded one.
    pub fn database_url(self, url: &str) -> Self {
        self.arg("--database-url").arg(url)
    }

    /// The data directory of a daemon before it, or one a test has prepared.
    pub fn data_dir(mut self, path: &Path) -> Self {
        self.data = Some(path.to_owned());
        self
    }

    /// Starts it and waits until it is ready.
    pub async fn start(self) -> Daemon {
        match self.try_start().await {
            Ok(daemon) => daemon,
            Err(refusal) => panic!("the daemon did not start: {refusal:?}"),
        }
    }

    /// Starts it; what it said where it refused to.
    pub async fn try_start(self) -> Result<Daemon, Refusal> {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        // A folder that is not there yet: the daemon makes it, with the right mode.
        let data_dir = self.data.unwrap_or_else(|| home.path().join("data"));
        let mut command = match self.prefix.split_first() {
            None => command(&cofer()),
            Some((program, args)) => {
                let mut command = command(Path::new(program));
                command.args(args).arg(cofer());
                command
            }
        };
        command.arg("serve").arg("--listen").arg("127.0.0.1:0").arg("--data-dir").arg(&data_dir);
        command.args(&self.args).env("HOME", home.path()).envs(self.env);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("cofer can be run");
        let mut tasks = JoinSet::new();
        let stderr = Arc::new(Mutex::new(String::new()));
        let pipe = child.stderr.take().expect("stderr is piped");
        tasks.spawn(collect(pipe, stderr.clone()));
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let Some(base) = ready_line(&mut stdout).await else {
            let status = within("a daemon that is not ready ends", child.wait()).await;
            within("its stderr ends", tasks.join_next()).await;
            let stderr = stderr.lock().expect("nobody panics with it").clone();
            return Err(Refusal { code: status.expect("it is waited for").code(), stderr });
        };
        let token = std::fs::read_to_string(data_dir.join("token")).expect("the token is there");
        Ok(Daemon {
            child,
            base,
            token: token.trim().to_owned(),
            data_dir,
            _home: home,
            stdout,
            stderr,
            client: plain_client(),
            ended: false,
            _tasks: tasks,
        })
    }
}

/// How a daemon refused to start.
#[derive(Debug)]
pub struct Refusal {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it said.
    pub stderr: String,
}

/// The address in the ready line; none where stdout ended instead.
async fn ready_line(stdout: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    within("the ready line comes", stdout.read_line(&mut line)).await.expect("stdout is text");
    let base = line.trim_end().strip_prefix("cofer: listening on ");
    assert!(line.is_empty() || base.is_some(), "the first line on stdout is {line:?}");
    base.map(str::to_owned)
}

async fn collect(mut pipe: ChildStderr, into: Arc<Mutex<String>>) {
    let mut chunk = vec![0; 1 << 16];
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        let text = String::from_utf8_lossy(&chunk[..read]);
        into.lock().expect("nobody panics with it").push_str(&text);
    }
}
