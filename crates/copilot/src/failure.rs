//! Why a request has no answer: a kind for programs, a message and what to do for people.

use cofer_model::FieldError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::Answer;

/// The sorts of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// There is no GitHub Copilot CLI.
    NotInstalled,
    /// It is there and nobody is logged in.
    NotLoggedIn,
    /// The limit was reached.
    Timeout,
    /// The CLI needs a terminal, and there is none to be had.
    TtyUnavailable,
    /// The arguments cannot be meant.
    InvalidRequest,
    /// The models file or another setting is wrong.
    InvalidConfig,
    /// The CLI is there and cannot be run.
    SpawnFailed,
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The sort of failure.
    pub kind: Kind,
    /// What was attempted and why it failed.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// More, by kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
    /// What the CLI had said by then.
    #[serde(skip)]
    pub(crate) output: Option<Box<Answer>>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), details: None, output: None }
    }

    /// All that is wrong with the arguments, at once.
    pub(crate) fn invalid_request(fields: &[FieldError]) -> Self {
        let words: Vec<String> =
            fields.iter().map(|error| format!("{}: {}", error.field, error.message)).collect();
        let hint = "the arguments are `input` (text) and `options` with `model`; nothing was run.";
        Self::new(Kind::InvalidRequest, words.join("; "), hint)
            .with_details(json!({"fields": fields}))
    }

    pub(crate) fn with_details(self, details: Value) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    pub(crate) fn with_output(self, output: Answer) -> Self {
        Self { output: Some(Box::new(output)), ..self }
    }

    /// The structured content of the tool's result: the error, and beside it what the CLI said.
    pub(crate) fn structured(&self) -> Value {
        let mut content = self.output.as_ref().map_or_else(|| json!({}), |answer| answer.json());
        content["error"] = json!(self);
        content
    }
}
