//! Why a model gave no answer, in words that a person can act on.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The sorts of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelFailureKind {
    /// There is no provider.
    NotConfigured,
    /// There is a provider, and no model was named.
    NoModel,
    /// The provider does not take the key.
    WrongKey,
    /// The provider does not know the model.
    NoSuchModel,
    /// The provider asks to wait, also after several tries.
    RateLimited,
    /// The conversation and its tools are larger than what the model can read.
    ContextOverflow,
    /// Nobody answers at the provider's address.
    Unreachable,
    /// The provider refused the request for another reason.
    Refused,
    /// The provider failed.
    ProviderError,
    /// The answer broke off.
    StreamCut,
    /// The model was silent for too long.
    Timeout,
    /// The model cannot use tools.
    NoTools,
    /// Our mistake, or the store's.
    Internal,
}

/// One failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct ModelFailure {
    /// The sort.
    pub kind: ModelFailureKind,
    /// What was attempted, and why it failed.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Seconds after which the provider asks to be tried again.
    pub retry_after: Option<f64>,
}

impl ModelFailure {
    /// A failure of this kind.
    pub fn new(kind: ModelFailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, retry_after: None }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// When the provider asks to be tried again.
    #[must_use]
    pub fn retry_after(mut self, seconds: Option<f64>) -> Self {
        self.retry_after = seconds;
        self
    }

    /// No provider is set up.
    pub fn not_configured() -> Self {
        Self::new(ModelFailureKind::NotConfigured, "no model provider is set up").hint(
            "set one up in the console's Settings, or start the daemon with OPENAI_API_KEY, \
             ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST",
        )
    }

    /// A provider is set up, and no model is named.
    pub fn no_model(provider: &str) -> Self {
        Self::new(ModelFailureKind::NoModel, format!("no model is chosen for `{provider}`"))
            .hint("choose one in the chat or in Settings, or set COFER_CHAT_MODEL")
    }
}
