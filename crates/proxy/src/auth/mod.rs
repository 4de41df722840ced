//! Google credentials: found by the rules of Application Default Credentials, turned into ID
//! tokens, and kept fresh.
//!
//! `search` finds them, `file` reads them into a `source`, whose kinds are a file each; `exchange`
//! asks the token endpoints; `cache` keeps the token. The file is read again for each new token,
//! so that a new login takes effect without a restart.

mod cache;
mod environment;
mod error;
mod exchange;
mod external;
mod file;
mod hints;
mod impersonation;
mod jwt;
mod metadata;
mod search;
mod secret;
mod service_account;
mod source;
mod user;

use std::sync::Arc;

use async_trait::async_trait;
use cofer_mcp::http::{AuthFailure, Authorizer, Transport};
use http::{HeaderValue, Uri};

pub use self::environment::{Clock, Environment};
pub use self::error::{FileError, Refusal, Service, SubjectError, TokenError, Verb};
pub use self::jwt::{Claims, IdToken};
pub use self::search::{Looked, NotFound};

use self::cache::{Cache, Mint};
use self::exchange::Exchange;
use self::impersonation::Target;
use self::search::Place;
use self::source::{Context, Source};

/// What credentials are wanted for, and where they may come from.
#[derive(Debug, Clone)]
pub struct Options {
    /// For whom ID tokens are: `default_audience` of the server's URL, or `--audience`.
    pub audience: String,
    /// `--impersonate-service-account`: an address, or a chain of them with commas in between.
    pub impersonate: Option<String>,
    /// How token endpoints are reached.
    pub transport: Transport,
    /// The variables that say where credentials are.
    pub environment: Environment,
    /// What tokens' lives are measured by.
    pub clock: Clock,
}

impl Options {
    /// For this audience, with the environment and the clock of this process.
    pub fn new(audience: impl Into<String>, transport: Transport) -> Self {
        Self {
            audience: audience.into(),
            impersonate: None,
            transport,
            environment: Environment::of_process(),
            clock: Clock::system(),
        }
    }
}

