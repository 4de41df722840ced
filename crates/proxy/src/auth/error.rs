//! Why there is no token: what was attempted, and at whose door it failed. `hints` knows what to
//! do about each.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use cofer_mcp::http::TransportError;

use super::hints;

/// Why no ID token could be had this time. The next request tries again.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Credentials were there when the proxy started, and are not any more.
    #[error("there are no credentials any more: {looked}")]
    Gone {
        /// What was looked for, and what was found.
        looked: String,
    },
    /// The credentials file cannot be used.
    #[error("the credentials of {place} cannot be used: {reason}")]
    File {
        /// Where it lies.
        place: String,
        /// What is wrong with it.
        reason: FileError,
    },
    /// The other side could not be talked to.
    #[error("could not reach {service} at {host}")]
    Unreachable {
        /// Who was asked.
        service: Service,
        /// Where.
        host: String,
        /// What the network said.
        source: Box<TransportError>,
    },
    /// The other side took too long.
    #[error("{service} at {host} did not answer within {waited:?}")]
    Silent {
        /// Who was asked.
        service: Service,
        /// Where.
        host: String,
        /// For how long.
        waited: Duration,
    },
    /// The other side said no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The other side's answer makes no sense.
    #[error("{service} gave an answer that makes no sense: {reason}")]
    Answer {
        /// Who was asked.
        service: Service,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The login does not say who the person is.
    #[error("the login gives no ID token, because it was made without the scope `openid`")]
    NoIdToken,
    /// A token that is new and yet over, by our clock.
    #[error("the new ID token ended {ago} s ago by this machine's clock")]
    Expired {
        /// How long ago it ended.
        ago: u64,
    },
    /// What another cloud or a program should have told us.
    #[error("could not get the subject token of the credentials: {0}")]
    Subject(#[source] SubjectError),
    /// The task that fetched it is gone.
    #[error("fetching an ID token was interrupted")]
    Interrupted,
}

impl TokenError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        hints::after(self)
    }

    /// Whether the network or the other side was at fault, rather than the credentials.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } => true,
            Self::Refused(refusal) => refusal.status >= 500 || refusal.status == 429,
            _ => false,
        }
    }
}

/// Why a credentials file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It is larger than any credentials.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// It is not JSON.
    #[error("it is not JSON (line {line}, column {column})")]
    NotJson {
        /// Where reading stopped.
        line: usize,
        /// Where in the line.
        column: usize,
    },
    /// It has no `type`.
    #[error("it has no `type`; an OAuth client's file is not a credentials file")]
    NoType,
    /// Its `type` is not one that we know.
    #[error("its type `{0}` is not known")]
    UnknownType(String),
    /// Its `type` has no ID tokens.
    #[error("its type `{0}` is not supported, since it has no ID tokens for Cloud Run")]
    NoIdTokens(String),
    /// A field is missing or wrong.
    #[error("{0}")]
    Field(String),
    /// ID tokens need a service account, and none is named.
    #[error(
        "credentials of type `{0}` have no ID tokens of their own, and name no service account to impersonate"
    )]
    NeedsImpersonation(&'static str),
}

/// Whom we ask for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Service {
    /// Google's token endpoint, with the key of this service account.
    ServiceAccount(String),
    /// Google's token endpoint, with a person's login.
    Login,
    /// The token endpoint of a workforce pool, with a person's login.
    WorkforceLogin,
    /// The Security Token Service, with another cloud's token.
    Exchange,
    /// The IAM Credentials API.
    Impersonation {
        /// The service account that is impersonated.
        target: String,
        /// Who impersonates it, where that is known.
        caller: Option<String>,
        /// What is asked for.
        verb: Verb,
    },
    /// Google's metadata server.
    Metadata,
    /// The metadata server of AWS.
    Aws,
    /// The URL of the credentials' subject token.
    SubjectUrl,
}

/// What the IAM Credentials API is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `generateIdToken`.
    IdToken,
    /// `generateAccessToken`.
    AccessToken,
}

impl Verb {
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::IdToken => "generateIdToken",
            Self::AccessToken => "generateAccessToken",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceAccount(email) => write!(formatter, "the token endpoint of {email}"),
            Self::Login => formatter.write_str("Google's token endpoint"),
            Self::WorkforceLogin => formatter.write_str("the workforce pool's token endpoint"),
            Self::Exchange => formatter.write_str("the Security Token Service"),
            Self::Impersonation { target, .. } => {
                write!(formatter, "the IAM Credentials API for {target}")
            }
            Self::Metadata => formatter.write_str("the metadata server"),
            Self::Aws => formatter.write_str("the metadata server of AWS"),
            Self::SubjectUrl => formatter.write_str("the URL of the subject token"),
        }
    }
}

/// A refusal, in the other side's words.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Who refused.
    pub service: Service,
    /// The HTTP status.
    pub status: u16,
    /// The error's name: `invalid_grant`, `PERMISSION_DENIED`. Empty where there is none.
    pub code: String,
    /// Its sentence.
    pub description: String,
    /// Its finer name: `invalid_rapt`, `SERVICE_DISABLED`.
    pub reason: Option<String>,
    /// How many seconds the other side's clock is ahead of ours.
    pub skew: Option<i64>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} refused with HTTP {}", self.service, self.status)?;
        let words =
            [self.code.as_str(), self.reason.as_deref().unwrap_or_default(), &self.description];
        for (at, word) in words.into_iter().filter(|word| !word.is_empty()).enumerate() {
            write!(formatter, "{} {word}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

/// Why there is no subject token.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// Its file cannot be read.
    #[error("the file {} cannot be read", path.display())]
    File {
        /// Where it should lie.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What was read is not what the credentials say.
    #[error("{place}: {reason}")]
    Format {
        /// What was read.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Programs may not be started.
    #[error("it comes from a program, and programs are not allowed")]
    NotAllowed,
    /// The program could not be started.
    #[error("the program `{program}` could not be started")]
    Start {
        /// Its path.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The program took too long.
    #[error("the program `{program}` did not end within {waited:?}")]
    Slow {
        /// Its path.
        program: String,
        /// For how long it was waited.
        waited: Duration,
    },
    /// The program failed.
    #[error("the program `{program}` ended with {status}{said}")]
    Failed {
        /// Its path.
        program: String,
        /// How it ended.
        status: String,
        /// What it wrote to stderr.
        said: String,
    },
    /// The program said no.
    #[error("the program `{program}` said no: {code}: {message}")]
    Unsuccessful {
        /// Its path.
        program: String,
        /// Its error's name.
        code: String,
        /// Its error's sentence.
        message: String,
    },
    /// AWS has neither variables nor a metadata server.
    #[error("{0}")]
    Aws(String),
}
