//! When a server elsewhere counts as lost, and when not.

use cofer_mcp::http::ProxySettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;

fn trouble(kind: Sort) -> Trouble {
    let (message, hint) = ("it failed".to_owned(), "h".to_owned());
    Trouble { kind, message, http_status: None, hint, body: None }
}

/// A lookout for the server at this address, and the way to tell it of failures.
fn lookout(url: &str) -> (Lookout, Ear) {
    let (tell, troubles) = mpsc::channel(MAX_TROUBLES);
    let proxies = ProxySettings::default();
    let transport = Transport::with_proxies(TransportOptions::default(), proxies).unwrap();
    let url = url.parse().unwrap();
    (Lookout { url, transport, troubles, signed: false }, Ear(tell))
}

/// Somebody who answers HTTP, until the set is dropped.
async fn server() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut heard = [0; 1024];
            assert!(stream.read(&mut heard).await.unwrap() > 0);
            let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    });
    (url, tasks)
}

#[tokio::test]
async fn a_server_is_lost_when_it_is_not_there_at_a_second_look() {
    let (url, tasks) = server().await;
    let (lookout, ear) = lookout(&url);
    ear.failed("tools/call", &trouble(Sort::Connect));
    let lost = lookout.lost();
    tokio::pin!(lost);
    // It is there: one connection that broke is nobody's loss.
    assert!(timeout(SECOND_LOOK * 4, &mut lost).await.is_err());
    drop(tasks);
    ear.failed("tools/call", &trouble(Sort::Connect));
    assert_eq!(lost.await.kind, FailureKind::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_counts_only_where_even_a_heartbeat_is_refused() {
    let (lookout, ear) = lookout("http://127.0.0.1:1/mcp");
    ear.failed("tools/call", &trouble(Sort::Forbidden));
    ear.failed("ping", &trouble(Sort::Timeout));
    let lost = lookout.lost();
    tokio::pin!(lost);
    assert!(timeout(SECOND_LOOK * 4, &mut lost).await.is_err());
    ear.failed("ping", &trouble(Sort::Forbidden));
    assert_eq!(lost.await.kind, FailureKind::Forbidden);
}

#[tokio::test]
async fn closing_its_stdin_ends_a_conversation() {
    let (url, _tasks) = server().await;
    let body = serde_json::json!({"name": "x", "url": url});
    let spec = cofer_model::parse_registration(body).unwrap();
    let memory = Memory::new(1 << 30, 1 << 20);
    let launcher = RemoteLauncher::new(1 << 20, memory, None, Uuid::nil());
    let id = ServerId(uuid::Uuid::nil());
    let Launched { running, streams, .. } = launcher.launch(id, &spec).await.unwrap();
    assert_eq!((running.pid(), running.facts().endpoints), (None, vec![url]));
    drop(streams.stdin);
    // Its stdout is still open, and nobody asked it to end.
    running.gone().await;
    assert_eq!(running.exited().await, Exit { code: None, signal: None });
    drop(streams.stdout);
}

#[tokio::test]
async fn a_signature_that_nobody_can_give_is_said_to_be_missing() {
    let body = serde_json::json!({
        "name": "x", "url": "https://example.com/mcp", "auth": "google_id_token",
    });
    let spec = cofer_model::parse_registration(body).unwrap();
    let memory = Memory::new(1 << 30, 1 << 20);
    let launcher = RemoteLauncher::new(1 << 20, memory, None, Uuid::nil());
    let launched = launcher.launch(ServerId(uuid::Uuid::nil()), &spec).await;
    let Err(failure) = launched else { panic!("it was launched") };
    assert_eq!(failure.kind, FailureKind::CredentialsMissing);
}
