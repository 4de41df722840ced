//! Makes an environment, in the order in which this file reads. Whatever fails, everything made
//! so far is taken back.

use std::fs;
use std::io;
use std::path::PathBuf;

use cofer_runtime::podman::limit_warnings;
use serde_json::Value;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::answer::UNKNOWN_CHANGES;
use crate::base::{self, Filling};
use crate::branch::{self, Made};
use crate::config::EnvironmentConfig;
use crate::environment::{Environment, LISTENING};
use crate::environments::Environments;
use crate::executor;
use crate::failure::{Attempt as _, Failure, Kind};
use crate::id;
use crate::init;
use crate::layout::{Home, Layout};
use crate::lock::Lock;
use crate::look::{Look, Seen};
use crate::podman::Start;
use crate::provider;
use crate::repository::{Commit, Repository, Settings, no_remote};
use crate::run;
use crate::state::{self, Author, Phase, State};
use crate::worktree::{self, Making, Mode};

/// What is ignored where a repository says nothing about it: what package managers fetch and what
/// tools can always make again.
const IGNORED: &str = "node_modules/\n__pycache__/\n*.pyc\n.venv/\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n.tox/\n.next/\n.DS_Store\n";

/// Where looking takes longer than all the rest.
const NOT_YET_KNOWN: &str = "it is not known yet whether the source has uncommitted changes; if it has any, they are NOT included in this environment, and the answer to a later command names them";

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) source: PathBuf,
    pub(crate) title: String,
    pub(crate) id: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) reference: Option<String>,
    pub(crate) replace: bool,
}

/// What was made.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) environment: Environment,
    pub(crate) warnings: Vec<String>,
    /// The isolation in force.
    pub(crate) isolation: Value,
    /// What of the source is not in it.
    pub(crate) uncommitted: Vec<String>,
}

impl Environments {
    pub(crate) async fn create(
        &self,
        wish: Wish,
        cancelled: &CancellationToken,
    ) -> Result<Created, Failure> {
        let repository = self.repository(&wish.source).await?;
        let id = match &wish.id {
            Some(id) => id::given(id)?,
            None => id::of_title(&wish.title),
        };
        let reference = wish.reference.as_deref().unwrap_or("HEAD");
        let (settings, commit) = tokio::join!(repository.settings(), repository.commit(reference));
        let settings = settings.attempting("repository", "could not read git's settings")?;
        if settings.remote.is_none() {
            return Err(no_remote(&repository.top));
        }
        let commit = commit?;
        let mut look = Look::at(&repository, &settings);
        let config = EnvironmentConfig::read(
            &repository.top,
            wish.image.as_deref(),
            &self.settings.default_image,
        )?;
        let sandbox = self.sandbox(config.provider).await?;
        // Refused before anything is made; the values are resolved again for each command.
        self.resolve_secrets(&repository, &config.secrets)?;
        let layout = repository.layout();
        layout.prepare().attempting("repository", "could not make the folders for environments")?;
        init::make_store(&repository).await?;

        let lock = Lock::wait(layout.lock(&id))
            .await
            .attempting("reserve", "could not lock the environment")?;
        let mut warnings = self.make_room(&repository, &layout, &id, wish.replace).await?;
        let home = layout.environment(&id);
        if let Err(failure) = self.reserve(&layout, &home, &id) {
            lock.remove();
            return Err(failure);
        }
        let mode = self.mode(&layout);
        let mut state = begin(&repository, &layout, &id, &wish, &commit, mode, config, &settings);
        state.sandbox = sandbox;
        state.disk_limit = self.settings.isolation.limits.disk_bytes();
        let environment = Environment::new(repository, state);
        let mut made = Made::default();
        let making = Box::pin(self.make(environment.clone(), &commit, &settings, &mut made));
        let made_it = tokio::select! {
            made_it = making => made_it,
            () = cancelled.cancelled() => Err(run::cancelled()),
        };
        match made_it {
            Ok((environment, more)) => {
                warnings.extend(more);
                if let Some(previous) = made.previous {
                    warnings.extend(kept_aside(&environment, &previous, &commit));
                }
                let mut uncommitted = Vec::new();
                match look.seen_in_time().await {
                    Seen::Uncommitted(files) => uncommitted = files,
                    Seen::Unknown => warnings.push(UNKNOWN_CHANGES.to_owned()),
                    Seen::NotYet => {
                        warnings.push(NOT_YET_KNOWN.to_owned());
                        self.look_on(&environment, look);
                    }
                }
                self.remember(environment.clone());
                self.note(&environment.repository).await;
                let isolation = environment.effective_isolation();
                if let Ok(info) = self.podman.info().await {
                    warnings.extend(limit_warnings(info, &isolation));
                }
                Ok(Created { environment, warnings, isolation, uncommitted })
            }
            Err(failure) => {
                self.take_back(&environment, &made).await;
                lock.remove();
                Err(failure)
            }
        }
    }

