//! An HTTPS proxy that opens TLS: behind it, every host has a certificate of the test's own
//! authority and is the fake, or somebody else on loopback.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::server::{Running, listen};

type Issuer = CertifiedIssuer<'static, KeyPair>;
type Hosts = Arc<Mutex<BTreeMap<String, SocketAddr>>>;

pub(crate) struct Tunnel {
    address: SocketAddr,
    ca_pem: String,
    hosts: Hosts,
    _running: Running,
}

impl Tunnel {
    /// A tunnel whose hosts are at this address, unless said otherwise.
    pub(crate) fn start(usual: SocketAddr) -> Self {
        let authority = Arc::new(authority());
        let ca_pem = authority.pem();
        let hosts = Hosts::default();
        let (listener, address) = listen();
        let known = Arc::clone(&hosts);
        let running = Running::start("fake-tunnel", async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            let mut connections = JoinSet::new();
            loop {
                while connections.try_join_next().is_some() {}
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (authority, known) = (Arc::clone(&authority), Arc::clone(&known));
                connections.spawn(async move {
                    // Whoever goes away in the middle has said enough.
                    drop(serve(stream, &authority, &known, usual).await);
                });
            }
        });
        Self { address, ca_pem, hosts, _running: running }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    pub(crate) fn host(&self, name: &str, address: SocketAddr) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.insert(name.to_owned(), address);
    }
}

async fn serve(
    mut stream: TcpStream,
    authority: &Issuer,
    hosts: &Hosts,
    usual: SocketAddr,
) -> io::Result<()> {
    let host = connect_host(&mut stream).await?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let place = hosts.lock().unwrap_or_else(PoisonError::into_inner).get(&host).copied();
    let acceptor = TlsAcceptor::from(Arc::new(certificate(authority, &host)));
    let mut secure = acceptor.accept(stream).await?;
    let mut plain = TcpStream::connect(place.unwrap_or(usual)).await?;
    tokio::io::copy_bidirectional(&mut secure, &mut plain).await.map(drop)
}

/// The host of `CONNECT host:port HTTP/1.1`, once the request's head is over.
async fn connect_host(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 16 * 1024 {
            return Err(io::Error::other("a head without an end"));
        }
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(':').next());
    target.map(str::to_owned).ok_or_else(|| io::Error::other("not CONNECT"))
}

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "the tests' own authority");
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("an authority")
}

fn certificate(authority: &Issuer, host: &str) -> ServerConfig {
    let params = CertificateParams::new(vec![host.to_owned()]).expect("a host's name");
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("usual versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate with its key")
}
