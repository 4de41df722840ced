//! One environment that is there: its files, its executor, and the recording of its history.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::executor::Executor;
use crate::failure::{Attempt as _, Failure, Kind};
use crate::git::{Git, GitError};
use crate::history::{self, HistoryError, Memory, Place, Recorded};
use crate::layout::{Home, Layout};
use crate::lock::Lock;
use crate::podman::Podman;
use crate::repository::Repository;
use crate::state::{State, tracking};
use crate::worktree::{self, Mode};

/// How long a container's executor may take to listen.
pub(crate) const LISTENING: Duration = Duration::from_secs(20);

/// A repository on this machine is pushed to without its hooks: git runs the receiving side here, and
/// its configuration is not one that `cofer init` has seen.
const RECEIVE_PACK: &str = "--receive-pack=git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=true -c receive.autogc=false -c receive.denyCurrentBranch=refuse receive-pack";

/// One environment.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    pub(crate) repository: Repository,
    pub(crate) layout: Layout,
    pub(crate) home: Home,
    pub(crate) state: State,
    pub(crate) executor: Executor,
    memory: Arc<Mutex<Memory>>,
}

/// What became of the changes of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) commit: Option<String>,
    pub(crate) warnings: Vec<String>,
}

impl Environment {
    pub(crate) fn new(repository: Repository, state: State) -> Self {
        let layout = repository.layout();
        let home = layout.environment(&state.id);
        let executor = Executor::in_folder(home.run(), state.sandbox.is_some());
        Self { repository, layout, home, state, executor, memory: Arc::default() }
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.layout.lock(&self.state.id)
    }

    pub(crate) fn excludes(&self) -> PathBuf {
        self.home.folder.join("excludes")
    }

    /// Where its executor listens; a container that stopped is started again first.
    pub(crate) async fn awake(&self, podman: &Podman) -> Result<&Executor, Failure> {
        if self.executor.listens(Duration::ZERO).await.is_ok() {
            return Ok(&self.executor);
        }
        let lock = Lock::wait(self.lock_path())
            .await
            .attempting("environment", "could not lock the environment")?;
        if State::load(&self.home).ok().flatten().is_none() {
            lock.remove();
            return Err(not_found(&self.state.id, &self.repository));
        }
        if self.executor.listens(Duration::ZERO).await.is_ok() {
            return Ok(&self.executor);
        }
        if let Some(failure) = self.disk_failure().await {
            return Err(failure);
        }
        tracing::info!(
            environment = self.state.id,
            "the container had stopped and is started again"
        );
        if let (Mode::Overlay, Some(base)) = (self.state.mode, &self.state.base) {
            let shown = worktree::show_again(&self.layout, &self.home, &self.state.worktree, base);
            shown.attempting("worktree", "could not show the worktree again")?;
        }
        let image = &self.state.config.base_image;
        let sandbox = self.state.sandbox.as_deref();
        podman.start(&self.state.container, sandbox).await.map_err(|error| {
            let gone = error.is_no_such_container();
            let failure = error.into_failure(image);
            if gone {
                failure.recovering("its container was removed by somebody else; its work is on the branch: destroy the environment, and create another one from that branch.")
            } else {
                failure
            }
        })?;
        self.executor
            .listens(LISTENING)
            .await
            .attempting("executor", "the container does not answer")?;
        Ok(&self.executor)
    }

    /// What is there now counts as recorded.
    pub(crate) fn remember(&self) -> io::Result<()> {
        let taken = self.with_place(Memory::take)?;
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = taken;
        Ok(())
    }

