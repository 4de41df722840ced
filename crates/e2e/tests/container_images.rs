//! Preparing is not starting: images are pulled in a phase of their own, and what stands in the
//! way is said.

use cofer_e2e::{
    Daemon, Registry, cofer, containers_of, follow, inspect, podman, try_podman, within,
};
use serde_json::{Value, json};

async fn remove(image: &str) {
    podman(&["rmi", "--force", image]).await;
}

fn server(name: &str, image: &str) -> Value {
    json!({"name": name, "image": image, "provider": "podman"})
}

fn failure<'a>(server: &'a Value, kind: &str) -> &'a Value {
    assert_eq!(server["status"], "error", "{server:#}");
    let error = &server["error"];
    assert_eq!(error["kind"], kind, "{server:#}");
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{server:#}");
    error
}

#[tokio::test]
async fn a_missing_image_is_pulled_with_progress() {
    // covers: HST-1.1
    let registry = Registry::start().await;
    let image = registry.publish("pulled").await;
    let daemon = Daemon::start().await;
    let mut events = daemon.events().await;
    daemon.post("/mcp/servers", &server("w", &image)).await.expect(201);
    let seen = events.until("it is ready", |event| event.is_status("w", "ready")).await;
    let told: Vec<_> = seen.iter().filter(|event| event.name == "mcpServerPreparing").collect();
    assert!(!told.is_empty(), "{seen:#?}");
    assert!(told.iter().all(|event| event.data["name"] == "w"));
    let words: String = told.iter().map(|event| event.data["message"].to_string()).collect();
    assert!(words.contains(&image), "{words}");
    let ready =
        daemon.wait_server("w", "a digest", |server| server["image_digest"].is_string()).await;
    let digest = ready["image_digest"].as_str().expect("the digest is recorded");
    let known = inspect(&image).await;
    assert!(
        known["RepoDigests"].to_string().contains(digest) || known["Digest"] == digest,
        "{ready:#}"
    );
    daemon.tool("w", "pid", &json!({})).await.expect(200);
    // What is there is not pulled again.
    drop(registry);
    let again = daemon.act("w", "restart").await;
    assert_eq!(again["status"], "ready", "{again:#}");
    daemon.delete("/mcp/servers/w").await.expect(204);
    remove(&image).await;
}

#[tokio::test]
async fn the_command_line_shows_the_pull() {
    let registry = Registry::start().await;
    let image = registry.publish("shown").await;
    let daemon = Daemon::start().await;
    let added = daemon.cli(&["server", "add", "w", "--image", &image]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    let shown = format!("{}{}", added.stdout, added.stderr);
    assert!(shown.contains(&image), "{shown}");
    assert_eq!(daemon.server("w").await["status"], "ready");
    daemon.delete("/mcp/servers/w").await.expect(204);
    remove(&image).await;
}

#[tokio::test]
async fn an_image_that_is_nowhere_is_said_to_be() {
    let registry = Registry::start().await;
    let daemon = Daemon::start().await;
    let image = format!("{}/no-such-image:1", registry.address());
    let failed = daemon.settle(&server("w", &image)).await;
    let error = failure(&failed, "image_not_found");
    assert!(error["message"].as_str().unwrap().contains(&image), "{error:#}");
    assert!(containers_of(&failed).await.is_empty());
    // One that only this machine could have is not looked for elsewhere.
    let local = daemon.settle(&server("local", "localhost/cofer-test/no-such-image")).await;
    assert_eq!(local["status"], "error", "{local:#}");
    assert!(local["error"]["message"].as_str().unwrap().contains("no-such-image"), "{local:#}");
}

#[tokio::test]
async fn a_registry_that_is_down_is_named() {
    let mut registry = Registry::start().await;
    let address = registry.address();
    registry.stop().await;
    let daemon = Daemon::start().await;
    let failed = daemon.settle(&server("w", &format!("{address}/any:1"))).await;
    let error = failure(&failed, "image_pull_failed");
    assert!(error.to_string().contains(&address), "{error:#}");
}

#[tokio::test]
async fn a_registry_that_wants_a_login_says_how() {
    let registry = Registry::with_login().await;
    let image = registry.publish("guarded").await;
    let daemon = Daemon::start().await;
    let failed = daemon.settle(&server("w", &image)).await;
    let error = failure(&failed, "login_required");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("podman login") && hint.contains(&registry.address()), "{error:#}");
    assert_ne!(try_podman(&["image", "exists", &image]).await.code, Some(0));
}

#[tokio::test]
async fn a_pull_can_be_given_up() {
    // A registry that takes the connection and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let daemon = Daemon::start().await;
    let image = format!("{address}/silent:1");
    daemon.post("/mcp/servers", &server("w", &image)).await.expect(201);
    daemon
        .wait_server("w", "said to be pulled", |server| {
            server["preparing"].as_str().is_some_and(|words| words.contains(&image))
        })
        .await;
    daemon.delete("/mcp/servers/w").await.expect(204);
    cofer_e2e::eventually("the pull has ended", async || {
        cofer_e2e::processes_with(&image).is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_name_that_is_no_image_is_refused_at_once() {
    let daemon = Daemon::start().await;
    for image in ["", "--privileged", "UPPER/case", "a b", "x:y:z"] {
        let answer = daemon.post("/mcp/servers", &server("w", image)).await;
        assert_eq!(answer.status, 422, "{image:?}: {}", answer.body);
    }
}

#[tokio::test]
async fn events_of_a_pull_reach_a_person_who_follows() {
    let registry = Registry::start().await;
    let image = registry.publish("followed").await;
    let daemon = Daemon::start().await;
    let data = daemon.data_dir();
    let env = [
        ("COFER_DATA_DIR", data.to_str().unwrap()),
        ("COFER_LISTEN", daemon.address()),
        ("HOME", data.to_str().unwrap()),
    ];
    daemon.settle(&server("w", &image)).await;
    let (_child, mut lines) = follow(&cofer(), &["server", "logs", "w", "--follow"], &env);
    let log = within("the log tells of the pull", async {
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains(&image) {
                return line;
            }
        }
        String::new()
    })
    .await;
    assert!(log.contains(&image));
    daemon.delete("/mcp/servers/w").await.expect(204);
    remove(&image).await;
}

#[tokio::test]
async fn the_registries_of_these_tests_are_what_they_say() {
    let open = Registry::start().await;
    let image = open.publish("open").await;
    assert_ne!(try_podman(&["image", "exists", &image]).await.code, Some(0), "it is only there");
    podman(&["pull", "--quiet", &image]).await;
    remove(&image).await;
    let guarded = Registry::with_login().await;
    let image = guarded.publish("guarded").await;
    assert_ne!(try_podman(&["pull", "--quiet", &image]).await.code, Some(0));
    podman(&["pull", "--quiet", "--creds", "tester:secret", &image]).await;
    remove(&image).await;
}
