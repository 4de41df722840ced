//! The one HTTP client for all providers, and what can be asked of a provider besides answers.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint, ProviderConfig};
use genai::webc::StreamTimeout;
use tokio::sync::OnceCell;

use super::ask::ProviderModel;
use super::classify::{self, Refusal};
use super::settings::{ProviderKind, ProviderSettings};
use crate::{ModelFailure, ModelFailureKind};

/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a list of models may take.
const LIST: Duration = Duration::from_secs(20);
/// How long a model may be silent: some think long, and a local one has to be loaded first.
pub(super) const SILENCE: Duration = Duration::from_secs(300);
/// A longer list is cut: nobody chooses from more.
const MAX_MODELS: usize = 2000;

/// The way to all providers. A cheap clone; clients are made at their first use, because that
/// reads the system's certificates.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    /// Through the proxy that the environment names, where it does.
    out: Arc<OnceCell<genai::Client>>,
    /// To this machine, which no proxy can reach.
    here: Arc<OnceCell<genai::Client>>,
}

impl Providers {
    /// A model of a provider.
    pub async fn model(
        &self,
        settings: ProviderSettings,
        model: String,
    ) -> Result<ProviderModel, ModelFailure> {
        Ok(ProviderModel::new(self.client(&settings).await?, settings, model))
    }

    /// The names of the models that a provider has, in its order.
    pub async fn models(&self, settings: &ProviderSettings) -> Result<Vec<String>, ModelFailure> {
        let client = self.client(settings).await?;
        let config = ProviderConfig::default()
            .with_endpoint(Endpoint::from_owned(settings.base_url.as_str()))
            .with_auth(auth(settings));
        let list = client.all_model_names(adapter(settings.kind), config);
        match tokio::time::timeout(LIST, list).await {
            Ok(Ok(mut models)) => {
                models.truncate(MAX_MODELS);
                Ok(models)
            }
            Ok(Err(error)) => Err(meaning(settings, "", &error)),
            Err(_) => Err(classify::silent(settings, LIST)),
        }
    }

    async fn client(&self, settings: &ProviderSettings) -> Result<genai::Client, ModelFailure> {
        let here = is_this_machine(&settings.base_url);
        let client = if here { &self.here } else { &self.out };
        client.get_or_try_init(|| build(here)).await.cloned()
    }
}

fn is_this_machine(base_url: &str) -> bool {
    let url = reqwest::Url::parse(base_url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

async fn build(here: bool) -> Result<genai::Client, ModelFailure> {
    let tls = tokio::task::spawn_blocking(tls).await;
    let tls = tls.unwrap_or_else(|stopped| Err(stopped.to_string()));
    let failed = |cause: String| {
        let message = format!("could not prepare connections to providers: {cause}");
        ModelFailure::new(ModelFailureKind::Internal, message)
    };
    let builder = reqwest::Client::builder();
    let http = if here { builder.no_proxy() } else { builder }
        .tls_backend_preconfigured(tls.map_err(failed)?)
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .build()
        .map_err(|error| failed(error.to_string()))?;
    genai::Client::builder().with_reqwest(http).build().map_err(|error| failed(error.to_string()))
}

/// Trusts what the system trusts. An empty store is no reason to refuse providers on this
/// machine, which are asked over plain HTTP.
fn tls() -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

pub(super) fn adapter(kind: ProviderKind) -> AdapterKind {
    match kind {
        ProviderKind::Openai => AdapterKind::OpenAI,
        ProviderKind::Anthropic => AdapterKind::Anthropic,
        ProviderKind::Gemini => AdapterKind::Gemini,
        ProviderKind::Ollama => AdapterKind::Ollama,
    }
}

/// genai wants a key of everybody; a server that needs none does not look at it.
pub(super) fn auth(settings: &ProviderSettings) -> AuthData {
    AuthData::from_single(settings.api_key.as_deref().unwrap_or("none"))
}

/// What an error of genai's means.
pub(super) fn meaning(
    settings: &ProviderSettings,
    model: &str,
    error: &genai::Error,
) -> ModelFailure {
    if let (Some(status), Some(headers)) = (error.status(), error.headers()) {
        let retry_after = classify::retry_after(headers, SystemTime::now());
        let refusal = Refusal { status: Some(status.as_u16()), body: body_of(error), retry_after };
        return classify::refused(settings, model, &refusal);
    }
    match error {
        genai::Error::ChatResponse { body, .. } => {
            let body = body.to_string();
            classify::refused(
                settings,
                model,
                &Refusal { status: None, body: &body, retry_after: None },
            )
        }
        genai::Error::WebStream { error, .. } => broken(settings, model, error.as_ref()),
        genai::Error::WebModelCall { webc_error: genai::webc::Error::Reqwest(error), .. }
        | genai::Error::WebAdapterCall { webc_error: genai::webc::Error::Reqwest(error), .. } => {
            broken(settings, model, error)
        }
        other => {
            let message = format!("{} answered what cannot be read: {other}", settings.name);
            let message: String = settings.without_key(&message).chars().take(800).collect();
            ModelFailure::new(ModelFailureKind::ProviderError, message).hint(format!(
                "does `{}` speak the protocol of its kind at that address?",
                settings.id
            ))
        }
    }
}

fn body_of(error: &genai::Error) -> &str {
    match error {
        genai::Error::HttpError { body, .. } => body,
        genai::Error::WebModelCall {
            webc_error: genai::webc::Error::ResponseFailedStatus { body, .. },
            ..
        }
        | genai::Error::WebAdapterCall {
            webc_error: genai::webc::Error::ResponseFailedStatus { body, .. },
            ..
        } => body,
        _ => "",
    }
}

/// A connection that did not come about, or broke.
fn broken(
    settings: &ProviderSettings,
    model: &str,
    error: &(dyn std::error::Error + Send + Sync + 'static),
) -> ModelFailure {
    if let Some(inner) = error.downcast_ref::<genai::Error>() {
        return meaning(settings, model, inner);
    }
    if error.downcast_ref::<StreamTimeout>().is_some() {
        return classify::silent(settings, SILENCE);
    }
    let cause = innermost(error);
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_connect() || error.is_builder() => {
            classify::unreachable(settings, &cause)
        }
        Some(error) if error.is_timeout() => classify::silent(settings, SILENCE),
        _ => classify::cut(settings, &cause),
    }
}

/// The cause below all others, which is the one that says something.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_in_all_its_names() {
        for url in
            ["http://127.0.0.1:1/v1/", "http://localhost/", "http://[::1]:9/", "http://127.9.9.9/"]
        {
            assert!(is_this_machine(url), "{url}");
        }
        for url in ["https://api.openai.com/v1/", "http://10.0.0.1/", "http://localhost.example/"] {
            assert!(!is_this_machine(url), "{url}");
        }
    }
}
