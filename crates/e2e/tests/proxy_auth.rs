//! `cofer proxy` with credentials of every kind, against a Google of our own and Cloud Run's front
//! door: the real binary, and what a person sees of it.

use std::path::{Path, PathBuf};

use cofer_e2e::{Ended, McpClient, cofer, run};
use fake_google::{
    CLIENT_ID, DoorOptions, FrontDoor, Google, PERSON, Play, SERVICE_ACCOUNT, TARGET, Words,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A home folder, a fake Google, and a service that it guards.
struct World {
    google: Google,
    door: FrontDoor,
    home: TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(DoorOptions::default())
    }

    fn with(options: DoorOptions) -> Self {
        let google = Google::start();
        let door = FrontDoor::start(&google, options);
        Self { google, door, home: tempfile::tempdir().expect("a temporary folder") }
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.home.path().join(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    fn file(&self, json: &Value) -> PathBuf {
        self.write("credentials.json", &json.to_string())
    }

    /// Runs `cofer proxy` to its end, with these variables and flags.
    async fn run(&self, variables: &[(&str, &str)], flags: &[&str], input: &str) -> Ended {
        let url = format!("{}/mcp", self.door.url());
        let home = self.home.path().to_str().expect("text");
        let mut environment = vec![("HOME", home)];
        environment.extend(variables);
        let arguments = [&["proxy", "--url", &url][..], flags].concat();
        let ended = run(&cofer(), &arguments, &environment, input).await;
        self.no_secret_in(&ended);
        ended
    }

    /// Starts `cofer proxy` with these variables, and shakes hands.
    async fn client(&self, variables: &[(&str, &str)]) -> McpClient {
        let url = format!("{}/mcp", self.door.url());
        let home = self.home.path();
        let mut environment = vec![("HOME", home.to_str().expect("text"))];
        environment.extend(variables);
        let arguments = ["proxy", "--url", &url];
        let mut client = McpClient::start_by(&cofer(), &arguments, &environment, home);
        client.initialize().await;
        client
    }

    /// Runs `cofer proxy --check` with this credentials file.
    async fn check(&self, file: &Path, flags: &[&str]) -> Ended {
        let file = file.to_str().expect("text");
        let variables = [("GOOGLE_APPLICATION_CREDENTIALS", file), ("NO_GCE_CHECK", "true")];
        self.run(&variables, &[&["--check", "--verbose"][..], flags].concat(), "").await
    }

    fn no_secret_in(&self, ended: &Ended) {
        for canary in self.google.canaries() {
            assert!(!ended.stdout.contains(&canary), "{canary} in stdout: {}", ended.stdout);
            assert!(!ended.stderr.contains(&canary), "{canary} in stderr: {}", ended.stderr);
        }
    }
}

#[tokio::test]
async fn without_credentials_it_ends_at_once_and_says_what_was_looked_for() {
    // covers: PRX-2.3, PRX-1.3
    let world = World::new();
    let ended = world.run(&[("NO_GCE_CHECK", "true")], &[], "").await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.stdout, "", "stdout is the protocol's");
    for part in [
        "GOOGLE_APPLICATION_CREDENTIALS: not set",
        "application_default_credentials.json: no such file",
        "metadata server",
        "gcloud auth application-default login",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(world.door.seen().is_empty());
}

#[tokio::test]
async fn every_kind_of_credentials_opens_the_door() {
    // covers: PRX-2.1, PRX-2.2, PRX-2.4, PRX-6.4
    let world = World::new();
    let subject = world.write("subject", &world.google.subject_token());
    let google = &world.google;
    for (credentials, principal) in [
        (google.service_account(), SERVICE_ACCOUNT),
        (google.authorized_user(), PERSON),
        (google.impersonated(google.authorized_user()), TARGET),
        (google.impersonated(google.workforce_login()), TARGET),
        (google.external_account(json!({ "file": subject })), TARGET),
        (google.aws_account(), TARGET),
    ] {
        let kind = credentials["type"].as_str().expect("a type").to_owned();
        let ended = world.check(&world.file(&credentials), &[]).await;
        assert_eq!(ended.code, Some(0), "{kind}: {} {}", ended.stdout, ended.stderr);
        for part in [kind.as_str(), principal, "fake-service", "1 tool"] {
            assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
        }
        let seen = world.door.seen();
        let (_, verdict) = seen.last().expect("the door was reached");
        assert_eq!(verdict.as_ref().expect("the token is good").email, principal);
    }
}

#[tokio::test]
async fn on_a_machine_of_googles_the_metadata_server_signs() {
    // covers: PRX-2.1
    let world = World::new();
    let host = world.google.metadata_host();
    let ended = world.run(&[("GCE_METADATA_HOST", &host)], &["--check"], "").await;
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains(&format!("metadata server at {host}")), "{}", ended.stdout);
}

#[tokio::test]
async fn a_login_of_gcloud_impersonates_behind_a_proxy() {
    // covers: PRX-2.2
    let host = Some("demo-1.a.run.app".to_owned());
    let world = World::with(DoorOptions { host, ..DoorOptions::default() });
    let (proxy, ca) = (world.google.proxy(), world.write("ca.pem", world.google.ca_pem()));
    let file = world.file(&world.google.gcloud_login());
    let variables = [
        ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().expect("text")),
        ("HTTPS_PROXY", proxy.as_str()),
    ];
    let ca = ca.to_str().expect("text");
    let flags = ["--check", "--cacert", ca, "--impersonate-service-account", TARGET];
    let ended = world.run(&variables, &flags, "").await;
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains(TARGET), "{}", ended.stdout);
    let asked: Vec<String> = world.google.seen().into_iter().map(|seen| seen.host).collect();
    assert_eq!(asked, ["oauth2.googleapis.com", "iamcredentials.googleapis.com"]);
}

