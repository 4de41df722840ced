//! The seam to a language model: what it is asked, and what comes back piece by piece.

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{ModelFailure, OfferedTool};

/// A model that answers. Dropping the stream ends the request.
pub trait ChatModel: Send + Sync {
    /// The provider's id, as it stands in messages.
    fn provider(&self) -> &str;

    /// The model's name.
    fn name(&self) -> &str;

    /// Asks for the next answer. The last item is `ModelEvent::End` or an error.
    fn ask(&self, request: ModelRequest) -> ModelStream;
}

/// An answer as it comes.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelFailure>>;

/// What a model is asked.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// What it is to know before the conversation.
    pub system: String,
    /// The conversation so far.
    pub history: Vec<Entry>,
    /// The tools that it knows.
    pub tools: Vec<OfferedTool>,
    /// Whether it may call them.
    pub may_call: bool,
    /// How long the answer may be, where that is not for the provider to say.
    pub max_tokens: Option<u32>,
}

/// One entry of the conversation, as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A person said something.
    User(String),
    /// The model said something, and maybe called tools.
    Assistant {
        /// Its words.
        text: String,
        /// Its calls.
        calls: Vec<ModelCall>,
        /// What its provider wants to see again.
        continuation: Option<Value>,
    },
    /// What the tools answered.
    Tools(Vec<ToolAnswer>),
}

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// The model's id of the call.
    pub id: String,
    /// The name under which the model knows the tool.
    pub name: String,
    /// JSON, or a text where the model did not write JSON.
    pub arguments: Value,
}

/// What a tool answered, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The model's id of the call.
    pub id: String,
    /// The name under which the model knows the tool.
    pub name: String,
    /// The words.
    pub text: String,
}

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text.
    Text(String),
    /// More of what it thinks.
    Reasoning(String),
    /// The answer is whole.
    End(Answer),
}

/// What is known when an answer is whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The tools it calls.
    pub calls: Vec<ModelCall>,
    /// What it cost.
    pub usage: TokenUsage,
    /// What the provider wants to see again.
    pub continuation: Option<Value>,
}

/// Tokens, as far as the provider tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenUsage {
    /// Read.
    pub input_tokens: Option<u64>,
    /// Written.
    pub output_tokens: Option<u64>,
}

impl TokenUsage {
    /// Both together; what is not known on one side counts as nothing.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
        }
    }
}
