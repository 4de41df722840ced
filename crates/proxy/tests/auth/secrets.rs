//! Keys and tokens never stand in a log, in a message, or in what `Debug` shows.

use std::io;
use std::sync::{Arc, Mutex};

use cofer_mcp::http::Authorizer as _;
use fake_google::{Google, Play};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::World;

/// Everything that is logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Uses the credentials in every way, and gives everything that could be read of it.
async fn readable(world: &World) -> String {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let mut said = String::new();
    let credentials = world.find().await.expect("credentials");
    let token = credentials.token().await.expect("a token");
    let header = credentials.authorization().await.expect("a header");
    said.push_str(&format!("{credentials:?} {token:?} {header:?} {}\n", credentials.advice(403)));
    credentials.rejected(&header.expect("requests are signed"));
    for path in ["/token", "/oauthtoken", "/identity", ":generateIdToken"] {
        if world.google.seen_at(path).is_empty() {
            continue;
        }
        world.google.play_always(path, Play::Echo(400));
        let error = credentials.token().await.expect_err("a refusal");
        said.push_str(&format!("{error} {error:?} {}\n", error.hint()));
        let failure = credentials.authorization().await.expect_err("a refusal");
        said.push_str(&format!("{failure} {failure:?}\n"));
        world.google.play_nothing();
    }
    drop(guard);
    said.push_str(&String::from_utf8_lossy(&log.0.lock().expect("nobody panicked")));
    said
}

#[tokio::test]
async fn nothing_that_is_shown_holds_a_secret() {
    let external = |world: &World| {
        let path = world.write("subject", &world.google.subject_token());
        world.rewrite(&world.google.external_account(json!({ "file": path })));
    };
    let file = World::with(|_| json!({}));
    external(&file);
    for world in [
        World::with(Google::service_account),
        World::with(Google::authorized_user),
        World::on_google(),
        World::with(|google| google.impersonated(google.authorized_user())),
        World::with(|google| google.impersonated(google.workforce_login())),
        World::with(Google::aws_account),
        file,
    ] {
        let said = readable(&world).await;
        assert!(said.contains("fetched an ID token"), "the log was read: {said}");
        for canary in world.google.canaries() {
            assert!(!said.contains(&canary), "`{canary}` in:\n{said}");
        }
    }
}
