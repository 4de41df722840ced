//! Runs git on this machine, and trusts nothing that a container or a repository could have written.
//! The git directory is always named, so that git never searches for one; the configuration is
//! generated (`git_config`, `git_view`); hooks and the file-system monitor are off; no transport is
//! allowed unless the call asks for it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use cofer_runtime::{coprocess, tool};
use rustix::process::{Pid, setpriority_process};
use tokio::io::AsyncReadExt as _;

use crate::git_config;
use crate::git_view::GitView;

/// More than any answer of git that is wanted here.
const LONGEST_ANSWER: u64 = 64 * 1024 * 1024;

/// Settings of every call beside those of `git_config`.
const SETTINGS: [&str; 2] = ["core.untrackedCache=false", "advice.detachedHead=false"];

/// Variables of every call. An empty `GIT_ASKPASS` keeps git from looking for another program.
const VARIABLES: [(&str, &str); 9] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// The transports of [`Git::pushing`]. Others run a program that the URL names.
const TRANSPORTS: &str = "file:git:http:https:ssh";

/// Why git did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("git is not installed")]
    Missing,
    #[error("could not run git")]
    Spawn(#[source] io::Error),
    #[error("git {action} failed{}{}", code(*.status), said(.words))]
    Failed { action: String, status: Option<i32>, words: String },
    #[error("git {action} answered more than {LONGEST_ANSWER} bytes")]
    TooLong { action: String },
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

fn code(status: Option<i32>) -> String {
    status.map_or_else(|| " by a signal".to_owned(), |code| format!(" with code {code}"))
}

/// A tenth of what everybody else gets, so that it comes to an end also on a busy machine.
const LITTLE: i32 = 10;

impl GitError {
    fn spawn(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Spawn(error) }
    }

    /// Whether another git held the lock of a ref or a file: it will not for long.
    pub(crate) fn is_contention(&self) -> bool {
        let words =
            ["cannot lock ref", "Unable to create", "unable to lock", ".lock': File exists"];
        matches!(self, Self::Failed { words: said, .. } if words.iter().any(|w| said.contains(w)))
    }
}

/// One call of git.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<OsString>,
    gives_way: bool,
}

impl Git {
    /// In no repository: for reading and writing a file that is named.
    pub(crate) fn without_repository() -> Self {
        Self::new().variable("GIT_DIR", "/dev/null")
    }

    /// In a new git directory, which is to be created.
    pub(crate) fn creating(git_dir: &Path) -> Self {
        Self::new().variable("GIT_DIR", git_dir)
    }

    /// In a git directory, with a configuration of ours.
    pub(crate) fn within(view: &GitView) -> Self {
        Self::new().variable("GIT_DIR", &view.git_dir).variable("GIT_COMMON_DIR", &view.common)
    }

    fn new() -> Self {
        let mut git =
            Self { args: Vec::new(), variables: Vec::new(), directory: None, gives_way: false };
        for setting in git_config::overrides().chain(SETTINGS.map(str::to_owned)) {
            git = git.setting(setting);
        }
        for (name, value) in VARIABLES {
            git = git.variable(name, value);
        }
        git.variable("GIT_ALLOW_PROTOCOL", "none")
            .variable("GIT_ASKPASS", "")
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            .variable("GIT_CONFIG_GLOBAL", "/dev/null")
    }

    /// Reads the user's own configuration too, `~/.gitconfig` and the system's. No repository can
    /// write it.
    pub(crate) fn with_users_configuration(mut self) -> Self {
        let off = ["GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL"];
        self.variables.retain(|(name, _)| !off.iter().any(|off| name == off));
        self
    }

    /// With what a push needs: the user's own ssh command and credential helpers, and transports.
    pub(crate) fn pushing(self) -> Self {
        let mut git = self.with_users_configuration();
        git.variables.retain(|(name, _)| name != "GIT_ASKPASS");
        git.variable("GIT_ALLOW_PROTOCOL", TRANSPORTS)
    }

    /// With `folder` as the working tree.
    pub(crate) fn in_work_tree(self, folder: &Path) -> Self {
        self.variable("GIT_WORK_TREE", folder).at(folder)
    }

