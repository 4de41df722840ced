//! All environments of a user, in whichever repository: for somebody who wants to see what there
//! is rather than to work in one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cofer_model::{
    EnvironmentCommand, EnvironmentDestroyed, EnvironmentList, EnvironmentPort, EnvironmentState,
    EnvironmentView, RepositoryError, RepositoryView, SecretDecision, SecretList, SecretView,
};
use time::OffsetDateTime;

use crate::background::{self, Started};
use crate::destroy::Destroyed;
use crate::environment::{Environment, not_found};
use crate::environments::{Environments, is_free};
use crate::failure::{Attempt as _, Failure, Kind};
use crate::id;
use crate::journal;
use crate::repository::Repository;
use crate::state::{self, Phase, State};

/// How many commands are told of each environment.
const MOST_COMMANDS: usize = 10;

impl Environments {
    /// Notes when a repository was last used. A failure is logged only: the record decides which
    /// repositories are accepted, and this changes nothing of that.
    pub async fn note(&self, repository: &Repository) {
        let Some(registry) = self.settings.registry() else { return };
        if !self.is_news(repository) {
            return;
        }
        let (top, now) = (repository.top.clone(), OffsetDateTime::now_utc());
        let noting = tokio::task::spawn_blocking(move || registry.touch(&top, now));
        let noted = noting.await.map_err(std::io::Error::other).flatten();
        if let Err(error) = noted {
            tracing::warn!(%error, "could not note that a repository is used");
        }
    }

    /// Every repository that was used, with its environments.
    pub async fn survey(&self) -> EnvironmentList {
        let mut repositories = Vec::new();
        for top in self.tops() {
            let path = top.to_string_lossy().into_owned();
            let (environments, secrets, error) = match self.look_into(&top).await {
                Ok((environments, Ok(secrets))) => (environments, secrets, None),
                Ok((environments, Err(failure))) => (environments, Vec::new(), Some(failure)),
                Err(failure) => (Vec::new(), Vec::new(), Some(failure)),
            };
            let error = error.map(|failure| RepositoryError {
                message: failure.message,
                hint: failure.recovery,
            });
            repositories.push(RepositoryView { path, environments, secrets, error });
        }
        EnvironmentList { repositories }
    }

    fn tops(&self) -> Vec<PathBuf> {
        self.settings.registry().map(|registry| registry.tops()).unwrap_or_default()
    }

    /// The environments of a repository and the secrets that it asks for; an invalid
    /// environment.json hides the latter alone.
    async fn look_into(
        &self,
        top: &Path,
    ) -> Result<(Vec<EnvironmentView>, Result<Vec<SecretView>, Failure>), Failure> {
        let repository = self.repository(top).await?;
        let layout = repository.layout();
        let mut views = Vec::new();
        for id in state::ids(&layout).attempting("list", "could not look for environments")? {
            let Ok(Some(state)) = State::load(&layout.environment(&id)) else { continue };
            if state.id == id && id::given(&id).is_ok() {
                views.push(view(Environment::new(repository.clone(), state)).await);
            }
        }
        Ok((views, self.secrets(&repository)))
    }

    /// Approves or revokes one secret that a recorded repository asks for. Gives all of them.
    pub async fn decide_secret(&self, decision: &SecretDecision) -> Result<SecretList, Failure> {
        let named = Path::new(&decision.repository);
        self.check_listed(named, &self.tops())?;
        let repository = self.repository(named).await?;
        let is_meant = |name: &str, reference: &str| {
            (name, reference) == (decision.name.as_str(), decision.reference.as_str())
        };
        let is_done = if decision.allow {
            !self.allow_secrets(&repository, is_meant)?.is_empty()
        } else {
            !self.revoke_secrets(&repository, is_meant)?.is_empty()
        };
        if !is_done {
            let SecretDecision { name, reference, .. } = decision;
            let verb = if decision.allow { "asks for" } else { "has an approved" };
            let message = format!(
                "the repository {verb} no secret {name:?} with the reference {reference:?}"
            );
            let recovery =
                "read the list of environments again: it has the secrets as they are now.";
            return Err(Failure::new(Kind::Conflict, "secrets", message, recovery));
        }
        Ok(SecretList { secrets: self.secrets(&repository)? })
    }

    fn check_listed(&self, named: &Path, tops: &[PathBuf]) -> Result<(), Failure> {
        if tops.iter().any(|top| top == named) {
            return Ok(());
        }
        let message = format!("no recorded repository is at {}", named.display());
        let recovery = "name the repository as the list of environments has it.";
        Err(Failure::new(Kind::NotFound, "repository", message, recovery))
    }

