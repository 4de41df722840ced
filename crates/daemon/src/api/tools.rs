//! The rest: checking and importing registrations, metrics, signs of life.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use cofer_model::{ErrorBody, ServerName, ServerSpec, ServerView};
use cofer_store::StoreError;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::error::ApiError;
use super::extract::{JsonBody, RawBody};
use crate::app::App;
use crate::import::{ImportEntry, ImportOutcome, parse_import};
use crate::metrics;
use crate::validate::{Validation, validate};
use crate::validate_container::AsksFor;
use crate::view::{Measured, server_view};

/// Check a registration without saving it.
#[utoipa::path(post, path = "/mcp/validate", tag = "servers", request_body(content = serde_json::Value, description = "a registration; any JSON is checked",
        example = json!({"name": "time", "command": "uvx"})),
    responses((status = 200, body = Validation)))]
pub(crate) async fn check(State(app): State<App>, JsonBody(body): JsonBody) -> Json<Validation> {
    let asks_for = AsksFor::read(&body);
    let taken = |name: &ServerName| app.registry.is_taken(name.as_str());
    let clash = |spec: &ServerSpec| app.registry.prefix_clash(spec);
    let mut validation = validate(body, taken, clash, &app.surroundings);
    if let Some(asks_for) = asks_for {
        validation.warnings.extend(asks_for.unavailable(&app.containers.providers().await));
    }
    Json(validation)
}

/// What became of an import.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Imported {
    /// One for each server of the configuration, in its order.
    servers: Vec<ImportedServer>,
}

/// What became of one server of an import.
#[derive(Debug, Serialize, ToSchema)]
struct ImportedServer {
    /// Its name.
    name: String,
    /// Whether it is registered now.
    status: ImportStatus,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What a person should look at.
    warnings: Vec<String>,
    /// The server object.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<ServerView>,
}

/// Whether a server of an import is registered now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ImportStatus {
    /// It is.
    Imported,
    /// It was left out.
    Skipped,
    /// It was refused.
    Failed,
}

/// Register the servers of another client's configuration.
#[utoipa::path(post, path = "/mcp/import", tag = "servers", request_body(content = serde_json::Value, content_type = "application/json", description = "a client's `mcpServers` JSON",
        example = json!({"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}})),
    responses((status = 200, body = Imported), (status = 422, body = ErrorBody)))]
pub(crate) async fn import(
    State(app): State<App>,
    RawBody(body): RawBody,
) -> Result<Json<Imported>, ApiError> {
    let text = std::str::from_utf8(&body)
        .map_err(|_| ApiError::invalid_part("", "the body is not UTF-8"))?;
    let entries = parse_import(text, &app.surroundings.own).map_err(|error| {
        let cause =
            std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        ApiError::invalid_part("", format!("{error}{cause}"))
    })?;
    let mut servers = Vec::with_capacity(entries.len());
    for entry in entries {
        servers.push(import_one(&app, entry).await);
    }
    Ok(Json(Imported { servers }))
}

async fn import_one(app: &App, entry: ImportEntry) -> ImportedServer {
    let ImportEntry { name, outcome, warnings } = entry;
    let (status, reason, server) = match outcome {
        ImportOutcome::Skip(reason) => (ImportStatus::Skipped, Some(reason), None),
        ImportOutcome::Register(body) => match register(app, body).await {
            Ok(view) => (ImportStatus::Imported, None, Some(view)),
            Err(error) => (ImportStatus::Failed, Some(error.message().to_owned()), None),
        },
    };
    ImportedServer { name, status, reason, warnings, server }
}

async fn register(app: &App, body: Value) -> Result<ServerView, ApiError> {
    let handle = app.registry.register(body).await?;
    let record = app.registry.record(&handle).await?;
    Ok(server_view(record, &handle, false, Measured::default()))
}

/// What Prometheus reads.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let handles = app.supervisor().list();
    let budgets = handles.iter().map(|handle| (handle.spec().name.to_string(), &**handle.memory()));
    app.metrics.set_memory(app.memory.daemon(), app.memory.clients(), budgets);
    let servers = handles.iter().map(|handle| {
        let snapshot = handle.snapshot();
        (snapshot.spec.name.to_string(), snapshot.status, snapshot.restart_count)
    });
    match app.metrics.render(servers) {
        Ok(text) => Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()),
        Err(error) => Err(ApiError::internal(format!("could not write the metrics: {error}"))),
    }
}

/// Whether the daemon and its store are there.
pub(crate) async fn healthz(State(app): State<App>) -> Response {
    let version = env!("CARGO_PKG_VERSION");
    match app.store.health().await {
        Ok(()) => Json(json!({"status": "ok", "version": version})).into_response(),
        Err(error) => {
            tracing::warn!(%error, "the store does not answer");
            let reason = match &error {
                StoreError::NotOwner { .. } => "the daemon does not own its database",
                _ => "the store does not answer",
            };
            let body = Json(json!({"status": "degraded", "version": version, "reason": reason}));
            (axum::http::StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}
