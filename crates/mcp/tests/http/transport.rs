//! Connections: TLS and whom to trust, HTTP/2, a proxy on the way, connections that went stale.

use std::sync::Arc;

use cofer_mcp::http::{
    ProxySettings, Remote, SetupError, Transport, TransportError, TransportOptions,
};
use http::Request;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::client::{Client, remote};
use crate::server::{Server, result};

/// A certificate for this machine as a file, and what a server proves itself with.
fn certificate(protocols: &[&str]) -> (NamedTempFile, TlsAcceptor) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    (file, TlsAcceptor::from(Arc::new(config)))
}

fn over(transport: Transport, url: &str) -> Client {
    Client::start(Remote { transport, ..remote(url) })
}

fn trusting(file: &NamedTempFile, proxies: ProxySettings) -> Transport {
    Transport::with_proxies(TransportOptions { cacert: Some(file.path()) }, proxies).unwrap()
}

#[tokio::test]
async fn a_trusted_server_is_spoken_to_in_the_newest_way_it_knows() {
    // covers: PRX-4.1
    for protocols in [&["h2", "http/1.1"][..], &["http/1.1"], &[]] {
        let (file, acceptor) = certificate(protocols);
        let server = Server::start_tls(|seen| result(seen, json!({})), acceptor).await;
        let url = format!("https://localhost:{}/mcp", server.address.port());
        let mut client = over(trusting(&file, ProxySettings::default()), &url);
        for id in 0..10 {
            client.ask(id, "tools/call", json!({})).await;
        }
        let connections = server.seen().last().unwrap().connection;
        assert!(connections < 5, "{connections} connections");
        client.close_input();
        assert!(client.rest().await.is_empty());
    }
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_told_as_such() {
    // covers: PRX-5.1
    let (_, acceptor) = certificate(&[]);
    let server = Server::start_tls(|seen| result(seen, json!({})), acceptor).await;
    let (other, _) = certificate(&[]);
    let url = format!("https://localhost:{}/mcp", server.address.port());
    let mut client = over(trusting(&other, ProxySettings::default()), &url);
    let error = client.ask(1, "tools/call", json!({})).await;
    assert_eq!(error["error"]["data"]["kind"], "tls", "{error}");
    assert!(error["error"]["data"]["hint"].as_str().unwrap().contains("--cacert"));
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_name_that_is_not_the_certificates_is_not_trusted() {
    let (file, acceptor) = certificate(&[]);
    let server = Server::start_tls(|seen| result(seen, json!({})), acceptor).await;
    let url = format!("https://127.0.0.2:{}/mcp", server.address.port());
    let mut client = over(trusting(&file, ProxySettings::default()), &url);
    let error = client.ask(1, "tools/call", json!({})).await;
    let kind = error["error"]["data"]["kind"].as_str().unwrap();
    assert!(["tls", "connect"].contains(&kind), "{error}");
    assert!(server.seen().is_empty());
}

#[test]
fn a_file_without_certificates_is_refused_at_the_start() {
    let file = NamedTempFile::new().unwrap();
    let refused = |path| {
        let options = TransportOptions { cacert: Some(path) };
        Transport::with_proxies(options, ProxySettings::default()).unwrap_err()
    };
    assert!(matches!(refused(file.path()), SetupError::Ca(_)));
    assert!(refused(std::path::Path::new("/nonexistent")).to_string().contains("/nonexistent"));
}

/// A proxy that opens tunnels for those who know its password; gives its address.
async fn proxy(tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tasks.spawn(async move {
        let mut tunnels = JoinSet::new();
        loop {
            let (client, _) = listener.accept().await.unwrap();
            tunnels.spawn(tunnel(client));
        }
    });
    address
}

async fn tunnel(mut client: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    if !head.contains("Proxy-Authorization: Basic bWU6cHc=\r\n") {
        client.write_all(b"HTTP/1.1 407 Who are you\r\n\r\n").await.unwrap();
        return;
    }
    let target = head.split(' ').nth(1).unwrap().to_owned();
    let mut server = TcpStream::connect(target).await.unwrap();
    client.write_all(b"HTTP/1.1 200 Here you go\r\nX: y\r\n\r\n").await.unwrap();
    drop(copy_bidirectional(&mut client, &mut server).await);
}

fn through(proxy: String, except: &'static str) -> ProxySettings {
    ProxySettings::read(move |name| match name {
        "https_proxy" => Some(proxy.clone()),
        "no_proxy" => Some(except.to_owned()),
        _ => None,
    })
    .unwrap()
}

#[tokio::test]
async fn https_goes_through_the_proxy_of_the_environment() {
    let (file, acceptor) = certificate(&["h2"]);
    let server = Server::start_tls(|seen| result(seen, json!({})), acceptor).await;
    let url = format!("https://localhost:{}/mcp", server.address.port());
    let mut tasks = JoinSet::new();
    let proxy = proxy(&mut tasks).await;
    let mut client = over(trusting(&file, through(format!("http://me:pw@{proxy}"), "")), &url);
    assert!(client.ask(1, "tools/call", json!({})).await.get("result").is_some());
    // Without the password it refuses, which its absence on this way proves.
    let mut client = over(trusting(&file, through(format!("http://{proxy}"), "")), &url);
    let error = client.ask(1, "tools/call", json!({})).await;
    assert_eq!(error["error"]["data"]["kind"], "connect", "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("407"), "{error}");
    let mut client =
        over(trusting(&file, through("http://127.0.0.1:1".to_owned(), "localhost")), &url);
    assert!(client.ask(1, "tools/call", json!({})).await.get("result").is_some());
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    // One answer a connection, and then the server hangs up without a word of it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (closed, mut is_closed) = tokio::sync::mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\nhello") {
                stream.read_buf(&mut head).await.unwrap();
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            drop(stream);
            closed.send(()).unwrap();
        }
    });
    let transport = remote(&url).transport;
    for _ in 0..5 {
        let request = Request::post(&url).body("hello".into()).unwrap();
        let response = transport.send(request).await.unwrap();
        assert_eq!(response.into_body().collect(10).await.unwrap(), "ok");
        is_closed.recv().await.unwrap();
    }
}

#[tokio::test]
async fn a_body_over_the_readers_limit_is_refused() {
    let server = Server::start(|seen| result(seen, json!("x".repeat(1000)))).await;
    let transport = remote(&server.url()).transport;
    let request = Request::post(server.url()).body("{\"id\":1}".into()).unwrap();
    let body = transport.send(request).await.unwrap().into_body();
    assert!(matches!(body.collect(100).await, Err(TransportError::TooLarge { cap: 100 })));
    let request = Request::get("/no-host").body("".into()).unwrap();
    assert!(matches!(transport.send(request).await, Err(TransportError::Url(_))));
}
