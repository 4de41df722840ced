//! Takes an environment away: what runs in it, its container, its worktree, and all that is known
//! of it. The branch with its work stays, unless it is asked to go too.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::branch;
use crate::environment::{Environment, not_found};
use crate::environments::Environments;
use crate::failure::{Attempt as _, Failure};
use crate::lock::Lock;
use crate::overlay;
use crate::repository::Repository;
use crate::state::{Phase, State, loose_ref, tracking};
use crate::wire::{Answer, Request};
use crate::worktree;

/// How long processes have for ending by themselves.
const GRACE_MS: u32 = 2000;

/// How long Podman's own processes have for tidying up behind a container.
const TIDYING_CHECKS: usize = 50;
const TIDYING_INTERVAL: Duration = Duration::from_millis(200);

/// How the processes of an environment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// By themselves, when they were asked.
    Graceful,
    /// Some were killed.
    Forced,
    /// Nothing ran any more.
    AlreadyStopped,
}

impl Termination {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Graceful => "graceful",
            Self::Forced => "forced",
            Self::AlreadyStopped => "already_stopped",
        }
    }
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destroyed {
    /// The environment.
    pub id: String,
    /// The paths that are gone.
    pub removed_paths: Vec<PathBuf>,
    /// The ids of the containers that were removed.
    pub stopped_containers: Vec<String>,
    /// How what ran in it ended.
    pub termination: Termination,
    /// What should be known although it succeeded.
    pub warnings: Vec<String>,
    /// Whether the branch is still there.
    pub branch_kept: bool,
}

impl Destroyed {
    /// As a tool tells it.
    pub(crate) fn json(&self) -> Value {
        json!({
            "environment_id": self.id,
            "removed_paths": self.removed_paths,
            "stopped_containers": self.stopped_containers,
            "termination": self.termination.word(),
            "warnings": self.warnings,
            "branch_kept": self.branch_kept,
        })
    }
}

impl Environments {
    /// Takes an environment away; `force` takes its branch with it, and goes on where removing
    /// files fails.
    pub async fn destroy(
        &self,
        repository: &Repository,
        id: &str,
        force: bool,
    ) -> Result<Destroyed, Failure> {
        let layout = repository.layout();
        let home = layout.environment(id);
        if crate::id::given(id).is_err() || !home.folder.exists() {
            return Err(not_found(id, repository));
        }
        let lock = Lock::wait(layout.lock(id))
            .await
            .attempting("destroy", "could not lock the environment")?;
        // Another may have destroyed it while the lock was waited for.
        let state = match State::load(&home)
            .attempting("destroy", "could not read what is known of the environment")
        {
            Ok(Some(state)) => state,
            Ok(None) => {
                lock.remove();
                return Err(not_found(id, repository));
            }
            Err(failure) => return Err(failure),
        };
        self.forget(repository, id);
        let environment = Environment::new(repository.clone(), state);
        let destroyed = self.take_apart(&environment, force).await?;
        lock.remove();
        Ok(destroyed)
    }

    /// The same for whoever holds the lock.
    pub(crate) async fn take_apart(
        &self,
        environment: &Environment,
        force: bool,
    ) -> Result<Destroyed, Failure> {
        let mut warnings = Vec::new();
        let mut state = environment.state.clone();
        state.phase = Phase::Destroying;
        state
            .save(&environment.home)
            .attempting("destroy", "could not note that it is being destroyed")?;
        let termination = terminate(environment).await;
        let removing = self.podman.remove(&state.container);
        let keeping = self.last_changes(environment, force);
        let (removed, kept) = tokio::join!(removing, keeping);
        warnings.extend(kept);
        let there = match removed {
            Ok(there) => there,
            // Without Podman there is no container to be left behind.
            Err(crate::podman::PodmanError::Missing(_)) if state.container_id.is_none() => false,
            Err(error) => return Err(error.into_failure(&state.config.base_image)),
        };
        let stopped = state.container_id.clone().filter(|_| there);
        let leftovers =
            state.container_id.as_deref().map_or(0, |id| kill_leftovers(id, &self.behind));
        let removed_paths = remove_files(environment, force, &mut warnings)?;
        let branch_kept = self.leave_branch(environment, force, &mut warnings).await;
        worktree::set_aside(&environment.layout, &environment.home.folder)
            .attempting("destroy", "could not remove what is known of the environment")?;
        self.sweep(environment.layout.clone());
        let termination = match termination {
            _ if leftovers > 0 => Termination::Forced,
            None if there => Termination::Forced,
            None => Termination::AlreadyStopped,
            Some(termination) => termination,
        };
        let id = state.id;
        Ok(Destroyed {
            id,
            removed_paths,
            stopped_containers: stopped.into_iter().collect(),
            termination,
            warnings,
            branch_kept,
        })
    }

