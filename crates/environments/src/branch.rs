//! An environment's branch: in the remote, and as the source repository sees it.

use crate::environment::Environment;
use crate::failure::{Attempt as _, Failure};
use crate::git::{Git, GitError};
use crate::repository::Commit;
use crate::state::{branch, loose_ref, tracking};

/// What became of the branch, for taking it back.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// What the branch was at before.
    pub(crate) previous: Option<String>,
    pub(crate) branch: bool,
}

/// The branch begins at `commit`, in the remote and as the source sees it.
pub(crate) async fn point(
    environment: &Environment,
    commit: &Commit,
    made: &mut Made,
) -> Result<(), Failure> {
    let id = &environment.state.id;
    let previous = previous_tip(environment).await;
    if let Some(previous) = previous.filter(|previous| *previous != commit.id) {
        let aside = format!("refs/cofer/replaced/{id}/{previous}");
        let kept =
            environment.repository.git().call(["update-ref", &aside, &previous]).patiently().await;
        kept.attempting("branch", "could not keep the branch of that name")?;
        made.previous = Some(previous);
    }
    made.branch = true;
    set(environment, &commit.id)
        .await
        .attempting("branch", "could not push to the cofer remote")?;
    environment
        .push_elsewhere(&commit.id, true)
        .await
        .attempting("branch", "could not push to the cofer remote")
}

async fn previous_tip(environment: &Environment) -> Option<String> {
    let (store, name) = (environment.layout.remote(), branch(&environment.state.id));
    if let Some(tip) = loose_ref(&store, &name) {
        return Some(tip);
    }
    if !store.join("packed-refs").exists() {
        return None;
    }
    Git::within(&environment.layout.store())
        .call(["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
        .text()
        .await
        .ok()
}

pub(crate) async fn set(environment: &Environment, commit: &str) -> Result<(), GitError> {
    let (branch, tracking) = (branch(&environment.state.id), tracking(&environment.state.id));
    let there =
        Git::within(&environment.layout.store()).call(["update-ref", &branch, commit]).patiently();
    let here = environment.repository.git().call(["update-ref", &tracking, commit]).patiently();
    tokio::try_join!(there, here).map(drop)
}

/// Removes the branch, in the remote and in the source.
pub(crate) async fn delete(environment: &Environment) -> Result<(), GitError> {
    let (branch, tracking) = (branch(&environment.state.id), tracking(&environment.state.id));
    let there =
        Git::within(&environment.layout.store()).call(["update-ref", "-d", &branch]).patiently();
    let here = environment.repository.git().call(["update-ref", "-d", &tracking]).patiently();
    tokio::try_join!(there, here).map(drop)
}
