//! Podman, as far as environments need it: start, start again, look at, remove. Everything else
//! goes through the executor.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use cofer_model::Network;
use cofer_runtime::podman::{Info, isolation_arguments, layer_size_argument, limit_arguments};
use cofer_runtime::tool;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::failure::{Failure, Kind};
use crate::isolation::Isolation;

/// Longer than anything but pulling takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Pulling an image may take its time.
const PULLING: Duration = Duration::from_secs(1800);

/// What our containers are known by.
pub(crate) const LABEL: &str = "io.cofer.environment";

/// Why Podman did not do it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PodmanError {
    #[error("Podman is not installed: there is no program `{0}`")]
    Missing(String),
    #[error("could not run Podman")]
    Spawn(#[source] io::Error),
    #[error("podman {action} did not end within {after:?}")]
    Slow { action: &'static str, after: Duration },
    #[error("podman {action} failed: {words}")]
    Failed { action: &'static str, words: String },
}

impl PodmanError {
    fn words(&self) -> &str {
        if let Self::Failed { words, .. } = self { words } else { "" }
    }

    fn says(&self, any: &[&str]) -> bool {
        any.iter().any(|part| self.words().contains(part))
    }

    pub(crate) fn is_no_such_container(&self) -> bool {
        self.says(&[
            "no such container",
            "no container with name or ID",
            "does not exist in database",
        ])
    }

    /// Whether a second attempt may go better.
    fn is_passing(&self) -> bool {
        self.says(&[
            "database is locked",
            "resource temporarily unavailable",
            "Resource temporarily unavailable",
            "text file busy",
            "i/o timeout",
        ])
    }

    /// For a client.
    pub(crate) fn into_failure(self, image: &str) -> Failure {
        let step = "container";
        let words = self.to_string();
        match &self {
            Self::Missing(program) => Failure::new(
                Kind::PreconditionFailed, step, words,
                format!("ask the user to install Podman (for example `apt install podman`), or to name it in COFER_PODMAN instead of `{program}`."),
            ),
            Self::Slow { .. } => Failure::new(
                Kind::Timeout, step, words,
                "try again; if it stays slow, ask the user to look at `podman info`.",
            ).retryable(),
            Self::Failed { .. } if self.says(&["short-name", "initializing source", "manifest unknown", "pull access denied", "unauthorized", "unable to pull", "invalid reference format", "repository name must", "image not known", "pinging container registry"]) => Failure::new(
                Kind::PreconditionFailed, step, format!("the image `{image}` cannot be had: {words}"),
                format!("name an image that is there (`podman images`) or that `podman pull {image}` can get: in the argument `image`, in .cofer/environment.json, or in COFER_DEFAULT_IMAGE."),
            ),
            Self::Failed { .. } if self.says(&["already in use"]) => Failure::new(
                Kind::Conflict, step, words,
                "a container of that name is left from before; `cofer env prune` removes it.",
            ),
            Self::Spawn(_) | Self::Failed { .. } => Failure::internal(step, "could not start the container", &self)
                .recovering("everything made so far was taken back; `podman info` tells whether Podman works on this machine."),
        }
    }
}

/// The program, by name or path.
#[derive(Debug, Clone)]
pub(crate) struct Podman {
    program: String,
    info: Arc<OnceCell<Info>>,
}

/// A container about to be started.
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: &'a str,
    pub(crate) image: &'a str,
    pub(crate) source: &'a Path,
    pub(crate) executor: &'a Path,
    pub(crate) run: &'a Path,
    pub(crate) worktree: &'a Path,
    pub(crate) gitfile: &'a Path,
    pub(crate) workdir: &'a str,
    pub(crate) pidfile: &'a Path,
    pub(crate) isolation: &'a Isolation,
    pub(crate) info: &'a Info,
    /// Podman's global flags for a sandbox.
    pub(crate) sandbox: Option<&'a [String]>,
}

impl Podman {
    pub(crate) fn new(program: &str) -> Self {
        Self { program: program.to_owned(), info: Arc::default() }
    }

    /// The engine's own description: which limits it can set. Asked for once.
    pub(crate) async fn info(&self) -> Result<&Info, PodmanError> {
        self.info
            .get_or_try_init(async || {
                let said = self.call("info", &["--format=json".into()], PATIENCE).await?;
                let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
                Info::read(said.as_bytes(), &mounts).map_err(|error| PodmanError::Failed {
                    action: "info",
                    words: error.to_string(),
                })
            })
            .await
    }

    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Starts a container and gives its id.
    pub(crate) async fn run(&self, start: &Start<'_>) -> Result<String, PodmanError> {
        let args = start.args();
        let flags = start.sandbox.unwrap_or_default();
        let said = match self.call_with(flags, "run", &args, PULLING).await {
            Err(error) if error.is_passing() => {
                tracing::warn!(%error, "podman run is tried again");
                // The first attempt may have left half a container.
                drop(self.remove(start.name).await);
                self.call_with(flags, "run", &args, PULLING).await?
            }
            other => other?,
        };
        Ok(said.lines().last().unwrap_or_default().trim().to_owned())
    }

    /// Starts one again that has stopped.
    pub(crate) async fn start(
        &self,
        name: &str,
        sandbox: Option<&[String]>,
    ) -> Result<(), PodmanError> {
        let flags = sandbox.unwrap_or_default();
        self.call_with(flags, "start", &[name.into()], PATIENCE).await.map(drop)
    }

    /// Kills one that runs.
    pub(crate) async fn kill(&self, name: &str) -> Result<(), PodmanError> {
        let args = ["--signal", "KILL", "--", name].map(OsString::from);
        self.call("kill", &args, PATIENCE).await.map(drop)
    }

    /// Removes one, whatever it is doing; one that is not there is removed already.
    pub(crate) async fn remove(&self, name: &str) -> Result<bool, PodmanError> {
        let args: Vec<OsString> =
            ["--force", "--time", "0", "--volumes", "--", name].map(Into::into).into();
        match self.call("rm", &args, PATIENCE).await {
            Err(error) if error.is_no_such_container() => Ok(false),
            // Newer releases say nothing about one that is not there.
            other => other.map(|said| !said.trim().is_empty()),
        }
    }

    /// What an image runs by itself: entry point and command.
    pub(crate) async fn image_command(
        &self,
        image: &str,
    ) -> Result<(Vec<String>, Vec<String>), PodmanError> {
        let said =
            self.call("image", &["inspect".into(), "--".into(), image.into()], PATIENCE).await?;
        let parsed: Value = serde_json::from_str(&said).unwrap_or_default();
        let list = |name: &str| {
            serde_json::from_value(parsed[0]["Config"][name].clone()).unwrap_or_default()
        };
        Ok((list("Entrypoint"), list("Cmd")))
    }

    /// The names and ids of all our containers of one repository.
    pub(crate) async fn ours(&self, source: &Path) -> Result<Vec<(String, String)>, PodmanError> {
        let mut filter = OsString::from("label=io.cofer.source=");
        filter.push(source);
        let args = [
            "--all".into(),
            "--no-trunc".into(),
            "--filter".into(),
            filter,
            "--format".into(),
            "{{.Names}} {{.ID}}".into(),
        ];
        let said = self.call("ps", &args, PATIENCE).await?;
        let pair =
            |line: &str| line.split_once(' ').map(|(name, id)| (name.to_owned(), id.to_owned()));
        Ok(said.lines().filter_map(pair).collect())
    }

    async fn call(
        &self,
        action: &'static str,
        args: &[OsString],
        patience: Duration,
    ) -> Result<String, PodmanError> {
        self.call_with(&[], action, args, patience).await
    }

    /// With global flags.
    async fn call_with(
        &self,
        flags: &[String],
        action: &'static str,
        args: &[OsString],
        patience: Duration,
    ) -> Result<String, PodmanError> {
        let mut command = tool(&self.program);
        command
            .args(flags)
            .arg(action)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir("/");
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => PodmanError::Missing(self.program.clone()),
            _ => PodmanError::Spawn(error),
        })?;
        let waited = timeout(patience, child.wait_with_output()).await;
        let output = waited.map_err(|_| PodmanError::Slow { action, after: patience })?;
        let output = output.map_err(PodmanError::Spawn)?;
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes).trim().chars().take(64 * 1024).collect::<String>()
        };
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        let words: String = text(&output.stderr).chars().take(2000).collect();
        Err(PodmanError::Failed { action, words })
    }
}