    /// A setting for this call.
    pub(crate) fn setting(mut self, setting: impl AsRef<OsStr>) -> Self {
        self.args.extend([OsString::from("-c"), setting.as_ref().to_owned()]);
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Where it runs.
    pub(crate) fn at(mut self, folder: &Path) -> Self {
        self.directory = Some(folder.into());
        self
    }

    /// Leaves the processors to everything else on the machine, as far as that wants them.
    pub(crate) fn giving_way(mut self) -> Self {
        self.gives_way = true;
        self
    }

    /// What it is to do: the subcommand and its arguments.
    pub(crate) fn call<I: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = I>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// The subcommand, for messages: the first argument behind the settings.
    fn action(&self) -> String {
        let mut words = self.args.iter();
        while let Some(word) = words.next() {
            if word == "-c" || word == "-C" {
                words.next();
                continue;
            }
            return word.to_string_lossy().into_owned();
        }
        String::new()
    }

    /// What it wrote to stdout, where it succeeded.
    pub(crate) async fn bytes(self) -> Result<Vec<u8>, GitError> {
        let action = self.action();
        match self.beginning(LONGEST_ANSWER).await? {
            (said, false) => Ok(said),
            (_, true) => Err(GitError::TooLong { action }),
        }
    }

    /// At most so many bytes of it, and whether there was more.
    pub(crate) async fn beginning(self, most: u64) -> Result<(Vec<u8>, bool), GitError> {
        let action = self.action();
        let mut command = tool("git");
        without_git_variables(command.as_std_mut());
        command.args(&self.args).envs(self.variables);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().map_err(GitError::spawn)?;
        if self.gives_way {
            give_way(&child);
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Where nobody reads the rest, git ends by itself.
        let reading = tokio::try_join!(some_of(stdout, most + 1), some_of(stderr, LONGEST_ANSWER));
        let (mut said, words) = reading.map_err(GitError::Spawn)?;
        let status = child.wait().await.map_err(GitError::Spawn)?;
        if said.len() as u64 > most {
            said.pop();
            return Ok((said, true));
        }
        verdict(action, status, &words)?;
        Ok((said, false))
    }

    /// The same as text, without the last line's end.
    pub(crate) async fn text(self) -> Result<String, GitError> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// The same, tried again while another git holds a lock.
    pub(crate) async fn patiently(self) -> Result<Vec<u8>, GitError> {
        const PAUSES_MS: [u64; 5] = [10, 40, 100, 250, 600];
        for pause in PAUSES_MS {
            match self.clone().bytes().await {
                Err(error) if error.is_contention() => {
                    tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
                }
                other => return other,
            }
        }
        self.bytes().await
    }

    /// A git to talk with while it runs.
    pub(crate) fn start(self) -> Result<Coprocess, GitError> {
        let action = self.action();
        let mut command = coprocess("git");
        without_git_variables(&mut command);
        command.args(self.args).envs(self.variables);
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let child = command.spawn().map_err(GitError::spawn)?;
        Ok(Coprocess { child, action })
    }
}

/// A process that cannot be told so still does its work.
fn give_way(child: &tokio::process::Child) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        setpriority_process(Some(pid), LITTLE).unwrap_or_default();
    }
}

/// What a person's shell says about another repository is not meant here.
fn without_git_variables(command: &mut std::process::Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
}

async fn some_of(
    stream: Option<impl tokio::io::AsyncRead + Unpin>,
    most: u64,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn verdict(action: String, status: ExitStatus, words: &[u8]) -> Result<(), GitError> {
    if status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(words).trim().chars().take(2000).collect();
    Err(GitError::Failed { action, status: status.code(), words })
}

/// A git that is talked with. Ends with its owner.
pub(crate) struct Coprocess {
    pub(crate) child: std::process::Child,
    action: String,
}

impl Coprocess {
    /// Waits for its end; its pipes have to be closed by then.
    pub(crate) fn finish(mut self) -> Result<(), GitError> {
        let mut words = Vec::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let limit = &mut io::Read::take(&mut stderr, 64 * 1024);
            io::Read::read_to_end(limit, &mut words).map_err(GitError::Spawn)?;
        }
        let status = self.child.wait().map_err(GitError::Spawn)?;
        verdict(std::mem::take(&mut self.action), status, &words)
    }
}

impl Drop for Coprocess {
    fn drop(&mut self) {
        // One that was waited for is not there to be killed.
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().unwrap_or_default();
            drop(self.child.wait());
        }
    }
}
