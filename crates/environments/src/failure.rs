//! Why something was not done: a kind for programs, words for people, and what to do next. The
//! one form in which every tool and command of this crate fails.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// The sorts of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What was asked for is in the way of what is there.
    Conflict,
    /// Something has to be done by somebody first.
    PreconditionFailed,
    /// There is no such thing.
    NotFound,
    /// As many as allowed are there already.
    LimitExceeded,
    /// The isolation provider cannot run environments.
    ProviderUnavailable,
    /// It took longer than it may.
    Timeout,
    /// The arguments cannot be meant.
    InvalidRequest,
    /// The machine or Cofer failed.
    Internal,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The sort of failure.
    pub kind: Kind,
    /// What was attempted and why it failed.
    pub message: String,
    /// Which part of the work failed.
    pub step: &'static str,
    /// What to do next.
    pub recovery: String,
    /// Stands in the log beside the same failure.
    pub trace_id: Uuid,
    /// Whether the same request may succeed when it is sent again unchanged.
    pub retryable: bool,
    /// What a command had said by then.
    #[serde(skip)]
    pub(crate) beside: Option<Box<Value>>,
}

impl Failure {
    pub(crate) fn new(
        kind: Kind,
        step: &'static str,
        message: impl Into<String>,
        recovery: impl Into<String>,
    ) -> Self {
        let trace_id = Uuid::now_v7();
        let (message, recovery) = (message.into(), recovery.into());
        Self { kind, message, step, recovery, trace_id, retryable: false, beside: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        let recovery = "correct the arguments; nothing was done.";
        Self::new(Kind::InvalidRequest, "arguments", message, recovery)
    }

    /// The machine did not do what it should: says what was attempted, and all causes.
    pub(crate) fn internal(
        step: &'static str,
        attempted: impl AsRef<str>,
        cause: &(dyn std::error::Error + 'static),
    ) -> Self {
        let mut message = attempted.as_ref().to_owned();
        let mut next = Some(cause);
        while let Some(cause) = next {
            // Writing to a String cannot fail.
            write!(message, ": {cause}").unwrap_or_default();
            next = cause.source();
        }
        let recovery = "everything made so far was taken back; try again, and if it fails the same way look at the server's log by the trace id.";
        Self { retryable: true, ..Self::new(Kind::Internal, step, message, recovery) }
    }

    pub(crate) fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }

    pub(crate) fn recovering(self, recovery: impl Into<String>) -> Self {
        Self { recovery: recovery.into(), ..self }
    }

    /// With what a command had said by then.
    pub(crate) fn beside(self, content: Value) -> Self {
        Self { beside: Some(Box::new(content)), ..self }
    }

    /// The structured content of a tool's result.
    pub(crate) fn structured(&self) -> Value {
        let mut content =
            self.beside.as_ref().map_or_else(|| json!({}), |beside| (**beside).clone());
        content["error"] = json!(self);
        content
    }

    /// The same for a reader of text.
    pub(crate) fn text(&self) -> String {
        let mut words =
            format!("Error: {}\nStep: {}\nNext: {}", self.message, self.step, self.recovery);
        if !self.retryable {
            words.push_str("\nSending the same request again will not help.");
        }
        write!(words, "\nTrace id: {}", self.trace_id).unwrap_or_default();
        words
    }
}

/// Shortens `io::Result`s into failures of one step.
pub(crate) trait Attempt<T> {
    /// Names the step and what was attempted.
    fn attempting(self, step: &'static str, attempted: impl AsRef<str>) -> Result<T, Failure>;
}

impl<T, E: std::error::Error + 'static> Attempt<T> for Result<T, E> {
    fn attempting(self, step: &'static str, attempted: impl AsRef<str>) -> Result<T, Failure> {
        self.map_err(|error| Failure::internal(step, attempted, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_all_that_a_client_acts_on() {
        // covers: ENV-4.3
        let failure = Failure::new(Kind::NotFound, "environment", "there is no `x`", "list them.");
        let content = failure.structured();
        let error = content["error"].as_object().unwrap();
        let names: Vec<&str> = error.keys().map(String::as_str).collect();
        assert_eq!(names, ["kind", "message", "step", "recovery", "trace_id", "retryable"]);
        assert_eq!(content["error"]["kind"], "not_found");
        assert!(failure.text().contains("will not help"), "{}", failure.text());
    }

    #[test]
    fn all_causes_are_told() {
        let cause = std::io::Error::other("disk is full");
        let failure = Failure::internal("base", "could not check out", &cause);
        assert_eq!(failure.message, "could not check out: disk is full");
        assert!(failure.retryable);
    }
}
