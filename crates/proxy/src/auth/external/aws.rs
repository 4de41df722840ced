//! A workload in AWS proves who it is by a signed `GetCallerIdentity`, which is not sent: Google
//! sends it. Keys and region come from variables, else from the metadata server of AWS.

use http::{Method, Uri};
use serde::Deserialize;
use serde_json::json;
use time::OffsetDateTime;

use super::sigv4::{self, Keys, percent_encoded};
use crate::auth::error::{FileError, Service, SubjectError, TokenError};
use crate::auth::exchange::Question;
use crate::auth::file::any_url;
use crate::auth::secret::Secret;
use crate::auth::source::Context;

/// Seconds that a session with the metadata server lives; it is used at once.
const SESSION_LIFE: &str = "300";

/// What stands in `credential_source` besides `environment_id` and `url`.
#[derive(Deserialize)]
pub(crate) struct AwsFile {
    #[serde(default)]
    region_url: Option<String>,
    #[serde(default)]
    regional_cred_verification_url: Option<String>,
    #[serde(default)]
    imdsv2_session_token_url: Option<String>,
}

/// A workload in AWS.
#[derive(Debug)]
pub(crate) struct Aws {
    region_url: Option<String>,
    keys_url: Option<String>,
    session_url: Option<String>,
    verification_url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RoleKeys {
    access_key_id: String,
    secret_access_key: Secret,
    #[serde(default)]
    token: Option<Secret>,
}

impl Aws {
    pub(crate) fn new(
        environment_id: &str,
        keys_url: Option<String>,
        file: AwsFile,
    ) -> Result<Self, FileError> {
        let field = |reason: &str| FileError::Field(format!("`credential_source`: {reason}"));
        if environment_id != "aws1" {
            return Err(field("its `environment_id` is not `aws1`"));
        }
        let verification_url = file
            .regional_cred_verification_url
            .ok_or_else(|| field("it has no `regional_cred_verification_url`"))?;
        let url =
            any_url("regional_cred_verification_url", &verification_url.replace("{region}", "r"))?;
        if url.scheme_str() != Some("https") {
            return Err(field("`regional_cred_verification_url` must begin with https://"));
        }
        for url in
            [&file.region_url, &keys_url, &file.imdsv2_session_token_url].into_iter().flatten()
        {
            any_url("credential_source", url)?;
        }
        Ok(Self {
            region_url: file.region_url,
            keys_url,
            session_url: file.imdsv2_session_token_url,
            verification_url,
        })
    }

    /// The signed question, as text.
    pub(crate) async fn token(
        &self,
        context: &Context,
        audience: &str,
    ) -> Result<Secret, TokenError> {
        let region = self.region(context).await?;
        let keys = self.keys(context).await?;
        let url = self.verification_url.replace("{region}", &region);
        let parsed: Uri = url.parse().map_err(|_| unusable("the region makes no URL"))?;
        let host = parsed.host().unwrap_or_default();
        let request = sigv4::Request {
            host,
            path: parsed.path(),
            query: parsed.query().unwrap_or_default(),
            region: &region,
            service: sigv4::service(host),
            headers: vec![("x-goog-cloud-target-resource", audience)],
            at: OffsetDateTime::from(context.exchange.clock.now()),
        };
        let headers: Vec<_> = sigv4::sign(&request, &keys)
            .into_iter()
            .map(|(key, value)| json!({"key": key, "value": value}))
            .collect();
        let question = json!({"url": url, "method": "POST", "headers": headers});
        Ok(Secret::new(percent_encoded(&question.to_string())))
    }

    async fn region(&self, context: &Context) -> Result<String, TokenError> {
        let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"];
        let named = variables.into_iter().find_map(|name| context.environment.text(name));
        let region = match (named, &self.region_url) {
            (Some(region), _) => region.to_owned(),
            (None, Some(url)) => {
                let zone = self.ask(context, Method::GET, url).await?;
                // `us-east-2b` is a zone of the region `us-east-2`.
                let mut zone = zone.trim().to_owned();
                zone.pop();
                zone
            }
            (None, None) => {
                return Err(unusable("AWS_REGION is not set, and there is no `region_url`"));
            }
        };
        let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if region.is_empty() || !region.chars().all(fit) {
            return Err(unusable("the AWS region is not one"));
        }
        Ok(region)
    }

    async fn keys(&self, context: &Context) -> Result<Keys, TokenError> {
        let variable = |name| context.environment.text(name);
        if let (Some(id), Some(secret)) =
            (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"))
        {
            return Ok(Keys {
                id: id.to_owned(),
                secret: Secret::new(secret),
                session: variable("AWS_SESSION_TOKEN").map(Secret::new),
            });
        }
        let Some(url) = &self.keys_url else {
            return Err(unusable(
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and there is no `url`",
            ));
        };
        let role = self.ask(context, Method::GET, url).await?;
        let role = percent_encoded(role.trim());
        let answer = self.ask(context, Method::GET, &format!("{url}/{role}")).await?;
        let keys: RoleKeys = serde_json::from_str(&answer).map_err(|_| TokenError::Answer {
            service: Service::Aws,
            reason: "it has no keys of the role".to_owned(),
        })?;
        Ok(Keys { id: keys.access_key_id, secret: keys.secret_access_key, session: keys.token })
    }

    /// Asks the metadata server, within a session where it wants one.
    async fn ask(
        &self,
        context: &Context,
        method: Method,
        url: &str,
    ) -> Result<String, TokenError> {
        let mut question = Question::new(&Service::Aws, method, url)?;
        if let Some(session_url) = &self.session_url {
            let open = Question::new(&Service::Aws, Method::PUT, session_url)?
                .header("x-aws-ec2-metadata-token-ttl-seconds", SESSION_LIFE)?;
            let session = context.exchange.ask(&open).await?;
            question = question.header("x-aws-ec2-metadata-token", session.trim())?;
        }
        context.exchange.ask(&question).await
    }
}

fn unusable(reason: &str) -> TokenError {
    TokenError::Subject(SubjectError::Aws(reason.to_owned()))
}
