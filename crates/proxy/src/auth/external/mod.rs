//! Credentials of another cloud: its token (the subject token) is exchanged at Google's Security
//! Token Service for an access token, and that impersonates a service account, since the exchange
//! itself has no ID tokens.

mod aws;
mod executable;
mod sigv4;
mod subject;

use serde::Deserialize;
use serde_json::json;

use self::subject::{CredentialSource, Subject};
use super::error::{FileError, Service, TokenError};
use super::exchange::Exchange;
use super::file::{filled, safe_url};
use super::impersonation::Target;
use super::jwt::IdToken;
use super::secret::Secret;
use super::source::{Access, Context, GOOGLE, SCOPE};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// What stands in a file of type `external_account`.
#[derive(Deserialize)]
pub(crate) struct ExternalFile {
    audience: String,
    subject_token_type: String,
    #[serde(default)]
    token_url: Option<String>,
    credential_source: CredentialSource,
    #[serde(default)]
    service_account_impersonation_url: Option<String>,
    #[serde(default)]
    workforce_pool_user_project: Option<String>,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    client_secret: Option<Secret>,
    #[serde(default)]
    quota_project_id: Option<String>,
    #[serde(default)]
    universe_domain: Option<String>,
}

/// A workload or a person of another cloud.
#[derive(Debug)]
pub(crate) struct External {
    /// Whom it may impersonate.
    pub(crate) target: Option<Target>,
    pub(crate) universe: String,
    audience: String,
    subject_token_type: String,
    token_url: String,
    subject: Subject,
    user_project: Option<String>,
    client: Option<(String, Secret)>,
    quota_project: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: Secret,
}

impl External {
    pub(crate) fn new(file: ExternalFile) -> Result<Self, FileError> {
        let universe = universe(file.universe_domain);
        let token_url =
            file.token_url.unwrap_or_else(|| format!("https://sts.{universe}/v1/token"));
        safe_url("token_url", &token_url)?;
        filled("audience", &Secret::new(file.audience.as_str()))?;
        let url = file.service_account_impersonation_url.filter(|url| !url.is_empty());
        let target = url.map(|url| Target::from_url(&url)).transpose()?;
        let is_workforce =
            file.audience.contains("/locations/") && file.audience.contains("/workforcePools/");
        if file.workforce_pool_user_project.is_some() && !is_workforce {
            return Err(FileError::Field(
                "`workforce_pool_user_project` is for workforce pools only".to_owned(),
            ));
        }
        Ok(Self {
            target,
            universe,
            audience: file.audience,
            subject_token_type: file.subject_token_type,
            token_url,
            subject: Subject::new(file.credential_source)?,
            user_project: file.workforce_pool_user_project,
            client: client(file.client_id, file.client_secret),
            quota_project: file.quota_project_id,
        })
    }

    pub(crate) async fn id_token(
        &self,
        context: &Context,
        audience: &str,
    ) -> Result<IdToken, TokenError> {
        let target = self.target.as_ref().ok_or(TokenError::NoIdToken)?;
        let access = self.federated(context).await?;
        target.id_token(&context.exchange, &access, audience).await
    }

    pub(crate) async fn access_token(&self, context: &Context) -> Result<Access, TokenError> {
        let access = self.federated(context).await?;
        match &self.target {
            Some(target) => target.access_token(&context.exchange, &access).await,
            None => Ok(access),
        }
    }

    /// The subject token's worth at the Security Token Service.
    async fn federated(&self, context: &Context) -> Result<Access, TokenError> {
        let wanted = subject::Wanted {
            audience: &self.audience,
            token_type: &self.subject_token_type,
            impersonated: self.target.as_ref().map(|target| target.email.as_str()),
        };
        let subject = self.subject.token(context, &wanted).await?;
        let options = self.options();
        let mut fields = vec![
            ("grant_type", GRANT),
            ("audience", self.audience.as_str()),
            ("scope", SCOPE),
            ("requested_token_type", ACCESS_TOKEN),
            ("subject_token", subject.expose()),
            ("subject_token_type", self.subject_token_type.as_str()),
        ];
        if let Some(options) = &options {
            fields.push(("options", options));
        }
        let client = self.client.as_ref().map(|(id, secret)| (id.as_str(), secret));
        let exchange = &context.exchange;
        let answer: Answer =
            exchange.form(&Service::Exchange, &self.token_url, &fields, client).await?;
        let quota_project = self.quota_project.clone();
        Ok(Access { token: answer.access_token, caller: None, quota_project })
    }

    /// Whose quota a person of a workforce pool uses; a client has its own project.
    fn options(&self) -> Option<String> {
        let project = self.user_project.as_ref().filter(|_| self.client.is_none())?;
        let json = json!({ "userProject": project }).to_string();
        Some(sigv4::percent_encoded(&json))
    }
}

/// What stands in a file of type `external_account_authorized_user`.
#[derive(Deserialize)]
pub(crate) struct ExternalUserFile {
    #[serde(default)]
    token_url: Option<String>,
    refresh_token: Secret,
    client_id: String,
    client_secret: Secret,
    #[serde(default)]
    quota_project_id: Option<String>,
    #[serde(default)]
    universe_domain: Option<String>,
}

/// A person's login in a workforce pool. It has access tokens only.
#[derive(Debug)]
pub(crate) struct ExternalUser {
    pub(crate) universe: String,
    token_url: String,
    refresh_token: Secret,
    client_id: String,
    client_secret: Secret,
    quota_project: Option<String>,
}

impl ExternalUser {
    pub(crate) fn new(file: ExternalUserFile) -> Result<Self, FileError> {
        filled("refresh_token", &file.refresh_token)?;
        let universe = universe(file.universe_domain);
        let token_url =
            file.token_url.unwrap_or_else(|| format!("https://sts.{universe}/v1/oauthtoken"));
        safe_url("token_url", &token_url)?;
        Ok(Self {
            universe,
            token_url,
            refresh_token: file.refresh_token,
            client_id: file.client_id,
            client_secret: file.client_secret,
            quota_project: file.quota_project_id,
        })
    }

    pub(crate) async fn access_token(&self, exchange: &Exchange) -> Result<Access, TokenError> {
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", self.refresh_token.expose())];
        let client = Some((self.client_id.as_str(), &self.client_secret));
        let answer: Answer =
            exchange.form(&Service::WorkforceLogin, &self.token_url, &fields, client).await?;
        let quota_project = self.quota_project.clone();
        Ok(Access { token: answer.access_token, caller: None, quota_project })
    }
}

fn universe(domain: Option<String>) -> String {
    domain.filter(|domain| !domain.is_empty()).unwrap_or_else(|| GOOGLE.to_owned())
}

fn client(id: Option<String>, secret: Option<Secret>) -> Option<(String, Secret)> {
    let id = id.filter(|id| !id.is_empty())?;
    Some((id, secret.unwrap_or_else(|| Secret::new(""))))
}
