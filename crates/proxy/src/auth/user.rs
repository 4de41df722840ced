//! A person's login, as `gcloud auth application-default login` leaves it: a refresh token. Its ID
//! tokens are for the OAuth client of the login, whatever audience is wanted; Cloud Run takes those
//! of gcloud's own clients.

use serde::Deserialize;

use super::error::{FileError, Service, TokenError};
use super::exchange::Exchange;
use super::file::{filled, safe_url};
use super::jwt::IdToken;
use super::secret::Secret;
use super::source::{Access, read_id_token};

const TOKEN_ENDPOINT: &str = "https://oauth2.googleapis.com/token";

/// What stands in the file.
#[derive(Deserialize)]
pub(crate) struct UserFile {
    client_id: String,
    client_secret: Secret,
    refresh_token: Secret,
    /// gcloud never writes it, other tools do.
    #[serde(default)]
    token_uri: Option<String>,
    #[serde(default)]
    quota_project_id: Option<String>,
}

/// A person's login.
#[derive(Debug)]
pub(crate) struct User {
    client_id: String,
    client_secret: Secret,
    refresh_token: Secret,
    token_uri: String,
    quota_project: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: Secret,
    #[serde(default)]
    id_token: Option<Secret>,
}

impl User {
    pub(crate) fn new(file: UserFile) -> Result<Self, FileError> {
        filled("refresh_token", &file.refresh_token)?;
        let token_uri = file.token_uri.unwrap_or_else(|| TOKEN_ENDPOINT.to_owned());
        safe_url("token_uri", &token_uri)?;
        Ok(Self {
            client_id: file.client_id,
            client_secret: file.client_secret,
            refresh_token: file.refresh_token,
            token_uri,
            quota_project: file.quota_project_id,
        })
    }

    pub(crate) async fn id_token(&self, exchange: &Exchange) -> Result<IdToken, TokenError> {
        let answer = self.refresh(exchange).await?;
        let raw = answer.id_token.ok_or(TokenError::NoIdToken)?;
        read_id_token(&Service::Login, raw.expose())
    }

    pub(crate) async fn access_token(&self, exchange: &Exchange) -> Result<Access, TokenError> {
        let answer = self.refresh(exchange).await?;
        // Whose login it is stands in the ID token, and is wanted for advice only.
        let token = answer.id_token.and_then(|raw| IdToken::read(raw.expose()).ok());
        Ok(Access {
            token: answer.access_token,
            caller: token.and_then(|token| token.claims().email.clone()),
            quota_project: self.quota_project.clone(),
        })
    }

    async fn refresh(&self, exchange: &Exchange) -> Result<Answer, TokenError> {
        let fields = [
            ("grant_type", "refresh_token"),
            ("client_id", self.client_id.as_str()),
            ("client_secret", self.client_secret.expose()),
            ("refresh_token", self.refresh_token.expose()),
        ];
        exchange.form(&Service::Login, &self.token_uri, &fields, None).await
    }
}
