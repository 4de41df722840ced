//! A registry on loopback, for the tests that pull: `docker-registry` on a free port, with or
//! without a login, gone with the test.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Child;

use crate::containers::{image, podman};
use crate::http::plain_client;
use crate::programs::command;
use crate::wait::eventually;

/// `tester:secret`, as htpasswd writes it.
const HTPASSWD: &str = "tester:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

/// A running registry.
pub struct Registry {
    child: Child,
    port: u16,
    login: bool,
    _folder: TempDir,
}

impl Registry {
    /// One that anybody may read.
    pub async fn start() -> Self {
        Self::start_on_a_free_port(false).await
    }

    /// One that wants `tester` with the password `secret`.
    pub async fn with_login() -> Self {
        Self::start_on_a_free_port(true).await
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Puts an image there that is not on this machine, `wayward` with a layer of its own, and
    /// gives its name.
    pub async fn publish(&self, name: &str) -> String {
        let reference = format!("{}/{name}:1", self.address());
        let container = podman(&["create", &image("wayward")]).await;
        let layer = self._folder.path().join("layer");
        let noise: Vec<u8> = std::iter::repeat_with(|| *uuid::Uuid::new_v4().as_bytes())
            .take(1 << 16)
            .flatten()
            .collect();
        std::fs::write(&layer, noise).expect("a file of random bytes is written");
        let layer = layer.to_str().expect("temporary paths are text");
        podman(&["cp", layer, &format!("{container}:/layer")]).await;
        podman(&["commit", "--quiet", &container, &reference]).await;
        podman(&["rm", "--force", &container]).await;
        let login = if self.login { "--creds=tester:secret" } else { "--quiet" };
        podman(&["push", login, &reference]).await;
        podman(&["rmi", "--force", &reference]).await;
        reference
    }

    /// Ends it, as a registry that is down.
    pub async fn stop(&mut self) {
        self.child.kill().await.expect("it is our child");
    }

    async fn start_on_a_free_port(login: bool) -> Self {
        // Another process may take the port between our look and the registry's.
        for _ in 0..8 {
            if let Some(registry) = Self::try_start(login).await {
                return registry;
            }
        }
        panic!("docker-registry does not start on any port: is it installed?");
    }

    async fn try_start(login: bool) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it has an address").port();
        drop(listener);
        let config = folder.path().join("config.yml");
        std::fs::write(&config, settings(folder.path(), port, login)).expect("it is written");
        let mut command = command(Path::new("docker-registry"));
        command.arg("serve").arg(&config);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("docker-registry: {error}"));
        let mut registry = Self { child, port, login, _folder: folder };
        registry.is_up().await.then_some(registry)
    }

    /// Waits until it answers as a registry of its kind does; false where it ended instead.
    async fn is_up(&mut self) -> bool {
        let client = plain_client();
        let url = format!("http://{}/v2/", self.address());
        let expected = if self.login { 401 } else { 200 };
        eventually("the registry answers", async || {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return Some(false);
            }
            let answer = client.get(&url).send().await.ok()?;
            (answer.status() == expected).then_some(true)
        })
        .await
    }
}

fn settings(folder: &Path, port: u16, login: bool) -> String {
    let folder = folder.display();
    let mut text = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage:\n  filesystem:\n    rootdirectory: {folder}/images\n\
         http:\n  addr: 127.0.0.1:{port}\n"
    );
    if login {
        std::fs::write(format!("{folder}/htpasswd"), HTPASSWD).expect("it is written");
        text += &format!("auth:\n  htpasswd:\n    realm: tests\n    path: {folder}/htpasswd\n");
    }
    text
}
