//! The providers of models. Keys go in and never come out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use cofer_model::ErrorBody;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;
use super::extract::{JsonBody, Params, Path, RawBody, check_object, malformed};
use crate::app::App;
use crate::chat::{ProviderTest, ProviderView, ProvidersView};

/// All providers, of Settings and of the daemon's environment.
#[utoipa::path(get, path = "/chat/providers", tag = "chat", responses((status = 200, body = ProvidersView)))]
pub(crate) async fn list(State(app): State<App>) -> Result<Json<ProvidersView>, ApiError> {
    Ok(Json(app.chat.providers_view().await?))
}

/// What a provider is to be; what is missing stays as it was.
#[derive(Debug, Deserialize, ToSchema)]
#[allow(
    dead_code,
    reason = "the shape for OpenAPI; the body is read field by field, to name every mistake"
)]
pub(crate) struct ProviderBody {
    /// `openai`, `anthropic`, `gemini` or `ollama`.
    kind: Option<cofer_chat::ProviderKind>,
    /// For people.
    name: Option<String>,
    /// Where it is.
    base_url: Option<String>,
    /// A secret; empty to remove it.
    api_key: Option<String>,
    /// The model that is asked where none is named; empty to remove it.
    default_model: Option<String>,
    /// Whether it is asked where none is named.
    is_default: Option<bool>,
}

/// Set up a provider, or change one.
#[utoipa::path(put, path = "/chat/providers/{id}", tag = "chat", params(("id" = String, Path, description = "1 to 40 of a-z, 0-9 and -", example = "local")),
    request_body(content = ProviderBody, example = json!({"kind": "ollama", "name": "Local", "base_url": "http://127.0.0.1:11434"})),
    responses((status = 200, body = ProviderView), (status = 422, body = ErrorBody)))]
pub(crate) async fn keep(
    State(app): State<App>,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<ProviderView>, ApiError> {
    Ok(Json(app.chat.keep_provider(&id, &body).await?))
}

/// Remove a provider of Settings.
#[utoipa::path(delete, path = "/chat/providers/{id}", tag = "chat", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    app.chat.remove_provider(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Try a provider, also with settings that are not stored yet.
#[utoipa::path(post, path = "/chat/providers/{id}/test", tag = "chat", params(("id" = String, Path)), request_body = Option<ProviderBody>,
    responses((status = 200, body = ProviderTest), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn test(
    State(app): State<App>,
    Path(id): Path<String>,
    RawBody(body): RawBody,
) -> Result<Json<ProviderTest>, ApiError> {
    let body: Value = if body.trim_ascii().is_empty() {
        json!({})
    } else {
        serde_json::from_slice(&body).map_err(|error| malformed(&error))?
    };
    let body = if body.is_null() { json!({}) } else { body };
    check_object(&body)?;
    Ok(Json(app.chat.test_provider(&id, &body).await?))
}

/// Whose models.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Whose {
    /// The provider; the default one where it is missing.
    provider: Option<String>,
}

/// The models of a provider.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The provider.
    provider: String,
    /// Their names, in the provider's order.
    models: Vec<String>,
    /// The one that is asked where none is named.
    default: Option<String>,
}

/// The models that a provider has.
#[utoipa::path(get, path = "/chat/models", tag = "chat", params(Whose),
    responses((status = 200, body = ModelList), (status = 404, body = ErrorBody), (status = 502, body = ErrorBody)))]
pub(crate) async fn models(
    State(app): State<App>,
    Params(whose): Params<Whose>,
) -> Result<Json<ModelList>, ApiError> {
    let (provider, models, default) = app.chat.models(whose.provider.as_deref()).await?;
    Ok(Json(ModelList { provider, models, default }))
}
