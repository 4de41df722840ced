//! What is told as it happens: the event stream and a server's log.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use cofer_model::{ErrorBody, Event, EventKind, LogEntry, LogPage};
use cofer_supervisor::{EventBus, LogFeed, Subscription};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use utoipa::IntoParams;

use super::error::ApiError;
use super::extract::{Params, Path};
use crate::app::App;

/// The lines of a log that are shown without being asked for a number.
const DEFAULT_TAIL: usize = 200;

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Resume {
    /// As the header `Last-Event-ID`, for clients that cannot set one.
    last_event_id: Option<u64>,
}

/// Events as they happen; resumes after `Last-Event-ID`.
#[utoipa::path(get, path = "/events", tag = "events", params(Resume),
    responses((status = 200, description = "Server-Sent Events `mcpServerStatusChanged`, `mcpServerAdded`, `mcpServerChanged`, `mcpServerRemoved`, `mcpServerPreparing`, `toolCallStarted`, `toolCallFinished`, and `reset` where events were missed and everything should be read anew", content_type = "text/event-stream")))]
pub(crate) async fn events(
    State(app): State<App>,
    Params(resume): Params<Resume>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    // An id that is none of ours is as good as one that is forgotten.
    let after = header.map(|id| id.trim().parse().unwrap_or(0)).or(resume.last_event_id);
    let bus = app.supervisor().events().clone();
    let stream = event_stream(bus, after).map(Ok::<_, Infallible>);
    let closing = app.closing.clone();
    Ok(Sse::new(stream.take_until(closing.cancelled_owned()))
        .keep_alive(KeepAlive::default())
        .into_response())
}

/// Where a reader of the bus stands.
struct Reader {
    bus: EventBus,
    subscription: Subscription,
    backlog: std::vec::IntoIter<Arc<Event>>,
    last: u64,
}

impl Reader {
    fn new(bus: EventBus, after: Option<u64>) -> Self {
        let mut subscription = bus.subscribe(after);
        let backlog = std::mem::take(&mut subscription.backlog).into_iter();
        Self { bus, subscription, backlog, last: after.unwrap_or(0) }
    }

    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if std::mem::take(&mut self.subscription.gap) {
                return Some(SseEvent::default().event("reset").data("{}"));
            }
            if let Some(event) = self.backlog.next() {
                self.last = event.generation;
                return Some(sse(&event));
            }
            match self.subscription.live.recv().await {
                Ok(event) => {
                    self.last = event.generation;
                    return Some(sse(&event));
                }
                // A reader that fell behind goes on from where it stood, as one that comes back.
                Err(RecvError::Lagged(_)) => *self = Self::new(self.bus.clone(), Some(self.last)),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

fn event_stream(bus: EventBus, after: Option<u64>) -> impl Stream<Item = SseEvent> {
    stream::unfold(Reader::new(bus, after), |mut reader| async move {
        let event = reader.next().await?;
        Some((event, reader))
    })
}

fn sse(event: &Event) -> SseEvent {
    let frame = SseEvent::default().id(event.generation.to_string()).event(event.kind.name());
    let framed = match &event.kind {
        EventKind::Status(change) => frame.json_data(change),
        EventKind::Added(notice) | EventKind::Removed(notice) | EventKind::Changed(notice) => {
            frame.json_data(notice)
        }
        EventKind::Preparing(preparing) => frame.json_data(preparing),
        EventKind::ToolCallStarted(started) => frame.json_data(started),
        EventKind::ToolCallFinished(finished) => frame.json_data(finished),
    };
    // The types above always have a JSON form; a comment keeps the stream whole all the same.
    framed.unwrap_or_else(|_| SseEvent::default().comment("an event could not be written"))
}

/// How much of a log is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Tail {
    /// The number of lines, from the end.
    tail: Option<usize>,
    /// Go on with new lines, as Server-Sent Events `logLine`.
    #[serde(default)]
    follow: bool,
}

/// What a server wrote to stderr, and what happened to it.
#[utoipa::path(get, path = "/mcp/servers/{id}/logs", tag = "servers", params(("id" = String, Path, description = "UUID or name"), Tail),
    responses((status = 200, description = "the lines, or with `follow` the events `logLine`", content((LogPage = "application/json"), ("text/event-stream"))), (status = 404, body = ErrorBody)))]
pub(crate) async fn logs(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(tail): Params<Tail>,
) -> Result<Response, ApiError> {
    let handle = app.registry.find(&id)?;
    let count = tail.tail.unwrap_or(DEFAULT_TAIL);
    if !tail.follow {
        let lines = handle.log().tail(count).iter().map(|line| LogEntry::clone(line)).collect();
        return Ok(Json(LogPage { lines }).into_response());
    }
    let closing = app.closing.clone();
    let lines = line_stream(handle.log().follow(count)).take_until(closing.cancelled_owned());
    Ok(Sse::new(lines.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::default()).into_response())
}

fn line_stream(feed: LogFeed) -> impl Stream<Item = SseEvent> {
    let tail = stream::iter(feed.tail);
    let live = stream::unfold(feed.live, |mut live| async move {
        loop {
            match live.recv().await {
                Ok(line) => return Some((line, live)),
                // Who reads too slowly misses lines, as with any log that is cut off at its end.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    tail.chain(live).map(|line| {
        let frame = SseEvent::default().id(line.seq.to_string()).event("logLine");
        frame
            .json_data(&*line)
            .unwrap_or_else(|_| SseEvent::default().comment("a line could not be written"))
    })
}