    /// Removes what is in the way: what somebody died over, and what is to be replaced.
    async fn make_room(
        &self,
        repository: &Repository,
        layout: &Layout,
        id: &str,
        replace: bool,
    ) -> Result<Vec<String>, Failure> {
        let home = layout.environment(id);
        let state = State::load(&home)
            .attempting("reserve", "could not read what is known of that environment")?;
        match state {
            Some(state) if state.phase == Phase::Ready && !replace => {
                let message =
                    format!("environment {id:?} already exists for {}", repository.top.display());
                let recovery = "use it as it is, give another title or environment_id, or set allow_replace to true.";
                Err(Failure::new(Kind::Conflict, "reserve", message, recovery))
            }
            Some(state) => {
                let environment = Environment::new(repository.clone(), state);
                tracing::info!(environment = id, "an environment is removed for a new one");
                self.forget(repository, id);
                let removed = self.take_apart(&environment, false).await?;
                Ok(removed.warnings)
            }
            None if home.folder.exists() => {
                worktree::remove(layout, &home, &layout.worktrees().join(id))
                    .attempting("reserve", "could not remove what was left")?;
                worktree::set_aside(layout, &home.folder)
                    .attempting("reserve", "could not remove what was left")?;
                Ok(Vec::new())
            }
            None => Ok(Vec::new()),
        }
    }

    /// Takes one of the allowed places.
    fn reserve(&self, layout: &Layout, home: &Home, id: &str) -> Result<(), Failure> {
        let step = "limit";
        fs::create_dir(&home.folder).attempting(step, "could not make the environment's folder")?;
        let count = state::ids(layout).attempting(step, "could not count environments")?.len();
        if count > self.settings.most_environments {
            fs::remove_dir(&home.folder).unwrap_or_default();
            let most = self.settings.most_environments;
            let message = format!(
                "{most} environments are there already, and no more are allowed; {id:?} was not created"
            );
            let recovery = "destroy one that is not needed any more (`cofer env list` shows them), or ask the user to raise COFER_MAX_ENVIRONMENTS.";
            return Err(Failure::new(Kind::LimitExceeded, step, message, recovery));
        }
        Ok(())
    }

    async fn make(
        &self,
        mut environment: Environment,
        commit: &Commit,
        settings: &Settings,
        made: &mut Made,
    ) -> Result<(Environment, Vec<String>), Failure> {
        let mut warnings = Vec::new();
        self.prepare_home(&environment, settings)
            .attempting("reserve", "could not prepare the environment's folder")?;
        let files = self.make_files(&environment, commit);
        let branch = branch::point(&environment, commit, made);
        // Asked for meanwhile: the first answer of `podman info` takes a fifth of a second. Its
        // error is returned by `start_container`.
        let (files, branch, _) = tokio::join!(files, branch, self.podman.info());
        environment.state.submodules = files?;
        branch?;
        if !environment.state.config.services.is_empty() {
            warnings.push(
                "`services` of environment.json are not started: run them as background commands"
                    .to_owned(),
            );
        }
        let empty = self.empty_submodules(&environment, commit).await?;
        warnings.extend(empty);
        environment.state.container_id = Some(self.start_container(&environment).await?);
        self.watch_disk(&environment);
        environment
            .executor
            .listens(LISTENING)
            .await
            .attempting("executor", "the container does not answer")?;
        self.set_up(&environment).await?;
        environment.state.phase = Phase::Ready;
        if environment.state.mode != Mode::Overlay
            && environment.state.config.install_commands.is_empty()
        {
            environment.remember().attempting("worktree", "could not look at the worktree")?;
        }
        environment
            .state
            .save(&environment.home)
            .attempting("reserve", "could not save what is known of the environment")?;
        if !environment.state.config.install_commands.is_empty() {
            warnings.extend(environment.keep_locked("Install".to_owned()).await.warnings);
        }
        Ok((environment, warnings))
    }

    fn prepare_home(&self, environment: &Environment, settings: &Settings) -> io::Result<()> {
        let home = &environment.home;
        environment.state.save(home)?;
        fs::create_dir(home.run())?;
        let own = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let excludes = [
            IGNORED.to_owned(),
            settings.excludes.clone().map(own).unwrap_or_default(),
            own(environment.repository.common.join("info/exclude")),
        ];
        fs::write(environment.excludes(), excludes.join("\n"))
    }

