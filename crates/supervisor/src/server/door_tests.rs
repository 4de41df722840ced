//! Doors with real sockets: what is behind them is a few lines of HTTP.

use super::*;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
/// Short, because these tests wait for it.
const SHORT: Patience =
    Patience { refused: Duration::from_millis(300), silent: Duration::from_millis(600) };

struct Deaf;

impl Listener for Deaf {
    fn notified(&self, _method: &str, _params: Option<&Bytes>) {}
    fn noise(&self, _line: &[u8]) {}
    fn oversized(&self, _bytes: u64) {}
    fn unaffordable(&self, _bytes: u64) {}
}

fn speaking() -> Speaking {
    let listener = Arc::new(Deaf);
    Speaking { config: BridgeConfig::default(), listener, tasks: TaskTracker::new() }
}

/// How a server behind a door behaves.
#[derive(Debug, Clone, Copy)]
enum Behind {
    /// Speaks MCP at this path, and says 404 elsewhere.
    Mcp(&'static str),
    /// Takes connections and says nothing.
    Silence,
    /// Takes connections and closes them.
    Nobody,
}

/// A door, and the server behind it, which ends with what is returned.
async fn door(behind: Behind) -> (Door, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            connections.spawn(serve(stream, behind));
        }
    });
    (Door { port: 80, address, path: None }, server)
}

async fn serve(stream: TcpStream, behind: Behind) {
    match behind {
        Behind::Nobody => drop(stream),
        Behind::Silence => {
            let mut reader = BufReader::new(stream);
            while reader.read_u8().await.is_ok() {}
        }
        Behind::Mcp(path) => {
            let mut stream = BufReader::new(stream);
            while let Some((request, body)) = read_request(&mut stream).await {
                let answer = answer(&request, &body, path);
                if stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The request line and the body.
async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push(line);
    }
    let length = head.iter().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head.first()?.trim().to_owned(), body))
}

fn answer(request: &str, body: &[u8], path: &str) -> String {
    if !request.starts_with(&format!("POST {path} ")) {
        return "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
    }
    let message: Value = serde_json::from_slice(body).unwrap();
    let Some(id) = message.get("id") else {
        return "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned();
    };
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "behind"}});
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

async fn find(door: &Door, speaking: &Speaking) -> Result<Found, NotReady> {
    find_mcp(door, speaking, Instant::now() + LONG, SHORT).await
}

#[tokio::test]
async fn mcp_is_found_where_it_usually_is() {
    // covers: HST-1.2
    for path in ["/mcp", "/"] {
        let (door, _server) = door(Behind::Mcp(path)).await;
        let speaking = speaking();
        let found = open(&door, &speaking, Instant::now() + LONG).await.unwrap();
        let Found::Mcp { talk, peer, url } = found else { panic!("no MCP at {path}") };
        assert_eq!(url, format!("http://{}{path}", door.address));
        assert_eq!(peer.server_info["name"], "behind");
        // Dropping the conversation ends all that was started for it.
        drop(talk);
        speaking.tasks.close();
        timeout(LONG, speaking.tasks.wait()).await.unwrap();
    }
}

#[tokio::test]
async fn a_path_that_was_named_is_the_only_one_that_counts() {
    let (mut door, _server) = door(Behind::Mcp("/mcp")).await;
    door.path = Some("/elsewhere".to_owned());
    let deadline = Instant::now() + SHORT.refused;
    let found = find_mcp(&door, &speaking(), deadline, SHORT).await;
    assert!(matches!(found, Err(NotReady::Handshake(HandshakeError::Refused { .. }))));
    door.path = Some("/mcp".to_owned());
    assert!(matches!(find(&door, &speaking()).await, Ok(Found::Mcp { .. })));
}

#[tokio::test]
async fn an_open_port_without_mcp_is_an_open_port() {
    // covers: HST-1.2
    for (behind, speaks_http) in [(Behind::Mcp("/hidden"), true), (Behind::Silence, false)] {
        let (door, _server) = door(behind).await;
        assert!(is_open(door.address).await, "{behind:?}");
        let Ok(Found::OpenPort { http }) = find(&door, &speaking()).await else {
            panic!("{behind:?}")
        };
        assert_eq!(http, speaks_http, "{behind:?}");
    }
}

#[tokio::test]
async fn a_forwarder_with_nobody_behind_it_is_a_closed_door() {
    let (door, _server) = door(Behind::Nobody).await;
    assert!(!is_open(door.address).await);
    let deadline = Instant::now() + SHORT.refused;
    let found = open(&door, &speaking(), deadline).await;
    assert!(matches!(found, Err(NotReady::DoorClosed { .. })));
}

#[tokio::test]
async fn a_door_that_opens_late_is_waited_for() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    let mut later = JoinSet::new();
    let door = Door { port: 80, address, path: None };
    let opening = async {
        assert!(!is_open(address).await);
        let listener = TcpListener::bind(address).await.unwrap();
        later.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, Behind::Mcp("/mcp")));
            }
        });
        std::future::pending::<()>().await;
    };
    let speaking = speaking();
    tokio::select! {
        found = open(&door, &speaking, Instant::now() + LONG) => {
            assert!(matches!(found, Ok(Found::Mcp { .. })));
        }
        () = opening => unreachable!("it never ends"),
    }
}

#[tokio::test]
async fn a_server_that_hangs_behind_an_open_port_falls_silent() {
    // covers: HST-4.3
    let heartbeat = cofer_model::HeartbeatSpec { interval_ms: 20, timeout_ms: 300 };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts; the kernel takes the connections all the same.
    let change = |http, responsive| {
        crate::server::health::change_of_port(address, http, heartbeat, responsive)
    };
    assert!(!timeout(LONG, change(true, true)).await.unwrap(), "it spoke HTTP once");
    let accepting = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, Behind::Mcp("/hidden")).await;
        }
    };
    tokio::select! {
        responsive = change(true, false) => assert!(responsive),
        () = accepting => unreachable!("it never ends"),
    }
}
