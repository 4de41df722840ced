//! The environments of this user, in whichever repository, and the programs of this machine.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use cofer_model::{
    EnvironmentDestroyed, EnvironmentDiff, EnvironmentList, EnvironmentLog, ErrorBody, HostView,
    IsolationProviderView, SecretDecision, SecretList,
};
use cofer_runtime::podman::ProviderReport;
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::ApiError;
use super::extract::{JsonBody, Params, Path};
use crate::app::App;
use crate::machine::{EnvironmentRef, MachineFailure};

/// Which repository.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Where {
    /// The repository's path, as the list has it; needed where two have an environment of this id.
    repository: Option<String>,
}

/// Which repository, and what of the environment goes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Destroy {
    /// The repository's path, as the list has it; needed where two have an environment of this id.
    repository: Option<String>,
    /// Remove the branch with its work too.
    #[serde(default)]
    force: bool,
}

/// All environments, by repository.
#[utoipa::path(get, path = "/environments", tag = "environments",
    responses((status = 200, body = EnvironmentList)))]
pub(crate) async fn list(State(app): State<App>) -> Json<EnvironmentList> {
    Json(app.machine.environments().await)
}

/// What was done in an environment: its commits, the newest first.
#[utoipa::path(get, path = "/environments/{id}/log", tag = "environments", params(("id" = String, Path, description = "The environment's id"), Where),
    responses((status = 200, body = EnvironmentLog), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn log(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(place): Params<Where>,
) -> Result<Json<EnvironmentLog>, ApiError> {
    Ok(Json(app.machine.log(meant(id, place.repository)).await?))
}

/// What an environment changed since it was made.
#[utoipa::path(get, path = "/environments/{id}/diff", tag = "environments", params(("id" = String, Path, description = "The environment's id"), Where),
    responses((status = 200, body = EnvironmentDiff), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn diff(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(place): Params<Where>,
) -> Result<Json<EnvironmentDiff>, ApiError> {
    Ok(Json(app.machine.diff(meant(id, place.repository)).await?))
}

/// Take an environment away: its container and its files. The branch with its work stays.
#[utoipa::path(delete, path = "/environments/{id}", tag = "environments", params(("id" = String, Path, description = "The environment's id"), Destroy),
    responses((status = 200, body = EnvironmentDestroyed), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn destroy(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(Destroy { repository, force }): Params<Destroy>,
) -> Result<Json<EnvironmentDestroyed>, ApiError> {
    Ok(Json(app.machine.destroy(meant(id, repository), force).await?))
}

/// Approve or revoke a secret that a repository asks for in its environment.json.
#[utoipa::path(post, path = "/repositories/secrets", tag = "environments", request_body = SecretDecision,
    responses((status = 200, body = SecretList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn decide_secret(
    State(app): State<App>,
    JsonBody(body): JsonBody,
) -> Result<Json<SecretList>, ApiError> {
    let decision = serde_json::from_value(body)
        .map_err(|error| ApiError::invalid_part("secret", error.to_string()))?;
    Ok(Json(app.machine.decide_secret(decision).await?))
}

/// The programs that servers and environments are run with, and the isolation providers for
/// containers with their availability. The first request waits for the providers' trials.
#[utoipa::path(get, path = "/host", tag = "environments",
    responses((status = 200, body = HostView)))]
pub(crate) async fn host(State(app): State<App>) -> Json<HostView> {
    let (mut host, providers) = tokio::join!(app.machine.host(), app.containers.providers());
    host.providers = providers.into_iter().map(provider_view).collect();
    Json(host)
}

fn provider_view(report: ProviderReport) -> IsolationProviderView {
    let ProviderReport { provider, installed, available, reason, runtime } = report;
    IsolationProviderView { name: provider.to_owned(), installed, available, reason, runtime }
}

/// An empty parameter is one that was not given.
fn meant(id: String, repository: Option<String>) -> EnvironmentRef {
    let repository = repository.filter(|path| !path.is_empty()).map(PathBuf::from);
    EnvironmentRef { id, repository }
}

impl From<MachineFailure> for ApiError {
    fn from(failure: MachineFailure) -> Self {
        Self::new(failure.kind, failure.message).hint(failure.hint)
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use cofer_model::ErrorKind;

    use super::*;

    #[test]
    fn an_environment_is_meant_by_id_and_where_given_by_repository() {
        let named = meant("x".to_owned(), Some("/r".to_owned()));
        assert_eq!(named.repository, Some(PathBuf::from("/r")));
        assert_eq!(meant("x".to_owned(), Some(String::new())).repository, None);
    }

    #[test]
    fn a_failure_keeps_its_words_and_has_the_status_of_its_kind() {
        let failure = MachineFailure {
            kind: ErrorKind::Conflict,
            message: "two have it".to_owned(),
            hint: "name one".to_owned(),
        };
        let error = ApiError::from(failure);
        assert_eq!(error.message(), "two have it");
        assert_eq!(error.into_response().status(), 409);
    }
}
