//! The providers of models: those of Settings, which are in the store, and those that the
//! daemon's environment sets. One of Settings wins over one of the environment with the same id.

use std::time::Duration;

use cofer_chat::{
    ChatModel as _, Entry, ModelEvent, ModelFailure, ModelRequest, ProviderKind, ProviderSettings,
};
use cofer_model::FieldError;
use cofer_store::ProviderRecord;
use futures_util::StreamExt as _;
use serde_json::Value;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::Chat;
use super::conversations::failed;
use super::provider_change::changed;
use super::providers_view::{DefaultView, KindView, ProviderTest, ProviderView, ProvidersView};
use super::request::is_model;
use crate::api::error::ApiError;

/// How long a test may take.
const TEST: Duration = Duration::from_secs(60);
const FIELDS: [&str; 7] =
    ["kind", "name", "base_url", "api_key", "default_model", "is_default", "model"];

/// A provider and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) settings: ProviderSettings,
    is_stored: bool,
    is_default: bool,
    overrides: bool,
}

impl Chat {
    /// All providers, those of Settings first.
    pub(crate) async fn all_providers(&self) -> Result<Vec<Known>, ApiError> {
        let stored = self.store.providers().await.map_err(failed)?;
        let from_environment = &self.environment.providers;
        let mut all: Vec<Known> = stored
            .into_iter()
            .filter_map(|record| {
                let overrides = from_environment.iter().any(|other| other.id == record.id);
                let is_default = record.is_default;
                Some(Known { settings: settings(record)?, is_stored: true, is_default, overrides })
            })
            .collect();
        for settings in from_environment {
            if !all.iter().any(|known| known.settings.id == settings.id) {
                let settings = settings.clone();
                all.push(Known { settings, is_stored: false, is_default: false, overrides: false });
            }
        }
        if let Some(default) = self.default_of(&all) {
            for (index, known) in all.iter_mut().enumerate() {
                known.is_default = index == default;
            }
        }
        Ok(all)
    }

    fn default_of(&self, all: &[Known]) -> Option<usize> {
        let position = |id: &str| all.iter().position(|known| known.settings.id == id);
        all.iter()
            .position(|known| known.is_stored && known.is_default)
            .or_else(|| position(self.environment.provider.as_deref()?))
            .or_else(|| position(maker_of(self.environment.model.as_deref()?)?))
            .or_else(|| {
                ProviderKind::ALL.iter().find_map(|kind| {
                    all.iter().position(|known| !known.is_stored && known.settings.kind == *kind)
                })
            })
            .or_else(|| (!all.is_empty()).then_some(0))
    }

    /// The model that a provider is asked for where none is named.
    fn model_of(&self, known: &Known) -> Option<String> {
        let of_environment = self.environment.model.clone().filter(|_| known.is_default);
        known.settings.default_model.clone().or(of_environment)
    }

    /// Whom to ask: what was chosen, where it is still there, else the default.
    pub(super) async fn choose(
        &self,
        provider: Option<&str>,
        model: Option<&str>,
    ) -> Result<(ProviderSettings, Option<String>), ModelFailure> {
        let all = self.all_providers().await;
        let all = all.map_err(|error| {
            ModelFailure::new(cofer_chat::ModelFailureKind::Internal, error.message())
        })?;
        let named = provider.and_then(|id| all.iter().find(|known| known.settings.id == id));
        // A model that was chosen for a provider which is gone is none of another's.
        let model = model.filter(|_| provider.is_none() || named.is_some());
        let known = named.or_else(|| all.iter().find(|known| known.is_default));
        let known = known.ok_or_else(ModelFailure::not_configured)?;
        let model = model.map(str::to_owned).or_else(|| self.model_of(known));
        Ok((known.settings.clone(), model))
    }

