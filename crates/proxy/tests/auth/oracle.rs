//! Google's own library for Python as an independent judge: it asks the same fake with the same
//! files, and checks our tokens and our signatures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use fake_google::{Google, Seen, TARGET};
use serde_json::{Value, json};

use crate::world::{AUDIENCE, World};

/// Runs the script with these arguments; its stdout.
fn google_auth(world: &World, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let venv = std::env::var("COFER_TEST_VENV").unwrap_or_else(|_| {
        panic!(
            "COFER_TEST_VENV is not set: run this under scripts/test, which installs google-auth"
        )
    });
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/auth/google_auth.py");
    let ca = world.write("oracle-ca.pem", world.google.ca_pem());
    #[expect(clippy::disallowed_methods, reason = "a test asks an independent judge")]
    let output = Command::new(PathBuf::from(venv).join("bin/python"))
        .arg(script)
        .args(arguments)
        .env_clear()
        .env("HOME", world.folder.path())
        .env("HTTPS_PROXY", world.google.proxy())
        .env("REQUESTS_CA_BUNDLE", ca)
        .envs(variables.iter().copied())
        .output()
        .expect("Python runs");
    let (stdout, stderr) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(stdout).expect("text").trim().to_owned()
}

/// What a request says, without what differs each time.
fn shape(seen: &Seen) -> Value {
    let mut form: BTreeMap<String, Value> =
        seen.form().into_iter().map(|(name, value)| (name, value.into())).collect();
    if form.contains_key("assertion") {
        let mut claims = seen.claims("assertion");
        let time = |name: &str| claims[name].as_u64().expect("a time");
        let life = time("exp") - time("iat");
        claims["iat"] = Value::Null;
        claims["exp"] = life.into();
        form.insert("assertion".to_owned(), sorted(claims));
    }
    let body = match seen.header("content-type") {
        Some("application/json") => sorted(seen.json()),
        _ => json!(form),
    };
    let kept = ["content-type", "metadata-flavor", "x-goog-user-project"];
    let headers: BTreeMap<&str, Option<&str>> =
        kept.iter().map(|name| (*name, seen.header(name))).collect();
    json!({
        "host": seen.host, "method": seen.method, "path": seen.path, "query": seen.query,
        "headers": headers, "body": body,
    })
}

/// The order of an object's fields says nothing.
fn sorted(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    json!(fields.into_iter().collect::<BTreeMap<_, _>>())
}

/// The last request at this path, ours and then theirs, must say the same.
async fn same(world: &World, path: &str, variables: &[(&str, &str)], arguments: &[&str]) {
    world.token().await.unwrap_or_else(|error| panic!("{error}"));
    let ours = shape(world.google.seen_at(path).last().expect("we asked"));
    world.google.forget();
    google_auth(world, variables, arguments);
    let theirs = shape(world.google.seen_at(path).last().expect("google-auth asked"));
    assert_eq!(ours, theirs, "{path}");
}

#[tokio::test]
async fn google_auth_takes_our_tokens() {
    // covers: PRX-2.2
    let world = World::with(Google::service_account);
    let token = world.token().await.unwrap();
    let certs = world.google.certs_url();
    let email = google_auth(&world, &[], &["verify", token.expose(), AUDIENCE, &certs]);
    assert_eq!(email, fake_google::SERVICE_ACCOUNT);
    let refused = google_auth(&world, &[], &["refuse", token.expose(), "https://other", &certs]);
    assert!(refused.contains("audience"), "{refused}");
}

#[tokio::test]
async fn google_auth_takes_our_assertion() {
    let world = World::with(Google::service_account);
    world.token().await.unwrap();
    let assertion = world.google.seen_at("/token")[0].form()["assertion"].clone();
    let file = world.folder.path().join("credentials.json");
    let said = google_auth(&world, &[], &["assertion", &assertion, file.to_str().unwrap()]);
    assert_eq!(said, AUDIENCE);
}

#[tokio::test]
async fn a_service_account_asks_as_google_auth_does() {
    let world = World::with(Google::service_account);
    let file = world.folder.path().join("credentials.json");
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap())];
    same(&world, "/token", &variables, &["fetch", AUDIENCE]).await;
}

#[tokio::test]
async fn a_login_asks_as_google_auth_does() {
    let world = World::with(Google::gcloud_login).behind_proxy();
    let file = world.folder.path().join("credentials.json");
    same(&world, "/token", &[], &["login", file.to_str().unwrap()]).await;
}

#[tokio::test]
async fn the_metadata_server_is_asked_as_google_auth_does() {
    let world = World::on_google();
    let host = world.google.metadata_host();
    let variables = [("GCE_METADATA_HOST", host.as_str()), ("GCE_METADATA_IP", host.as_str())];
    same(&world, "/identity", &variables, &["fetch", AUDIENCE]).await;
}

#[tokio::test]
async fn impersonation_asks_as_google_auth_does() {
    let real = format!(
        "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{TARGET}:generateAccessToken"
    );
    let world = World::with(|google| {
        let mut login = google.gcloud_login();
        login["quota_project_id"] = "quota".into();
        let mut json = google.impersonated(login);
        json["service_account_impersonation_url"] = real.into();
        json
    })
    .behind_proxy();
    let file = world.folder.path().join("credentials.json");
    let file = file.to_str().unwrap();
    same(&world, ":generateIdToken", &[], &["impersonated", file, AUDIENCE]).await;
}

#[tokio::test]
async fn an_exchange_asks_as_google_auth_does() {
    let world = World::with(|_| json!({})).behind_proxy();
    let subject = world.write("subject", &world.google.subject_token());
    world.rewrite(&world.google.external_account(json!({ "file": subject })));
    let file = world.folder.path().join("credentials.json");
    same(&world, "/v1/token", &[], &["external", file.to_str().unwrap()]).await;
    let world = World::with(Google::workforce_login).behind_proxy().impersonating(TARGET);
    let file = world.folder.path().join("credentials.json");
    same(&world, "/v1/oauthtoken", &[], &["external", file.to_str().unwrap()]).await;
}

#[tokio::test]
async fn google_auth_signs_for_aws_as_we_do() {
    let world = World::with(Google::aws_account);
    world.token().await.unwrap();
    let subject = world.google.seen_at("/v1/token")[0].form()["subject_token"].clone();
    let keys = ["us-east-2", "ASIAEXAMPLE", "aws-secret-canary", "aws-session-canary"];
    let said = google_auth(&world, &[], &[&["aws", &subject][..], &keys].concat());
    assert_eq!(said, "same");
}
