//! What is told of a turn while it happens.

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::message::{AssistantState, CallEnd, CallStatus, Problem, ToolCard, UserMessage};
use crate::turn::{Action, Reason};
use crate::{ModelFailure, ModelFailureKind, Question, TokenUsage};

/// A server whose tools could not be offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Unavailable {
    /// The server.
    pub server: String,
    /// Why.
    pub reason: String,
}

/// One event; whose it is, its teller adds.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "docs/chat.md tells of each; the fields are those of the messages")]
pub enum EventBody {
    TurnStarted {
        action: Action,
        message: Option<UserMessage>,
        title: String,
        provider: Option<String>,
        model: Option<String>,
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    ToolsOffered {
        tools: usize,
        servers: Vec<String>,
        estimated_tokens: u64,
        unavailable: Vec<Unavailable>,
    },
    MessageStarted {
        message_id: Uuid,
        step: u32,
        provider: String,
        model: String,
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    TextDelta {
        message_id: Uuid,
        delta: String,
    },
    ReasoningDelta {
        message_id: Uuid,
        delta: String,
    },
    ToolCallStarted {
        message_id: Uuid,
        call_id: Uuid,
        n: u32,
        server: String,
        tool: String,
        title: Option<String>,
        arguments: Value,
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    ToolCallFinished {
        message_id: Uuid,
        call_id: Uuid,
        n: u32,
        server: String,
        tool: String,
        status: CallStatus,
        outcome: Option<CallEnd>,
        result: Option<Value>,
        result_bytes: u64,
        truncated: bool,
        error: Option<Problem>,
        duration_ms: Option<f64>,
        recorded: bool,
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    MessageFinished {
        message_id: Uuid,
        state: AssistantState,
        text: String,
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    QuestionAsked(Question),
    QuestionClosed {
        question_id: Uuid,
        call_id: Uuid,
    },
    Retrying {
        attempt: u32,
        of: u32,
        after_ms: u64,
        kind: ModelFailureKind,
        message: String,
    },
    LimitReached {
        steps: u32,
        limit: u32,
    },
    TurnError(ModelFailure),
    TurnFinished {
        reason: Reason,
        steps: u32,
        usage: TokenUsage,
        #[serde(with = "time::serde::rfc3339")]
        at: OffsetDateTime,
    },
    ConversationChanged {
        title: String,
    },
    ConversationDeleted {},
}

impl EventBody {
    /// The name in the event stream.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TurnStarted { .. } => "turnStarted",
            Self::ToolsOffered { .. } => "toolsOffered",
            Self::MessageStarted { .. } => "messageStarted",
            Self::TextDelta { .. } => "textDelta",
            Self::ReasoningDelta { .. } => "reasoningDelta",
            Self::ToolCallStarted { .. } => "toolCallStarted",
            Self::ToolCallFinished { .. } => "toolCallFinished",
            Self::MessageFinished { .. } => "messageFinished",
            Self::QuestionAsked(_) => "questionAsked",
            Self::QuestionClosed { .. } => "questionClosed",
            Self::Retrying { .. } => "retrying",
            Self::LimitReached { .. } => "limitReached",
            Self::TurnError(_) => "turnError",
            Self::TurnFinished { .. } => "turnFinished",
            Self::ConversationChanged { .. } => "conversationChanged",
            Self::ConversationDeleted {} => "conversationDeleted",
        }
    }

    /// A call begins.
    pub(crate) fn started(message_id: Uuid, card: &ToolCard) -> Self {
        Self::ToolCallStarted {
            message_id,
            call_id: card.call_id,
            n: card.n,
            server: card.server.clone(),
            tool: card.tool.clone(),
            title: card.title.clone(),
            arguments: card.arguments.clone(),
            at: card.started_at,
        }
    }

    /// A call ended.
    pub(crate) fn finished(message_id: Uuid, card: &ToolCard, at: OffsetDateTime) -> Self {
        Self::ToolCallFinished {
            message_id,
            call_id: card.call_id,
            n: card.n,
            server: card.server.clone(),
            tool: card.tool.clone(),
            status: card.status,
            outcome: card.outcome,
            result: card.result.clone(),
            result_bytes: card.result_bytes,
            truncated: card.truncated,
            error: card.error.clone(),
            duration_ms: card.duration_ms,
            recorded: card.recorded,
            at,
        }
    }
}