    fn with_place<T>(&self, use_it: impl FnOnce(&Place<'_>) -> T) -> T {
        let upper = self.home.upper();
        use_it(&Place {
            store: &self.layout.store(),
            objects: &self.layout.objects(),
            worktree: &self.state.worktree,
            upper: (self.state.mode == Mode::Overlay).then_some(upper.as_path()),
            excludes: &self.excludes(),
            id: &self.state.id,
            author: &self.state.author,
            submodules: &self.state.submodules,
        })
    }

    /// Records what changed, with `message`. What cannot be recorded is told, and is no reason to
    /// keep a command's result from whoever asked for it.
    pub(crate) async fn keep(&self, message: String) -> Kept {
        let this = self.clone();
        let keeping = move || {
            let lock = Lock::wait_here(&this.lock_path()).map_err(HistoryError::Look)?;
            if !this.home.state().exists() {
                lock.remove();
                return Ok(Recorded::default());
            }
            this.record(&message)
        };
        self.keep_by(keeping).await
    }

    /// The same for whoever holds the lock.
    pub(crate) async fn keep_locked(&self, message: String) -> Kept {
        let this = self.clone();
        self.keep_by(move || this.record(&message)).await
    }

    async fn keep_by(
        &self,
        keeping: impl FnOnce() -> Result<Recorded, HistoryError> + Send + 'static,
    ) -> Kept {
        let kept = tokio::task::spawn_blocking(keeping).await;
        let recorded = match kept {
            Ok(Ok(recorded)) => recorded,
            Ok(Err(error)) => return self.not_kept(&error.to_string()),
            Err(error) => return self.not_kept(&error.to_string()),
        };
        let mut warnings: Vec<String> =
            recorded.too_large.iter().map(|path| too_large(path)).collect();
        if let (Some(commit), Some(parent)) = (&recorded.commit, &recorded.parent)
            && let Err(error) = self.publish(commit, parent).await
        {
            warnings.push(format!(
                "the changes are committed, and the source repository could not be told: {error}"
            ));
        }
        Kept { commit: recorded.commit, warnings }
    }

    fn not_kept(&self, why: &str) -> Kept {
        tracing::error!(environment = self.state.id, why, "changes were not recorded");
        let warning = format!(
            "changes could not be committed to {} ({why}); they are in the worktree and are tried again after the next command",
            self.state.remote_ref()
        );
        Kept { commit: None, warnings: vec![warning] }
    }

    /// Three times, because a process in the container may move things while they are read.
    fn record(&self, message: &str) -> Result<Recorded, HistoryError> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let mut attempt = 1;
        loop {
            match self.with_place(|place| history::record(place, &mut memory, message)) {
                Err(error) if attempt < 3 => {
                    tracing::warn!(%error, attempt, "changes are read again");
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// Tells the source repository, a remote that is elsewhere, and the worktree's own index.
    async fn publish(&self, commit: &str, parent: &str) -> Result<(), GitError> {
        let tracking = tracking(&self.state.id);
        let telling = self.repository.git().call(["update-ref", &tracking, commit]).patiently();
        let (told, indexed) = tokio::join!(telling, self.follow_in_index(commit, parent));
        if let Err(error) = indexed {
            tracing::debug!(%error, "the worktree's index is behind its branch");
        }
        told?;
        self.push_elsewhere(commit, false).await
    }

    /// Pushes to a `cofer` remote that somebody made elsewhere.
    pub(crate) async fn push_elsewhere(&self, commit: &str, force: bool) -> Result<(), GitError> {
        if !self.state.remote_elsewhere {
            return Ok(());
        }
        let plus = if force { "+" } else { "" };
        let refspec = format!("{plus}{commit}:refs/heads/cofer/{}", self.state.id);
        let Some(url) = self.repository.settings().await?.remote else { return Ok(()) };
        let mut options = vec!["push", "--quiet", "--no-verify"];
        let path = url.as_os_str().as_bytes().strip_prefix(b"file://");
        let path = path.map_or(url.as_path(), |path| Path::new(OsStr::from_bytes(path)));
        if self.repository.top.join(path).is_dir() {
            options.push(RECEIVE_PACK);
        }
        let target = [OsStr::new("--"), url.as_os_str(), OsStr::new(&refspec)];
        let pushing = self.repository.git().pushing().call(options).call(target);
        pushing.patiently().await.map(drop)
    }

    /// What `git status` in the worktree compares with.
    async fn follow_in_index(&self, commit: &str, parent: &str) -> Result<(), GitError> {
        let git_dir = self.home.git_dir(&self.layout.remote());
        if !git_dir.join("index").exists() {
            return Ok(());
        }
        let view = self.layout.store().of_worktree(git_dir);
        let changed = Git::within(&view)
            .call(["diff-tree", "-r", "-z", "--no-renames", parent, commit])
            .bytes()
            .await?;
        let input = index_lines(&changed);
        let git = Git::within(&view)
            .variable("GIT_WORK_TREE", &self.state.worktree)
            .setting("core.bare=false");
        let git = git.setting("core.fsync=none").call(["update-index", "-z", "--index-info"]);
        let writing = tokio::task::spawn_blocking(move || -> Result<(), GitError> {
            let mut git = git.start()?;
            if let Some(mut stdin) = git.child.stdin.take() {
                io::Write::write_all(&mut stdin, &input).map_err(GitError::Spawn)?;
            }
            git.finish()
        });
        writing.await.map_err(|error| GitError::Spawn(io::Error::other(error)))?
    }
}

/// From `diff-tree --raw -z` to what `update-index --index-info -z` reads.
fn index_lines(changed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut fields = changed.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let head = String::from_utf8_lossy(head);
        let mut words = head.trim_start_matches(':').split(' ').skip(1);
        let (mode, id) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
        // A path without a mode is removed.
        let mode = if mode == "000000" { "0" } else { mode };
        out.extend(format!("{mode} {id}\t").bytes());
        out.extend(path);
        out.push(0);
    }
    out
}

fn too_large(path: &str) -> String {
    let limit = history::LARGEST_NEW_FILE / (1024 * 1024);
    format!("{path:?} is new and larger than {limit} MiB, and was not committed")
}

/// There is no such environment.
pub(crate) fn not_found(id: &str, repository: &Repository) -> Failure {
    let message = format!("environment {id:?} not found in {}", repository.top.display());
    let recovery = "sending this again will not help: `cofer env list` shows what there is, and environment_create makes a new one.";
    Failure::new(Kind::NotFound, "environment", message, recovery)
}
