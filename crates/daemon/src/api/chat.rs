//! A turn of a chat, what is told of it while it happens, and the tools it would have.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use cofer_chat::QuestionReply;
use cofer_model::ErrorBody;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{JsonBody, Params, Path, read_object};
use crate::app::App;
use crate::chat::{ChatEvent, LiveFeed, ToolSource, Toolbox, ToolsView, TurnRequest};

const CONVERSATION: HeaderName = HeaderName::from_static("x-conversation-id");
/// The events behind which a stream ends.
const LAST_OF_TURN: &str = "turnFinished";
const LAST_OF_ALL: &str = "conversationDeleted";

/// One turn of a chat, streamed. The turn goes on also when nobody reads the stream.
#[utoipa::path(post, path = "/chat", tag = "chat", request_body = TurnRequest,
    responses((status = 200, description = "Server-Sent Events from `turnStarted` to `turnFinished`; docs/chat.md tells of each", content_type = "text/event-stream"),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody), (status = 429, body = ErrorBody)))]
pub(crate) async fn turn(
    State(app): State<App>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let request = TurnRequest::read(body)?;
    let started = app.chat.start(request).await?;
    let turn_id = started.turn_id;
    let is_last =
        move |event: &ChatEvent| event.name == LAST_OF_TURN && event.turn_id == Some(turn_id);
    let mut response = events_until(&app, started.feed, is_last);
    // A UUID is always a header value.
    if let Ok(id) = HeaderValue::try_from(started.conversation_id.to_string()) {
        response.headers_mut().insert(CONVERSATION, id);
    }
    Ok(response)
}

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// As the header `Last-Event-ID`, for clients that cannot set one.
    after: Option<u64>,
}

/// What happens in a conversation, over all its turns; resumes after `Last-Event-ID`.
#[utoipa::path(get, path = "/chat/conversations/{id}/events", tag = "chat", params(("id" = Uuid, Path), After),
    responses((status = 200, description = "Server-Sent Events as of `POST /chat`, and `conversationChanged`, `conversationDeleted`, and `reset` where events were missed", content_type = "text/event-stream"),
        (status = 404, body = ErrorBody)))]
pub(crate) async fn events(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(after): Params<After>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    // An id that is none of ours is as good as one that is forgotten.
    let after = header.map(|id| id.trim().parse().unwrap_or(0)).or(after.after);
    let feed = app.chat.listen(conversation(&id)?, after).await?;
    Ok(events_until(&app, feed, |event| event.name == LAST_OF_ALL))
}

/// Whether something was stopped.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stopped {
    /// False where nothing ran.
    stopped: bool,
}

/// Stop a running turn: the model's answer and the tools. Answers when it has ended.
#[utoipa::path(post, path = "/chat/conversations/{id}/stop", tag = "chat", params(("id" = Uuid, Path)),
    responses((status = 200, body = Stopped), (status = 404, body = ErrorBody)))]
pub(crate) async fn stop(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<Stopped>, ApiError> {
    Ok(Json(Stopped { stopped: app.chat.stop(conversation(&id)?).await? }))
}

/// Answer what a server asks while one of its calls runs in the conversation.
#[utoipa::path(post, path = "/chat/conversations/{id}/questions/{question_id}", tag = "chat",
    params(("id" = Uuid, Path), ("question_id" = Uuid, Path)), request_body = QuestionReply,
    responses((status = 204), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(crate) async fn answer(
    State(app): State<App>,
    Path((id, question)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, ApiError> {
    let reply: QuestionReply = read_object(body, "action")?;
    let question = question
        .parse()
        .map_err(|_| ApiError::not_found(format!("there is no question “{question}”")))?;
    app.chat.answer(conversation(&id)?, question, reply).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is to be offered. A name may hold any sign that separates, so that each has a parameter
/// of its own.
#[derive(Debug, Default, PartialEq, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Choice {
    /// A server, once for each; all where it is missing, none where it is empty.
    servers: Option<Vec<String>>,
    /// A tool that is left out, as `server/tool`, once for each.
    tools_off: Option<Vec<String>>,
}

impl Choice {
    fn read(query: &str) -> Self {
        let mut choice = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let names = match &*key {
                "servers" => &mut choice.servers,
                "tools_off" => &mut choice.tools_off,
                _ => continue,
            };
            let names = names.get_or_insert_default();
            if !value.is_empty() {
                names.push(value.into_owned());
            }
        }
        choice
    }
}

/// The tools that a chat would offer, with what their definitions cost.
#[utoipa::path(get, path = "/chat/tools", tag = "chat", params(Choice), responses((status = 200, body = ToolsView)))]
pub(crate) async fn tools(State(app): State<App>, RawQuery(query): RawQuery) -> Json<ToolsView> {
    let Choice { servers, tools_off } = Choice::read(query.as_deref().unwrap_or_default());
    let source = ToolSource::new(app.supervisor().clone(), app.gateway.clone());
    let toolbox = Toolbox::new(source, servers, tools_off.unwrap_or_default());
    Json(toolbox.view().await)
}

/// The id of a conversation; any other text is one that is not there.
pub(super) fn conversation(id: &str) -> Result<Uuid, ApiError> {
    id.parse().map_err(|_| ApiError::not_found(format!("there is no conversation “{id}”")))
}

/// The events of a feed up to the one that is the last, that one included. When the daemon ends,
/// those of the turns that this stops are still sent.
fn events_until(
    app: &App,
    feed: LiveFeed,
    is_last: impl Fn(&ChatEvent) -> bool + Send + 'static,
) -> Response {
    let (closing, chat) = (app.closing.clone(), Arc::clone(&app.chat));
    let end = Box::pin(async move {
        closing.cancelled().await;
        chat.shut_down().await;
    });
    let events = stream::unfold(Some((feed, is_last, end)), |state| async move {
        let (mut feed, is_last, mut end) = state?;
        let next = tokio::select! {
            biased;
            next = feed.next() => next?,
            () = &mut end => return None,
        };
        let (event, over) = match next {
            Ok(event) => (frame(&event), is_last(&event)),
            Err(_missed) => (SseEvent::default().event("reset").data("{}"), false),
        };
        Some((Ok::<_, Infallible>(event), (!over).then_some((feed, is_last, end))))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn frame(event: &ChatEvent) -> SseEvent {
    SseEvent::default().id(event.id.to_string()).event(event.name).data(&event.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_are_chosen_by_a_parameter_each() {
        let choice = Choice::read("servers=a%2Cb&servers=c+d&tools_off=a%2Cb%2Fx&other=1");
        assert_eq!(choice.servers, Some(vec!["a,b".to_owned(), "c d".to_owned()]));
        assert_eq!(choice.tools_off, Some(vec!["a,b/x".to_owned()]));
        assert_eq!(Choice::read("servers=").servers, Some(vec![]), "none");
        assert_eq!(Choice::read("").servers, None, "all");
    }
}
