//! The providers of models: those of Settings, which are in the store, and those that the
//! daemon's environment sets. One of Settings wins over one of the environment with the same id.

use std::time::Duration;

use cofer_chat::{
    ChatModel as _, Entry, ModelEvent, ModelFailure, ModelRequest, ProviderKind, ProviderSettings,
    check_base_url, check_provider_id,
};
use cofer_model::FieldError;
use cofer_store::ProviderRecord;
use futures_util::StreamExt as _;
use serde::Serialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::Chat;
use super::conversations::failed;
use super::request::is_model;
use crate::api::error::ApiError;

/// The longest key.
const MAX_KEY: usize = 4096;
/// The longest name, in characters.
const MAX_NAME: usize = 100;
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

/// One provider, without its key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderView {
    /// By which it is named.
    id: String,
    /// What it speaks.
    kind: ProviderKind,
    /// For people.
    name: String,
    /// `settings` or `environment`.
    source: &'static str,
    /// Where it is.
    base_url: String,
    /// Whether it has a key, which is never shown.
    has_key: bool,
    /// The model that is asked where none is named.
    default_model: Option<String>,
    /// Whether it is asked where none is named.
    is_default: bool,
    /// Whether the environment sets one of the same id.
    overrides_environment: bool,
}

/// What can be set up.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KindView {
    kind: ProviderKind,
    name: &'static str,
    base_url: &'static str,
    needs_key: bool,
    /// The variables that set it.
    environment: &'static [&'static str],
}

/// Who is asked where nobody is named.
#[derive(Debug, Serialize, ToSchema)]
struct DefaultView {
    provider: String,
    model: Option<String>,
}

/// All providers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProvidersView {
    /// Whether there is one.
    configured: bool,
    default: Option<DefaultView>,
    providers: Vec<ProviderView>,
    kinds: Vec<KindView>,
}

/// What a test found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderTest {
    /// Whether a model answered.
    ok: bool,
    /// The model that was asked.
    model: Option<String>,
    /// How long it took.
    duration_ms: f64,
    /// How many models the provider lists, where it does.
    models: Option<usize>,
    /// In words.
    message: String,
    /// Why it failed.
    error: Option<ModelFailure>,
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

/// Applies `map` to what was there, and names every mistake in it.
fn changed(
    id: &str,
    map: &Map<String, Value>,
    before: Option<ProviderRecord>,
    fields: &mut Vec<FieldError>,
) -> ProviderRecord {
    let mut wrong = |field: &str, message: String| fields.push(FieldError::new(field, message));
    if let Err(problem) = check_provider_id(id) {
        wrong("id", problem);
    }
    let mut text = |field: &str, fits: fn(&str) -> bool, what: &str| match map.get(field) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if fits(text) => Some(text.trim().to_owned()),
        Some(_) => {
            wrong(field, what.to_owned());
            None
        }
    };
    let kind = text(
        "kind",
        |kind| ProviderKind::parse(kind).is_some(),
        "is none of openai, anthropic, gemini, ollama",
    );
    let name = text("name", is_name, "is not 1 to 100 characters on one line");
    let base_url = text("base_url", |_| true, "is not a text");
    let api_key = text("api_key", is_key, "is not printable ASCII, or too long");
    let model =
        text("default_model", |model| model.is_empty() || is_model(model), "is no name of a model");
    let kind = kind.or_else(|| before.as_ref().map(|before| before.kind.clone()));
    let kind = kind.as_deref().and_then(ProviderKind::parse);
    if kind.is_none() && !map.contains_key("kind") {
        wrong("kind", "is missing".to_owned());
    }
    let kind = kind.unwrap_or(ProviderKind::Openai);
    let old_url = before
        .as_ref()
        .filter(|before| before.kind == kind.as_str())
        .map(|before| before.base_url.clone());
    let base_url = match base_url.filter(|url| !url.is_empty()) {
        Some(url) => check_base_url(kind, &url).unwrap_or_else(|problem| {
            wrong("base_url", problem);
            String::new()
        }),
        None => old_url.unwrap_or_else(|| kind.base_url().to_owned()),
    };
    let is_default = match map.get("is_default") {
        Some(Value::Bool(on)) => *on,
        None | Some(Value::Null) => before.as_ref().is_some_and(|before| before.is_default),
        Some(_) => {
            wrong("is_default", "is neither true nor false".to_owned());
            false
        }
    };
    let old_key = before.as_ref().and_then(|before| before.api_key.clone());
    let moved = before.as_ref().is_some_and(|before| origin(&before.base_url) != origin(&base_url));
    if api_key.is_none() && old_key.is_some() && moved && !base_url.is_empty() {
        wrong("api_key", "has to be given again, since the address is another".to_owned());
    }
    ProviderRecord {
        id: id.to_owned(),
        kind: kind.as_str().to_owned(),
        name: name
            .or_else(|| before.as_ref().map(|before| before.name.clone()))
            .unwrap_or_else(|| id.to_owned()),
        base_url,
        api_key: api_key.or(old_key).filter(|key| !key.is_empty()),
        default_model: model
            .or_else(|| before.and_then(|before| before.default_model))
            .filter(|model| !model.is_empty()),
        is_default,
    }
}

