//! Every way in which a token endpoint fails: repeated where that may help, and else told with
//! what to do.

use std::time::Duration;

use fake_google::{Google, PERSON, Play, SERVICE_ACCOUNT, TARGET, Words};
use serde_json::json;

use crate::world::World;

/// Plays this for ever, and compares what is said.
async fn check(world: &World, path: &str, play: Play, expected: &[&str]) {
    world.google.play_always(path, play);
    let said = world.failure().await;
    for part in expected {
        assert!(said.contains(part), "`{part}` is missing: {said}");
    }
    world.google.play_nothing();
}

#[tokio::test]
async fn trouble_that_passes_is_waited_out() {
    // covers: PRX-2.5
    let world = World::with(Google::service_account);
    world.google.play("/token", Play::json(503, &json!({"error": "unavailable"})));
    world.google.play("/token", Play::json(429, &json!({})).with("retry-after", "1"));
    let token = world.token().await.unwrap();
    assert_eq!(token.claims().email.as_deref(), Some(SERVICE_ACCOUNT));
    assert_eq!(world.google.seen_at("/token").len(), 3);
}

#[tokio::test]
async fn trouble_that_stays_is_told() {
    let world = World::with(Google::authorized_user);
    let play = Play::html(502, "<title>502</title><h1>Bad Gateway</h1>");
    check(&world, "/token", play, &["HTTP 502: 502 Bad Gateway", "try again"]).await;
    assert_eq!(world.google.seen_at("/token").len(), 3);
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_tried_again() {
    let world = World::with(Google::service_account);
    let cut = Play::Cut { content_type: "application/json".into(), beginning: "{\"id_".into() };
    world.google.play("/token", cut);
    assert!(world.token().await.is_ok());
    assert_eq!(world.google.seen_at("/token").len(), 2);
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = World::with(|google| {
        let mut account = google.service_account();
        account["token_uri"] = format!("http://{free}/token").into();
        account
    });
    let error = world.token().await.unwrap_err();
    assert!(error.is_unreachable());
    assert!(error.to_string().contains(&free.to_string()), "{error}");
    assert!(error.hint().contains("HTTPS_PROXY"), "{}", error.hint());
}

/// Time is tokio's, so that nobody waits for real.
#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_silent_is_given_up() {
    let world = World::with(Google::authorized_user);
    world.google.play_always("/token", Play::Hang);
    let error = world.token().await.unwrap_err();
    assert!(error.is_unreachable());
    assert!(error.to_string().contains("did not answer within 10s"), "{error}");
}

#[tokio::test]
async fn a_login_that_ended_says_how_to_log_in_again() {
    // covers: PRX-5.2
    let world = World::with(Google::authorized_user);
    let login = "gcloud auth application-default login";
    for (status, body, expected) in [
        (400, Words::revoked(), ["invalid_grant", login]),
        (400, Words::reauth(), ["invalid_rapt", "log in again from time to time"]),
        (401, Words::oauth("invalid_client", "x"), ["invalid_client", "--client-id-file"]),
        (
            403,
            Words::oauth("access_denied", "Account restricted"),
            ["Account restricted", "policy"],
        ),
    ] {
        check(&world, "/token", Play::json(status, &body), &expected).await;
        assert_eq!(world.google.seen_at("/token").len(), 1, "a refusal is not asked again");
        world.google.forget();
    }
}

#[tokio::test]
async fn a_login_without_openid_says_which_scopes_it_needs() {
    let world = World::with(Google::authorized_user);
    world.google.set_login_scopes(&["https://www.googleapis.com/auth/cloud-platform"]);
    let said = world.failure().await;
    assert!(said.contains("`openid`") && said.contains("--scopes=openid"), "{said}");
}

#[tokio::test]
async fn a_wrong_clock_is_measured_and_told() {
    let world = World::with(Google::service_account);
    world.jump(2 * 3600);
    let said = world.failure().await;
    assert!(said.contains("iat and exp"), "{said}");
    let ahead = |said: &str| {
        let seconds = said.split("it is ").nth(1)?.split(' ').next()?.parse::<u64>().ok()?;
        said.contains("s ahead of Google's").then_some(seconds)
    };
    let seconds = ahead(&said).unwrap_or_else(|| panic!("{said}"));
    assert!((7100..7300).contains(&seconds), "{said}");
}

#[tokio::test]
async fn a_token_that_is_over_when_it_comes_is_not_used() {
    let world = World::on_google();
    world.google.set_life(-3000);
    let said = world.failure().await;
    assert!(said.contains("the new ID token ended") && said.contains("clock"), "{said}");
}

