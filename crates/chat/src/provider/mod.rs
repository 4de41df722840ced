//! The way to the providers of models: who they are and where (`settings`, `environment`), how
//! they are asked (`ask`, over the crate genai, `bound` to what an answer may be), and what their failures mean (`classify`).

mod ask;
mod bound;
mod classify;
mod client;
mod environment;
mod settings;

pub use ask::ProviderModel;
pub use client::Providers;
pub use environment::Environment;
pub use settings::{ProviderKind, ProviderSettings, check_base_url, check_provider_id};
