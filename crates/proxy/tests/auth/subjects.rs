//! Another cloud's workloads: where their subject tokens come from.

use std::path::Path;

use fake_google::{AWS_ROLE, TARGET};
use serde_json::{Value, json};

use crate::world::World;

/// A world whose external account has this source.
fn world(source: impl FnOnce(&World) -> Value) -> World {
    let world = World::with(|_| json!({}));
    let source = source(&world);
    world.rewrite(&world.google.external_account(source));
    world
}

async fn works(world: &World) {
    let token = world.token().await.unwrap_or_else(|error| panic!("{error}: {}", error.hint()));
    assert_eq!(token.claims().email.as_deref(), Some(TARGET));
    let form = world.google.seen_at("/v1/token")[0].form();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(form["audience"], fake_google::POOL);
}

#[tokio::test]
async fn from_a_file_which_is_read_anew_each_time() {
    // covers: PRX-2.2
    let world = world(|world| {
        let content = json!({"nested": 1, "token": world.google.subject_token()}).to_string();
        let path = world.write("subject.json", &content);
        json!({"file": path, "format": {"type": "json", "subject_token_field_name": "token"}})
    });
    works(&world).await;
    world.write("subject.json", r#"{"token":"another"}"#);
    let said = world.failure().await;
    assert!(said.contains("invalid_grant") && said.contains("subject token is expired"), "{said}");
}

#[tokio::test]
async fn a_file_that_is_missing_is_named() {
    let world = world(|world| json!({ "file": world.folder.path().join("absent") }));
    let said = world.failure().await;
    assert!(said.contains("/absent cannot be read"), "{said}");
    assert!(said.contains("credential_source.file"), "{said}");
}

#[tokio::test]
async fn from_a_url_with_headers() {
    // covers: PRX-2.2
    let world = world(|world| {
        json!({
            "url": format!("{}/subject", world.google.url()),
            "headers": {"Metadata": "True"},
            "format": {"type": "json", "subject_token_field_name": "access_token"},
        })
    });
    works(&world).await;
}

#[tokio::test]
async fn from_aws_by_its_metadata_server() {
    // covers: PRX-2.2
    let world = World::with(fake_google::Google::aws_account);
    works(&world).await;
    let paths: Vec<String> = world.google.seen().into_iter().map(|seen| seen.path).collect();
    assert!(paths.iter().any(|path| path.ends_with(AWS_ROLE)), "{paths:?}");
}

#[tokio::test]
async fn from_aws_by_variables_alone() {
    // covers: PRX-2.2
    let mut world = World::with(fake_google::Google::aws_account);
    for (name, value) in [
        ("AWS_DEFAULT_REGION", "us-east-2"),
        ("AWS_ACCESS_KEY_ID", "ASIAEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "aws-secret-canary"),
        ("AWS_SESSION_TOKEN", "aws-session-canary"),
    ] {
        world.set(name, value);
    }
    works(&world).await;
    let asked = world.google.seen();
    assert!(asked.iter().all(|seen| !seen.path.starts_with("/latest/")), "{asked:?}");
}

#[tokio::test]
async fn aws_without_region_and_keys_says_what_it_needs() {
    let world = World::with(|google| {
        let mut account = google.aws_account();
        account["credential_source"]["region_url"] = Value::Null;
        account
    });
    let said = world.failure().await;
    assert!(said.contains("AWS_REGION is not set") && said.contains("AWS_ACCESS_KEY_ID"), "{said}");
}

/// A program that prints this, and remembers its variables.
fn program(world: &World, script: &str) -> String {
    let text = format!("#!/bin/sh\nenv >\"$HOME/variables\"\n{script}\n");
    let path = world.write("get-token", &text);
    make_executable(&path);
    path.to_str().expect("text").to_owned()
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("a mode can be set");
}

/// What a program prints that has this token until then.
fn printed(token: &str, until: u64) -> String {
    json!({
        "version": 1, "success": true, "expiration_time": until, "id_token": token,
        "token_type": "urn:ietf:params:oauth:token-type:jwt",
    })
    .to_string()
}

const FAR: u64 = 4_000_000_000;

#[tokio::test]
async fn from_a_program_where_programs_are_allowed() {
    // covers: PRX-2.2
    let mut world = world(|world| {
        let answer = printed(&world.google.subject_token(), FAR);
        let command =
            format!("{} 'two words'", program(world, &format!("echo '{answer}'; echo \"$1\" >&2")));
        json!({"executable": {"command": command, "timeout_millis": 30000}})
    });
    let said = world.failure().await;
    assert!(said.contains("programs are not allowed"), "{said}");
    assert!(said.contains("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES=1"), "{said}");
    assert!(!world.folder.path().join("variables").exists(), "it was not started");
    world.set("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1");
    works(&world).await;
    let variables = std::fs::read_to_string(world.folder.path().join("variables")).unwrap();
    for expected in [
        format!("GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE={}", fake_google::POOL),
        "GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE=urn:ietf:params:oauth:token-type:jwt".to_owned(),
        "GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE=0".to_owned(),
        format!("GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL={TARGET}"),
    ] {
        assert!(variables.lines().any(|line| line == expected), "{expected}:\n{variables}");
    }
}

#[tokio::test]
async fn what_a_program_kept_is_used_until_it_is_over() {
    let mut world = world(|world| {
        let kept = world.folder.path().join("kept");
        let answer = printed(&world.google.subject_token(), FAR);
        let script = format!("echo '{answer}' >\"$GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE\"");
        json!({"executable": {"command": program(world, &script), "output_file": kept}})
    });
    world.set("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1");
    let variables = world.folder.path().join("variables");
    world.write("kept", &printed("over", 1));
    works(&world).await;
    std::fs::remove_file(&variables).expect("it ran, since what was kept was over");
    world.token().await.unwrap();
    assert!(!variables.exists(), "it did not run, since what is kept is good");
}

#[tokio::test]
async fn a_program_that_fails_is_quoted() {
    for (script, expected) in [
        ("echo 'no smart card' >&2; exit 3", "exit status: 3: no smart card"),
        (
            r#"echo '{"version":1,"success":false,"code":"401","message":"log in"}'"#,
            "said no: 401: log in",
        ),
        ("echo nonsense", "not JSON"),
    ] {
        let mut world = world(|world| json!({"executable": {"command": program(world, script)}}));
        world.set("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1");
        let said = world.failure().await;
        assert!(said.contains(expected), "{script}: {said}");
    }
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_all_it_started() {
    let mut world = world(|world| {
        let script = "sleep 1000 & echo $! >\"$HOME/pid\"; wait";
        json!({"executable": {"command": program(world, script), "timeout_millis": 5000}})
    });
    world.set("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1");
    let said = world.failure().await;
    assert!(said.contains("did not end within 5s"), "{said}");
    let pid = std::fs::read_to_string(world.folder.path().join("pid")).unwrap();
    let state = std::path::PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let ended = || {
        // A zombie has ended and only waits for whoever adopted it.
        std::fs::read_to_string(&state).map_or(true, |stat| stat.contains(") Z "))
    };
    let waiting = async {
        while !ended() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, waiting).await.expect("what it started ends with it");
}
