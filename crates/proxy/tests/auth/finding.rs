//! Found or not is decided at the start, and is said in full.

use fake_google::{PERSON, Play, SERVICE_ACCOUNT, TARGET};
use serde_json::json;

use crate::world::World;

const WELL_KNOWN: &str = ".config/gcloud/application_default_credentials.json";

#[tokio::test]
async fn nothing_found_names_every_place_and_what_to_run() {
    // covers: PRX-2.3
    let mut world = World::new();
    let said = world.find().await.unwrap_err();
    let text = said.to_string();
    for place in ["GOOGLE_APPLICATION_CREDENTIALS: not set", WELL_KNOWN, "NO_GCE_CHECK"] {
        assert!(text.contains(place), "{text}");
    }
    assert!(said.hint.contains("gcloud auth application-default login"), "{}", said.hint);
    world.unset("NO_GCE_CHECK");
    // A port of loopback at which nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    world.set("GCE_METADATA_HOST", &free.to_string());
    let text = world.find().await.unwrap_err().to_string();
    assert!(text.contains(&format!("metadata server at {free}: not reachable")), "{text}");
}

#[tokio::test]
async fn gclouds_own_file_is_found_in_its_folder() {
    // covers: PRX-2.1
    let mut world = World::new();
    world.write(WELL_KNOWN, &world.google.authorized_user().to_string());
    let credentials = world.find().await.unwrap();
    assert!(credentials.origin().ends_with(&format!("{WELL_KNOWN} (authorized_user)")));
    let other = world.write(
        "elsewhere/application_default_credentials.json",
        &world.google.service_account().to_string(),
    );
    world.set("CLOUDSDK_CONFIG", other.parent().unwrap().to_str().unwrap());
    let credentials = world.find().await.unwrap();
    assert_eq!(credentials.principal().as_deref(), Some(SERVICE_ACCOUNT));
}

#[tokio::test]
async fn a_named_file_that_is_absent_is_not_passed_over() {
    // covers: PRX-2.3, PRX-6.4
    let mut world = World::on_google();
    world.write(WELL_KNOWN, &world.google.authorized_user().to_string());
    world.set("GOOGLE_APPLICATION_CREDENTIALS", "/not/there.json");
    let said = world.find().await.unwrap_err();
    assert!(said.to_string().contains("=/not/there.json: No such file"), "{said}");
    world.set("GOOGLE_APPLICATION_CREDENTIALS", "~/there.json");
    let said = world.find().await.unwrap_err();
    assert!(said.hint.contains("`~`"), "{}", said.hint);
}

#[tokio::test]
async fn credentials_without_id_tokens_are_refused_at_the_start() {
    // covers: PRX-2.3
    let external = |google: &fake_google::Google| {
        let mut account = google.external_account(json!({"file": "/t"}));
        account.as_object_mut().unwrap().remove("service_account_impersonation_url");
        account
    };
    for world in [
        World::with(external),
        World::with(fake_google::Google::workforce_login),
        World::with(|_| json!({"type": "gdch_service_account"})),
    ] {
        let said = world.find().await.unwrap_err();
        assert!(said.hint.contains("--impersonate-service-account"), "{said}: {}", said.hint);
        assert!(world.google.seen().is_empty(), "nothing is asked at the start");
    }
    let world = World::with(fake_google::Google::workforce_login).impersonating(TARGET);
    assert!(world.find().await.is_ok());
    let world = World::with(fake_google::Google::service_account).impersonating("not an address");
    let said = world.find().await.unwrap_err().to_string();
    assert!(said.contains("not a service account's address"), "{said}");
}

#[tokio::test]
async fn what_is_found_is_not_used_before_a_token_is_wanted() {
    let world = World::with(fake_google::Google::service_account);
    world.find().await.unwrap();
    assert!(world.google.seen().is_empty());
}

#[tokio::test]
async fn something_else_at_the_metadata_servers_address_is_not_taken_for_one() {
    let world = World::on_google();
    world.google.play("/", Play::html(200, "a captive portal"));
    let said = world.find().await.unwrap_err().to_string();
    assert!(said.contains("it is no metadata server"), "{said}");
}

#[tokio::test]
async fn a_metadata_server_that_is_slow_to_start_is_waited_for() {
    let world = World::on_google();
    world.google.play("/", Play::Hang);
    world.google.play("/", Play::Hang);
    assert!(world.find().await.is_ok());
    assert_eq!(world.google.seen_at("/").len(), 3);
}

#[tokio::test]
async fn a_new_login_takes_effect_without_a_restart() {
    // covers: PRX-2.5
    let world = World::with(fake_google::Google::authorized_user);
    world.google.set_refresh_token("1//another");
    let credentials = world.find().await.unwrap();
    let refused = credentials.token().await.unwrap_err();
    assert!(refused.hint().contains("gcloud auth application-default login"), "{}", refused.hint());
    assert!(refused.hint().contains("without a restart"), "{}", refused.hint());
    world.rewrite(&world.google.authorized_user());
    let token = credentials.token().await.unwrap();
    assert_eq!(token.claims().email.as_deref(), Some(PERSON));
    // Also where it is credentials of another type.
    world.rewrite(&world.google.service_account());
    world.jump(7200);
    world.google.set_life(7200 + 3600);
    let refused = credentials.token().await.unwrap_err().to_string();
    assert!(refused.contains("iat and exp"), "its clock is two hours ahead: {refused}");
    world.jump(-7200);
    world.rewrite(&world.google.impersonated(world.google.service_account()));
    let token = credentials.token().await.unwrap();
    assert_eq!(token.claims().email.as_deref(), Some(PERSON), "the kept one is good again");
}

#[tokio::test]
async fn a_login_goes_before_the_metadata_server_once_it_is_there() {
    let world = World::on_google();
    let credentials = world.find().await.unwrap();
    world.write(WELL_KNOWN, &world.google.authorized_user().to_string());
    let token = credentials.token().await.unwrap();
    assert_eq!(token.claims().email.as_deref(), Some(PERSON));
}

#[tokio::test]
async fn a_file_that_went_away_is_told() {
    let world = World::new();
    let path = world.write(WELL_KNOWN, &world.google.authorized_user().to_string());
    let credentials = world.find().await.unwrap();
    std::fs::remove_file(path).unwrap();
    let refused = credentials.token().await.unwrap_err();
    assert!(refused.to_string().contains("no credentials any more"), "{refused}");
    assert!(refused.hint().contains("gcloud auth application-default login"));
}