    /// All providers, for Settings.
    pub(crate) async fn providers_view(&self) -> Result<ProvidersView, ApiError> {
        let all = self.all_providers().await?;
        let default = all.iter().find(|known| known.is_default).map(|known| DefaultView {
            provider: known.settings.id.clone(),
            model: self.model_of(known),
        });
        let kinds = ProviderKind::ALL.map(|kind| KindView {
            kind,
            name: kind.title(),
            base_url: kind.base_url(),
            needs_key: kind.needs_key(),
            environment: kind.variables(),
        });
        Ok(ProvidersView {
            configured: !all.is_empty(),
            default,
            providers: all.iter().map(|known| self.provider_view(known)).collect(),
            kinds: kinds.into(),
        })
    }

    fn provider_view(&self, known: &Known) -> ProviderView {
        let settings = &known.settings;
        ProviderView {
            id: settings.id.clone(),
            kind: settings.kind,
            name: settings.name.clone(),
            source: if known.is_stored { "settings" } else { "environment" },
            base_url: settings.base_url.clone(),
            has_key: settings.api_key.is_some(),
            default_model: self.model_of(known),
            is_default: known.is_default,
            overrides_environment: known.overrides,
        }
    }

    /// Stores a provider, or changes one.
    pub(crate) async fn keep_provider(
        &self,
        id: &str,
        body: &Value,
    ) -> Result<ProviderView, ApiError> {
        let record = self.read_provider(id, body).await?;
        self.store.keep_provider(&record, OffsetDateTime::now_utc()).await.map_err(failed)?;
        tracing::info!(provider = id, kind = record.kind, "a provider of models was set");
        let all = self.all_providers().await?;
        let known = all.iter().find(|known| known.settings.id == id);
        known.map(|known| self.provider_view(known)).ok_or_else(|| no_such(id))
    }

    /// Removes a provider of Settings.
    pub(crate) async fn remove_provider(&self, id: &str) -> Result<(), ApiError> {
        if self.store.delete_provider(id).await.map_err(failed)? {
            tracing::info!(provider = id, "a provider of models was removed");
            return Ok(());
        }
        if self.environment.providers.iter().any(|settings| settings.id == id) {
            let message = format!("provider `{id}` is set by the daemon's environment");
            return Err(ApiError::conflict(message).hint(
                "take its variable away and start the daemon again, or set one of the same id here",
            ));
        }
        Err(no_such(id))
    }

    /// The names of a provider's models.
    pub(crate) async fn models(
        &self,
        id: Option<&str>,
    ) -> Result<(String, Vec<String>, Option<String>), ApiError> {
        let all = self.all_providers().await?;
        let known = match id {
            Some(id) => {
                all.iter().find(|known| known.settings.id == id).ok_or_else(|| no_such(id))?
            }
            None => all
                .iter()
                .find(|known| known.is_default)
                .ok_or_else(|| provider_failed(ModelFailure::not_configured()))?,
        };
        let models = self.providers.models(&known.settings).await.map_err(provider_failed)?;
        Ok((known.settings.id.clone(), models, self.model_of(known)))
    }

    /// Tries a provider, with what `body` says instead of what is stored.
    pub(crate) async fn test_provider(
        &self,
        id: &str,
        body: &Value,
    ) -> Result<ProviderTest, ApiError> {
        let all = self.all_providers().await?;
        let known = all.iter().find(|known| known.settings.id == id);
        let has_changes = body.as_object().is_some_and(|map| map.keys().any(|key| key != "model"));
        let settings = match known {
            Some(known) if !has_changes => known.settings.clone(),
            None if !has_changes => return Err(no_such(id)),
            _ => settings(self.read_provider(id, body).await?).ok_or_else(|| no_such(id))?,
        };
        let asked = body.get("model").and_then(Value::as_str).filter(|model| is_model(model));
        let default =
            settings.default_model.clone().or_else(|| known.and_then(|known| self.model_of(known)));
        let model = asked.map(str::to_owned).or(default);
        let started = Instant::now();
        let tried = tokio::time::timeout(TEST, self.try_out(settings, model)).await;
        let duration_ms = started.elapsed().as_micros() as f64 / 1000.0;
        Ok(match tried {
            Ok(Ok(test)) => ProviderTest { duration_ms, ..test },
            Ok(Err(error)) => ProviderTest { duration_ms, ..refused(error) },
            Err(_) => {
                let kind = cofer_chat::ModelFailureKind::Timeout;
                let error =
                    ModelFailure::new(kind, format!("no answer within {} seconds", TEST.as_secs()));
                ProviderTest { duration_ms, ..refused(error) }
            }
        })
    }

