//! From a failure to an HTTP answer: the one table of kinds, statuses and words.

use std::any::Any;
use std::error::Error;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofer_model::{ErrorBody, ErrorDetail, ErrorKind, FieldError, Status};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::log_line::Chain;

/// A failed request. Its trace id is made, and the failure logged, when it becomes an answer.
/// Boxed, because results that carry it are passed around on the path of every call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError(Box<Parts>);

#[derive(Debug, Clone, PartialEq)]
struct Parts {
    kind: ErrorKind,
    status: StatusCode,
    message: String,
    hint: Option<String>,
    details: Option<Value>,
    retry_after: Option<Duration>,
    /// For the log only: what the caller has no use for, or should not see.
    cause: Option<String>,
}

impl ApiError {
    /// A failure of `kind`, with the status that this kind usually has.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            kind,
            status: usual_status(kind),
            message: message.into(),
            hint: None,
            details: None,
            retry_after: None,
            cause: None,
        }))
    }

    /// What to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// More, by kind.
    #[must_use]
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// One more thing beside what `details` already tells.
    #[must_use]
    pub(crate) fn detail(mut self, key: &str, value: Value) -> Self {
        let details = self.0.details.get_or_insert_with(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.insert(key.to_owned(), value);
        }
        self
    }

    /// What failed.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Fields are missing or wrong: each is named in the message and in `details.fields`.
    pub(crate) fn invalid(fields: Vec<FieldError>) -> Self {
        let sentences: Vec<String> = fields.iter().map(sentence).collect();
        Self::new(ErrorKind::InvalidRequest, sentences.join("; "))
            .details(json!({ "fields": fields }))
    }

    /// One thing is wrong with the request as a whole, or with one of its parts.
    pub(crate) fn invalid_part(field: &str, message: impl Into<String>) -> Self {
        Self::invalid(vec![FieldError::new(field, message)])
    }

    /// No such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// No server has this id or name.
    pub(crate) fn no_such_server(id_or_name: &str) -> Self {
        Self::not_found(format!("there is no server “{id_or_name}”"))
            .hint("GET /api/v1/mcp/servers lists them; a name is case-sensitive")
    }

    /// The name is taken.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// The server is not running; `state` tells how it is instead.
    pub(crate) fn not_connected(name: &str, status: Status) -> Self {
        let hint = match status {
            Status::Starting | Status::Restarting => format!(
                "it is on its way: try again, or wait for it with `?wait=SECONDS`; \
                 `cofer server show {name}` tells more"
            ),
            Status::Stopped
            | Status::Stopping
            | Status::Error
            | Status::Ready
            | Status::Unresponsive => {
                format!("enable it: `cofer server enable {name}` or POST …/{name}/enable")
            }
        };
        Self::new(ErrorKind::NotConnected, format!("server “{name}” is not running ({status})"))
            .hint(hint)
    }

    /// The server answered a JSON-RPC error, which is passed on as it is.
    pub(crate) fn mcp(code: i64, message: &str, data: Option<Value>) -> Self {
        let status = match code {
            -32601 => StatusCode::NOT_FOUND,
            -32600 | -32602 => StatusCode::BAD_REQUEST,
            _ => StatusCode::BAD_GATEWAY,
        };
        let mut details = json!({ "code": code, "message": message });
        if let Some(data) = data {
            details["data"] = data;
        }
        let text = format!("the server answered with error {code}: {message}");
        Self::new(ErrorKind::McpError, text).status(status).details(details)
    }

    /// No answer in time.
    pub(crate) fn timeout(name: &str, limit: Duration) -> Self {
        let message = format!("server “{name}” did not answer within {} ms", limit.as_millis());
        Self::new(ErrorKind::Timeout, message).hint(
            "the server was not restarted; give the call more time with `timeout_ms`, or the \
             server with `call_timeout_ms`",
        )
    }

    /// The request's body is over the cap.
    pub(crate) fn request_too_large(cap: usize) -> Self {
        Self::new(ErrorKind::TooLarge, format!("the request is larger than {cap} bytes"))
            .details(json!({ "limit_bytes": cap }))
    }

    /// The server's answer is over the cap.
    pub(crate) fn answer_too_large(name: &str, cap: usize) -> Self {
        let message = format!("the answer of server “{name}” is larger than {cap} bytes");
        Self::new(ErrorKind::TooLarge, message)
            .status(StatusCode::BAD_GATEWAY)
            .details(json!({ "limit_bytes": cap }))
    }

    /// The server's queue is full.
    pub(crate) fn overloaded(name: &str, retry_after: Duration) -> Self {
        let message = format!("too many calls wait for server “{name}”");
        let mut error = Self::new(ErrorKind::Overloaded, message)
            .hint("try again later, or raise the server's `max_in_flight` if it can do more");
        error.0.retry_after = Some(retry_after);
        error
    }

    /// A memory budget has no room for a message.
    pub(crate) fn out_of_memory(message: impl Into<String>, retry_after: Duration) -> Self {
        let hint = "send or ask for less at once, try again later, or raise `--max-memory` of `cofer serve`";
        Self::busy(message, hint, retry_after)
    }

    /// So much is under way that nothing more is taken on.
    pub(crate) fn busy(message: impl Into<String>, hint: &str, retry_after: Duration) -> Self {
        let mut error = Self::new(ErrorKind::Overloaded, message).hint(hint);
        error.0.retry_after = Some(retry_after);
        error
    }

    /// No token, or a wrong one.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unauthorized, message)
            .hint("send `Authorization: Bearer TOKEN` with the text of DATA_DIR/token")
    }

    /// A foreign `Origin` or an unexpected `Host`.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, message)
    }

    /// The route is there, the method is not.
    pub(crate) fn method_not_allowed(method: &Method, path: &str) -> Self {
        Self::new(ErrorKind::MethodNotAllowed, format!("{path} does not take {method}"))
    }

    /// The store did not do what it was asked; the causes below `error` are for the log.
    pub(crate) fn store(error: &(dyn Error + 'static)) -> Self {
        Self::new(ErrorKind::StoreUnavailable, format!("the store failed: {error}"))
            .hint("nothing was changed; the daemon's log has the cause under this trace id")
            .cause(Chain(error).to_string())
    }

    /// Our bug. What happened is for the log; the caller gets the trace id to find it by.
    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, "the daemon made a mistake")
            .hint("the daemon's log has more under this trace id; please report it")
            .cause(what.into())
    }

    fn status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    fn cause(mut self, cause: String) -> Self {
        self.0.cause = Some(cause);
        self
    }

    fn log(&self, trace_id: Uuid) {
        let Parts { kind, message, status, cause, .. } = &*self.0;
        let (cause, failed) = (cause.as_deref(), status.is_server_error());
        let status = status.as_u16();
        // A server's own words may hold its secrets; its log and the call's line have them,
        // masked.
        let message = if *kind == ErrorKind::McpError { "" } else { message.as_str() };
        if *kind == ErrorKind::Internal {
            tracing::error!(%trace_id, ?kind, status, message, cause, "request failed");
        } else if failed {
            tracing::warn!(%trace_id, ?kind, status, message, cause, "request failed");
        } else {
            tracing::debug!(%trace_id, ?kind, status, message, cause, "request refused");
        }
    }
}

