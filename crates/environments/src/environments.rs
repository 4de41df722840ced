//! All environments of this machine, as one server or command sees them: what it knows of
//! repositories and environments between two calls, and the work that goes on behind them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use tokio_util::task::TaskTracker;

use crate::answer::{self, UNKNOWN_CHANGES};
use crate::base;
use crate::disk::Watched;
use crate::environment::{Environment, not_found};
use crate::failure::{Attempt as _, Failure};
use crate::id;
use crate::init::{self, Prepared, Undone};
use crate::layout::Layout;
use crate::lock::Lock;
use crate::look::{Look, Seen};
use crate::podman::Podman;
use crate::provider;
use crate::registry;
use crate::repository::Repository;
use crate::settings::Settings;
use crate::state::{self, Phase, State};
use crate::worktree::{self, Mode};

/// All environments of this machine.
#[derive(Debug)]
pub struct Environments {
    pub(crate) settings: Settings,
    pub(crate) podman: Podman,
    /// Which isolation providers work on this machine.
    pub(crate) trials: cofer_runtime::podman::Podman,
    repositories: Mutex<HashMap<PathBuf, Repository>>,
    known: Mutex<HashMap<PathBuf, Known>>,
    modes: Mutex<HashMap<PathBuf, Mode>>,
    /// The sources that are still looked at, by the homes of their new environments.
    looks: Mutex<HashMap<PathBuf, Look>>,
    /// The repositories that this process has remembered for the console.
    noted: Mutex<HashSet<PathBuf>>,
    /// What goes on after an answer, and is waited for at the end: deleting.
    pub(crate) behind: TaskTracker,
    /// What goes on as long as this process does: reading what nobody wants.
    pub(crate) readers: TaskTracker,
    pub(crate) watched: Watched,
}

#[derive(Debug, Clone)]
struct Known {
    environment: Environment,
    /// When what is known was written.
    written: Option<SystemTime>,
}

/// One environment, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: time::OffsetDateTime,
    /// Its image.
    pub image: String,
    /// Its worktree.
    pub worktree: PathBuf,
    /// The branch with its work.
    pub remote_ref: String,
    /// How the files came to be there.
    pub worktree_mode: Mode,
    /// Its container's name.
    pub container: String,
    /// Whether its container runs.
    pub running: bool,
    /// Whether whoever made it died over it.
    pub broken: bool,
    /// The isolation in force; null if its container does not run.
    pub isolation: serde_json::Value,
}

/// What was thrown away.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Pruned {
    /// Environments that were never finished.
    pub environments: Vec<String>,
    /// Containers that belonged to no environment.
    pub containers: Vec<String>,
    /// Base checkouts that no environment uses.
    pub bases: Vec<PathBuf>,
}

impl Environments {
    /// Knows nothing yet, and looks at nothing before it is asked.
    pub fn new(settings: Settings) -> Self {
        let podman = Podman::new(&settings.podman);
        let trials = provider::trials(&settings);
        Self {
            settings,
            podman,
            trials,
            repositories: Mutex::default(),
            known: Mutex::default(),
            modes: Mutex::default(),
            looks: Mutex::default(),
            noted: Mutex::default(),
            behind: TaskTracker::new(),
            readers: TaskTracker::new(),
            watched: Watched::default(),
        }
    }

    /// Prepares the repository that `folder` is in and records it: `cofer init`.
    pub async fn init(&self, folder: &Path) -> Result<Prepared, Failure> {
        init::init(&registry::required(self.settings.registry())?, folder).await
    }

    /// Undoes [`Self::init`].
    pub async fn remove(&self, folder: &Path) -> Result<Undone, Failure> {
        init::remove(&registry::required(self.settings.registry())?, folder).await
    }

    /// The repository that `source` is in, if `cofer init` recorded it. This is checked on every call,
    /// and before anything else is done with the path.
    pub async fn repository(&self, source: &Path) -> Result<Repository, Failure> {
        let registry = registry::required(self.settings.registry())?;
        let found = registry.find(source)?.found();
        let known = locked(&self.repositories).get(&found.top).cloned();
        if let Some(repository) = known.filter(|known| known.found() == found && known.is_usable())
        {
            return Ok(repository);
        }
        let repository = Repository::of(&registry, found).await?;
        locked(&self.repositories).insert(repository.top.clone(), repository.clone());
        Ok(repository)
    }

    /// The environment `id` of the repository at `source`.
    pub(crate) async fn environment(
        &self,
        source: &Path,
        id: &str,
    ) -> Result<Environment, Failure> {
        let repository = self.repository(source).await?;
        if id::given(id).is_err() {
            return Err(not_found(id, &repository));
        }
        let home = repository.layout().environment(id);
        let written = home.state().metadata().and_then(|found| found.modified()).ok();
        let known = locked(&self.known).get(&home.folder).cloned();
        if let Some(known) = known.filter(|known| written.is_some() && known.written == written) {
            return Ok(known.environment);
        }
        let state = State::load(&home)
            .attempting("environment", "could not read what is known of the environment")?;
        let state = state
            .filter(|state| state.phase == Phase::Ready)
            .ok_or_else(|| not_found(id, &repository))?;
        let environment = Environment::new(repository, state);
        self.remember(environment.clone());
        Ok(environment)
    }

    pub(crate) fn remember(&self, environment: Environment) {
        let written = environment.home.state().metadata().and_then(|found| found.modified()).ok();
        let folder = environment.home.folder.clone();
        locked(&self.known).insert(folder, Known { environment, written });
    }

