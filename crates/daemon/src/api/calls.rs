//! Calls: one JSON-RPC request to a server as one HTTP request, and the lists it offers.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRef as _, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use cofer_mcp::{CallError, build_charged, read_object};
use cofer_model::{CallSource, ErrorBody, FieldError};
use cofer_supervisor::{Asking, CallFailure, Origin, ServerHandle};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;
use super::extract::{BodyLimit, Params, Path, malformed, read_body};
use crate::app::App;
use crate::gateway::{ListKind, trace_parent};
use crate::json_body::json_around;

/// The longest time limit of one call: a day.
const MAX_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;
/// How long a caller is told to wait when the queue is full.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a call asks for.
#[derive(Debug, ToSchema)]
pub(crate) struct CallBody {
    /// The JSON-RPC method, such as `tools/call`.
    method: String,
    /// Its params: an object or an array, passed on as they are.
    #[schema(value_type = Option<Object>)]
    params: Option<Bytes>,
    /// How long the server may be silent; the server's `call_timeout_ms` where it is missing.
    timeout_ms: Option<u64>,
}

impl CallBody {
    /// Reads a body whose fields are all right; `wrong_call` says what is wrong with another.
    fn read(body: &Bytes) -> Option<Self> {
        let (mut method, mut params, mut timeout_ms, mut unknown) = (None, None, None, false);
        read_object(body, |key, value| match key {
            b"method" => method = Some(value),
            b"params" => params = Some(body.slice_ref(value)),
            b"timeout_ms" => timeout_ms = Some(value),
            _ => unknown = true,
        })
        .ok()?;
        let timeout_ms = timeout_ms.map(serde_json::from_slice).transpose().ok()?.flatten();
        let method = serde_json::from_slice(method?).ok()?;
        (!unknown).then_some(Self { method, params, timeout_ms })
    }
}

/// What a call gives back.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallResult {
    /// The JSON-RPC result, as the server sent it.
    result: Value,
}

/// Call a method of a server.
#[utoipa::path(post, path = "/mcp/servers/{id}/call", tag = "calls", params(("id" = String, Path, description = "UUID or name")),
    request_body(content = CallBody, example = json!({"method": "tools/list"})),
    responses((status = 200, body = CallResult), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 502, body = ErrorBody), (status = 504, body = ErrorBody)))]
pub(crate) async fn call(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    run(&app, &id, request).await
}

/// The server that is called by a request for `path`: `/api/v1/mcp/servers/NAME/call`.
pub(crate) fn called_in(path: &str) -> Option<Cow<'_, str>> {
    let name = path.strip_prefix("/api/v1/mcp/servers/")?.strip_suffix("/call")?;
    let is_one = !name.is_empty() && !name.contains('/');
    is_one.then(|| percent_decode_str(name).decode_utf8_lossy())
}

/// Calls the server `id` as the request says.
pub(crate) async fn run(app: &App, id: &str, request: Request) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let body = read_body(&parts.headers, body, BodyLimit::from_ref(app)).await?;
    let handle = app.registry.find(id)?;
    let source = source_of(&parts.headers);
    let origin = Origin { parent: trace_parent(&parts.headers), session: None };
    drop(parts);
    let call = CallBody::read(&body).ok_or_else(|| wrong_call(&body))?;
    drop(body);
    let timeout = check_timeout(call.timeout_ms)?;
    let asking = Asking { timeout, source, origin, ..Asking::new(&call.method, call.params) };
    let result = handle.call_by(asking).await;
    result.map(|result| json_answer("result", result)).map_err(|failure| failed(&handle, failure))
}

/// The tools of a server, all pages of them.
#[utoipa::path(get, path = "/mcp/servers/{id}/tools", tag = "calls", params(("id" = String, Path, description = "UUID or name"), ListQuery),
    responses((status = 200, description = "`{\"tools\": […], \"total\": n}`"),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody), (status = 502, body = ErrorBody), (status = 504, body = ErrorBody)))]
