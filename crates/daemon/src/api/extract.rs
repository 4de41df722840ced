//! What handlers take from a request, with our own words for what is wrong with it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{self, FromRef, FromRequest, FromRequestParts, Query, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::request::Parts;
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::ApiError;
use cofer_mcp::attach;
use cofer_model::{Budget, Charge, ErrorKind, FieldError};

/// What is read of a body that is refused for its size, so that the client, which first sends
/// and then reads, sees the answer and not a broken connection.
const DRAIN_BYTES: u64 = 256 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(10);
/// A body is charged in steps of this size.
const CHARGED: usize = 256 * 1024;
/// When a client whose body found no memory should try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How large a request's body may be, and the memory that all of them may use; part of the state
/// of every router that takes bodies.
#[derive(Debug, Clone)]
pub(crate) struct BodyLimit {
    pub(crate) cap: usize,
    pub(crate) memory: Arc<Budget>,
}

/// The body as it came, whatever its content type says.
#[derive(Debug, Clone)]
pub(crate) struct RawBody(pub Bytes);

/// The body as JSON, whatever its content type says.
#[derive(Debug, Clone)]
pub(crate) struct JsonBody(pub Value);

/// The query's parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Params<T>(pub T);

impl<S> FromRequest<S> for RawBody
where
    S: Send + Sync,
    BodyLimit: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        read_body(&parts.headers, body, BodyLimit::from_ref(state)).await.map(Self)
    }
}

/// The whole body of a request with these headers.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    mut body: Body,
    BodyLimit { cap, memory }: BodyLimit,
) -> Result<Bytes, ApiError> {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > cap as u64) {
        // A client that asks before it sends has nothing under way.
        if !headers.contains_key(EXPECT) {
            drain(body).await;
        }
        return Err(ApiError::request_too_large(cap));
    }
    let length = length.and_then(|length| usize::try_from(length).ok());
    match read(&mut body, length.unwrap_or_default(), cap, &memory).await {
        Ok(Read::Whole(bytes)) => Ok(bytes),
        Ok(Read::TooLarge) => {
            drain(body).await;
            Err(ApiError::request_too_large(cap))
        }
        Ok(Read::NoMemory) => {
            memory.count_loss();
            drain(body).await;
            let message = format!(
                "the bodies of requests in progress use the {} bytes that they may",
                memory.limit()
            );
            Err(ApiError::out_of_memory(message, RETRY_AFTER))
        }
        Err(error) => Err(ApiError::invalid_part("", format!("the body broke off: {error}"))),
    }
}

/// What became of a body.
enum Read {
    Whole(Bytes),
    /// It is over the cap.
    TooLarge,
    /// The memory budget has no room for it.
    NoMemory,
}

/// The whole body. A body in one piece, which has the size of a read buffer at most, is handed on as
/// it is and not charged; a larger one is copied once, into memory that is reserved at once where
/// its `length` is known, and charged as it arrives: what a client announces and does not send
/// takes nothing from the others.
async fn read(
    body: &mut Body,
    length: usize,
    cap: usize,
    memory: &Arc<Budget>,
) -> Result<Read, axum::Error> {
    let Some(first) = next_piece(body).await? else {
        return Ok(Read::Whole(Bytes::new()));
    };
    if first.len() > cap {
        return Ok(Read::TooLarge);
    }
    let Some(second) = next_piece(body).await? else {
        return Ok(Read::Whole(first));
    };
    let mut charge = Charge::none(memory);
    let mut whole = Vec::with_capacity(length.max(first.len() + second.len()));
    whole.extend_from_slice(&first);
    let mut piece = Some(second);
    while let Some(bytes) = piece {
        let length = whole.len() + bytes.len();
        if length > cap {
            return Ok(Read::TooLarge);
        }
        if length as u64 > charge.bytes() && !charge.resize(length.next_multiple_of(CHARGED)) {
            return Ok(Read::NoMemory);
        }
        whole.extend_from_slice(&bytes);
        piece = next_piece(body).await?;
    }
    Ok(Read::Whole(attach(charge, whole)))
}

async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, axum::Error> {
    // What has its length is at its end without being asked once more.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

async fn drain(mut body: Body) {
    let read = async {
        let mut left = DRAIN_BYTES;
        while let Ok(Some(piece)) = next_piece(&mut body).await {
            let Some(rest) = left.checked_sub(piece.len() as u64) else {
                return;
            };
            left = rest;
        }
    };
    // Whether it ended or not, the answer is the same.
    tokio::time::timeout(DRAIN_TIME, read).await.unwrap_or_default();
}

impl<S> FromRequest<S> for JsonBody
where
    S: Send + Sync,
    BodyLimit: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        if bytes.trim_ascii().is_empty() {
            return Err(ApiError::invalid_part("", "the body is empty; JSON is expected"));
        }
        serde_json::from_slice(&bytes).map(Self).map_err(|error| malformed(&error))
    }
}

/// The body is not JSON; says where it stops being it.
pub(crate) fn malformed(error: &serde_json::Error) -> ApiError {
    let message = format!("the body is not JSON: {error}");
    let fields = [FieldError::new("", &message)];
    ApiError::new(ErrorKind::InvalidRequest, &message)
        .details(json!({ "fields": fields, "line": error.line(), "column": error.column() }))
}

impl<S, T> FromRequestParts<S> for Params<T>
where
    S: Send + Sync,
    T: DeserializeOwned,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(bad_query(&rejection)),
        }
    }
}

/// The parts of the path.
#[derive(Debug, Clone)]
pub(crate) struct Path<T>(pub T);

impl<S, T> FromRequestParts<S> for Path<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Send,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(extract::Path(parts)) => Ok(Self(parts)),
            Err(rejection) => Err(ApiError::invalid_part("path", rejection.body_text())),
        }
    }
}

/// A body as a `T`. serde also reads a struct from an array, which no schema of ours allows.
pub(crate) fn read_object<T: DeserializeOwned>(body: Value, field: &str) -> Result<T, ApiError> {
    check_object(&body)?;
    serde_json::from_value(body).map_err(|error| ApiError::invalid_part(field, error.to_string()))
}

/// Refuses a body that is not an object.
pub(crate) fn check_object(body: &Value) -> Result<(), ApiError> {
    if body.is_object() {
        return Ok(());
    }
    Err(ApiError::invalid_part("", "the body is not a JSON object"))
}

/// axum's words are "Failed to deserialize query string: wait: invalid digit …": what stands
/// after the first colon is the parameter, where it is known.
fn bad_query(rejection: &QueryRejection) -> ApiError {
    let text = rejection.body_text();
    let reason = text.split_once(": ").map_or(text.as_str(), |(_, reason)| reason);
    let (field, message) = reason.split_once(": ").unwrap_or(("query", reason));
    ApiError::invalid_part(field, message)
}
