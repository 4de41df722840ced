//! TLS: whom to trust. The system's store is read at the first https connection, not before.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::OnceCell;

/// What is trusted beyond the system's store.
#[derive(Debug, Default)]
pub(super) struct Tls {
    extra: Vec<CertificateDer<'static>>,
    config: OnceCell<Arc<ClientConfig>>,
}

/// Why a file of certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// It cannot be read.
    #[error("could not read the certificates in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{} is not a file of PEM certificates", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// It has none in it.
    #[error("{} holds no certificate", .0.display())]
    Empty(PathBuf),
}

/// There is nothing to check a server's certificate against.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrustError {
    #[error("the system's store of certificates is empty or cannot be read: {0}")]
    NoRoots(String),
    #[error("a certificate cannot be trusted")]
    Bad(#[source] rustls::Error),
}

impl Tls {
    /// Trusts also the certificates in `file`.
    pub(super) fn trusting(file: &Path) -> Result<Self, CaError> {
        let path = || file.to_owned();
        let text = std::fs::read(file).map_err(|source| CaError::Read { path: path(), source })?;
        let extra = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| CaError::Pem { path: path(), source })?;
        if extra.is_empty() {
            return Err(CaError::Empty(path()));
        }
        Ok(Self { extra, config: OnceCell::new() })
    }

    /// What connections to servers are opened with.
    pub(super) async fn config(&self) -> Result<Arc<ClientConfig>, TrustError> {
        self.config.get_or_try_init(|| async { self.build().map(Arc::new) }).await.cloned()
    }

    /// What connections to proxies are opened with: CONNECT is sent in the form of HTTP/1.1.
    pub(super) async fn config_for_proxies(&self) -> Result<Arc<ClientConfig>, TrustError> {
        let mut config = ClientConfig::clone(&*self.config().await?);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn build(&self) -> Result<ClientConfig, TrustError> {
        let mut roots = RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        // A store may hold what this library cannot read; the rest serves.
        roots.add_parsable_certificates(system.certs);
        for certificate in &self.extra {
            roots.add(certificate.clone()).map_err(TrustError::Bad)?;
        }
        if roots.is_empty() {
            let reasons: Vec<String> = system.errors.iter().map(ToString::to_string).collect();
            return Err(TrustError::NoRoots(reasons.join("; ")));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Bad)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
