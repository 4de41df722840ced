//! A token from each kind of credentials: what is asked, whom it stands for, for whom it is.

use fake_google::{GCLOUD_CLIENT_ID, PERSON, SERVICE_ACCOUNT, TARGET, WORKFORCE_POOL};
use serde_json::json;

use crate::world::{AUDIENCE, World};

const MACHINE: &str = "machine@project.iam.gserviceaccount.com";

/// Finds credentials, has a token made, and compares whom it stands for and for whom it is.
async fn check(world: &World, principal: &str, audience: &str) {
    let credentials = world.find().await.unwrap_or_else(|error| panic!("{error}"));
    let token = credentials.token().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(token.claims().email.as_deref(), Some(principal));
    assert_eq!(token.claims().aud, audience);
    assert_eq!(credentials.principal().as_deref(), Some(principal));
}

#[tokio::test]
async fn a_service_accounts_key_signs_an_assertion() {
    // covers: PRX-2.1, PRX-2.2, PRX-6.4
    let world = World::with(|google| google.service_account());
    check(&world, SERVICE_ACCOUNT, AUDIENCE).await;
    let seen = world.google.seen();
    assert_eq!(seen.len(), 1, "one question is enough: {seen:?}");
    let form = seen[0].form();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let claims = seen[0].claims("assertion");
    assert_eq!(claims["target_audience"], AUDIENCE);
    assert_eq!(claims["aud"], "https://oauth2.googleapis.com/token");
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
}

#[tokio::test]
async fn a_persons_login_gives_the_token_of_its_oauth_client() {
    // covers: PRX-2.2
    let world = World::with(|google| google.authorized_user());
    check(&world, PERSON, GCLOUD_CLIENT_ID).await;
    let form = world.google.seen_at("/token")[0].form();
    assert_eq!(form["grant_type"], "refresh_token");
    assert_eq!(form["client_id"], GCLOUD_CLIENT_ID);
}

#[tokio::test]
async fn a_login_of_gcloud_is_refreshed_at_googles_own_endpoint() {
    // covers: PRX-2.2
    let world = World::with(|google| google.gcloud_login()).behind_proxy();
    check(&world, PERSON, GCLOUD_CLIENT_ID).await;
    let seen = world.google.seen();
    assert_eq!((seen[0].host.as_str(), seen[0].path.as_str()), ("oauth2.googleapis.com", "/token"));
}

#[tokio::test]
async fn the_metadata_server_is_asked_where_there_is_no_file() {
    // covers: PRX-2.1, PRX-2.2
    let world = World::on_google();
    check(&world, MACHINE, AUDIENCE).await;
    let seen = world.google.seen_at("/identity");
    assert_eq!(seen[0].query["audience"], AUDIENCE);
    assert_eq!(seen[0].query["format"], "full");
    assert_eq!(seen[0].header("metadata-flavor"), Some("Google"));
}

#[tokio::test]
async fn a_service_account_is_impersonated_by_every_kind_of_source() {
    // covers: PRX-2.2
    type Kind = fn(&World) -> serde_json::Value;
    let kinds: [Kind; 5] = [
        |world| world.google.service_account(),
        |world| world.google.authorized_user(),
        |world| world.google.impersonated(world.google.service_account()),
        |world| world.google.workforce_login(),
        |world| {
            let path = world.write("subject", &world.google.subject_token());
            world.google.external_account(json!({ "file": path }))
        },
    ];
    for kind in kinds {
        let world = World::with(|_| json!({}));
        let source = kind(&world);
        let name = source["type"].to_string();
        world.rewrite(&world.google.impersonated(source));
        check(&world, TARGET, AUDIENCE).await;
        let asked = world.google.seen_at(":generateIdToken");
        assert_eq!(asked.len(), 1, "{name}");
        let body = asked[0].json();
        assert_eq!(body, json!({"audience": AUDIENCE, "includeEmail": true, "delegates": []}));
    }
}

#[tokio::test]
async fn an_option_impersonates_with_every_kind_of_source() {
    // covers: PRX-2.2
    let source_less = World::on_google().behind_proxy().impersonating(TARGET);
    check(&source_less, TARGET, AUDIENCE).await;
    let seen = source_less.google.seen();
    assert!(seen.iter().any(|seen| seen.host == "iamcredentials.googleapis.com"), "{seen:?}");
    for json in [
        fake_google::Google::service_account,
        fake_google::Google::gcloud_login,
        fake_google::Google::workforce_login,
        fake_google::Google::aws_account,
    ] {
        let world = World::with(json).behind_proxy().impersonating(TARGET);
        check(&world, TARGET, AUDIENCE).await;
    }
}

#[tokio::test]
async fn a_chain_of_delegates_is_passed_on_in_order() {
    let (first, second) =
        ("a@project.iam.gserviceaccount.com", "b@project.iam.gserviceaccount.com");
    let chain = format!("{first},{second},{TARGET}");
    let world = World::with(|google| google.service_account()).behind_proxy().impersonating(&chain);
    world.google.set_impersonators(first, &[SERVICE_ACCOUNT]);
    world.google.set_impersonators(second, &[first]);
    world.google.set_impersonators(TARGET, &[second]);
    check(&world, TARGET, AUDIENCE).await;
    let delegates = world.google.seen_at(":generateIdToken")[0].json()["delegates"].clone();
    let long = |name: &str| format!("projects/-/serviceAccounts/{name}");
    assert_eq!(delegates, json!([long(first), long(second)]));
}

#[tokio::test]
async fn the_quota_project_of_a_login_is_named_when_it_impersonates() {
    let world = World::with(|google| {
        let mut login = google.authorized_user();
        login["quota_project_id"] = "quota-project".into();
        google.impersonated(login)
    });
    check(&world, TARGET, AUDIENCE).await;
    let asked = &world.google.seen_at(":generateIdToken")[0];
    assert_eq!(asked.header("x-goog-user-project"), Some("quota-project"));
}

#[tokio::test]
async fn a_service_account_of_another_cloud_asks_that_clouds_iam() {
    let world = World::with(|google| {
        let mut account = google.service_account();
        account["universe_domain"] = "example.cloud".into();
        account
    })
    .behind_proxy();
    check(&world, SERVICE_ACCOUNT, AUDIENCE).await;
    let seen = world.google.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].host, "iamcredentials.example.cloud");
    assert!(seen[0].path.ends_with(&format!("{SERVICE_ACCOUNT}:generateIdToken")));
}

#[tokio::test]
async fn a_workforce_user_names_the_project_that_pays() {
    let world = World::with(|_| json!({}));
    let path = world.write("subject", &world.google.subject_token());
    let mut account = world.google.external_account(json!({ "file": path }));
    account["audience"] = WORKFORCE_POOL.into();
    account["workforce_pool_user_project"] = "people".into();
    world.rewrite(&account);
    check(&world, TARGET, AUDIENCE).await;
    let options = world.google.seen_at("/v1/token")[0].form()["options"].clone();
    assert_eq!(options, "%7B%22userProject%22%3A%22people%22%7D");
}
