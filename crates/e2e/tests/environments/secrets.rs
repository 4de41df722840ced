//! Secrets that a repository asks for: refused until the user approves them, at the command line, in
//! the MCP client or through the daemon's API.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::workshop::{Workshop, error, facts};

/// A repository that asks for a file of the user's and a variable.
struct Greedy {
    workshop: Workshop,
    loot: PathBuf,
}

const VALUE: &str = "correct-horse-battery-staple";

impl Greedy {
    async fn new() -> Self {
        let workshop = Workshop::open().await.set("COFER_TEST_SECRET", VALUE);
        let loot = workshop.beside("loot");
        fs::write(&loot, "a key of the user's\n").unwrap();
        let greedy = Self { workshop, loot };
        greedy.ask(&[greedy.file(), greedy.variable()]);
        greedy
    }

    fn file(&self) -> String {
        format!("LOOT=file://{}", self.loot.display())
    }

    fn variable(&self) -> String {
        "KEY=env://COFER_TEST_SECRET".to_owned()
    }

    fn ask(&self, references: &[String]) {
        self.workshop.write(".cofer/environment.json", &json!({"secrets": references}).to_string());
    }

    async fn allow(&self, args: &[&str]) -> cofer_e2e::Ended {
        self.workshop.cofer(&[&["env", "allow"], args].concat()).await
    }
}

#[tokio::test]
async fn a_repository_reads_no_file_or_variable_before_the_user_allows_it() {
    let greedy = Greedy::new().await;
    let mut agent = greedy.workshop.agent().await;
    let failure = error(&agent.try_create(json!({"title": "x"})).await, "precondition_failed");
    let command = format!("cofer env allow -C {} LOOT KEY", greedy.workshop.repo().display());
    assert!(failure["recovery"].as_str().unwrap().contains(&command), "{failure}");
    assert!(!failure.to_string().contains("a key of the user's"), "{failure}");
    greedy.workshop.is_tidy("x").await;

    let listed = greedy.allow(&[]).await;
    assert!(
        listed.stdout.contains("Not allowed") && listed.stdout.contains("LOOT"),
        "{}",
        listed.stdout
    );
    let allowed = greedy.allow(&["KEY"]).await;
    assert_eq!(
        (allowed.code, allowed.stdout.as_str()),
        (Some(0), "Allowed KEY: the variable COFER_TEST_SECRET.\n")
    );
    error(&agent.try_create(json!({"title": "x"})).await, "precondition_failed");
    greedy.ask(&[greedy.variable()]);
    facts(&agent.try_create(json!({"title": "x"})).await);
    // The value reaches the command, and its output is masked, also as Base64 and in hexadecimal.
    let ran = agent
        .run(
            "x",
            "test \"$KEY\" = correct-horse-battery-staple && echo $KEY; echo \"${LOOT-none}\"",
        )
        .await;
    assert_eq!(ran["stdout"], "********\nnone\n", "{ran}");
    let ran = agent.run("x", "echo $KEY | busybox base64; echo x$KEY | busybox base64; printf $KEY | busybox hexdump -ve '1/1 \"%02x\"'").await;
    assert_eq!(ran["stdout"].as_str().unwrap().matches("********").count(), 3, "{ran}");

    let revoked = greedy.allow(&["--revoke", "KEY"]).await;
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    error(&agent.try_run("x", "echo $KEY").await, "precondition_failed");
    assert_eq!(greedy.allow(&["NOBODY"]).await.code, Some(1));
}

#[tokio::test]
async fn a_reference_that_changed_is_asked_for_again() {
    let greedy = Greedy::new().await;
    greedy.ask(&[greedy.variable()]);
    assert_eq!(greedy.allow(&["--all"]).await.code, Some(0));
    let mut agent = greedy.workshop.agent().await;
    facts(&agent.try_create(json!({"title": "x"})).await);
    greedy.ask(&[greedy.file().replace("LOOT", "KEY")]);
    let failure = error(&agent.try_create(json!({"title": "y"})).await, "precondition_failed");
    assert!(failure["message"].as_str().unwrap().contains("changed"), "{failure}");
    // Neither does a link turn an approved file into another one.
    greedy.workshop.write("key", "harmless\n");
    greedy.ask(&["KEY=file://key".to_owned()]);
    assert_eq!(greedy.allow(&["KEY"]).await.code, Some(0));
    fs::remove_file(greedy.workshop.repo().join("key")).unwrap();
    std::os::unix::fs::symlink(&greedy.loot, greedy.workshop.repo().join("key")).unwrap();
    error(&agent.try_create(json!({"title": "y"})).await, "precondition_failed");
}

