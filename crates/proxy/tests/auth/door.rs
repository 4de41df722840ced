//! Our tokens at Cloud Run's front door, and what happens when it refuses them.

use std::sync::Arc;

use bytes::Bytes;
use cofer_mcp::http::{Authorizer as _, Transport};
use cofer_proxy::auth::{Credentials, default_audience};
use fake_google::{CLIENT_ID, DoorOptions, FrontDoor, Google, PERSON, SERVICE_ACCOUNT, TARGET};
use http::Request;

use crate::world::World;

/// Sends a request that carries our token.
async fn knock(transport: &Transport, credentials: &Credentials, url: &str) -> u16 {
    let header = credentials.authorization().await.expect("a token").expect("requests are signed");
    let request = Request::post(format!("{url}/mcp")).header("authorization", header);
    let request = request.body(Bytes::from_static(b"{}")).expect("a request");
    transport.send(request).await.expect("an answer").status().as_u16()
}

async fn at_the_door(world: &World, options: DoorOptions) -> (FrontDoor, Credentials) {
    let door = FrontDoor::start(&world.google, options);
    let audience = default_audience(&format!("{}/mcp", door.url()).parse().expect("a URL"));
    let credentials = world.find_for(&audience).await.expect("credentials");
    (door, credentials)
}

#[tokio::test]
async fn our_token_opens_the_door() {
    // covers: PRX-2.4
    for world in [
        World::with(Google::service_account),
        World::with(Google::authorized_user),
        World::on_google(),
        World::with(|google| google.impersonated(google.authorized_user())),
        World::with(Google::aws_account),
    ] {
        let (door, credentials) = at_the_door(&world, DoorOptions::default()).await;
        let status = knock(&world.transport(), &credentials, &door.url()).await;
        let seen = door.seen();
        assert_eq!(status, 200, "{:?}", seen[0].1);
        let email = seen[0].1.as_ref().unwrap().email.clone();
        assert_eq!(credentials.principal(), Some(email));
    }
}

#[tokio::test]
async fn the_door_of_a_real_host_behind_a_proxy_opens() {
    let world = World::with(Google::gcloud_login).behind_proxy().impersonating(TARGET);
    let host = Some("demo-1.a.run.app".to_owned());
    let (door, credentials) =
        at_the_door(&world, DoorOptions { host, ..DoorOptions::default() }).await;
    assert_eq!(door.url(), "https://demo-1.a.run.app");
    assert_eq!(knock(&world.transport(), &credentials, &door.url()).await, 200);
    assert_eq!(door.seen()[0].1.as_ref().unwrap().audience, "https://demo-1.a.run.app");
}

#[tokio::test]
async fn a_refused_token_is_replaced_by_a_new_one() {
    // covers: PRX-2.5, PRX-5.2
    let world = World::with(Google::service_account);
    let (door, credentials) = at_the_door(&world, DoorOptions::default()).await;
    let transport = world.transport();
    assert_eq!(knock(&transport, &credentials, &door.url()).await, 200);
    door.bar_known_tokens();
    let used = credentials.authorization().await.unwrap().unwrap();
    assert_eq!(knock(&transport, &credentials, &door.url()).await, 401);
    credentials.rejected(&used);
    assert_eq!(knock(&transport, &credentials, &door.url()).await, 200);
    let now = credentials.authorization().await.unwrap().unwrap();
    // Somebody who was refused with the old one comes late.
    credentials.rejected(&used);
    assert_eq!(credentials.authorization().await.unwrap().unwrap(), now);
    assert_eq!(world.google.seen_at("/token").len(), 2);
}

#[tokio::test]
async fn after_a_sleep_a_new_token_is_used_at_once() {
    // covers: PRX-2.5
    let world = World::on_google();
    let (door, credentials) = at_the_door(&world, DoorOptions::default()).await;
    let transport = world.transport();
    assert_eq!(knock(&transport, &credentials, &door.url()).await, 200);
    world.jump(2 * 3600);
    world.google.set_life(3 * 3600);
    assert_eq!(knock(&transport, &credentials, &door.url()).await, 200);
    let sent: Vec<_> =
        door.seen().iter().map(|(seen, _)| seen.headers["authorization"].clone()).collect();
    assert_ne!(sent[0], sent[1], "the old token was over");
}

#[tokio::test]
async fn many_requests_at_once_ask_for_one_token() {
    // covers: PRX-2.5
    let world = World::with(Google::service_account);
    let credentials = Arc::new(world.find().await.unwrap());
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let credentials = Arc::clone(&credentials);
        requests.spawn(async move { credentials.authorization().await.unwrap().unwrap() });
    }
    let headers = requests.join_all().await;
    assert!(headers.iter().all(|header| *header == headers[0]));
    assert_eq!(world.google.seen_at("/token").len(), 1);
}

#[tokio::test]
async fn a_refusal_of_the_door_has_advice_that_fits() {
    // covers: PRX-5.2
    let world = World::with(Google::service_account);
    let invokers = Some(vec!["somebody@else".to_owned()]);
    let (door, credentials) =
        at_the_door(&world, DoorOptions { invokers, ..DoorOptions::default() }).await;
    assert_eq!(knock(&world.transport(), &credentials, &door.url()).await, 403);
    let advice = credentials.advice(403);
    assert!(advice.contains("roles/run.invoker"), "{advice}");
    assert!(advice.contains(&format!("--member=serviceAccount:{SERVICE_ACCOUNT}")), "{advice}");

    let audience = Some("https://custom.example.com".to_owned());
    let (door, credentials) =
        at_the_door(&world, DoorOptions { audience, ..DoorOptions::default() }).await;
    assert_eq!(knock(&world.transport(), &credentials, &door.url()).await, 401);
    let advice = credentials.advice(401);
    assert!(advice.contains("--audience") && advice.contains(&door.url()), "{advice}");
}

#[tokio::test]
async fn a_login_of_somebodys_own_client_is_refused_and_the_advice_says_why() {
    // covers: PRX-5.2
    let world = World::new();
    world.google.set_login_client(CLIENT_ID);
    let login = world.google.authorized_user().to_string();
    world.write(".config/gcloud/application_default_credentials.json", &login);
    let (door, credentials) = at_the_door(&world, DoorOptions::default()).await;
    assert_eq!(knock(&world.transport(), &credentials, &door.url()).await, 401);
    assert_eq!(door.seen()[0].1.as_ref().unwrap_err(), "the audience is another");
    let advice = credentials.advice(401);
    for part in [CLIENT_ID, "--client-id-file", "--impersonate-service-account"] {
        assert!(advice.contains(part), "{part}: {advice}");
    }
    let advice = credentials.advice(403);
    assert!(advice.contains(&format!("--member=user:{PERSON}")), "{advice}");
}

#[tokio::test]
async fn a_failure_is_told_with_its_cause_and_what_to_do() {
    // covers: PRX-5.2
    let world = World::with(Google::authorized_user);
    let credentials = world.find().await.unwrap();
    world.google.set_refresh_token("1//another");
    let failure = credentials.authorization().await.unwrap_err();
    assert!(failure.message.starts_with("could not get an ID token: "), "{}", failure.message);
    assert!(failure.message.contains("Token has been expired or revoked."), "{}", failure.message);
    assert!(failure.hint.contains("gcloud auth application-default login"), "{}", failure.hint);
}