    async fn try_out(
        &self,
        settings: ProviderSettings,
        model: Option<String>,
    ) -> Result<ProviderTest, ModelFailure> {
        // Some servers list nothing and answer all the same.
        let listed = self.providers.models(&settings).await;
        let models = listed.as_ref().ok().map(Vec::len);
        let only = listed
            .as_ref()
            .ok()
            .and_then(|models| models.first().filter(|_| models.len() == 1).cloned());
        let Some(model) = model.or(only) else {
            let count = listed?.len();
            let message = format!("it answers and lists {count} models; choose one");
            return Ok(ProviderTest {
                ok: true,
                model: None,
                duration_ms: 0.0,
                models,
                message,
                error: None,
            });
        };
        let asked = self.providers.model(settings, model.clone()).await?;
        let request = ModelRequest {
            system: "Answer with the word OK.".to_owned(),
            history: vec![Entry::User("Are you there?".to_owned())],
            ..ModelRequest::default()
        };
        let mut answer = asked.ask(request);
        while let Some(event) = answer.next().await {
            if let ModelEvent::End(_) = event? {
                break;
            }
        }
        let message = format!("{model} answered");
        Ok(ProviderTest {
            ok: true,
            model: Some(model),
            duration_ms: 0.0,
            models,
            message,
            error: None,
        })
    }

    /// A provider as `body` wants it, with what it does not mention as it was.
    async fn read_provider(&self, id: &str, body: &Value) -> Result<ProviderRecord, ApiError> {
        let Value::Object(map) = body else {
            return Err(ApiError::invalid_part("", "the body is not a JSON object"));
        };
        let stored = self.store.providers().await.map_err(failed)?;
        let before = stored.into_iter().find(|record| record.id == id);
        let mut fields: Vec<FieldError> = map
            .keys()
            .filter(|key| !FIELDS.contains(&key.as_str()))
            .map(|key| FieldError::new(key, format!("unknown field `{key}`")))
            .collect();
        let record = changed(id, map, before, &mut fields);
        if fields.is_empty() { Ok(record) } else { Err(ApiError::invalid(fields)) }
    }
}

/// The maker of a model, by its name.
fn maker_of(model: &str) -> Option<&'static str> {
    let makers =
        [("claude", "anthropic"), ("gemini", "gemini"), ("gpt", "openai"), ("chatgpt", "openai")];
    makers.iter().find(|(prefix, _)| model.starts_with(prefix)).map(|(_, id)| *id)
}

fn settings(record: ProviderRecord) -> Option<ProviderSettings> {
    Some(ProviderSettings {
        kind: ProviderKind::parse(&record.kind)?,
        id: record.id,
        name: record.name,
        base_url: record.base_url,
        api_key: record.api_key,
        default_model: record.default_model,
    })
}

fn refused(error: ModelFailure) -> ProviderTest {
    let message = error.message.clone();
    ProviderTest {
        ok: false,
        model: None,
        duration_ms: 0.0,
        models: None,
        message,
        error: Some(error),
    }
}

fn no_such(id: &str) -> ApiError {
    ApiError::not_found(format!("there is no provider `{id}`"))
        .hint("GET /api/v1/chat/providers lists them")
}

fn provider_failed(failure: ModelFailure) -> ApiError {
    let details = serde_json::to_value(&failure).unwrap_or_default();
    let error =
        ApiError::new(cofer_model::ErrorKind::ProviderError, failure.message).details(details);
    match failure.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
