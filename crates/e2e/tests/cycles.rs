//! Daemons that host each other, or themselves: the cycle is found and named, and tools do not multiply.

use cofer_e2e::{Daemon, GatewayClient, cofer, eventually, wayward, within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The registration of another daemon's gateway by its URL.
fn by_url(name: &str, base: &str, daemon: &Daemon) -> Value {
    let authorization = format!("Bearer {}", daemon.token());
    json!({"name": name, "url": format!("{base}/mcp"), "headers": {"Authorization": authorization}})
}

/// The registration of another daemon's gateway by `cofer connect`.
fn by_command(name: &str, daemon: &Daemon) -> Value {
    let environment = json!({"COFER_DATA_DIR": daemon.data_dir()});
    let command = cofer();
    let args = ["--url", daemon.base(), "connect"];
    json!({"name": name, "command": command, "args": args, "environment": environment})
}

async fn tools(daemon: &Daemon) -> Vec<String> {
    let mut client = GatewayClient::open(daemon, "/mcp", json!({})).await;
    client.names("tools", "name").await
}

/// Registers a server and returns it once it has settled, whatever its state.
async fn register(daemon: &Daemon, body: &Value) -> Value {
    daemon.post("/mcp/servers?wait=30", body).await.expect(201)
}

async fn remove(daemon: &Daemon, name: &str) {
    assert_eq!(daemon.delete(&format!("/mcp/servers/{name}")).await.status, 204);
}

fn is_cycle(server: &Value) -> bool {
    server["status"] == "error" && server["error"]["kind"] == "cycle"
}

fn assert_cycle(server: &Value) {
    assert!(is_cycle(server), "{server:#}");
    let (message, hint) = (&server["error"]["message"], &server["error"]["hint"]);
    assert!(message.as_str().is_some_and(|text| text.starts_with("cycle: ")), "{server:#}");
    assert!(hint.as_str().is_some_and(|text| text.contains("remove this server")), "{server:#}");
    assert_eq!(server["enabled"], false, "it is not tried again: {server:#}");
}

/// Passes connections on to a daemon, with its address in the place of ours, as a reverse proxy does.
async fn forward(daemon: &Daemon) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let ours = listener.local_addr().expect("an address").to_string();
    let (base, target) = (format!("http://{ours}"), daemon.address().to_owned());
    assert_eq!(ours.len(), target.len(), "both ports have five digits");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&target).await.expect("the daemon listens");
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let (ours, target) = (ours.clone(), target.clone());
            connections.spawn(async move {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
                    let text = String::from_utf8_lossy(&buffer[..read]).replace(&ours, &target);
                    to_server.write_all(text.as_bytes()).await.ok();
                }
            });
            connections.spawn(async move {
                tokio::io::copy(&mut from_server, &mut to_client).await.ok();
            });
        }
    });
    (base, tasks)
}

#[tokio::test]
async fn the_own_gateway_is_refused_by_its_address() {
    let daemon = Daemon::start().await;
    let port = daemon.address().rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"] {
        let body = by_url("self", &format!("http://{host}:{port}"), &daemon);
        let refused = daemon.post("/mcp/servers", &body).await;
        refused.failure(422, "invalid_request");
        assert!(refused.body.contains("own gateway"), "{}", refused.body);
        let checked = daemon.post("/mcp/validate", &body).await.expect(200);
        assert_eq!(checked["errors"][0]["field"], "url", "{checked}");
        assert_eq!(checked["errors"][0]["blocking"], true, "{checked}");
    }
    daemon.register(&wayward("w", &[])).await;
    let url = json!({"url": format!("{}/mcp/w", daemon.base()), "command": null});
    daemon.patch("/mcp/servers/w", &url).await.failure(422, "invalid_request");
}

#[tokio::test]
async fn own_entries_of_a_clients_configuration_are_skipped_with_a_reason() {
    let daemon = Daemon::start().await;
    let configuration = json!({"mcpServers": {
        "cofer": {"command": "cofer", "args": ["connect"]},
        "here": {"type": "http", "url": format!("{}/mcp", daemon.base())},
        "bridge": {"command": "npx", "args": ["-y", "mcp-remote", format!("{}/mcp", daemon.base())]},
        "other": {"command": "/no/such/program"},
    }});
    let imported = daemon.post("/mcp/import", &configuration).await.expect(200);
    let status = |nth: usize| imported["servers"][nth]["status"].as_str().unwrap();
    assert_eq!([0, 1, 2, 3].map(status), ["skipped", "skipped", "skipped", "imported"]);
    for nth in 0..3 {
        let reason = imported["servers"][nth]["reason"].as_str().unwrap();
        assert!(reason.contains("Cofer itself"), "{reason}");
    }
}

#[tokio::test]
async fn a_daemon_that_hosts_itself_under_another_address_is_found() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let (elsewhere, _forwarding) = forward(&daemon).await;
    assert_cycle(&register(&daemon, &by_url("self", &elsewhere, &daemon)).await);
    assert_cycle(&register(&daemon, &by_command("again", &daemon)).await);
    let tools = tools(&daemon).await;
    assert!(tools.iter().all(|tool| tool.starts_with("w__")), "{tools:?}");
}

#[tokio::test]
async fn two_daemons_that_host_each_other_are_found_over_urls_and_over_commands() {
    let (a, b) = (Daemon::start().await, Daemon::start().await);
    a.register(&wayward("wa", &[])).await;
    b.register(&wayward("wb", &[])).await;
    let alone = tools(&a).await.len();
    for to_b in [by_url("b", b.base(), &b), by_command("b", &b)] {
        a.register(&to_b).await;
        let tools_of_a = tools(&a).await;
        assert!(tools_of_a.len() > alone, "the tools of b are there: {tools_of_a:?}");
        for to_a in [by_url("a", a.base(), &a), by_command("a", &a)] {
            assert_cycle(&register(&b, &to_a).await);
            assert!(tools(&b).await.iter().all(|tool| tool.starts_with("wb__")));
            remove(&b, "a").await;
        }
        assert_eq!(tools(&a).await, tools_of_a, "the first of both goes on as before");
        assert_eq!(a.server("b").await["status"], "ready");
        remove(&a, "b").await;
    }
}

#[tokio::test]
async fn three_daemons_in_a_circle_are_found_in_every_order() {
    let daemons = [Daemon::start().await, Daemon::start().await, Daemon::start().await];
    for daemon in &daemons {
        daemon.register(&wayward("w", &[])).await;
    }
    let alone = tools(&daemons[0]).await.len();
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        for from in order {
            let next = &daemons[(from + 1) % 3];
            let body = if from == 1 {
                by_command("next", next)
            } else {
                by_url("next", next.base(), next)
            };
            register(&daemons[from], &body).await;
            for daemon in &daemons {
                within("the lists are answered", tools(daemon)).await;
            }
        }
        let found = eventually("the circle is open somewhere", async || {
            for daemon in &daemons {
                tools(daemon).await;
                let server = daemon.server("next").await;
                if is_cycle(&server) {
                    return Some(server);
                }
            }
            None
        });
        assert_cycle(&found.await);
        for daemon in &daemons {
            let tools = tools(daemon).await;
            assert!(tools.len() <= 3 * alone, "{}: {tools:?}", tools.len());
        }
        for daemon in &daemons {
            remove(daemon, "next").await;
        }
    }
}
