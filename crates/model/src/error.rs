//! How a failure is named to the outside: one kind, one message, one hint.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// The sorts of failure an HTTP answer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A field is missing or wrong.
    InvalidRequest,
    /// The name is taken.
    Conflict,
    /// The server is not running.
    NotConnected,
    /// No such server, or no such route.
    NotFound,
    /// The server answered a JSON-RPC error.
    McpError,
    /// No answer in time.
    Timeout,
    /// A message over the size cap.
    TooLarge,
    /// The server's queue is full.
    Overloaded,
    /// No token, or a wrong one.
    Unauthorized,
    /// A foreign `Origin` or an unexpected `Host`.
    Forbidden,
    /// The route is there, the method is not.
    MethodNotAllowed,
    /// The store did not do what it was asked.
    StoreUnavailable,
    /// The container engine is not there, or did not do what it was asked.
    EngineUnavailable,
    /// A provider of models did not do what it was asked.
    ProviderError,
    /// Our bug.
    Internal,
}

/// What every failed HTTP request is answered with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The failure.
    pub error: ErrorDetail,
}

/// One failure, for programs and for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// The sort of failure.
    pub kind: ErrorKind,
    /// What was attempted and why it failed.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Stands in the daemon's log beside the same failure.
    pub trace_id: Uuid,
    /// More, by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// One thing that is wrong with a field, or worth a warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The field, with a path into it where it has parts: `environment.API_KEY`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl FieldError {
    /// `message` about `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
