//! The rest: checking and importing registrations, metrics, signs of life.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use cofer_model::{ErrorBody, ServerName, ServerSpec, ServerView};
use cofer_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;
use super::extract::{JsonBody, Params, RawBody};
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

/// How to import.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportParams {
    /// Change servers that exist already. Fields that the configuration does not name stay as they
    /// are, but for those that say how the server is run, and whether it is enabled.
    #[serde(default)]
    overwrite: bool,
}

/// Register the servers of another client's configuration.
///
/// `${VAR}`, `${VAR:-default}`, `${env:VAR}` and `${workspaceFolder}` are expanded; a server with a
/// placeholder that has no value is registered switched off. The variables are the daemon's, or those
/// of `{"configuration": …, "variables": {"VAR": "…"}, "workspace": "/…"}`.
#[utoipa::path(post, path = "/mcp/import", tag = "servers", params(ImportParams), request_body(content = serde_json::Value, content_type = "application/json", description = "a client's `mcpServers` JSON",
        example = json!({"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}})),
    responses((status = 200, body = Imported), (status = 422, body = ErrorBody)))]
pub(crate) async fn import(
    State(app): State<App>,
    Params(params): Params<ImportParams>,
    RawBody(body): RawBody,
) -> Result<Json<Imported>, ApiError> {
    let text = String::from_utf8(body.to_vec())
        .map_err(|_| ApiError::invalid_part("", "the body is not UTF-8"))?;
    // Files that the configuration names are read with blocking calls.
    let own = app.surroundings.own.clone();
    let parsed = tokio::task::spawn_blocking(move || parse_import(&text, &own)).await;
    let parsed = parsed.map_err(|error| {
        ApiError::internal(format!("could not read the configuration: {error}"))
    })?;
    let entries = parsed.map_err(|error| {
        let cause =
            std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        ApiError::invalid_part("", format!("{error}{cause}"))
    })?;
    let mut servers = Vec::with_capacity(entries.len());
    for entry in entries {
        servers.push(import_one(&app, entry, params.overwrite).await);
    }
    Ok(Json(Imported { servers }))
}

async fn import_one(app: &App, entry: ImportEntry, overwrite: bool) -> ImportedServer {
    let ImportEntry { name, outcome, warnings } = entry;
    let (status, reason, server) = match outcome {
        ImportOutcome::Skip(reason) => (ImportStatus::Skipped, Some(reason), None),
        ImportOutcome::Register(body) => match register(app, &name, body, overwrite).await {
            Ok(view) => (ImportStatus::Imported, None, Some(view)),
            Err(error) => (ImportStatus::Failed, Some(error.message().to_owned()), None),
        },
    };
    ImportedServer { name, status, reason, warnings, server }
}

/// Fields that say how a server is run, and whether: those of the old server are not kept.
const RUN_FIELDS: [&str; 10] = [
    "command",
    "image",
    "url",
    "args",
    "cwd",
    "environment",
    "headers",
    "auth",
    "audience",
    "enabled",
];

async fn register(
    app: &App,
    name: &str,
    body: Value,
    overwrite: bool,
) -> Result<ServerView, ApiError> {
    let handle = match app.registry.find(name) {
        Ok(handle) if overwrite => {
            app.registry.change(&handle, replacing(body)).await?;
            handle
        }
        _ => app.registry.register(body).await?,
    };
    let record = app.registry.record(&handle).await?;
    Ok(server_view(record, &handle, false, Measured::default()))
}

fn replacing(body: Value) -> Value {
    let mut change: Map<String, Value> =
        RUN_FIELDS.iter().map(|field| ((*field).to_owned(), Value::Null)).collect();
    if let Value::Object(fields) = body {
        change.extend(fields);
    }
    Value::Object(change)
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