/// The audience that Cloud Run wants: the URL's origin, without path and without the usual port.
pub fn default_audience(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("https");
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let usual = if scheme == "https" { 443 } else { 80 };
    match url.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Credentials that were found. A new ID token is fetched when one is wanted, not before.
#[derive(Debug)]
pub struct Credentials {
    minter: Arc<Minter>,
    cache: Cache,
}

impl Credentials {
    /// Finds credentials and checks that ID tokens can come of them, without asking for one.
    pub async fn find(options: Options) -> Result<Self, NotFound> {
        let exchange = Exchange { transport: options.transport, clock: options.clock.clone() };
        let place = search::find(&options.environment, &exchange).await?;
        let context = Context { exchange, environment: options.environment };
        let minter =
            Minter { place, context, audience: options.audience, impersonate: options.impersonate };
        let source =
            minter.open(&minter.place).map_err(|error| search::unusable(&minter.place, &error))?;
        tracing::debug!(
            kind = source.0.kind(),
            place = %minter.place,
            audience = minter.audience,
            "found credentials"
        );
        let minter = Arc::new(minter);
        let cache = Cache::new(Arc::clone(&minter) as Arc<dyn Mint>, options.clock);
        Ok(Self { minter, cache })
    }

    /// An ID token that is good now, the one that is kept or a new one.
    pub async fn token(&self) -> Result<Arc<IdToken>, Arc<TokenError>> {
        self.cache.token().await
    }

    /// What kind of credentials they are and where they were found, for people.
    pub fn origin(&self) -> String {
        let place = &self.minter.place;
        match self.minter.open(place) {
            Ok((Source::Metadata(_), _)) | Err(_) => place.to_string(),
            Ok((source, _)) => format!("{place} ({})", source.kind()),
        }
    }

    /// For whom ID tokens are asked.
    pub fn audience(&self) -> &str {
        &self.minter.audience
    }

    /// Whom the ID tokens stand for: as the last one says, else as the credentials say.
    pub fn principal(&self) -> Option<String> {
        let claims = self.cache.kept().map(|token| token.claims().clone());
        let (email, subject) = claims.map_or((None, None), |claims| (claims.email, claims.sub));
        email.or_else(|| self.minter.principal()).or(subject)
    }

    /// What to do where the server refuses our token: with 401 it does not believe it, with 403 it
    /// does not let its owner in.
    pub fn advice(&self, status: u16) -> String {
        let token = self.cache.kept();
        let other = token.filter(|token| token.claims().aud != self.minter.audience);
        let principal = self.principal();
        hints::refused_by_server(
            status,
            &self.minter.audience,
            principal.as_deref(),
            other.as_ref().map(|token| token.claims().aud.as_str()),
        )
    }
}

#[async_trait]
impl Authorizer for Credentials {
    async fn authorization(&self) -> Result<Option<HeaderValue>, AuthFailure> {
        match self.token().await {
            Ok(token) => Ok(Some(token.header())),
            Err(error) => Err(AuthFailure { message: told(&error), hint: error.hint() }),
        }
    }

    fn rejected(&self, used: &HeaderValue) {
        self.cache.forget(|token| token.header() == used);
    }

    fn principal(&self) -> Option<String> {
        self.principal()
    }

    fn advice(&self, status: u16) -> Option<String> {
        Some(self.advice(status))
    }
}

/// An error with its causes, in one line.
fn told(error: &TokenError) -> String {
    let mut told = format!("could not get an ID token: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        told.push_str(": ");
        told.push_str(&error.to_string());
        cause = error.source();
    }
    told
}

/// Fetches ID tokens, each time from what the credentials are now.
#[derive(Debug)]
struct Minter {
    /// Where they were at the start.
    place: Place,
    context: Context,
    audience: String,
    impersonate: Option<String>,
}

impl Minter {
    /// Where they are now. A login since the start goes before the metadata server; a machine's
    /// metadata server does not go away.
    fn place(&self) -> Result<Place, TokenError> {
        match (search::files(&self.context.environment), &self.place) {
            (Ok(place), _) => Ok(place),
            (Err(_), Place::Metadata(_)) => Ok(self.place.clone()),
            (Err(looked), _) => {
                let looked: Vec<String> = looked
                    .into_iter()
                    .map(|looked| format!("{}: {}", looked.place, looked.outcome))
                    .collect();
                Err(TokenError::Gone { looked: looked.join("; ") })
            }
        }
    }

    /// The credentials at a place, and whom they are to impersonate.
    fn open(&self, place: &Place) -> Result<(Source, Option<Target>), FileError> {
        let source = place.open()?;
        source.check(self.impersonate.is_some())?;
        let option = self.impersonate.as_deref();
        let target = option.map(|option| Target::from_option(option, source.universe()));
        Ok((source, target.transpose()?))
    }

    fn principal(&self) -> Option<String> {
        let (source, target) = self.open(&self.place).ok()?;
        target.map(|target| target.email).or_else(|| source.principal().map(str::to_owned))
    }
}

#[async_trait]
impl Mint for Minter {
    async fn mint(&self) -> Result<IdToken, TokenError> {
        let place = self.place()?;
        let (source, target) = self
            .open(&place)
            .map_err(|reason| TokenError::File { place: place.to_string(), reason })?;
        let token = source.id_token(&self.context, target.as_ref(), &self.audience).await?;
        let claims = token.claims();
        tracing::debug!(
            principal = claims.email.as_deref().or(claims.sub.as_deref()),
            audience = claims.aud,
            expires = claims.exp,
            "fetched an ID token"
        );
        if claims.aud != self.audience {
            tracing::info!(
                wanted = self.audience,
                has = claims.aud,
                "the ID token has another audience, as those of a person's login have"
            );
        }
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audience_is_the_origin_of_the_url() {
        for (url, audience) in [
            ("https://a-b.run.app/mcp?x=1", "https://a-b.run.app"),
            ("https://A-B.Run.App:443/", "https://a-b.run.app"),
            ("https://a.run.app:8443/mcp", "https://a.run.app:8443"),
            ("http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080"),
            ("http://[::1]:80/", "http://[::1]"),
        ] {
            assert_eq!(default_audience(&url.parse().unwrap()), audience, "{url}");
        }
    }
}
