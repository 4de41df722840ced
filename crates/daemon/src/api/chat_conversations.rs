//! Conversations: listed, read, renamed, removed, exported.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use cofer_chat::ToolCard;
use cofer_model::ErrorBody;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::chat::conversation;
use super::error::ApiError;
use super::extract::{JsonBody, Params, Path, read_object};
use crate::app::App;
use crate::chat::{ConversationPage, ConversationSummary, ConversationView, Export, ExportFormat};

/// Conversations that are given without being asked for a number, and at most.
const PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;
/// Messages that are given without being asked for a number, and at most.
const MESSAGES: u32 = 500;
const MAX_MESSAGES: u32 = 5000;

/// Which conversations are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// How many.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before.
    before: Option<String>,
    /// Only those whose title has this in it.
    search: Option<String>,
}

/// Conversations, newest first.
#[utoipa::path(get, path = "/chat/conversations", tag = "chat", params(Wanted),
    responses((status = 200, body = ConversationPage), (status = 422, body = ErrorBody)))]
pub(crate) async fn list(
    State(app): State<App>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<ConversationPage>, ApiError> {
    let limit = check_limit(wanted.limit, PAGE, MAX_PAGE)?;
    let page = app.chat.list(wanted.search.as_deref(), wanted.before.as_deref(), limit).await?;
    Ok(Json(page))
}

/// Which messages are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// How many, from the end.
    #[param(minimum = 1, maximum = 5000)]
    limit: Option<u32>,
    /// Only those before this message.
    before: Option<Uuid>,
}

/// One conversation with its messages, a running turn as far as it is.
#[utoipa::path(get, path = "/chat/conversations/{id}", tag = "chat", params(("id" = Uuid, Path), Part),
    responses((status = 200, body = ConversationView), (status = 404, body = ErrorBody)))]
pub(crate) async fn show(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(part): Params<Part>,
) -> Result<Json<ConversationView>, ApiError> {
    let limit = check_limit(part.limit, MESSAGES, MAX_MESSAGES)?;
    Ok(Json(app.chat.show(conversation(&id)?, part.before, limit).await?))
}

/// A new title.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTitle {
    /// 1 to 200 characters on one line.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
}

/// Give a conversation another title.
#[utoipa::path(patch, path = "/chat/conversations/{id}", tag = "chat", params(("id" = Uuid, Path)), request_body(content = NewTitle, example = json!({"title": "Plans"})),
    responses((status = 200, body = ConversationSummary), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn rename(
    State(app): State<App>,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<ConversationSummary>, ApiError> {
    let NewTitle { title } = read_object(body, "title")?;
    Ok(Json(app.chat.rename(conversation(&id)?, &title).await?))
}

/// Remove a conversation; what runs in it is stopped first.
#[utoipa::path(delete, path = "/chat/conversations/{id}", tag = "chat", params(("id" = Uuid, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub(crate) async fn remove(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    app.chat.remove(conversation(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One tool call with its whole result.
#[utoipa::path(get, path = "/chat/conversations/{id}/calls/{call_id}", tag = "chat", params(("id" = Uuid, Path), ("call_id" = Uuid, Path)),
    responses((status = 200, body = ToolCard), (status = 404, body = ErrorBody)))]
pub(crate) async fn card(
    State(app): State<App>,
    Path((id, call_id)): Path<(String, String)>,
) -> Result<Json<ToolCard>, ApiError> {
    let call_id = call_id
        .parse()
        .map_err(|_| ApiError::not_found(format!("there is no call “{call_id}”")))?;
    Ok(Json(app.chat.card(conversation(&id)?, call_id).await?))
}

/// What a file is to be.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Format {
    /// `json` or `markdown`.
    format: Option<ExportFormat>,
}

/// A whole conversation as a file.
#[utoipa::path(get, path = "/chat/conversations/{id}/export", tag = "chat", params(("id" = Uuid, Path), Format),
    responses((status = 200, description = "a file, as JSON or Markdown"), (status = 404, body = ErrorBody)))]
pub(crate) async fn export(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(format): Params<Format>,
) -> Result<Response, ApiError> {
    let format = format.format.unwrap_or_default();
    let Export { name, content_type, body } = app.chat.export(conversation(&id)?, format).await?;
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [(CONTENT_TYPE, content_type.to_owned()), (CONTENT_DISPOSITION, disposition)];
    Ok((headers, body).into_response())
}

fn check_limit(limit: Option<u32>, usual: u32, most: u32) -> Result<u32, ApiError> {
    match limit {
        None => Ok(usual),
        Some(limit) if (1..=most).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::invalid_part("limit", format!("is not between 1 and {most}"))),
    }
}
