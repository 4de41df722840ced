//! The proxy on this process's stdin and stdout, from its first byte to nothing left.

use std::sync::Arc;

use cofer_mcp::http::{
    Authorizer, Remote, SetupError, Transport, TransportOptions, Unattended, Unsigned, pump,
};
use cofer_model::{Budget, Redactor};
use tokio_util::sync::CancellationToken;

use crate::auth::{self, Credentials, NotFound};
use crate::hops::hops;
use crate::options::Options;
use crate::parent::Parent;
use crate::stdio;

/// The longest message, in either direction.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
/// What our errors name as their source.
const SOURCE: &str = "cofer-proxy";

/// Why the proxy did not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Certificates or proxy variables.
    #[error("could not prepare connections")]
    Setup(#[from] SetupError),
    /// No credentials.
    #[error("no Google credentials that can be used were found")]
    NoCredentials(NotFound),
}

/// Serves the client on stdin and stdout until it leaves or `shutdown` is ready. Whether there
/// are credentials is found out first; nothing is asked of anybody before the client is.
pub async fn serve(options: Options, shutdown: impl Future<Output = ()>) -> Result<(), ProxyError> {
    let parent = Parent::now();
    let transport = transport(&options)?;
    let authorizer: Arc<dyn Authorizer> = match credentials(&options, &transport).await? {
        Some(credentials) => Arc::new(credentials),
        None => Arc::new(Unsigned),
    };
    tracing::debug!(url = %options.url, "forwarding");
    carry(remote(options, transport, authorizer), parent, shutdown).await;
    Ok(())
}

/// Joins stdin and stdout to the server until the client leaves, `parent` is gone, or
/// `shutdown` is ready.
pub(crate) async fn carry(remote: Remote, parent: Parent, shutdown: impl Future<Output = ()>) {
    let stop = CancellationToken::new();
    let pumping = pump(remote, stdio::input(), stdio::output(), stop.clone());
    let ending = async {
        tokio::select! {
            () = shutdown => {}
            () = parent.gone() => tracing::debug!("the process that started us is gone"),
        }
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = pumping => {}
        () = ending => {}
    }
}

pub(crate) fn transport(options: &Options) -> Result<Transport, SetupError> {
    Transport::new(TransportOptions { cacert: options.cacert.as_deref() })
}

/// The credentials to sign with, none where the person wants no signatures.
pub(crate) async fn credentials(
    options: &Options,
    transport: &Transport,
) -> Result<Option<Credentials>, ProxyError> {
    if options.no_auth {
        return Ok(None);
    }
    let audience = options.audience.clone();
    let audience = audience.unwrap_or_else(|| auth::default_audience(&options.url));
    let mut wanted = auth::Options::new(audience, transport.clone());
    wanted.impersonate.clone_from(&options.impersonate);
    Credentials::find(wanted).await.map(Some).map_err(ProxyError::NoCredentials)
}

pub(crate) fn remote(
    options: Options,
    transport: Transport,
    authorizer: Arc<dyn Authorizer>,
) -> Remote {
    let mut headers = options.headers;
    headers.extend(hops());
    Remote {
        url: options.url,
        headers,
        silence: options.timeout,
        cap: MAX_MESSAGE,
        memory: Budget::unlimited(),
        source: SOURCE.to_owned(),
        transport,
        authorizer,
        attendant: Arc::new(Unattended),
        redactor: Redactor::default(),
    }
}