    /// The repository in which the environment `id` is meant: `named`, or the only one that has
    /// such an environment. Only repositories that were used can be meant.
    pub async fn locate(&self, id: &str, named: Option<&Path>) -> Result<Repository, Failure> {
        let id = id::given(id)?;
        let tops = self.tops();
        if let Some(named) = named {
            self.check_listed(named, &tops)?;
        }
        let mut found = Vec::new();
        for top in tops.iter().filter(|top| named.is_none_or(|named| named == *top)) {
            let repository = match self.repository(top).await {
                Ok(repository) => repository,
                Err(failure) if named.is_some() => return Err(failure),
                Err(_) => continue,
            };
            if repository.layout().environment(&id).folder.is_dir() {
                found.push(repository);
            } else if named.is_some() {
                return Err(not_found(&id, &repository));
            }
        }
        the_only_one(&id, found)
    }

    /// Takes an environment away, to the end also where nobody waits for it any more.
    pub async fn destroy_surely(
        self: &Arc<Self>,
        repository: Repository,
        id: &str,
        force: bool,
    ) -> Result<EnvironmentDestroyed, Failure> {
        let (this, id) = (Arc::clone(self), id.to_owned());
        let destroying =
            self.behind.spawn(async move { this.destroy(&repository, &id, force).await });
        let destroyed =
            destroying.await.attempting("destroy", "the environment was not destroyed")??;
        Ok(destroyed.into())
    }
}

fn the_only_one(id: &str, mut found: Vec<Repository>) -> Result<Repository, Failure> {
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => {
            let message = format!("no repository that was used has an environment {id:?}");
            let recovery = "look at the list of environments: it may have been destroyed.";
            Err(Failure::new(Kind::NotFound, "environment", message, recovery))
        }
        (Some(last), false) => {
            let tops = found.iter().chain([&last]).map(|one| one.top.display().to_string());
            let tops = tops.collect::<Vec<_>>().join(", ");
            let message = format!("several repositories have an environment {id:?}: {tops}");
            let recovery = "name the one that is meant in `repository`.";
            Err(Failure::new(Kind::Conflict, "environment", message, recovery))
        }
    }
}

impl From<Destroyed> for EnvironmentDestroyed {
    fn from(destroyed: Destroyed) -> Self {
        let paths = destroyed.removed_paths.iter();
        Self {
            environment_id: destroyed.id,
            removed_paths: paths.map(|path| path.to_string_lossy().into_owned()).collect(),
            stopped_containers: destroyed.stopped_containers,
            termination: destroyed.termination.word().to_owned(),
            warnings: destroyed.warnings,
            branch_kept: destroyed.branch_kept,
        }
    }
}

async fn view(environment: Environment) -> EnvironmentView {
    let listens = environment.executor.listens(Duration::ZERO).await.is_ok();
    // What was started before the container was belongs to an earlier life of it.
    let awake_since = environment.executor.bound_at().filter(|_| listens);
    let started = background::started(&environment.home.background(), awake_since);
    let ports = ports_of(&started);
    let ended = journal::last(&environment.home.journal(), MOST_COMMANDS);
    let state = how_it_is(&environment, listens);
    let branch = environment.state.remote_ref();
    let isolation = Some(environment.effective_isolation()).filter(|value| !value.is_null());
    let of = environment.state;
    EnvironmentView {
        id: of.id,
        title: of.title,
        created_at: of.created_at,
        state,
        branch,
        image: of.config.base_image,
        worktree: of.worktree.to_string_lossy().into_owned(),
        container: of.container,
        container_id: of.container_id,
        isolation,
        ports,
        commands: commands(started, ended),
    }
}

fn how_it_is(environment: &Environment, listens: bool) -> EnvironmentState {
    match environment.state.phase {
        Phase::Ready if listens => EnvironmentState::Running,
        Phase::Ready => EnvironmentState::Stopped,
        _ if is_free(&environment.lock_path()) => EnvironmentState::Unfinished,
        Phase::Creating => EnvironmentState::Creating,
        Phase::Destroying => EnvironmentState::Destroying,
    }
}

fn ports_of(started: &[Started]) -> Vec<EnvironmentPort> {
    let running = started.iter().filter(|command| command.running);
    let mut ports: Vec<EnvironmentPort> = running
        .flat_map(|command| &command.ports)
        .map(|&(container, host)| EnvironmentPort { container, host })
        .collect();
    ports.sort_by_key(|port| port.container);
    ports
}

/// The newest first, of both kinds.
fn commands(started: Vec<Started>, ended: Vec<journal::Entry>) -> Vec<EnvironmentCommand> {
    let started = started.into_iter().map(|command| EnvironmentCommand {
        command: command.command,
        at: at(command.at),
        background: true,
        running: command.running,
        exit_code: command.exit_code,
        failure: None,
    });
    let ended = ended.into_iter().map(|entry| EnvironmentCommand {
        command: entry.command,
        at: entry.at,
        background: false,
        running: false,
        exit_code: entry.exit_code,
        failure: entry.failure,
    });
    let mut all: Vec<EnvironmentCommand> = started.chain(ended).collect();
    all.sort_by_key(|command| std::cmp::Reverse(command.at));
    all.truncate(MOST_COMMANDS);
    all
}

fn at(time: SystemTime) -> OffsetDateTime {
    time.into()
}
