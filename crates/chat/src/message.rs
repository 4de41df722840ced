//! What a conversation is made of, as it is stored and as it is shown.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ModelFailure;

/// One entry of a conversation, in the order in which they happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A person said something.
    User(UserMessage),
    /// The model answered, and maybe called tools.
    Assistant(AssistantMessage),
    /// The turn ended in another way than with an answer.
    Notice(NoticeMessage),
}

impl Message {
    /// Its id.
    pub fn id(&self) -> Uuid {
        match self {
            Self::User(message) => message.id,
            Self::Assistant(message) => message.id,
            Self::Notice(message) => message.id,
        }
    }

    /// The turn it belongs to.
    pub fn turn_id(&self) -> Uuid {
        match self {
            Self::User(message) => message.turn_id,
            Self::Assistant(message) => message.turn_id,
            Self::Notice(message) => message.turn_id,
        }
    }

    /// When it began.
    pub fn at(&self) -> OffsetDateTime {
        match self {
            Self::User(message) => message.at,
            Self::Assistant(message) => message.at,
            Self::Notice(message) => message.at,
        }
    }

    /// Its tool calls.
    pub fn cards(&self) -> &[ToolCard] {
        match self {
            Self::Assistant(message) => &message.tool_calls,
            Self::User(_) | Self::Notice(_) => &[],
        }
    }

    /// As it is shown: without what only the provider has a use for.
    #[must_use]
    pub fn shown(mut self) -> Self {
        if let Self::Assistant(message) = &mut self {
            message.continuation = None;
        }
        self
    }

    /// A message whose turn is not running any more: the daemon ended in the middle of it.
    #[must_use]
    pub fn interrupted(mut self) -> Self {
        if let Self::Assistant(message) = &mut self {
            if message.state == AssistantState::Streaming {
                message.state = AssistantState::Interrupted;
            }
            let running =
                message.tool_calls.iter_mut().filter(|card| card.status == CallStatus::Running);
            for card in running {
                message.state = AssistantState::Interrupted;
                card.cancel("the daemon ended before the call did");
            }
        }
        self
    }
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserMessage {
    /// The message.
    pub id: Uuid,
    /// Its turn.
    pub turn_id: Uuid,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The words.
    pub text: String,
}

/// One answer of the model: a step of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AssistantMessage {
    /// The message.
    pub id: Uuid,
    /// Its turn.
    pub turn_id: Uuid,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// The step of the turn, from 1.
    pub step: u32,
    /// How far it is.
    pub state: AssistantState,
    /// What it says.
    pub text: String,
    /// What it thought, where it shows that.
    pub reasoning: Option<String>,
    /// The provider that was asked.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// The tools it called, in its order.
    pub tool_calls: Vec<ToolCard>,
    /// What the provider wants to see again with the next request; never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub continuation: Option<Value>,
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssistantState {
    /// It still comes, or its tools run.
    Streaming,
    /// It is whole.
    Complete,
    /// A person stopped it.
    Stopped,
    /// It broke off.
    Error,
    /// The daemon ended meanwhile.
    Interrupted,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCard {
    /// The call; the same in the activity and in the flight recorder.
    pub call_id: Uuid,
    /// Counts the calls of the conversation, from 1.
    pub n: u32,
    /// The server; empty where the model named a tool that is not there.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The tool's title, where it has one.
    pub title: Option<String>,
    /// The name under which the model knows it.
    pub name: String,
    /// The model's own id of the call.
    pub model_call_id: String,
    /// What it is called with.
    pub arguments: Value,
    /// How far it is.
    pub status: CallStatus,
    /// How it ended.
    pub outcome: Option<CallEnd>,
    /// What came back, cut where it is large.
    pub result: Option<Value>,
    /// How large the whole result is.
    pub result_bytes: u64,
    /// Whether `result` is cut.
    pub truncated: bool,
    /// Why it failed.
    pub error: Option<Problem>,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// How long it took.
    pub duration_ms: Option<f64>,
    /// Whether the call reached a server, so that the activity has it.
    pub recorded: bool,
}

impl ToolCard {
    /// The call did not end.
    pub fn cancel(&mut self, why: &str) {
        self.status = CallStatus::Cancelled;
        self.outcome = Some(CallEnd::Cancelled);
        self.error = Some(Problem { message: why.to_owned(), stack: None, code: None });
    }
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It runs.
    Running,
    /// It has a result.
    Done,
    /// It failed.
    Error,
    /// It was not let end.
    Cancelled,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// With a result.
    Ok,
    /// With a result that says `isError`.
    ToolError,
    /// With a JSON-RPC error.
    McpError,
    /// Not in time.
    Timeout,
    /// The server ended before it answered.
    Disconnected,
    /// The request or the answer was over the cap.
    TooLarge,
    /// The server's queue was full.
    Overloaded,
    /// It was stopped.
    Cancelled,
    /// The server was not running.
    NotConnected,
    /// There is no such tool.
    NotFound,
    /// The model's arguments are not a JSON object.
    BadArguments,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What went wrong.
    pub message: String,
    /// Where, as the tool tells it.
    pub stack: Option<String>,
    /// The JSON-RPC code.
    pub code: Option<i64>,
}

/// The turn ended in another way than with an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NoticeMessage {
    /// The message.
    pub id: Uuid,
    /// Its turn.
    pub turn_id: Uuid,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// What is told.
    #[serde(flatten)]
    pub notice: NoticeKind,
}

/// What a notice tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum NoticeKind {
    /// The model used up its steps.
    Limit {
        /// So many it took.
        steps: u32,
        /// So many it may take.
        limit: u32,
    },
    /// The model gave no answer.
    Error {
        /// Why.
        error: ModelFailure,
    },
    /// A person stopped the turn.
    Stopped,
}
