//! Servers that flood the daemon: its memory stays below `--max-memory`, other servers are served,
//! and what was lost is counted where a person finds it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::pin::Pin;
use std::time::Duration;

use cofer_e2e::{Daemon, GatewayClient, eventually, wayward};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;
/// `--max-memory` of every daemon here.
const LIMIT: u64 = 256 * MIB;
/// What the daemon may use besides: the read buffers, and messages of 16 KiB and less.
const OVERHEAD: u64 = 48 * MIB;

/// A daemon with little memory, a server named `bad` that was told to flood it, and a good one.
struct Scene {
    daemon: Daemon,
    /// What the daemon used before anything happened.
    base: u64,
}

impl Scene {
    async fn set(bad: &[&str]) -> Self {
        let daemon = Daemon::builder().arg("--max-memory").arg("256M").start().await;
        let mut body = wayward("bad", bad);
        body["call_timeout_ms"] = 300_000.into();
        daemon.register(&body).await;
        daemon.register(&wayward("good", &[])).await;
        daemon.tool("good", "echo", &json!({})).await.expect(200);
        let base = memory_of(&daemon, "VmRSS");
        Self { daemon, base }
    }

    /// Runs an attack while the other server is called all the time.
    async fn attack<T>(&self, attack: Pin<Box<impl Future<Output = T>>>) -> T {
        let others = async {
            loop {
                self.daemon.tool("good", "echo", &json!({"n": 1})).await.expect(200);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let others = Box::pin(others);
        tokio::select! {
            done = attack => done,
            () = others => unreachable!("it goes on until the attack has ended"),
        }
    }

    /// What must be true after every attack.
    async fn check(&self) {
        let peak = memory_of(&self.daemon, "VmHWM");
        let allowed = self.base + LIMIT + OVERHEAD;
        assert!(peak < allowed, "{} MiB of {} MiB", peak / MIB, allowed / MIB);
        let bad = self.daemon.server("bad").await;
        let reasons = bad["health_reasons"].to_string();
        assert_eq!((&bad["status"], &bad["health"]), (&json!("ready"), &json!("warning")));
        assert!(reasons.contains("memory limit of 134217728 bytes was reached"), "{reasons}");
        let good = self.daemon.server("good").await;
        assert_eq!(good["health"], "ok", "{good}");
        eventually("the memory is released", async || {
            // Its lists stay in the catalogue.
            (self.used("server", "bad").await < MIB).then_some(())
        })
        .await;
        self.daemon.tool("bad", "echo", &json!({})).await.expect(200);
    }

    /// The heap is trimmed, so that the system has the memory back.
    async fn check_returned(&self) {
        eventually("the system has the memory back", async || {
            (memory_of(&self.daemon, "VmRSS") < self.base + OVERHEAD).then_some(())
        })
        .await;
    }

    /// The bytes charged against a budget, as `/metrics` shows them.
    async fn used(&self, budget: &str, server: &str) -> u64 {
        let request = self.daemon.raw(reqwest::Method::GET, "/metrics");
        let text = self.daemon.send(request.bearer_auth(self.daemon.token())).await.body;
        let name = format!(r#"cofer_memory_used_bytes{{budget="{budget}",server="{server}"}} "#);
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }
}

/// A line of `/proc/PID/status`, in bytes.
fn memory_of(daemon: &Daemon, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kib: u64 = line.unwrap().trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
    kib * 1024
}

fn is_overloaded(error: &Value) -> bool {
    error["kind"] == "overloaded"
}

#[tokio::test]
async fn endless_pages_of_a_list_do_not_fill_the_memory() {
    let scene = Scene::set(&["--fat-pages", "4000000"]).await;
    let daemon = &scene.daemon;
    let (first, second) = scene
        .attack(Box::pin(async {
            tokio::join!(
                daemon.get("/mcp/servers/bad/tools"),
                daemon.get("/mcp/servers/bad/prompts")
            )
        }))
        .await;
    for answer in [first, second] {
        assert!(is_overloaded(&answer.expect(429)["error"]));
    }
    // The joined list goes on without it.
    let mut client = GatewayClient::open(daemon, "/mcp", json!({})).await;
    let names = scene.attack(Box::pin(client.names("tools", "name"))).await;
    assert!(names.contains(&"good__echo".to_owned()), "{names:?}");
    scene.check().await;
    scene.check_returned().await;
}

#[tokio::test]
async fn large_elicitations_during_one_call_do_not_fill_the_memory() {
    let scene = Scene::set(&[]).await;
    let daemon = &scene.daemon;
    let mut client =
        GatewayClient::open(daemon, "/mcp/bad", json!({"elicitation": {"form": {}}})).await;
    let call = json!({"name": "elicit", "arguments": {"n": 30 * MIB, "times": 9}});
    // The client does not read its stream before the server has said everything.
    let (id, exchange) = client.ask("tools/call", call).await;
    scene
        .attack(Box::pin(eventually("the server has sent all of them", async || {
            let recent = daemon.get("/activity").await.expect(200).to_string();
            recent.contains("elicit").then_some(())
        })))
        .await;
    let mut messages = exchange.stream();
    let answer = messages.answer(id).await;
    assert_eq!(answer["result"]["content"][0]["text"], "elicited", "the call itself succeeds");
    let asked = messages.passed.iter().filter(|message| message["method"] == "elicitation/create");
    let asked = asked.count();
    assert!((1..9).contains(&asked), "{asked} of 9 elicitations reached the client");
    drop(messages);
    client.end().await;
    scene.check().await;
}

#[tokio::test]
async fn large_notifications_to_an_idle_session_do_not_fill_the_memory() {
    let scene = Scene::set(&[]).await;
    let daemon = &scene.daemon;
    let _idle = GatewayClient::open(daemon, "/mcp/bad", json!({})).await;
    let flood = json!({"n": 60 * MIB, "times": 6});
    let answer = scene.attack(Box::pin(daemon.tool("bad", "notify", &flood))).await;
    answer.expect(200);
    scene.check().await;
    scene.check_returned().await;
}

#[tokio::test]
async fn small_notifications_to_an_idle_session_lose_the_oldest() {
    let daemon = Daemon::start().await;
    daemon.register(&wayward("w", &[])).await;
    let idle = GatewayClient::open(&daemon, "/mcp/w", json!({})).await;
    let flood = json!({"n": 1_000_000, "times": 30});
    daemon.tool("w", "notify", &flood).await.expect(200);
    let all = |server: &Value| server["health_reasons"].to_string().contains(" 22 messages ");
    daemon.wait_server("w", "22 messages lost", all).await;
    let mut messages = idle.listen(None).await;
    let last = messages.until("the last", |message| message["params"]["number"] == 29).await;
    assert_eq!(last["method"], "notifications/wayward");
    let kept: Vec<u64> =
        messages.passed.iter().filter_map(|message| message["params"]["number"].as_u64()).collect();
    assert_eq!(kept, (22..29).collect::<Vec<_>>(), "8 MiB of them, the newest");
}