pub(crate) async fn tools(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(query): Params<ListQuery>,
) -> Result<Response, ApiError> {
    list(&app, &id, ListKind::Tools, query).await
}

/// The resources of a server, all pages of them.
#[utoipa::path(get, path = "/mcp/servers/{id}/resources", tag = "calls", params(("id" = String, Path, description = "UUID or name"), ListQuery),
    responses((status = 200, description = "`{\"resources\": […], \"total\": n}`"),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody), (status = 502, body = ErrorBody), (status = 504, body = ErrorBody)))]
pub(crate) async fn resources(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(query): Params<ListQuery>,
) -> Result<Response, ApiError> {
    list(&app, &id, ListKind::Resources, query).await
}

/// The prompts of a server, all pages of them.
#[utoipa::path(get, path = "/mcp/servers/{id}/prompts", tag = "calls", params(("id" = String, Path, description = "UUID or name"), ListQuery),
    responses((status = 200, description = "`{\"prompts\": […], \"total\": n}`"),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody), (status = 502, body = ErrorBody), (status = 504, body = ErrorBody)))]
pub(crate) async fn prompts(
    State(app): State<App>,
    Path(id): Path<String>,
    Params(query): Params<ListQuery>,
) -> Result<Response, ApiError> {
    list(&app, &id, ListKind::Prompts, query).await
}

/// How a list is answered.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Asks the server, also if its list is known. Without it, the list is asked for if the server is
    /// ready and has announced another one; a server that is starting is answered for with the list
    /// that it last had.
    #[serde(default)]
    refresh: bool,
}

async fn list(app: &App, id: &str, kind: ListKind, query: ListQuery) -> Result<Response, ApiError> {
    let handle = app.registry.find(id)?;
    let known = app.gateway.known_list(&handle, kind).filter(|_| !query.refresh);
    if let Some(list) = known {
        let items: Vec<&str> = list.raw_items().collect();
        return list_response(&handle, kind, &items);
    }
    let listing = match handle.list(kind.method(), kind.key()).await {
        Ok(listing) => listing,
        Err(failure) if offers_none(&handle, kind.key(), &failure) => {
            return list_response(&handle, kind, &[]);
        }
        Err(failure) => return Err(failed(&handle, failure)),
    };
    let items: Vec<&str> = listing.items.iter().map(|item| item.get()).collect();
    let response = list_response(&handle, kind, &items);
    app.gateway.learn_list(&handle, kind, listing);
    response
}

fn list_response(
    handle: &ServerHandle,
    kind: ListKind,
    items: &[&str],
) -> Result<Response, ApiError> {
    let (what, limit) = ("the list as one answer", handle.memory().limit());
    let body = build_charged(handle.memory(), list_length(items), || list_body(kind.key(), items));
    let body = body.ok_or_else(|| failed(handle, CallError::OutOfMemory { what, limit }.into()))?;
    Ok(json_response(Body::from(body)))
}

/// How long the items are with what stands between them.
fn list_length(items: &[&str]) -> usize {
    items.iter().map(|item| item.len() + 1).sum::<usize>() + 64
}

