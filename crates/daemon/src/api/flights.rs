//! The activity: recent calls, each down to the wire, and made again.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use cofer_model::{ActivityEntry, ActivityPage, ErrorBody, RecordedCall};
use cofer_supervisor::{Asking, Flight};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::calls::{check_timeout, failed, json_response, source_of};
use super::error::ApiError;
use super::extract::{Params, Path, RawBody, malformed};
use crate::app::App;

/// The calls that are shown without being asked for a number.
const DEFAULT_CALLS: usize = 100;

/// Which calls are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Recent {
    /// How many, the newest first.
    limit: Option<usize>,
    /// Only those of this server, by UUID or name.
    server: Option<String>,
}

/// The most recent calls, newest first.
#[utoipa::path(get, path = "/activity", tag = "events", params(Recent), responses((status = 200, body = ActivityPage), (status = 404, body = ErrorBody)))]
pub(crate) async fn activity(
    State(app): State<App>,
    Params(recent): Params<Recent>,
) -> Result<Json<ActivityPage>, ApiError> {
    let server = recent.server.map(|name| app.registry.find(&name)).transpose()?;
    let limit = recent.limit.unwrap_or(DEFAULT_CALLS);
    let calls = app.supervisor().activity().recent(limit, server.map(|s| s.id()));
    let recorded = app.supervisor().flights().ids();
    let calls = calls.iter().map(|call| ActivityEntry {
        recorded: recorded.contains(&call.call_id),
        ..ActivityEntry::clone(call)
    });
    Ok(Json(ActivityPage { calls: calls.collect() }))
}

/// One call down to the wire: what was sent, what came back, and what the server said meanwhile.
#[utoipa::path(get, path = "/activity/{call_id}", tag = "events", params(("call_id" = Uuid, Path)),
    responses((status = 200, body = RecordedCall), (status = 404, body = ErrorBody)))]
pub(crate) async fn show(
    State(app): State<App>,
    Path(call_id): Path<String>,
) -> Result<Json<RecordedCall>, ApiError> {
    Ok(Json(find(&app, &call_id)?.view()))
}

/// How a call is made again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replay {
    /// Other params than those that were sent.
    #[schema(value_type = Option<Object>)]
    params: Option<Box<RawValue>>,
    /// How long the server may be silent.
    timeout_ms: Option<u64>,
}

/// What came of a call that was made again.
#[derive(Debug, Serialize, ToSchema)]
#[allow(
    dead_code,
    reason = "the shape for OpenAPI; the result is passed on as the bytes it came in"
)]
pub(crate) struct Replayed {
    /// The new call.
    call_id: Uuid,
    /// The JSON-RPC result, as the server sent it.
    result: Value,
}

/// Make the same call again, or with other params.
#[utoipa::path(post, path = "/activity/{call_id}/replay", tag = "events", params(("call_id" = Uuid, Path)), request_body = Option<Replay>,
    responses((status = 200, body = Replayed), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 502, body = ErrorBody), (status = 504, body = ErrorBody)))]
pub(crate) async fn replay(
    State(app): State<App>,
    Path(call_id): Path<String>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Response, ApiError> {
    let flight = find(&app, &call_id)?;
    let replay: Replay = if body.trim_ascii().is_empty() {
        Replay::default()
    } else {
        // serde also reads a struct from an array.
        if !matches!(body.trim_ascii().first(), Some(b'{' | b'n')) {
            return Err(ApiError::invalid_part("", "the body is not a JSON object"));
        }
        let replay: Option<Replay> =
            serde_json::from_slice(&body).map_err(|error| malformed(&error))?;
        replay.unwrap_or_default()
    };
    let params = match replay.params {
        Some(params) => Some(Bytes::from(String::from(Box::<str>::from(params)))),
        None => flight.params().map_err(|cut| {
            ApiError::conflict(cut.to_string()).hint("give the whole `params` in the body")
        })?,
    };
    let handle = app.registry.find(&flight.server_id().to_string())?;
    let again = Uuid::new_v4();
    let asking = Asking {
        timeout: check_timeout(replay.timeout_ms)?,
        source: source_of(&headers),
        call_id: Some(again),
        ..Asking::new(flight.method(), params)
    };
    match handle.call_by(asking).await {
        Ok(result) => {
            let head = format!(r#"{{"call_id":"{again}","result":"#);
            Ok(json_response(Body::from([head.as_bytes(), &result, b"}"].concat())))
        }
        Err(failure) => Err(failed(&handle, failure).detail("call_id", again.to_string().into())),
    }
}

fn find(app: &App, call_id: &str) -> Result<Arc<Flight>, ApiError> {
    let flight = call_id.parse().ok().and_then(|id| app.supervisor().flights().get(id));
    flight.ok_or_else(|| {
        ApiError::not_found(format!("there is no record of call “{call_id}”"))
            .hint("only the last calls are kept; GET /api/v1/activity says of each whether it is")
    })
}
