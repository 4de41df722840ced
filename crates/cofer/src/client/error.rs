//! Why the daemon did not do what it was asked, and what to do about it.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use cofer_model::ErrorDetail;
use reqwest::StatusCode;

use super::MAX_ANSWER;

/// Why the daemon did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("`{url}` is not the address of a daemon")]
    BadUrl { url: String },
    #[error("could not set up the HTTP client")]
    Setup(#[source] reqwest::Error),
    #[error("could not set up the HTTP client")]
    Tls(#[source] rustls::Error),
    #[error("no daemon runs in the data directory `{}`", data_dir.display())]
    NotRunning { data_dir: PathBuf, source: RootCause },
    #[error("no daemon answers at {url}")]
    Unreachable { url: String, source: RootCause },
    #[error("the daemon at {url} did not answer within {} s", after.as_secs())]
    Silent { url: String, after: Duration },
    #[error("the connection to the daemon at {url} broke")]
    Broken { url: String, source: RootCause },
    #[error("the daemon at {url} wants a token, and there is none in `{}`", token_file.display())]
    NoToken { url: String, token_file: PathBuf },
    #[error("{}", .0.message)]
    Api(Box<ErrorDetail>),
    #[error("{url} answered {status} and not as a Cofer daemon would")]
    Foreign { url: String, status: StatusCode },
    #[error("the daemon's answer cannot be read")]
    Unreadable(#[source] serde_json::Error),
    #[error("the daemon at {url} is not well")]
    Degraded { url: String, source: RootCause },
    #[error("the daemon's answer is larger than {MAX_ANSWER} bytes")]
    TooLarge,
}

/// The end of an error's chain: "Connection refused" says more than what wraps it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RootCause(pub(super) String);

impl RootCause {
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Self(cause.to_string())
    }
}

impl ClientError {
    /// What to do next.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::BadUrl { .. } => {
                "an address looks like http://127.0.0.1:8787 (`--url`, COFER_URL).".to_owned()
            }
            Self::NotRunning { .. } => {
                "start it with `cofer serve`; name another data directory with `--data-dir`, or the address of a daemon that runs elsewhere with `--url`."
                    .to_owned()
            }
            Self::Unreachable { .. } => "start it with `cofer serve`.".to_owned(),
            Self::Degraded { .. } => "the daemon's log in its data directory says more.".to_owned(),
            Self::Silent { .. } => "`cofer doctor` looks for what is wrong.".to_owned(),
            Self::Broken { .. } => {
                "it may have been stopped meanwhile; `cofer doctor` tells.".to_owned()
            }
            Self::NoToken { .. } => {
                "name the daemon's data directory with `--data-dir`, or give the token in COFER_TOKEN."
                    .to_owned()
            }
            Self::Foreign { url, .. } => {
                format!("something else may listen at {url}; `--url` or COFER_URL names another address.")
            }
            Self::Unreadable(_) => {
                "the daemon may be of another version; `cofer doctor` compares.".to_owned()
            }
            Self::Api(_) | Self::Setup(_) | Self::Tls(_) | Self::TooLarge => String::new(),
        }
    }
}