impl Start<'_> {
    fn args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = [
            "--detach",
            "--quiet",
            "--log-driver",
            "none",
            "--user",
            "0:0",
            "--security-opt",
            "label=disable",
            "--workdir",
            "/",
            "--entrypoint",
            "/.cofer/executor",
        ]
        .map(Into::into)
        .into();
        let Isolation { limits, openings, .. } = self.isolation;
        let isolation = isolation_arguments(openings, Network::Egress).into_iter();
        args.extend(isolation.map(OsString::from));
        args.extend(limit_arguments(limits, self.info).into_iter().map(OsString::from));
        args.extend(layer_size_argument(limits, self.info).map(OsString::from));
        let mut option = |name: &str, value: OsString| args.extend([OsString::from(name), value]);
        option("--name", self.name.into());
        option("--hostname", self.id.into());
        option("--pidfile", self.pidfile.into());
        option("--label", format!("{LABEL}={}", self.id).into());
        let mut source = OsString::from("io.cofer.source=");
        source.push(self.source);
        option("--label", source);
        option("--mount", mount(self.executor, "/.cofer/executor", true));
        option("--mount", mount(self.run, "/.cofer/run", false));
        option("--mount", mount(self.worktree, self.workdir, false));
        // The container has no other `.git` than the one that it cannot write to.
        option("--mount", mount(self.gitfile, &format!("{}/.git", self.workdir), true));
        args.extend(["--", self.image, "/.cofer/run/executor"].map(OsString::from));
        args
    }
}

/// A mount as Podman reads it: comma-separated, quoted as CSV where a path needs it.
fn mount(source: &Path, target: &str, readonly: bool) -> OsString {
    let quoted = |key: &str, value: &std::ffi::OsStr| {
        let mut field = OsString::from(key);
        field.push(value);
        if !field.as_encoded_bytes().iter().any(|byte| b",\"\n".contains(byte)) {
            return field;
        }
        OsString::from(format!("\"{}\"", field.to_string_lossy().replace('"', "\"\"")))
    };
    let mut out = OsString::from("type=bind,");
    out.push(quoted("source=", source.as_os_str()));
    out.push(",");
    out.push(quoted("target=", target.as_ref()));
    out.push(",nosuid,nodev");
    if readonly {
        out.push(",readonly");
    }
    out
}

#[cfg(test)]
#[path = "podman_tests.rs"]
mod tests;
