//! Impersonation: with an access token of its own, a caller asks the IAM Credentials API for a
//! token of a service account, straight or through a chain of delegates.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::error::{FileError, Service, TokenError, Verb};
use super::exchange::{Exchange, Question};
use super::file::safe_url;
use super::jwt::IdToken;
use super::secret::Secret;
use super::source::{Access, Context, SCOPE, Source, read_id_token};

/// A service account that is impersonated.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) email: String,
    /// Its address in the IAM Credentials API, up to the colon before the verb.
    url: String,
    /// Who passes the request on, each in the API's long form.
    delegates: Vec<String>,
}

#[derive(Deserialize)]
struct IdAnswer {
    token: Secret,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessAnswer {
    access_token: Secret,
}

impl Target {
    /// The service account of `--impersonate-service-account`: a mail address, or several with
    /// commas in between, of which the last is impersonated and the others pass the request on.
    pub(crate) fn from_option(option: &str, universe: &str) -> Result<Self, FileError> {
        let mut chain: Vec<&str> = option.split(',').map(str::trim).collect();
        let is_email = |name: &&str| {
            let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '@');
            name.chars().all(fit)
                && name.split_once('@').is_some_and(|(user, domain)| {
                    !user.is_empty() && domain.contains('.') && !domain.contains('@')
                })
        };
        let wrong = chain.iter().find(|name| !is_email(name));
        if let Some(wrong) = wrong {
            return Err(FileError::Field(format!(
                "`{wrong}` of --impersonate-service-account is not a service account's address"
            )));
        }
        let email = chain.pop().unwrap_or_default();
        let delegates = chain.into_iter().map(str::to_owned).collect();
        Ok(Self::in_universe(universe, email).with_delegates(delegates))
    }

    /// A service account at the IAM Credentials API of a cloud.
    pub(crate) fn in_universe(universe: &str, email: &str) -> Self {
        let url =
            format!("https://iamcredentials.{universe}/v1/projects/-/serviceAccounts/{email}");
        Self { email: email.to_owned(), url, delegates: Vec::new() }
    }

    /// The service account of a file's `service_account_impersonation_url`, which asks for an
    /// access token; the ID token's is its neighbour.
    pub(crate) fn from_url(text: &str) -> Result<Self, FileError> {
        let wrong = || {
            FileError::Field(
                "`service_account_impersonation_url` does not end with \
                 /serviceAccounts/NAME:generateAccessToken"
                    .to_owned(),
            )
        };
        safe_url("service_account_impersonation_url", text)?;
        let url = [Verb::AccessToken, Verb::IdToken]
            .into_iter()
            .find_map(|verb| text.strip_suffix(verb.method())?.strip_suffix(':'))
            .ok_or_else(wrong)?;
        let (_, email) = url.rsplit_once("/serviceAccounts/").ok_or_else(wrong)?;
        if email.is_empty() || email.contains('/') {
            return Err(wrong());
        }
        Ok(Self { email: email.to_owned(), url: url.to_owned(), delegates: Vec::new() })
    }

    /// Passed on by these, whose long form the API wants.
    pub(crate) fn with_delegates(mut self, delegates: Vec<String>) -> Self {
        let long = |name: String| {
            if name.contains('/') { name } else { format!("projects/-/serviceAccounts/{name}") }
        };
        self.delegates = delegates.into_iter().map(long).collect();
        self
    }

    /// Its ID token for this audience.
    pub(crate) async fn id_token(
        &self,
        exchange: &Exchange,
        access: &Access,
        audience: &str,
    ) -> Result<IdToken, TokenError> {
        let body = json!({
            "audience": audience, "includeEmail": true, "delegates": self.delegates,
        });
        let service = self.service(access, Verb::IdToken);
        let answer: IdAnswer = self.ask(exchange, access, &service, Verb::IdToken, body).await?;
        read_id_token(&service, answer.token.expose())
    }

    /// Its access token.
    pub(crate) async fn access_token(
        &self,
        exchange: &Exchange,
        access: &Access,
    ) -> Result<Access, TokenError> {
        let body = json!({"scope": [SCOPE], "delegates": self.delegates, "lifetime": "3600s"});
        let service = self.service(access, Verb::AccessToken);
        let answer: AccessAnswer =
            self.ask(exchange, access, &service, Verb::AccessToken, body).await?;
        Ok(Access {
            token: answer.access_token,
            caller: Some(self.email.clone()),
            quota_project: None,
        })
    }

    fn service(&self, access: &Access, verb: Verb) -> Service {
        let (target, caller) = (self.email.clone(), access.caller.clone());
        Service::Impersonation { target, caller, verb }
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        exchange: &Exchange,
        access: &Access,
        service: &Service,
        verb: Verb,
        body: serde_json::Value,
    ) -> Result<T, TokenError> {
        let url = format!("{}:{}", self.url, verb.method());
        let mut question = Question::new(service, Method::POST, &url)?.bearer(&access.token)?;
        if let Some(project) = &access.quota_project {
            question = question.header("x-goog-user-project", project)?;
        }
        exchange.json(question.json(&body)).await
    }
}

/// Credentials of type `impersonated_service_account`.
#[derive(Debug)]
pub(crate) struct Impersonated {
    pub(crate) target: Target,
    pub(crate) source: Source,
    pub(crate) quota_project: Option<String>,
}

impl Impersonated {
    /// Leave to impersonate.
    pub(crate) async fn source_access(&self, context: &Context) -> Result<Access, TokenError> {
        let mut access = self.source.access_token(context).await?;
        access.quota_project = self.quota_project.clone().or(access.quota_project);
        Ok(access)
    }

    pub(crate) async fn access_token(&self, context: &Context) -> Result<Access, TokenError> {
        let access = self.source_access(context).await?;
        self.target.access_token(&context.exchange, &access).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_the_account_and_where_it_is_asked_for() {
        let url = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/";
        for verb in ["generateAccessToken", "generateIdToken"] {
            let target =
                Target::from_url(&format!("{url}a@b.iam.gserviceaccount.com:{verb}")).unwrap();
            assert_eq!(target.email, "a@b.iam.gserviceaccount.com");
            assert_eq!(target.url, format!("{url}a@b.iam.gserviceaccount.com"));
        }
        for wrong in ["", ":generateAccessToken", "a@b:signBlob", "a/b:generateAccessToken"] {
            assert!(Target::from_url(&format!("{url}{wrong}")).is_err(), "{wrong}");
        }
        assert!(Target::from_url("http://x/serviceAccounts/a@b:generateIdToken").is_err());
    }

    #[test]
    fn an_option_is_an_account_or_a_chain_that_leads_to_one() {
        let one = Target::from_option("a@p.iam.gserviceaccount.com", "googleapis.com").unwrap();
        assert_eq!(
            one.url,
            "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@p.iam.gserviceaccount.com"
        );
        let chain = Target::from_option("a@p.x, b@p.x ,c@p.x", "example.cloud").unwrap();
        assert_eq!(chain.email, "c@p.x");
        assert!(chain.url.starts_with("https://iamcredentials.example.cloud/"));
        assert_eq!(
            chain.delegates,
            ["projects/-/serviceAccounts/a@p.x", "projects/-/serviceAccounts/b@p.x"]
        );
        for wrong in ["", "a", "a@b", "a@b.c/../x", "a@b.c,", "a b@c.d", "a@b.c:x"] {
            assert!(Target::from_option(wrong, "googleapis.com").is_err(), "{wrong}");
        }
    }
}
