//! Providers as they are shown: without their keys.

use cofer_chat::{ModelFailure, ProviderKind};
use serde::Serialize;
use utoipa::ToSchema;

/// One provider, without its key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderView {
    /// By which it is named.
    pub(super) id: String,
    /// What it speaks.
    pub(super) kind: ProviderKind,
    /// For people.
    pub(super) name: String,
    /// `settings` or `environment`.
    pub(super) source: &'static str,
    /// Where it is.
    pub(super) base_url: String,
    /// Whether it has a key, which is never shown.
    pub(super) has_key: bool,
    /// The model that is asked where none is named.
    pub(super) default_model: Option<String>,
    /// Whether it is asked where none is named.
    pub(super) is_default: bool,
    /// Whether the environment sets one of the same id.
    pub(super) overrides_environment: bool,
}

/// What can be set up.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KindView {
    pub(super) kind: ProviderKind,
    pub(super) name: &'static str,
    pub(super) base_url: &'static str,
    pub(super) needs_key: bool,
    /// The variables that set it.
    pub(super) environment: &'static [&'static str],
}

/// Who is asked where nobody is named.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DefaultView {
    pub(super) provider: String,
    pub(super) model: Option<String>,
}

/// All providers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProvidersView {
    /// Whether there is one.
    pub(super) configured: bool,
    pub(super) default: Option<DefaultView>,
    pub(super) providers: Vec<ProviderView>,
    pub(super) kinds: Vec<KindView>,
}

/// What a test found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderTest {
    /// Whether a model answered.
    pub(super) ok: bool,
    /// The model that was asked.
    pub(super) model: Option<String>,
    /// How long it took.
    pub(super) duration_ms: f64,
    /// How many models the provider lists, where it does.
    pub(super) models: Option<usize>,
    /// In words.
    pub(super) message: String,
    /// Why it failed.
    pub(super) error: Option<ModelFailure>,
}
