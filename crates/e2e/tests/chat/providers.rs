//! Providers of Settings: stored with their keys, tried, listed, and never shown.

use std::os::unix::fs::PermissionsExt as _;

use cofer_e2e::{Answer, Daemon, FakeModel, Reply};
use serde_json::{Value, json};

use crate::support::{KEY, Seen, builder, log, say};

async fn put(daemon: &Daemon, id: &str, body: Value) -> Answer {
    let path = format!("/chat/providers/{id}");
    daemon.send(daemon.request(reqwest::Method::PUT, &path).json(&body)).await
}

#[tokio::test]
async fn a_provider_of_settings_is_kept_and_its_key_never_shown() {
    let model = FakeModel::start([Reply::text(&["hi"])]).await;
    let home = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::builder().data_dir(home.path()).start().await;
    let body = json!({"kind": "openai", "name": "LM Studio", "base_url": model.base(), "api_key": KEY, "default_model": "scripted", "is_default": true});
    let kept = put(&daemon, "lm-studio", body).await;
    assert!(!kept.body.contains(KEY));
    let kept = kept.expect(200);
    assert_eq!(
        (&kept["has_key"], &kept["source"], &kept["base_url"]),
        (&json!(true), &json!("settings"), &json!(format!("{}/", model.base())))
    );
    // Without a word about the key it stays.
    put(&daemon, "lm-studio", json!({"name": "Mine"})).await.expect(200);
    assert!(daemon.terminate().await.success());
    let mode = std::fs::metadata(home.path().join("kb.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let daemon = Daemon::builder().data_dir(home.path()).start().await;
    let seen = say(&daemon, "hello").await;
    assert_eq!(seen.one("turnStarted")["provider"], "lm-studio");
    assert_eq!(seen.text(), "hi");
    assert_eq!(model.keys(), [format!("Bearer {KEY}")]);
    let listed = daemon.get("/chat/providers").await;
    assert!(!listed.body.contains(KEY) && !log(&daemon).contains(KEY));
    assert_eq!(
        listed.expect(200)["default"],
        json!({"provider": "lm-studio", "model": "scripted"})
    );
    let models = daemon.get("/chat/models").await.expect(200);
    assert_eq!(models["models"], json!(["scripted", "another"]));
    // The key does not follow to another address.
    let moved = put(&daemon, "lm-studio", json!({"base_url": "http://127.0.0.1:1/v1"})).await;
    assert_eq!(moved.failure(422, "invalid_request")["details"]["fields"][0]["field"], "api_key");
    assert_eq!(daemon.delete("/chat/providers/lm-studio").await.status, 204);
    daemon.delete("/chat/providers/lm-studio").await.failure(404, "not_found");
}

#[tokio::test]
async fn mistakes_are_named_by_field() {
    let daemon = Daemon::start().await;
    for (id, body, field) in [
        ("x", json!({}), "kind"),
        ("X", json!({"kind": "openai"}), "id"),
        ("x", json!({"kind": "openai", "base_url": "file:///etc/passwd"}), "base_url"),
        ("x", json!({"kind": "openai", "base_url": "http://me:pw@h/"}), "base_url"),
        ("x", json!({"kind": "openai", "api_key": "a\r\nb: c"}), "api_key"),
        ("x", json!({"kind": "openai", "colour": 1}), "colour"),
    ] {
        let refused = put(&daemon, id, body.clone()).await.failure(422, "invalid_request");
        assert_eq!(refused["details"]["fields"][0]["field"], field, "{body}");
    }
    daemon.get("/chat/models?provider=nobody").await.failure(404, "not_found");
    daemon.get("/chat/models").await.failure(502, "provider_error");
}

#[tokio::test]
async fn the_environment_and_settings_stand_beside_each_other() {
    let (first, second) = (
        FakeModel::start([Reply::text(&["env"])]).await,
        FakeModel::start([Reply::text(&["set"])]).await,
    );
    let daemon = builder(&first).start().await;
    assert_eq!(say(&daemon, "x").await.text(), "env");
    daemon.delete("/chat/providers/openai").await.failure(409, "conflict");
    let body = json!({"kind": "openai", "base_url": second.base(), "default_model": "m"});
    assert_eq!(put(&daemon, "openai", body).await.expect(200)["overrides_environment"], true);
    assert_eq!(say(&daemon, "x").await.text(), "set", "Settings win");
    assert_eq!(second.keys(), ["Bearer none"], "the environment's key is not sent elsewhere");
    assert_eq!(daemon.delete("/chat/providers/openai").await.status, 204);
    assert_eq!(say(&daemon, "x").await.text(), "env");
    let named = Seen::whole(
        daemon.chat(&json!({"message": "x", "provider": "openai", "model": "other"})).await,
    )
    .await;
    assert_eq!(named.reason(), "done");
    assert_eq!(first.requests().last().unwrap()["model"], "other");
}

#[tokio::test]
async fn a_test_tells_what_works_and_what_does_not() {
    let good = FakeModel::start([Reply::text(&["OK"])]).await;
    let body = json!({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}});
    let bad = FakeModel::start([Reply::status(401, &body)]).await;
    let daemon = builder(&good).start().await;
    let tested = daemon.post("/chat/providers/openai/test", &json!({})).await.expect(200);
    assert_eq!(
        (&tested["ok"], &tested["model"], &tested["models"]),
        (&json!(true), &json!("scripted"), &json!(2)),
        "{tested}"
    );
    let unsaved =
        json!({"kind": "openai", "base_url": bad.base(), "api_key": "sk-wrong", "model": "m"});
    let tested = daemon.post("/chat/providers/new-one/test", &unsaved).await.expect(200);
    assert_eq!(
        (&tested["ok"], &tested["error"]["kind"]),
        (&json!(false), &json!("wrong_key")),
        "{tested}"
    );
    assert_eq!(
        daemon.get("/chat/providers").await.expect(200)["providers"].as_array().unwrap().len(),
        1,
        "nothing was stored"
    );
    let nobody = json!({"kind": "ollama", "base_url": "http://127.0.0.1:9", "model": "m"});
    let tested = daemon.post("/chat/providers/box/test", &nobody).await.expect(200);
    assert_eq!(tested["error"]["kind"], "unreachable", "{tested}");
    daemon.post("/chat/providers/nobody/test", &json!({})).await.failure(404, "not_found");
}
