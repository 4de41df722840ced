//! What a test of credentials needs: a fake Google, a home folder, variables, and a clock.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use cofer_mcp::http::{ProxySettings, Transport, TransportOptions};
use cofer_proxy::auth::{Clock, Credentials, Environment, IdToken, NotFound, Options, TokenError};
use fake_google::Google;
use serde_json::Value;
use tempfile::TempDir;

/// For whom tokens are, where it does not matter.
pub(crate) const AUDIENCE: &str = "https://demo-1.a.run.app";

pub(crate) struct World {
    pub(crate) google: Google,
    pub(crate) folder: TempDir,
    variables: BTreeMap<String, String>,
    /// Seconds that the clock is ahead of the machine's.
    ahead: Arc<AtomicI64>,
    impersonate: Option<String>,
    behind_proxy: bool,
}

impl World {
    /// A machine without credentials and without a metadata server.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut world = Self {
            google: Google::start(),
            folder,
            variables: BTreeMap::new(),
            ahead: Arc::default(),
            impersonate: None,
            behind_proxy: false,
        };
        let home = world.folder.path().to_str().expect("temporary paths are text").to_owned();
        world.set("HOME", &home);
        world.set("PATH", &std::env::var("PATH").expect("PATH is set"));
        world.set("NO_GCE_CHECK", "true");
        world
    }

    /// A machine with these credentials in `GOOGLE_APPLICATION_CREDENTIALS`.
    pub(crate) fn with(credentials: impl FnOnce(&Google) -> Value) -> Self {
        let mut world = Self::new();
        let json = credentials(&world.google);
        let path = world.write("credentials.json", &json.to_string());
        world.set("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().expect("text"));
        world
    }

    /// A machine whose metadata server is the fake.
    pub(crate) fn on_google() -> Self {
        let mut world = Self::new();
        world.unset("NO_GCE_CHECK");
        let host = world.google.metadata_host();
        world.set("GCE_METADATA_HOST", &host);
        world
    }

    /// Where all of Google's hosts are the fake's.
    pub(crate) fn behind_proxy(mut self) -> Self {
        self.behind_proxy = true;
        self
    }

    /// With `--impersonate-service-account`.
    pub(crate) fn impersonating(mut self, email: &str) -> Self {
        self.impersonate = Some(email.to_owned());
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.remove(name);
    }

    /// Writes a file into the world's folder.
    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    /// Rewrites the credentials file.
    pub(crate) fn rewrite(&self, json: &Value) {
        self.write("credentials.json", &json.to_string());
    }

    /// Makes the wall clock jump.
    pub(crate) fn jump(&self, seconds: i64) {
        self.ahead.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn transport(&self) -> Transport {
        if !self.behind_proxy {
            let none = ProxySettings::default();
            return Transport::with_proxies(TransportOptions::default(), none)
                .expect("a transport");
        }
        let cacert = self.write("ca.pem", self.google.ca_pem());
        let proxy = self.google.proxy();
        let proxies = ProxySettings::read(|name| (name == "HTTPS_PROXY").then(|| proxy.clone()));
        let options = TransportOptions { cacert: Some(&cacert) };
        Transport::with_proxies(options, proxies.expect("a proxy")).expect("a transport")
    }

    /// Finds credentials for the usual audience.
    pub(crate) async fn find(&self) -> Result<Credentials, NotFound> {
        self.find_for(AUDIENCE).await
    }

    pub(crate) async fn find_for(&self, audience: &str) -> Result<Credentials, NotFound> {
        let ahead = Arc::clone(&self.ahead);
        let mut options = Options::new(audience, self.transport());
        options.environment = Environment::of(self.variables.clone());
        options.impersonate = self.impersonate.clone();
        options.clock = Clock::from_fn(move || {
            let seconds = ahead.load(Ordering::SeqCst);
            let by = Duration::from_secs(seconds.unsigned_abs());
            if seconds < 0 { SystemTime::now() - by } else { SystemTime::now() + by }
        });
        Credentials::find(options).await
    }

    /// Finds credentials and has one token made.
    pub(crate) async fn token(&self) -> Result<Arc<IdToken>, Arc<TokenError>> {
        let credentials = self.find().await.unwrap_or_else(|error| panic!("{error}"));
        credentials.token().await
    }

    /// Has one token made, which fails, and gives what is said then.
    pub(crate) async fn failure(&self) -> String {
        let error = self.token().await.expect_err("there is no token to be had");
        format!("{error}\n{}", error.hint())
    }
}