/// Scheme, host and port.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    &url[..end]
}

fn is_name(name: &str) -> bool {
    let count = name.trim().chars().count();
    count > 0 && count <= MAX_NAME && !name.chars().any(char::is_control)
}

/// What can stand in a header.
fn is_key(key: &str) -> bool {
    key.len() <= MAX_KEY && key.trim().bytes().all(|byte| byte.is_ascii_graphic())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(body: Value, before: Option<ProviderRecord>) -> Result<ProviderRecord, Vec<String>> {
        let mut fields = Vec::new();
        let record = changed("lm", body.as_object().unwrap(), before, &mut fields);
        if fields.is_empty() {
            Ok(record)
        } else {
            Err(fields.into_iter().map(|field| field.field).collect())
        }
    }

    fn stored() -> ProviderRecord {
        change(json!({"kind": "openai", "base_url": "http://h:1/v1", "api_key": "sk-1", "default_model": "m"}), None).unwrap()
    }

    #[test]
    fn a_new_provider_has_what_it_does_not_say_from_its_kind() {
        let record = change(json!({"kind": "anthropic"}), None).unwrap();
        assert_eq!(record.base_url, ProviderKind::Anthropic.base_url());
        assert_eq!((record.name.as_str(), record.api_key, record.is_default), ("lm", None, false));
    }

    #[test]
    fn what_is_not_mentioned_stays_and_an_empty_key_removes_it() {
        let kept = change(json!({"name": "Mine", "is_default": true}), Some(stored())).unwrap();
        assert_eq!(kept.api_key.as_deref(), Some("sk-1"));
        assert_eq!((kept.default_model.as_deref(), kept.is_default), (Some("m"), true));
        let gone = change(json!({"api_key": "", "default_model": ""}), Some(stored())).unwrap();
        assert_eq!((gone.api_key, gone.default_model), (None, None));
    }

    #[test]
    fn a_key_does_not_follow_to_another_address() {
        let moved = change(json!({"base_url": "http://evil:1/v1"}), Some(stored()));
        assert_eq!(moved.unwrap_err(), ["api_key"]);
        let path = change(json!({"base_url": "http://h:1/other"}), Some(stored())).unwrap();
        assert_eq!(path.api_key.as_deref(), Some("sk-1"), "the same server");
        assert!(
            change(json!({"base_url": "http://evil:1/", "api_key": "sk-2"}), Some(stored()))
                .is_ok()
        );
    }

    #[test]
    fn every_mistake_is_named() {
        for (body, field) in [
            (json!({}), "kind"),
            (json!({"kind": "x"}), "kind"),
            (json!({"kind": "openai", "base_url": "file:///x"}), "base_url"),
            (json!({"kind": "openai", "base_url": 1}), "base_url"),
            (json!({"kind": "openai", "api_key": "a\nb"}), "api_key"),
            (json!({"kind": "openai", "api_key": "schlüssel"}), "api_key"),
            (json!({"kind": "openai", "name": ""}), "name"),
            (json!({"kind": "openai", "default_model": 7}), "default_model"),
            (json!({"kind": "openai", "is_default": "yes"}), "is_default"),
        ] {
            assert_eq!(change(body.clone(), None).unwrap_err(), [field], "{body}");
        }
    }
}