/// A client that shows forms to its user, who gives this answer.
async fn create_and_answer(greedy: &Greedy, answer: Value) -> (String, Value) {
    let mut agent = greedy.workshop.agent_that_elicits().await;
    let arguments = json!({"environment_source": greedy.workshop.repo(), "title": "x", "image": cofer_e2e::image("busybox")});
    let call = json!({"name": "environment_create", "arguments": arguments});
    let id = agent.client.ask("tools/call", call).await;
    let form = agent.client.server_request("elicitation/create").await;
    let message = form["params"]["message"].as_str().unwrap().to_owned();
    let reply = json!({"jsonrpc": "2.0", "id": form["id"], "result": answer});
    agent.client.send(&reply).await;
    (message, agent.client.answer(id).await["result"].clone())
}

#[tokio::test]
async fn the_user_allows_or_declines_in_the_mcp_client() {
    let greedy = Greedy::new().await;
    for refusal in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept", "content": {"allow": false}}),
        json!({"action": "accept", "content": {}}),
    ] {
        let (message, result) = create_and_answer(&greedy, refusal).await;
        assert!(message.contains(greedy.loot.to_str().unwrap()), "{message}");
        error(&result, "precondition_failed");
    }
    let (_, result) =
        create_and_answer(&greedy, json!({"action": "accept", "content": {"allow": true}})).await;
    facts(&result);
    // It is kept: another client, which shows no forms, goes on.
    let mut agent = greedy.workshop.agent().await;
    let ran = agent.run("x", "test \"$LOOT\" = \"a key of the user's\" && echo same").await;
    assert_eq!(ran["stdout"], "same\n");
}

#[tokio::test]
async fn the_user_allows_and_revokes_on_the_console() {
    let greedy = Greedy::new().await;
    let daemon = greedy.workshop.daemon().await;
    let repository = json!(greedy.workshop.repo());
    let list = daemon.get("/environments").await.expect(200);
    let secrets = list["repositories"][0]["secrets"].clone();
    assert_eq!((&secrets[0]["name"], &secrets[0]["state"]), (&json!("LOOT"), &json!("pending")));
    assert_eq!(secrets[0]["file"], json!(greedy.loot.canonicalize().unwrap()));
    assert!(!list.to_string().contains(VALUE) && !list.to_string().contains("a key of"));
    let mut decision = json!({"repository": repository, "name": "KEY", "reference": "env://COFER_TEST_SECRET", "allow": true});
    let after = daemon.post("/repositories/secrets", &decision).await.expect(200);
    assert_eq!(after["secrets"][1]["state"], "allowed", "{after}");
    greedy.ask(&[greedy.variable()]);
    let mut agent = greedy.workshop.agent().await;
    facts(&agent.try_create(json!({"title": "x"})).await);
    decision["allow"] = json!(false);
    daemon.post("/repositories/secrets", &decision).await.expect(200);
    error(&agent.try_run("x", "true").await, "precondition_failed");
    // Only what was shown is decided on, in a recorded repository.
    daemon.post("/repositories/secrets", &decision).await.failure(409, "conflict");
    decision["allow"] = json!(true);
    decision["reference"] = json!("file:///etc/shadow");
    daemon.post("/repositories/secrets", &decision).await.failure(409, "conflict");
    decision["repository"] = json!("/");
    daemon.post("/repositories/secrets", &decision).await.failure(404, "not_found");
    daemon.post("/repositories/secrets", &json!({})).await.failure(422, "invalid_request");
}

/// A client of the stateless protocol calls again with the answer.
#[tokio::test]
async fn a_stateless_client_is_asked_by_a_result() {
    let greedy = Greedy::new().await;
    let mut client = greedy.workshop.client();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "e2e", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    client.request("server/discover", json!({"_meta": meta})).await;
    let arguments = json!({"environment_source": greedy.workshop.repo(), "title": "x", "image": cofer_e2e::image("busybox")});
    let call = json!({"name": "environment_create", "arguments": arguments, "_meta": meta});
    let asked = client.request("tools/call", call.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let message = asked["inputRequests"]["allow"]["params"]["message"].as_str().unwrap();
    assert!(message.contains(greedy.loot.to_str().unwrap()), "{message}");
    let answer = |action: &str, state: &Value| {
        let mut again = call.clone();
        again["requestState"] = state.clone();
        again["inputResponses"] = json!({"allow": {"action": action, "content": {"allow": true}}});
        again
    };
    // An answer to another question is none.
    let other =
        client.request("tools/call", answer("accept", &json!("[]"))).await["result"].clone();
    assert_eq!(other["resultType"], "input_required", "{other}");
    let state = &asked["requestState"];
    let declined = client.request("tools/call", answer("decline", state)).await["result"].clone();
    error(&declined, "precondition_failed");
    let allowed = client.request("tools/call", answer("accept", state)).await["result"].clone();
    facts(&allowed);
}