    async fn make_files(
        &self,
        environment: &Environment,
        commit: &Commit,
    ) -> Result<Vec<String>, Failure> {
        let State { id, worktree, mode, .. } = &environment.state;
        let making = Making {
            repository: &environment.repository,
            home: &environment.home,
            id,
            commit,
            mode: *mode,
            worktree,
        };
        making.make().await?;
        let found =
            base::submodules(&environment.repository, &commit.tree, worktree, Filling::No).await?;
        Ok(found.into_iter().map(|submodule| submodule.path).collect())
    }

    async fn empty_submodules(
        &self,
        environment: &Environment,
        commit: &Commit,
    ) -> Result<Vec<String>, Failure> {
        if environment.state.submodules.is_empty() {
            return Ok(Vec::new());
        }
        let found = base::submodules(
            &environment.repository,
            &commit.tree,
            &environment.state.worktree,
            Filling::No,
        )
        .await?;
        let mut warnings = vec!["changes inside submodules are not committed".to_owned()];
        warnings.extend(found.into_iter().filter_map(|submodule| {
            let why = submodule.empty?;
            Some(format!("the submodule {:?} is empty: {why}; `git submodule update --init` in the source, then a new environment, fills it", submodule.path))
        }));
        Ok(warnings)
    }

    async fn start_container(&self, environment: &Environment) -> Result<String, Failure> {
        let (state, home) = (&environment.state, &environment.home);
        let program = executor::program_in(environment.layout.home())
            .attempting("executor", "could not write the executor")?;
        let (run, gitfile, pidfile) = (home.run(), home.gitfile(), home.pidfile());
        let image = &state.config.base_image;
        let info = self.podman.info().await.map_err(|error| error.into_failure(image))?;
        if state.sandbox.is_none() {
            provider::check_engine(info)?;
        }
        let start = Start {
            name: &state.container,
            id: &state.id,
            image,
            source: &state.source,
            executor: &program,
            run: &run,
            worktree: &state.worktree,
            gitfile: &gitfile,
            workdir: &state.config.workdir,
            pidfile: &pidfile,
            isolation: &self.settings.isolation,
            info,
            sandbox: state.sandbox.as_deref(),
        };
        self.podman.run(&start).await.map_err(|error| error.into_failure(image))
    }

    /// Leaves nothing of an attempt.
    async fn take_back(&self, environment: &Environment, made: &Made) {
        let id = &environment.state.id;
        if let Err(error) = self.podman.remove(&environment.state.container).await {
            // Where there is no Podman, there is no container.
            tracing::debug!(%error, environment = id, "no container was removed");
        }
        let removed =
            worktree::remove(&environment.layout, &environment.home, &environment.state.worktree)
                .and_then(|_| worktree::set_aside(&environment.layout, &environment.home.folder));
        if let Err(error) = removed {
            tracing::error!(%error, environment = id, "something is left of an attempt to create an environment");
        }
        if made.branch {
            let restored = match &made.previous {
                Some(previous) => branch::set(environment, previous).await,
                None => branch::delete(environment).await,
            };
            if let Err(error) = restored {
                tracing::error!(%error, environment = id, "the branch of an attempt is left");
            }
        }
        self.sweep(environment.layout.clone());
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "all that is known of an environment at its beginning"
)]
fn begin(
    repository: &Repository,
    layout: &Layout,
    id: &str,
    wish: &Wish,
    commit: &Commit,
    mode: Mode,
    config: EnvironmentConfig,
    settings: &Settings,
) -> State {
    // Unlike any other container's, also of a repository elsewhere with an environment of this id.
    let place = id::fnv1a(layout.home().as_os_str().as_encoded_bytes());
    State {
        id: id.to_owned(),
        title: wish.title.clone(),
        created_at: OffsetDateTime::now_utc(),
        phase: Phase::Creating,
        source: repository.top.clone(),
        worktree: layout.worktrees().join(id),
        mode,
        base: mode.needs_base().then(|| commit.tree.clone()),
        start: commit.id.clone(),
        submodules: Vec::new(),
        container: format!("cofer-{id}-{place:08x}"),
        container_id: None,
        config,
        disk_limit: None,
        sandbox: None,
        author: Author {
            name: settings.name.clone().unwrap_or_else(|| "Cofer".to_owned()),
            email: settings.email.clone().unwrap_or_else(|| "cofer@localhost".to_owned()),
        },
        remote_elsewhere: settings
            .remote
            .as_deref()
            .is_some_and(|remote| remote != layout.remote()),
    }
}

fn kept_aside(environment: &Environment, previous: &str, commit: &Commit) -> Option<String> {
    if *previous == commit.id {
        return None;
    }
    let (id, short) = (&environment.state.id, previous.get(..12).unwrap_or(previous));
    Some(format!(
        "the branch cofer/{id} was there from an earlier environment; its last commit {short} is kept: `git branch NAME {short}` brings it back"
    ))
}
