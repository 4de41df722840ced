//! What servers in containers keep: shown, and removed on request only.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cofer_model::{ErrorBody, ErrorKind, Failure, FailureKind, ServerId, VolumeList, VolumeView};
use cofer_runtime::podman::Volume;
use cofer_supervisor::ServerHandle;

use super::error::ApiError;
use super::extract::Path;
use crate::app::App;

/// The volumes of all servers, also of those that are no longer registered.
#[utoipa::path(get, path = "/mcp/volumes", tag = "servers",
    responses((status = 200, body = VolumeList), (status = 503, body = ErrorBody)))]
pub(crate) async fn list(State(app): State<App>) -> Result<Json<VolumeList>, ApiError> {
    let volumes = app.containers.volumes().await;
    let volumes = volumes.map_err(|failure| failed("list the volumes", failure))?;
    let servers = app.supervisor().list().into_iter();
    let names = servers.map(|handle| (handle.id(), handle.spec().name.to_string())).collect();
    Ok(Json(VolumeList { volumes: sorted(volumes, &names) }))
}

/// Remove the volumes of a server, with everything in them: also of one that is no longer
/// registered, by its id.
#[utoipa::path(delete, path = "/mcp/volumes/{server}", tag = "servers", params(("server" = String, Path, description = "UUID or name of the server")),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn remove(
    State(app): State<App>,
    Path(server): Path<String>,
) -> Result<StatusCode, ApiError> {
    let handle = app.supervisor().find(&server);
    let id = handle.as_ref().map(ServerHandle::id).or_else(|| server.parse().ok());
    let id = id.ok_or_else(|| ApiError::no_such_server(&server))?;
    if let Some(handle) = handle.filter(|handle| handle.snapshot().pid.is_some()) {
        let name = handle.spec().name.to_string();
        return Err(ApiError::conflict(format!("the server “{name}” runs and uses its volumes"))
            .hint(format!("disable it first: `cofer server disable {name}`")));
    }
    let removed = app.containers.remove_volumes(id).await;
    let removed = removed.map_err(|failure| failed("remove the volumes", failure))?;
    if removed.is_empty() {
        return Err(ApiError::not_found(format!("the server “{server}” has no volumes"))
            .hint("GET /api/v1/mcp/volumes lists them"));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// From a failure of the engine to an HTTP answer.
pub(super) fn failed(attempt: &str, failure: Failure) -> ApiError {
    let kind = match failure.kind {
        FailureKind::EngineUnavailable => ErrorKind::EngineUnavailable,
        _ => ErrorKind::Internal,
    };
    let message = format!("could not {attempt}: {}", failure.message);
    ApiError::new(kind, message).hint(failure.hint)
}

fn sorted(volumes: Vec<Volume>, names: &HashMap<ServerId, String>) -> Vec<VolumeView> {
    let view = |volume: Volume| VolumeView {
        name: volume.name,
        server_id: volume.server,
        server: volume.server.and_then(|id| names.get(&id).cloned()),
        path: Some(volume.path).filter(|path| !path.is_empty()),
        bytes: volume.bytes,
    };
    let mut views: Vec<VolumeView> = volumes.into_iter().map(view).collect();
    views.sort_by(|a, b| (&a.server, &a.path, &a.name).cmp(&(&b.server, &b.path, &b.name)));
    views
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse as _;
    use uuid::Uuid;

    #[test]
    fn volumes_tell_whose_they_are_and_stand_in_order() {
        // covers: HST-6.1
        let (known, gone) = (ServerId(Uuid::from_u128(1)), ServerId(Uuid::from_u128(2)));
        let volume = |name: &str, server, path: &str| Volume {
            name: name.to_owned(),
            server: Some(server),
            path: path.to_owned(),
            bytes: None,
        };
        let volumes =
            vec![volume("c", known, "/b"), volume("b", known, "/a"), volume("a", gone, "/z")];
        let names = HashMap::from([(known, "db".to_owned())]);
        let shown: Vec<_> = sorted(volumes, &names)
            .into_iter()
            .map(|volume| (volume.name, volume.server))
            .collect();
        let db = Some("db".to_owned());
        assert_eq!(
            shown,
            [("a".to_owned(), None), ("b".to_owned(), db.clone()), ("c".to_owned(), db)]
        );
    }

    #[test]
    fn an_engine_that_is_away_is_no_bug_of_ours() {
        let failure = |kind| Failure {
            kind,
            message: "m".to_owned(),
            hint: "h".to_owned(),
            exit_code: None,
            signal: None,
            stderr: None,
        };
        let away = failed("list", failure(FailureKind::EngineUnavailable));
        assert_eq!(away.message(), "could not list: m");
        assert_eq!(away.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        let broken = failed("list", failure(FailureKind::ContainerFailed));
        assert_eq!(broken.into_response().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
