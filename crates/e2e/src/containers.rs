//! The containers of the tests: Podman as `scripts/test` has set it up, its images, and what it
//! says of the containers that a daemon under test has started.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::programs::{Ended, run};
use crate::wait::eventually;

/// What runs a container: every case is shown with both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// Plain namespaces and cgroups: runc, or what else Podman was set up with.
    Runc,
    /// gVisor.
    Runsc,
}

impl Runtime {
    /// The program's name, as `podman inspect` has it.
    pub fn name(self) -> String {
        let engines = || std::env::var("COFER_TEST_OCI_RUNTIME").ok();
        match self {
            Self::Runc => engines().unwrap_or_else(|| "runc".to_owned()),
            Self::Runsc => "runsc".to_owned(),
        }
    }

    /// What a registration calls it.
    pub fn provider(self) -> &'static str {
        match self {
            Self::Runc => "podman",
            Self::Runsc => "gvisor",
        }
    }

    /// The registration of the `wayward` image with these flags.
    pub fn wayward(self, name: &str, flags: &[&str]) -> Value {
        let mut body = self.image(name, "wayward");
        body["args"] = json!(flags);
        body
    }

    /// The registration of a test image.
    pub fn image(self, name: &str, of: &str) -> Value {
        json!({"name": name, "image": image(of), "provider": self.provider()})
    }
}

/// The folder that `scripts/setup-containers` fills.
pub fn containers_folder() -> PathBuf {
    let path = std::env::var_os("COFER_TEST_CONTAINERS").unwrap_or_else(|| {
        panic!(
            "COFER_TEST_CONTAINERS is not set: run this under scripts/test, which sets Podman up"
        )
    });
    PathBuf::from(path)
}

/// The whole name of a test image.
pub fn image(name: &str) -> String {
    let folder = containers_folder();
    assert!(folder.join("containers.conf").is_file(), "run scripts/setup-containers");
    format!("localhost/cofer-test/{name}")
}

/// The registration with one more field.
pub fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

/// Runs Podman to its end.
pub async fn try_podman(args: &[&str]) -> Ended {
    run(Path::new("podman"), args, &[("HOME", "/tmp")], "").await
}

/// Runs a Podman command that must work, and gives its stdout.
pub async fn podman(args: &[&str]) -> String {
    let ended = try_podman(args).await;
    assert_eq!(ended.code, Some(0), "podman {args:?}: {ended:?}");
    ended.stdout.trim_end().to_owned()
}

/// What Podman says of a container or an image.
pub async fn inspect(what: &str) -> Value {
    let text = podman(&["inspect", what]).await;
    let all: Value = serde_json::from_str(&text).expect("inspect prints JSON");
    all[0].clone()
}

/// The containers that carry this server's id in a label, running or not.
pub async fn containers_of(server: &Value) -> Vec<Value> {
    let text = podman(&["ps", "--all", "--no-trunc", "--format", "json"]).await;
    let all: Vec<Value> = serde_json::from_str(&text).expect("ps prints JSON");
    all.into_iter().filter(|container| has_label(&container["Labels"], server)).collect()
}

/// The names of the volumes that carry this server's id in a label.
pub async fn volumes_of(server: &Value) -> Vec<String> {
    let text = podman(&["volume", "ls", "--format", "json"]).await;
    let all: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let its = all.iter().filter(|volume| has_label(&volume["Labels"], server));
    its.map(|volume| volume["Name"].as_str().expect("a volume has a name").to_owned()).collect()
}

fn has_label(labels: &Value, server: &Value) -> bool {
    let id = &server["id"];
    assert!(id.is_string(), "{server}");
    labels.as_object().is_some_and(|labels| labels.values().any(|value| value == id))
}

/// Waits until no container of this server is left.
pub async fn wait_no_container(server: &Value) {
    eventually("its containers are gone", async || {
        containers_of(server).await.is_empty().then_some(())
    })
    .await;
}

/// The container in a server object.
pub fn container_of(server: &Value) -> String {
    let id = server["container_id"].as_str();
    id.unwrap_or_else(|| panic!("no container_id in {server}")).to_owned()
}

impl Daemon {
    /// Registers a server in a container and waits until it is ready.
    pub async fn host(&self, body: &Value) -> Value {
        let server = self.settle(body).await;
        assert_eq!(server["status"], "ready", "{server:#}");
        assert_eq!(server["kind"], "container", "{server:#}");
        server
    }

    /// Registers a server and waits until it is ready or has failed.
    pub async fn settle(&self, body: &Value) -> Value {
        let server = self.post("/mcp/servers", body).await.expect(201);
        let name = server["name"].as_str().expect("a server has a name").to_owned();
        let settled = |server: &Value| matches!(server["status"].as_str(), Some("ready" | "error"));
        self.wait_server(&name, "come to its end", settled).await
    }

    /// Waits until a server is ready in another container than this one.
    pub async fn wait_replaced(&self, name: &str, old: &Value) -> Value {
        self.wait_server(name, "another container", |server| {
            server["status"] == "ready" && server["container_id"] != old["container_id"]
        })
        .await
    }

    /// What the `run` tool of a `wayward` says of a program inside the container.
    pub async fn run_inside(&self, name: &str, argv: &[&str]) -> (Option<i64>, String) {
        let text = self.tool(name, "run", &json!({"argv": argv})).await.tool_text();
        let ended: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{argv:?} could not be run ({error}): {text}"));
        (ended["code"].as_i64(), ended["output"].as_str().unwrap_or_default().to_owned())
    }
}

/// Makes a test of each of these functions with each runtime.
#[macro_export]
macro_rules! with_both_runtimes {
    ($($name:ident),+ $(,)?) => {
        mod runc {
            $(#[tokio::test]
            async fn $name() {
                super::$name(cofer_e2e::Runtime::Runc).await;
            })+
        }
        mod runsc {
            $(#[tokio::test]
            async fn $name() {
                super::$name(cofer_e2e::Runtime::Runsc).await;
            })+
        }
    };
}