    /// Whether this process has not remembered the repository yet.
    pub(crate) fn is_news(&self, repository: &Repository) -> bool {
        locked(&self.noted).insert(repository.top.clone())
    }

    pub(crate) fn forget(&self, repository: &Repository, id: &str) {
        let folder = repository.layout().environment(id).folder;
        locked(&self.known).remove(&folder);
        locked(&self.looks).remove(&folder);
    }

    /// Goes on looking at the source of a new environment.
    pub(crate) fn look_on(&self, environment: &Environment, look: Look) {
        locked(&self.looks).insert(environment.home.folder.clone(), look);
    }

    /// What its source has shown since the environment was made, once.
    pub(crate) fn seen_since(&self, environment: &Environment) -> Option<String> {
        let mut looks = locked(&self.looks);
        let seen = looks.get_mut(&environment.home.folder)?.seen();
        if seen != Seen::NotYet {
            looks.remove(&environment.home.folder);
        }
        match seen {
            Seen::Uncommitted(files) => answer::uncommitted(environment, &files),
            Seen::Unknown => Some(UNKNOWN_CHANGES.to_owned()),
            Seen::NotYet => None,
        }
    }

    /// How worktrees of a repository are made.
    pub(crate) fn mode(&self, layout: &Layout) -> Mode {
        if let Some(mode) = self.settings.mode {
            return mode;
        }
        *locked(&self.modes)
            .entry(layout.home().to_owned())
            .or_insert_with(|| Mode::best_in(layout.home()))
    }

    /// Deletes, behind the answers, what was set aside and what nobody needs.
    pub(crate) fn sweep(&self, layout: Layout) {
        self.behind.spawn_blocking(move || {
            if let Some(used) = used_bases(&layout)
                && let Err(error) = base::prune(&layout, &used, None)
            {
                tracing::warn!(%error, "bases could not be pruned");
            }
            worktree::empty_trash(&layout);
        });
    }

    /// Waits for what goes on behind the answers.
    pub async fn settled(&self) {
        self.behind.close();
        self.behind.wait().await;
    }

    /// The environments of a repository, by name.
    pub async fn list(&self, repository: &Repository) -> Result<Vec<Listed>, Failure> {
        let layout = repository.layout();
        let mut listed = Vec::new();
        for id in state::ids(&layout).attempting("list", "could not look for environments")? {
            let home = layout.environment(&id);
            let Ok(Some(state)) = State::load(&home) else { continue };
            let environment = Environment::new(repository.clone(), state);
            let running = environment.executor.listens(std::time::Duration::ZERO).await.is_ok();
            let broken = environment.state.phase != Phase::Ready && is_free(&layout.lock(&id));
            let isolation = environment.effective_isolation();
            let state = environment.state;
            listed.push(Listed {
                isolation,
                remote_ref: state.remote_ref(),
                id,
                title: state.title,
                created_at: state.created_at,
                image: state.config.base_image,
                worktree: state.worktree,
                worktree_mode: state.mode,
                container: state.container,
                running,
                broken,
            });
        }
        Ok(listed)
    }

    /// The container of an environment, running.
    pub async fn container(
        &self,
        repository: &Repository,
        id: &str,
    ) -> Result<(String, String), Failure> {
        let environment = self.environment(repository.top(), id).await?;
        environment.awake(&self.podman).await?;
        Ok((environment.state.container.clone(), environment.state.config.workdir.clone()))
    }

    /// Records what somebody did in an environment by hand.
    pub async fn record(
        &self,
        repository: &Repository,
        id: &str,
        message: &str,
    ) -> Result<Vec<String>, Failure> {
        let environment = self.environment(repository.top(), id).await?;
        Ok(environment.keep(message.to_owned()).await.warnings)
    }

    /// The program that containers are run with.
    pub fn podman(&self) -> &str {
        self.podman.program()
    }

    /// Throws away what nobody will ask for again.
    pub async fn prune(&self, repository: &Repository) -> Result<Pruned, Failure> {
        let layout = repository.layout();
        let mut pruned = Pruned::default();
        for listed in self.list(repository).await?.into_iter().filter(|listed| listed.broken) {
            self.destroy(repository, &listed.id, false).await?;
            pruned.environments.push(listed.id);
        }
        let ids = state::ids(&layout).attempting("prune", "could not look for environments")?;
        let mut containers = HashSet::new();
        for id in &ids {
            if let Ok(Some(state)) = State::load(&layout.environment(id)) {
                containers.insert(state.container);
            }
        }
        let ours =
            self.podman.ours(&repository.top).await.map_err(|error| error.into_failure(""))?;
        for (name, _) in ours.into_iter().filter(|(name, _)| !containers.contains(name)) {
            self.podman.remove(&name).await.map_err(|error| error.into_failure(""))?;
            pruned.containers.push(name);
        }
        if let Some(used) = used_bases(&layout) {
            pruned.bases = base::prune(&layout, &used, Some(0))
                .attempting("prune", "could not remove bases")?;
        }
        self.sweep(layout);
        Ok(pruned)
    }
}

/// The trees that environments lie over; nothing where that cannot be told.
fn used_bases(layout: &Layout) -> Option<HashSet<String>> {
    let mut used = HashSet::new();
    for id in state::ids(layout).ok()? {
        // One without a state is just being made.
        used.extend(State::load(&layout.environment(&id)).ok()??.base);
    }
    Some(used)
}

pub(crate) fn is_free(lock: &Path) -> bool {
    matches!(Lock::try_now(lock), Ok(Some(_)))
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
