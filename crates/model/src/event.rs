//! What happened: the one type that the event stream, the log and the console share.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Failure, Outcome, ServerId, Status};

/// One thing that happened. `generation` only grows, also over restarts of the daemon,
/// and is the event's id in the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its place in the order of all events.
    pub generation: u64,
    /// What it tells.
    pub kind: EventKind,
}

/// What an event tells.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// A server's status is another one.
    Status(StatusChange),
    /// A server was registered.
    Added(ServerNotice),
    /// A server was removed.
    Removed(ServerNotice),
    /// What is wanted of a server is something else.
    Changed(ServerNotice),
    /// What a server needs before it can be started is being fetched.
    Preparing(Preparing),
    /// A tool was called.
    ToolCallStarted(ToolCallStarted),
    /// A tool call ended.
    ToolCallFinished(ToolCallFinished),
}

impl EventKind {
    /// The name in the event stream.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status(_) => "mcpServerStatusChanged",
            Self::Added(_) => "mcpServerAdded",
            Self::Removed(_) => "mcpServerRemoved",
            Self::Changed(_) => "mcpServerChanged",
            Self::Preparing(_) => "mcpServerPreparing",
            Self::ToolCallStarted(_) => "toolCallStarted",
            Self::ToolCallFinished(_) => "toolCallFinished",
        }
    }
}

/// `mcpServerStatusChanged`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusChange {
    /// The server.
    pub id: ServerId,
    /// Its name at that time.
    pub name: String,
    /// The status it has now.
    pub status: Status,
    /// The one it had before.
    pub previous_status: Status,
    /// The event's place in the order of all events.
    pub generation: u64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Why, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// `mcpServerAdded`, `mcpServerRemoved` and `mcpServerChanged`: told once it is so, whoever did it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerNotice {
    /// The server.
    pub id: ServerId,
    /// Its name from now on; of one that was removed, the one it had.
    pub name: String,
    /// The event's place in the order of all events.
    pub generation: u64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// `mcpServerPreparing`: how far an image is, while its server is `starting` and its start
/// timeout does not run yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Preparing {
    /// The server.
    pub id: ServerId,
    /// Its name at that time.
    pub name: String,
    /// What is being done, in words.
    pub message: String,
    /// The event's place in the order of all events.
    pub generation: u64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// `toolCallStarted`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCallStarted {
    /// The call; the same in its `toolCallFinished` and in the activity.
    pub call_id: Uuid,
    /// The server.
    pub id: ServerId,
    /// Its name at that time.
    #[schema(value_type = String)]
    pub name: Arc<str>,
    /// The tool.
    #[schema(value_type = String)]
    pub tool: Arc<str>,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// `toolCallFinished`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCallFinished {
    /// The call.
    pub call_id: Uuid,
    /// The server.
    pub id: ServerId,
    /// Its name at that time.
    #[schema(value_type = String)]
    pub name: Arc<str>,
    /// The tool.
    #[schema(value_type = String)]
    pub tool: Arc<str>,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// How long it took.
    pub duration_ms: f64,
    /// How it ended.
    pub outcome: Outcome,
}
