//! The kinds of credentials, and the two things that each may give: an ID token of its own, and an
//! access token with which it may ask for somebody else's.

use super::environment::Environment;
use super::error::{FileError, Service, TokenError};
use super::exchange::Exchange;
use super::external::{External, ExternalUser};
use super::impersonation::{Impersonated, Target};
use super::jwt::IdToken;
use super::metadata::Metadata;
use super::secret::Secret;
use super::service_account::ServiceAccount;
use super::user::User;

/// What an access token must allow, to ask the IAM Credentials API; it is used for nothing else.
pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/iam";

/// The domain of Google's own cloud; there are others, sovereign ones.
pub(crate) const GOOGLE: &str = "googleapis.com";

/// Credentials, ready to be used.
#[derive(Debug)]
pub(crate) enum Source {
    ServiceAccount(ServiceAccount),
    User(User),
    Metadata(Metadata),
    Impersonated(Box<Impersonated>),
    External(Box<External>),
    ExternalUser(ExternalUser),
}

/// What the way to a token needs besides the credentials.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) exchange: Exchange,
    pub(crate) environment: Environment,
}

/// Leave to ask Google's APIs for something.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) token: Secret,
    /// Whose leave it is, where that is known.
    pub(crate) caller: Option<String>,
    /// Which project pays for the question.
    pub(crate) quota_project: Option<String>,
}

impl Source {
    /// Its name for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::ServiceAccount(_) => "service_account",
            Self::User(_) => "authorized_user",
            Self::Metadata(_) => "metadata server",
            Self::Impersonated(_) => "impersonated_service_account",
            Self::External(_) => "external_account",
            Self::ExternalUser(_) => "external_account_authorized_user",
        }
    }

    /// Whom its ID tokens stand for, where that is known without asking.
    pub(crate) fn principal(&self) -> Option<&str> {
        match self {
            Self::ServiceAccount(account) => Some(&account.email),
            Self::Impersonated(impersonated) => Some(&impersonated.target.email),
            Self::External(external) => {
                external.target.as_ref().map(|target| target.email.as_str())
            }
            Self::User(_) | Self::Metadata(_) | Self::ExternalUser(_) => None,
        }
    }

    /// The cloud that it belongs to.
    pub(crate) fn universe(&self) -> &str {
        match self {
            Self::ServiceAccount(account) => &account.universe,
            Self::External(external) => &external.universe,
            Self::ExternalUser(user) => &user.universe,
            Self::Impersonated(impersonated) => impersonated.source.universe(),
            Self::User(_) | Self::Metadata(_) => GOOGLE,
        }
    }

    /// Whether ID tokens can come of it at all; without impersonation some have none.
    pub(crate) fn check(&self, impersonates: bool) -> Result<(), FileError> {
        match self {
            Self::External(external) if external.target.is_none() && !impersonates => {
                Err(FileError::NeedsImpersonation("external_account"))
            }
            Self::ExternalUser(_) if !impersonates => {
                Err(FileError::NeedsImpersonation("external_account_authorized_user"))
            }
            _ => Ok(()),
        }
    }

    /// An ID token for this audience, of the target where there is one, else its own.
    pub(crate) async fn id_token(
        &self,
        context: &Context,
        target: Option<&Target>,
        audience: &str,
    ) -> Result<IdToken, TokenError> {
        if let Some(target) = target {
            let access = self.access_token(context).await?;
            return target.id_token(&context.exchange, &access, audience).await;
        }
        match self {
            Self::ServiceAccount(account) => account.id_token(&context.exchange, audience).await,
            Self::User(user) => user.id_token(&context.exchange).await,
            Self::Metadata(metadata) => metadata.id_token(&context.exchange, audience).await,
            Self::Impersonated(impersonated) => {
                let access = impersonated.source_access(context).await?;
                impersonated.target.id_token(&context.exchange, &access, audience).await
            }
            Self::External(external) => external.id_token(context, audience).await,
            Self::ExternalUser(_) => Err(TokenError::NoIdToken),
        }
    }

    /// An access token with which the IAM Credentials API can be asked.
    pub(crate) async fn access_token(&self, context: &Context) -> Result<Access, TokenError> {
        match self {
            Self::ServiceAccount(account) => account.access_token(&context.exchange).await,
            Self::User(user) => user.access_token(&context.exchange).await,
            Self::Metadata(metadata) => metadata.access_token(&context.exchange).await,
            // A box, since impersonation may be of an impersonation.
            Self::Impersonated(impersonated) => Box::pin(impersonated.access_token(context)).await,
            Self::External(external) => external.access_token(context).await,
            Self::ExternalUser(user) => user.access_token(&context.exchange).await,
        }
    }
}

/// An ID token out of an answer; the service is named where it is none.
pub(crate) fn read_id_token(service: &Service, raw: &str) -> Result<IdToken, TokenError> {
    IdToken::read(raw).map_err(|reason| TokenError::Answer {
        service: service.clone(),
        reason: format!("the ID token is none: {reason}"),
    })
}
