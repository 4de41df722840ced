//! Servers: register, show, change, switch, restart, remove.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use cofer_model::{ErrorBody, Kind, ServerList, ServerSpec, ServerView};
use cofer_supervisor::ServerHandle;
use serde::Deserialize;
use utoipa::IntoParams;

use super::error::ApiError;
use super::extract::{JsonBody, Params, Path};
use super::volumes;
use crate::app::App;
use crate::view::{Measured, measure, server_view};

/// The longest that a request may wait for a server to settle.
const MAX_WAIT: f64 = 600.0;

/// How a server is shown.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Show {
    /// Show the values of `environment`.
    #[serde(default)]
    reveal: bool,
}

/// Whether to wait.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wait {
    /// Answer when the server is ready or has failed, at most after so many seconds.
    #[param(minimum = 0, maximum = 600)]
    wait: Option<f64>,
}

/// Whether to remove volumes too.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Purge {
    /// Remove the server's volumes too.
    #[serde(default)]
    purge: bool,
}

/// Register a server.
#[utoipa::path(post, path = "/mcp/servers", tag = "servers", params(Wait),
    request_body(content = ServerSpec, example = json!({"name": "time", "command": "uvx", "args": ["mcp-server-time"]})),
    responses((status = 201, body = ServerView), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn register(
    State(app): State<App>,
    Params(wait): Params<Wait>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let limit = wait.limit()?;
    let handle = app.registry.register(body).await?;
    let view = settled(&app, &handle, limit).await?;
    let location = format!("/api/v1/mcp/servers/{}", view.id);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(view)).into_response())
}

/// All servers, by name.
#[utoipa::path(get, path = "/mcp/servers", tag = "servers", params(Show), responses((status = 200, body = ServerList)))]
pub(crate) async fn list(
    State(app): State<App>,
    Params(show): Params<Show>,
) -> Result<Json<ServerList>, ApiError> {
    let records = app.registry.records().await?;
    let servers = records
        .into_iter()
        .filter_map(|record| {
            let handle = app.supervisor().get(record.id)?;
            Some(server_view(record, &handle, show.reveal, Measured::default()))
        })
        .collect();
    Ok(Json(ServerList { servers }))
}

/// One server, with what it uses.
#[utoipa::path(get, path = "/mcp/servers/{id}", tag = "servers", params(("id" = String, Path, description = "UUID or name"), Show),
    responses((status = 200, body = ServerView), (status = 404, body = ErrorBody)))]
pub(crate) async fn show(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(show): Params<Show>,
) -> Result<Json<ServerView>, ApiError> {
    let handle = app.registry.find(&id)?;
    let record = app.registry.record(&handle).await?;
    let measured = measured(handle.clone()).await?;
    Ok(Json(server_view(record, &handle, show.reveal, measured)))
}

/// Change a server; a changed run configuration restarts it.
#[utoipa::path(patch, path = "/mcp/servers/{id}", tag = "servers", params(("id" = String, Path, description = "UUID or name"), Wait),
    request_body(content = serde_json::Value, description = "the fields to change", example = json!({"description": "the time in any zone"})),
    responses((status = 200, body = ServerView), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn change(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(wait): Params<Wait>,
    JsonBody(body): JsonBody,
) -> Result<Json<ServerView>, ApiError> {
    let limit = wait.limit()?;
    let handle = app.registry.find(&id)?;
    app.registry.change(&handle, body).await?;
    settled(&app, &handle, limit).await.map(Json)
}

/// Stop and remove a server; its volumes stay unless `purge` is given.
#[utoipa::path(delete, path = "/mcp/servers/{id}", tag = "servers", params(("id" = String, Path, description = "UUID or name"), Purge),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub(crate) async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(purge): Params<Purge>,
) -> Result<StatusCode, ApiError> {
    let handle = app.registry.find(&id)?;
    let purge = purge.purge && handle.spec().kind() == Kind::Container;
    if purge {
        // Nothing is removed where not all of it can be.
        let there = app.containers.engine().await;
        there.map_err(|failure| volumes::failed("remove the server's volumes", failure))?;
    }
    app.registry.remove(&handle).await?;
    if purge {
        let removed = app.containers.remove_volumes(handle.id()).await;
        removed.map_err(|failure| volumes::failed("remove the server's volumes", failure))?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Switch a server on.
#[utoipa::path(post, path = "/mcp/servers/{id}/enable", tag = "servers", params(("id" = String, Path, description = "UUID or name"), Wait),
    responses((status = 200, body = ServerView), (status = 404, body = ErrorBody)))]
pub(crate) async fn enable(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(wait): Params<Wait>,
) -> Result<Json<ServerView>, ApiError> {
    switch(&app, &id, true, &wait).await
}

/// Switch a server off.
#[utoipa::path(post, path = "/mcp/servers/{id}/disable", tag = "servers", params(("id" = String, Path, description = "UUID or name"), Wait),
    responses((status = 200, body = ServerView), (status = 404, body = ErrorBody)))]
pub(crate) async fn disable(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(wait): Params<Wait>,
) -> Result<Json<ServerView>, ApiError> {
    switch(&app, &id, false, &wait).await
}

/// Restart a server.
#[utoipa::path(post, path = "/mcp/servers/{id}/restart", tag = "servers", params(("id" = String, Path, description = "UUID or name"), Wait),
    responses((status = 200, body = ServerView), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn restart(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(wait): Params<Wait>,
) -> Result<Json<ServerView>, ApiError> {
    let limit = wait.limit()?;
    let handle = app.registry.find(&id)?;
    if !handle.restart().await {
        let snapshot = handle.snapshot();
        return Err(ApiError::not_connected(snapshot.spec.name.as_str(), snapshot.status));
    }
    settled(&app, &handle, limit).await.map(Json)
}

async fn switch(app: &App, id: &str, on: bool, wait: &Wait) -> Result<Json<ServerView>, ApiError> {
    let limit = wait.limit()?;
    let handle = app.registry.find(id)?;
    app.registry.switch(&handle, on).await?;
    settled(app, &handle, limit).await.map(Json)
}

/// The server object, once the server has settled where that is waited for.
async fn settled(
    app: &App,
    handle: &ServerHandle,
    limit: Option<Duration>,
) -> Result<ServerView, ApiError> {
    if let Some(limit) = limit {
        tokio::select! {
            _ = handle.settled(limit) => {}
            () = app.closing.cancelled() => {}
        }
    }
    let record = app.registry.record(handle).await?;
    Ok(server_view(record, handle, false, Measured::default()))
}

/// What is read with blocking calls is read where those do no harm.
async fn measured(handle: ServerHandle) -> Result<Measured, ApiError> {
    let runtime = tokio::runtime::Handle::current();
    let measured = tokio::task::spawn_blocking(move || runtime.block_on(measure(&handle))).await;
    measured.map_err(|error| ApiError::internal(format!("could not measure the server: {error}")))
}

impl Wait {
    fn limit(&self) -> Result<Option<Duration>, ApiError> {
        match self.wait {
            None => Ok(None),
            Some(seconds) if (0.0..=MAX_WAIT).contains(&seconds) => {
                Ok(Some(Duration::from_secs_f64(seconds)))
            }
            Some(_) => Err(ApiError::invalid_part(
                "wait",
                format!("is not between 0 and {MAX_WAIT} seconds"),
            )),
        }
    }
}