/// `{"KEY":[…],"total":N}`, written once: a list may be as large as the largest message.
fn list_body(key: &str, items: &[&str]) -> Bytes {
    let mut body = Vec::with_capacity(list_length(items));
    body.extend_from_slice(format!(r#"{{"{key}":["#).as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(item.as_bytes());
    }
    body.extend_from_slice(format!(r#"],"total":{}}}"#, items.len()).as_bytes());
    body.into()
}

/// Whether a server that does not know a list said from the start that it has none.
fn offers_none(handle: &ServerHandle, key: &str, failure: &CallFailure) -> bool {
    let unknown =
        matches!(failure, CallFailure::Call(CallError::Rpc(error)) if error.code == -32601);
    let declared =
        handle.snapshot().peer.as_ref().is_some_and(|peer| peer.capabilities.get(key).is_some());
    unknown && !declared
}

/// Browsers say where a request comes from, and no page but the console gets this far.
pub(super) fn source_of(headers: &HeaderMap) -> CallSource {
    match headers.contains_key("sec-fetch-site") {
        true => CallSource::Console,
        false => CallSource::Api,
    }
}

/// From the failure of a call to an HTTP answer.
pub(super) fn failed(handle: &ServerHandle, failure: CallFailure) -> ApiError {
    let spec = handle.spec();
    let name = spec.name.as_str();
    let error = match failure {
        CallFailure::NotConnected { status } => {
            return ApiError::not_connected(name, status);
        }
        CallFailure::NoMcp => {
            let message = format!("“{name}” speaks no MCP over HTTP where it was looked for");
            let hint = "reach it at its `endpoints`, or say in `http_path` where it speaks MCP";
            return ApiError::new(cofer_model::ErrorKind::NotConnected, message).hint(hint);
        }
        CallFailure::Call(error) => error,
    };
    match error {
        CallError::Rpc(error) => ApiError::mcp(error.code, &error.message, error.data),
        CallError::Timeout(limit) => ApiError::timeout(name, limit),
        CallError::QueueTimeout(_) => ApiError::new(cofer_model::ErrorKind::Timeout, format!("the call to `{name}` timed out: {error}"))
            .hint("the server works on other calls; raise `max_in_flight` if it can do several at once, or `timeout_ms`"),
        CallError::Overloaded { .. } => ApiError::overloaded(name, RETRY_AFTER),
        CallError::OutOfMemory { .. } => ApiError::out_of_memory(format!("`{name}`: {error}"), RETRY_AFTER),
        CallError::RequestTooLarge { cap, .. } => ApiError::request_too_large(usize::try_from(cap).unwrap_or(usize::MAX)),
        CallError::AnswerTooLarge { cap, .. } => ApiError::answer_too_large(name, usize::try_from(cap).unwrap_or(usize::MAX)),
        CallError::BadParams => ApiError::invalid_part("params", error.to_string()),
        CallError::Disconnected => ApiError::new(cofer_model::ErrorKind::NotConnected, format!("`{name}` ended before it answered"))
            .hint("its log tells why; it is restarted by its restart policy"),
    }
}

pub(super) fn check_timeout(timeout_ms: Option<u64>) -> Result<Option<Duration>, ApiError> {
    match timeout_ms {
        Some(1..=MAX_TIMEOUT_MS) | None => Ok(timeout_ms.map(Duration::from_millis)),
        Some(_) => Err(ApiError::invalid_part(
            "timeout_ms",
            format!("is not between 1 and {MAX_TIMEOUT_MS}"),
        )),
    }
}

/// Looks again at a body that is no call, slowly, to say what is wrong with each field.
fn wrong_call(body: &[u8]) -> ApiError {
    let value = match serde_json::from_slice(body) {
        Ok(Value::Object(value)) => value,
        Ok(_) => return ApiError::invalid_part("", "the body is not a JSON object"),
        Err(error) => return malformed(&error),
    };
    let mut fields = Vec::new();
    match value.get("method") {
        None => fields.push(FieldError::new("method", "is missing")),
        Some(Value::String(_)) => {}
        Some(_) => fields.push(FieldError::new("method", "is not a text")),
    }
    if value
        .get("timeout_ms")
        .is_some_and(|timeout| !timeout.is_null() && timeout.as_u64().is_none())
    {
        fields.push(FieldError::new("timeout_ms", "is not a whole number of milliseconds"));
    }
    for key in
        value.keys().filter(|key| !matches!(key.as_str(), "method" | "params" | "timeout_ms"))
    {
        fields.push(FieldError::new(key, format!("unknown field `{key}`")));
    }
    if fields.is_empty() {
        fields.push(FieldError::new("", "the names of its fields are written in an unusual way"));
    }
    ApiError::invalid(fields)
}

/// `{"key": value}`, the value as the bytes it came in.
fn json_answer(key: &str, value: Bytes) -> Response {
    json_response(json_around(&[br#"{""#, key.as_bytes(), br#"":"#], value))
}

pub(super) fn json_response(body: Body) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