#[tokio::test]
async fn a_check_stops_at_the_step_that_fails_and_says_what_to_do() {
    // covers: PRX-5.2
    let world = World::new();
    let file = world.file(&world.google.authorized_user());
    world.google.play("/token", Play::json(400, &Words::reauth()));
    let ended = world.check(&file, &[]).await;
    assert_eq!(ended.code, Some(3), "{} {}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("gcloud auth application-default login"), "{}", ended.stderr);

    let invokers = Some(vec!["somebody@else".to_owned()]);
    let world = World::with(DoorOptions { invokers, ..DoorOptions::default() });
    let ended = world.check(&world.file(&world.google.service_account()), &[]).await;
    assert_eq!(ended.code, Some(4), "{} {}", ended.stdout, ended.stderr);
    for part in ["roles/run.invoker", SERVICE_ACCOUNT] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }

    let world = World::new();
    world.google.set_login_client(CLIENT_ID);
    let ended = world.check(&world.file(&world.google.authorized_user()), &[]).await;
    assert_eq!(ended.code, Some(4), "{} {}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("--client-id-file"), "{}", ended.stderr);
    let refused = world.door.seen();
    assert!(refused.len() >= 2, "a 401 is answered with a new token: {refused:?}");
}

#[tokio::test]
async fn another_audience_is_asked_for() {
    let audience = Some("https://custom.example.com".to_owned());
    let world = World::with(DoorOptions { audience, ..DoorOptions::default() });
    let file = world.file(&world.google.service_account());
    let ended = world.check(&file, &[]).await;
    assert_eq!(ended.code, Some(4), "{} {}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("--audience"), "{}", ended.stderr);
    let ended = world.check(&file, &["--audience", "https://custom.example.com"]).await;
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
}

async fn echo(client: &mut McpClient) -> Value {
    client.request("tools/call", json!({"name": "echo", "arguments": {"say": "hello"}})).await
}

#[tokio::test]
async fn after_a_new_login_the_running_proxy_goes_on() {
    // covers: PRX-2.5, PRX-5.2
    let world = World::new();
    let file = world.file(&world.google.authorized_user());
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().expect("text"))];
    let mut client = world.client(&variables).await;
    assert!(echo(&mut client).await["result"].is_object());
    // The session of the organisation ends: the token is refused, and so is the login.
    world.google.set_refresh_token("1//of-a-new-login-canary");
    world.door.bar_known_tokens();
    let answer = echo(&mut client).await;
    let data = &answer["error"]["data"];
    assert_eq!(data["kind"], "auth", "{answer}");
    let hint = data["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("gcloud auth application-default login"), "{answer}");
    world.file(&world.google.authorized_user());
    let answer = echo(&mut client).await;
    assert!(answer["result"].is_object(), "{answer}");
}

#[tokio::test]
async fn a_token_that_ended_while_the_laptop_slept_is_not_sent() {
    // covers: PRX-2.5
    let library = std::env::var("COFER_TEST_FAKETIME").unwrap_or_else(|_| {
        panic!("COFER_TEST_FAKETIME is not set: run this under scripts/test, which installs libfaketime")
    });
    let world = World::new();
    let clock = world.write("clock", "+0h\n");
    let host = world.google.metadata_host();
    let mut client = world
        .client(&[
            ("GCE_METADATA_HOST", &host),
            ("LD_PRELOAD", &library),
            ("FAKETIME_TIMESTAMP_FILE", clock.to_str().expect("text")),
            ("FAKETIME_NO_CACHE", "1"),
            // It stands still while a laptop sleeps, and here it goes on as if nothing happened.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ])
        .await;
    assert!(echo(&mut client).await["result"].is_object());
    assert_eq!(world.google.seen_at("/identity").len(), 1);
    // Google has not slept: its new tokens end after the clock's new time.
    world.google.set_life(4 * 3600);
    let next = world.write("next", "+2h\n");
    std::fs::rename(next, &clock).expect("the clock can be set");
    assert!(echo(&mut client).await["result"].is_object());
    let seen = world.door.seen();
    let sent = |at: usize| seen[at].0.headers["authorization"].clone();
    assert_ne!(sent(0), sent(seen.len() - 1), "the old token was over");
}