    /// What background commands wrote after the last command is work too.
    async fn last_changes(&self, environment: &Environment, force: bool) -> Vec<String> {
        if force || environment.state.worktree.symlink_metadata().is_err() {
            return Vec::new();
        }
        let is_there = environment.state.mode != worktree::Mode::Overlay
            || overlay::is_shown(&environment.state.worktree);
        if !is_there {
            return Vec::new();
        }
        environment.keep_locked("Changes made in the background".to_owned()).await.warnings
    }

    async fn leave_branch(
        &self,
        environment: &Environment,
        force: bool,
        warnings: &mut Vec<String>,
    ) -> bool {
        if !force {
            return true;
        }
        let tip = loose_ref(&environment.repository.common, &tracking(&environment.state.id));
        if let Err(error) = branch::delete(environment).await {
            warnings.push(format!(
                "the branch {} could not be removed: {error}",
                environment.state.remote_ref()
            ));
            return true;
        }
        let tip = tip
            .map(|tip| {
                format!(" Its last commit was {tip}: `git branch NAME {tip}` brings it back.")
            })
            .unwrap_or_default();
        warnings.push(format!(
            "The branch {} was removed as `force` asked.{tip}",
            environment.state.remote_ref()
        ));
        false
    }
}

/// Asks everything in the container to end, and kills what does not. Nothing where nobody answers.
async fn terminate(environment: &Environment) -> Option<Termination> {
    let request = Request::Terminate { grace_ms: GRACE_MS };
    let patience = Duration::from_millis(u64::from(GRACE_MS)) + Duration::from_secs(10);
    match tokio::time::timeout(patience, environment.executor.ask_once(&request)).await {
        Ok(Ok((Answer::Terminated { forced: false }, _))) => Some(Termination::Graceful),
        Ok(Ok((Answer::Terminated { forced: true }, _))) => Some(Termination::Forced),
        _ => None,
    }
}

/// The processes of this machine whose file `name` below /proc speaks of the container.
fn processes_of(container: &str, name: &str) -> Vec<i32> {
    if container.len() < 32 {
        return Vec::new();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let belongs = |pid: &i32| {
        let text = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        text.windows(container.len()).any(|part| part == container.as_bytes())
    };
    let ours = std::process::id().cast_signed();
    pids.filter(|pid| *pid != ours && belongs(pid)).collect()
}

/// Kills what is left of a container that was removed: at once what ran in it, after a while what
/// Podman started beside it, which has something to tidy up. Says how many were in it.
fn kill_leftovers(container: &str, behind: &tokio_util::task::TaskTracker) -> usize {
    let inside = processes_of(container, "cgroup");
    kill(&inside, container);
    let container = container.to_owned();
    behind.spawn(async move {
        for _ in 0..TIDYING_CHECKS {
            if processes_of(&container, "cmdline").is_empty() {
                return;
            }
            tokio::time::sleep(TIDYING_INTERVAL).await;
        }
        kill(&processes_of(&container, "cmdline"), &container);
    });
    inside.len()
}

fn kill(pids: &[i32], container: &str) {
    for pid in pids {
        tracing::warn!(pid, container, "a process of a removed container is killed");
        if let Some(pid) = Pid::from_raw(*pid) {
            // One that has ended meanwhile needs none.
            kill_process(pid, Signal::KILL).unwrap_or_default();
        }
    }
}

fn remove_files(
    environment: &Environment,
    force: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<PathBuf>, Failure> {
    let worktree = &environment.state.worktree;
    match worktree::remove(&environment.layout, &environment.home, worktree) {
        Ok(paths) => Ok(paths),
        Err(error) if force => {
            warnings.push(format!("{} could not be moved away ({error}) and was removed file by file", worktree.display()));
            remove_another_way(environment).attempting("destroy", "could not remove the worktree in either way")?;
            Ok(vec![worktree.clone()])
        }
        Err(error) => Err(Failure::internal("destroy", format!("could not remove the worktree {}", worktree.display()), &error)
            .recovering("look at what keeps it, then destroy it again; with force true it is removed file by file.")),
    }
}

fn remove_another_way(environment: &Environment) -> io::Result<()> {
    let worktree = &environment.state.worktree;
    overlay::hide_all(worktree)?;
    match fs::remove_dir_all(worktree) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::remove_dir_all(environment.home.git_dir(&environment.layout.remote())) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
