//! A service account's key: we sign an assertion with it, and Google's token endpoint gives a
//! token for the assertion.

use serde::{Deserialize, Serialize};

use super::error::{FileError, Service, TokenError};
use super::exchange::Exchange;
use super::file::{filled, safe_url};
use super::impersonation::Target;
use super::jwt::{IdToken, SigningKey};
use super::secret::Secret;
use super::source::{Access, GOOGLE, SCOPE, read_id_token};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The assertion's audience is this, also where `token_uri` is another.
const TOKEN_ENDPOINT: &str = "https://oauth2.googleapis.com/token";

/// Seconds that an assertion lives; Google allows no more.
const LIFE: u64 = 3600;

/// What stands in the file.
#[derive(Deserialize)]
pub(crate) struct ServiceAccountFile {
    client_email: String,
    private_key: Secret,
    #[serde(default)]
    private_key_id: Option<String>,
    #[serde(default)]
    token_uri: Option<String>,
    #[serde(default)]
    universe_domain: Option<String>,
}

/// A service account, by its key.
#[derive(Debug)]
pub(crate) struct ServiceAccount {
    pub(crate) email: String,
    pub(crate) universe: String,
    key: SigningKey,
    token_uri: String,
}

#[derive(Serialize)]
struct Assertion<'a> {
    iss: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
    iat: u64,
    exp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_audience: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'a str>,
}

#[derive(Deserialize)]
struct IdAnswer {
    id_token: Secret,
}

#[derive(Deserialize)]
struct AccessAnswer {
    access_token: Secret,
}

impl ServiceAccount {
    pub(crate) fn new(file: ServiceAccountFile) -> Result<Self, FileError> {
        let email = file.client_email.trim().to_owned();
        filled("client_email", &Secret::new(email.as_str()))?;
        let token_uri = file.token_uri.unwrap_or_else(|| TOKEN_ENDPOINT.to_owned());
        safe_url("token_uri", &token_uri)?;
        let key = SigningKey::from_pem(&file.private_key, file.private_key_id)
            .map_err(|reason| FileError::Field(reason.to_owned()))?;
        let universe = file.universe_domain.filter(|domain| !domain.is_empty());
        Ok(Self { email, universe: universe.unwrap_or_else(|| GOOGLE.to_owned()), key, token_uri })
    }

    pub(crate) async fn id_token(
        &self,
        exchange: &Exchange,
        audience: &str,
    ) -> Result<IdToken, TokenError> {
        if self.universe != GOOGLE {
            // Other clouds have no token endpoint for this: the account asks for its own token.
            let access = self.access_token(exchange).await?;
            let target = Target::in_universe(&self.universe, &self.email);
            return target.id_token(exchange, &access, audience).await;
        }
        let service = Service::ServiceAccount(self.email.clone());
        let assertion = self.assertion(exchange, Some(TOKEN_ENDPOINT), Some(audience), None)?;
        let answer: IdAnswer = self.grant(exchange, &service, &assertion).await?;
        read_id_token(&service, answer.id_token.expose())
    }

    pub(crate) async fn access_token(&self, exchange: &Exchange) -> Result<Access, TokenError> {
        let token = if self.universe == GOOGLE {
            let service = Service::ServiceAccount(self.email.clone());
            let assertion = self.assertion(exchange, Some(TOKEN_ENDPOINT), None, Some(SCOPE))?;
            self.grant::<AccessAnswer>(exchange, &service, &assertion).await?.access_token
        } else {
            self.assertion(exchange, None, None, Some(SCOPE))?
        };
        Ok(Access { token, caller: Some(self.email.clone()), quota_project: None })
    }

    async fn grant<T: serde::de::DeserializeOwned>(
        &self,
        exchange: &Exchange,
        service: &Service,
        assertion: &Secret,
    ) -> Result<T, TokenError> {
        let fields = [("grant_type", GRANT), ("assertion", assertion.expose())];
        exchange.form(service, &self.token_uri, &fields, None).await
    }

    fn assertion(
        &self,
        exchange: &Exchange,
        aud: Option<&str>,
        target_audience: Option<&str>,
        scope: Option<&str>,
    ) -> Result<Secret, TokenError> {
        let iat = exchange.clock.seconds();
        let iss = self.email.as_str();
        // What no token endpoint turns into a token stands for the account by itself.
        let sub = aud.is_none().then_some(iss);
        let claims = Assertion { iss, sub, aud, iat, exp: iat + LIFE, target_audience, scope };
        self.key.sign(&claims).map_err(|reason| TokenError::Answer {
            service: Service::ServiceAccount(self.email.clone()),
            reason: reason.to_owned(),
        })
    }
}