#[tokio::test]
async fn a_key_that_was_deleted_says_how_to_make_another() {
    let world = World::with(|google| {
        let mut account = google.service_account();
        account["private_key_id"] = "another-key".into();
        account
    });
    let said = world.failure().await;
    assert!(said.contains("Invalid JWT Signature"), "{said}");
    assert!(said.contains("gcloud iam service-accounts keys create"), "{said}");
    let world = World::with(|google| {
        let mut account = google.service_account();
        account["client_email"] = "gone@project.iam.gserviceaccount.com".into();
        account
    });
    let said = world.failure().await;
    assert!(said.contains("account not found") && said.contains("deleted or disabled"), "{said}");
}

#[tokio::test]
async fn impersonation_without_the_role_says_who_needs_which() {
    // covers: PRX-5.2
    let world = World::with(|google| google.impersonated(google.authorized_user()));
    world.google.set_impersonators(TARGET, &["nobody"]);
    let said = world.failure().await;
    for part in [
        "iam.serviceAccounts.getOpenIdToken",
        "roles/iam.serviceAccountOpenIdTokenCreator",
        &format!("add-iam-policy-binding {TARGET} --member=user:{PERSON}"),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The first of two steps needs another role.
    let world =
        World::with(|google| google.impersonated(google.impersonated(google.service_account())));
    world.google.set_impersonators(TARGET, &["nobody"]);
    let said = world.failure().await;
    assert!(said.contains("roles/iam.serviceAccountTokenCreator"), "{said}");
    assert!(said.contains(&format!("--member=serviceAccount:{SERVICE_ACCOUNT}")), "{said}");
}

#[tokio::test]
async fn every_refusal_of_the_iam_api_has_its_own_advice() {
    let world = World::with(|google| google.impersonated(google.service_account()));
    let path = ":generateIdToken";
    let denied = Words::api(
        403,
        "PERMISSION_DENIED",
        "Caller does not have required permission to use project x.",
        json!([{"reason": "USER_PROJECT_DENIED"}]),
    );
    let invalid = Words::api(400, "INVALID_ARGUMENT", "bad", json!([]));
    for (status, body, advice) in [
        (403, Words::service_disabled(), "gcloud services enable iamcredentials.googleapis.com"),
        (403, denied, "set-quota-project"),
        (401, Words::unauthenticated(), "gcloud auth application-default login"),
        (404, Words::unknown_account(TARGET), "does not exist"),
        (400, invalid, "check the audience"),
    ] {
        check(&world, path, Play::json(status, &body), &[advice]).await;
    }
}

#[tokio::test]
async fn every_refusal_of_the_exchange_has_its_own_advice() {
    let world = World::with(|_| json!({}));
    let path = world.write("subject", &world.google.subject_token());
    world.rewrite(&world.google.external_account(json!({ "file": path })));
    for (error, advice) in [
        ("invalid_target", "workload identity provider"),
        ("invalid_grant", "the subject token is expired"),
        ("unauthorized_client", "attribute condition"),
        ("invalid_request", "`subject_token_type`"),
    ] {
        check(&world, "/v1/token", Play::json(400, &Words::oauth(error, "said")), &[error, advice])
            .await;
    }
}

#[tokio::test]
async fn a_machine_without_a_service_account_says_so() {
    let world = World::on_google();
    world.google.set_machine(None);
    let said = world.failure().await;
    assert!(said.contains("HTTP 404") && said.contains("needs a service account"), "{said}");
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_told() {
    let world = World::with(Google::authorized_user);
    for (body, reason) in [
        (json!({}), "a field is missing"),
        (json!({"access_token": "a", "id_token": "no token"}), "not a JSON Web Token"),
    ] {
        check(&world, "/token", Play::json(200, &body), &["makes no sense", reason]).await;
    }
    let redirect = Play::html(302, "moved").with("location", "https://elsewhere.example/");
    check(&world, "/token", redirect, &["HTTP 302"]).await;
    let large = Play::html(200, "x".repeat(2 * 1024 * 1024));
    check(&world, "/token", large, &["could not reach"]).await;
}

#[tokio::test]
async fn early_renewal_in_the_background_survives_trouble() {
    // covers: PRX-2.5
    let world = World::with(Google::service_account);
    let credentials = world.find().await.unwrap();
    let first = credentials.token().await.unwrap();
    world.google.play_always("/token", Play::json(400, &Words::revoked()));
    // Inside its last five minutes.
    world.jump(3600 - 200);
    let again = credentials.token().await.unwrap();
    assert_eq!(again.expose(), first.expose());
    while world.google.seen_at("/token").len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(credentials.token().await.unwrap().expose(), first.expose());
}
