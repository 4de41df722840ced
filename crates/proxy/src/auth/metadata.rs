//! Google's metadata server: whether this machine has one, and the tokens it gives to whatever
//! runs there. It is on the machine's own network, without TLS and never behind a proxy; the
//! header `Metadata-Flavor` tells it from anything else that answers at its address.

use std::time::Duration;

use bytes::Bytes;
use cofer_mcp::http::TransportError;
use http::{Method, Request};
use serde::Deserialize;

use super::environment::Environment;
use super::error::{Service, TokenError};
use super::exchange::{Exchange, Question};
use super::jwt::IdToken;
use super::secret::Secret;
use super::source::{Access, SCOPE, read_id_token};

/// An address and not a name: looking up an unknown name can take half a minute.
const ADDRESS: &str = "169.254.169.254";

const FLAVOR: &str = "metadata-flavor";

/// How long each attempt at detection may take; together the wait of a person without credentials.
const ATTEMPTS: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_millis(1500)];

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The metadata server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// `host` or `host:port`.
    pub(crate) host: String,
}

#[derive(Deserialize)]
struct AccessAnswer {
    access_token: Secret,
}

impl Metadata {
    /// Where it is, unless it may not be asked.
    pub(crate) fn at(environment: &Environment) -> Result<Self, &'static str> {
        if environment.text("NO_GCE_CHECK") == Some("true") {
            return Err("not asked, because NO_GCE_CHECK is `true`");
        }
        let host = environment
            .text("GCE_METADATA_HOST")
            .or_else(|| environment.text("GCE_METADATA_ROOT"))
            .or_else(|| environment.text("GCE_METADATA_IP"))
            .unwrap_or(ADDRESS);
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        if !host.chars().all(fit) {
            return Err("not asked, because GCE_METADATA_HOST is not a host");
        }
        Ok(Self { host: host.to_owned() })
    }

    /// Whether it is there; what happened instead where it is not.
    pub(crate) async fn is_there(&self, exchange: &Exchange) -> Result<(), String> {
        let mut last = String::new();
        for patience in ATTEMPTS {
            match tokio::time::timeout(patience, self.flavor(exchange)).await {
                Ok(Ok(true)) => return Ok(()),
                Ok(Ok(false)) => {
                    return Err("something answers, and it is no metadata server".to_owned());
                }
                Ok(Err(_)) => "not reachable".clone_into(&mut last),
                Err(_) => "no answer".clone_into(&mut last),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(last)
    }

    /// Whether whatever answers there says that it is one.
    async fn flavor(&self, exchange: &Exchange) -> Result<bool, TransportError> {
        let request = Request::builder().uri(format!("http://{}/", self.host));
        let request = request.header(FLAVOR, "Google").body(Bytes::new());
        let Ok(request) = request else {
            return Ok(false);
        };
        let response = exchange.transport.send(request).await?;
        Ok(response.headers().get(FLAVOR).is_some_and(|flavor| flavor == "Google"))
    }

    pub(crate) async fn id_token(
        &self,
        exchange: &Exchange,
        audience: &str,
    ) -> Result<IdToken, TokenError> {
        let query = [("audience", audience), ("format", "full")];
        let raw = self.get(exchange, "identity", &query).await?;
        read_id_token(&Service::Metadata, &raw)
    }

    pub(crate) async fn access_token(&self, exchange: &Exchange) -> Result<Access, TokenError> {
        let answer = self.get(exchange, "token", &[("scopes", SCOPE)]).await?;
        let answer: AccessAnswer =
            serde_json::from_str(&answer).map_err(|_| TokenError::Answer {
                service: Service::Metadata,
                reason: "it has no access token".to_owned(),
            })?;
        // Wanted for advice only, so that its absence is no failure.
        let caller = self.get(exchange, "email", &[]).await.ok();
        let caller =
            caller.map(|email| email.trim().to_owned()).filter(|email| email.contains('@'));
        Ok(Access { token: answer.access_token, caller, quota_project: None })
    }

    async fn get(
        &self,
        exchange: &Exchange,
        what: &str,
        query: &[(&str, &str)],
    ) -> Result<String, TokenError> {
        let mut url = format!(
            "http://{}/computeMetadata/v1/instance/service-accounts/default/{what}",
            self.host
        );
        if !query.is_empty() {
            let query =
                form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
            url = format!("{url}?{query}");
        }
        let question = Question::new(&Service::Metadata, Method::GET, &url)?;
        exchange.ask(&question.header(FLAVOR, "Google")?).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_can_be_said() {
        let at = |variables: &[(&str, &str)]| {
            Metadata::at(&Environment::of(variables.iter().copied())).map(|found| found.host)
        };
        assert_eq!(at(&[]).unwrap(), ADDRESS);
        assert_eq!(at(&[("GCE_METADATA_HOST", "")]).unwrap(), ADDRESS);
        assert_eq!(at(&[("GCE_METADATA_HOST", "h:1"), ("GCE_METADATA_IP", "i")]).unwrap(), "h:1");
        assert_eq!(at(&[("GCE_METADATA_IP", "127.0.0.1")]).unwrap(), "127.0.0.1");
        assert!(at(&[("NO_GCE_CHECK", "true")]).unwrap_err().contains("NO_GCE_CHECK"));
        assert!(at(&[("GCE_METADATA_HOST", "a/b?c")]).unwrap_err().contains("not a host"));
    }
}