/// `Name is required` says its field itself; `is 0` does not.
fn sentence(error: &FieldError) -> String {
    let says_itself = error.message.chars().next().is_some_and(char::is_uppercase)
        || error.message.contains(&format!("`{}`", error.field));
    match (error.field.is_empty(), says_itself) {
        (true, _) | (_, true) => error.message.clone(),
        (false, false) => format!("`{}`: {}", error.field, error.message),
    }
}

fn usual_status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidRequest => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Conflict | ErrorKind::NotConnected => StatusCode::CONFLICT,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::McpError | ErrorKind::ProviderError => StatusCode::BAD_GATEWAY,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Overloaded => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorKind::StoreUnavailable | ErrorKind::EngineUnavailable => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl ApiError {
    /// The same failure as a JSON-RPC error with this code, for MCP clients.
    pub(crate) fn into_rpc_response(self, code: i64) -> Response {
        self.respond(|error| {
            let mut rpc = json!(error);
            rpc["code"] = code.into();
            Json(json!({"jsonrpc": "2.0", "error": rpc})).into_response()
        })
    }

    fn respond(self, body: impl FnOnce(ErrorDetail) -> Response) -> Response {
        let trace_id = Uuid::new_v4();
        self.log(trace_id);
        let Parts { kind, status, message, hint, details, retry_after, cause: _ } = *self.0;
        let mut response = body(ErrorDetail { kind, message, hint, trace_id, details });
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if kind == ErrorKind::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(pause) = retry_after {
            // Whole seconds, and never 0, which would mean "at once".
            headers.insert(header::RETRY_AFTER, pause.as_secs().max(1).into());
        }
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.respond(|error| Json(ErrorBody { error }).into_response())
    }
}

/// What a handler that panicked is answered with.
pub(crate) fn answer_panic(panic: Box<dyn Any + Send>) -> Response {
    let what = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words");
    ApiError::internal(what).into_response()
}
