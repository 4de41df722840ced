//! What the tests of containers share: a Podman with an owner of its own, plans whose server is
//! a shell script, and ways to look at what is there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;

use cofer_model::{Exit, Limits, Network, Openings, Provider, ServerId};
use cofer_runtime::podman::{Container, ContainerPlan, Podman, PodmanError};
use cofer_runtime::{ByteSink, ByteSource, Streams};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

/// Far longer than anything takes, also where many containers start at once.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// Busybox under its many names, as `scripts/setup-containers` makes it.
pub(crate) const IMAGE: &str = "localhost/cofer-test/busybox";

/// What runs a container: every case is shown with both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runtime {
    Runc,
    Runsc,
}

impl Runtime {
    /// As Podman calls it: its own is runc, or what else it was set up with.
    pub(crate) fn name(self) -> String {
        let engines = || std::env::var("COFER_TEST_OCI_RUNTIME").ok();
        match self {
            Self::Runc => engines().unwrap_or_else(|| "runc".to_owned()),
            Self::Runsc => "runsc".to_owned(),
        }
    }

    pub(crate) fn provider(self) -> Provider {
        match self {
            Self::Runc => Provider::Podman,
            Self::Runsc => Provider::Gvisor,
        }
    }
}

/// Makes two tests of each function that takes a runtime.
macro_rules! with_both_runtimes {
    ($($case:ident),* $(,)?) => {
        mod runc {
            $(#[tokio::test] async fn $case() { super::$case(crate::world::Runtime::Runc).await; })*
        }
        mod runsc {
            $(#[tokio::test] async fn $case() { super::$case(crate::world::Runtime::Runsc).await; })*
        }
    };
}

/// A Podman with an owner and a directory of its own.
pub(crate) struct World {
    pub(crate) podman: Podman,
    pub(crate) owner: String,
    pub(crate) dir: TempDir,
}

impl World {
    pub(crate) fn new(test: &str) -> Self {
        Self::owned_by(&crate::support::owner(test), &BTreeMap::new())
    }

    /// One whose Podman sees some variables otherwise.
    pub(crate) fn owned_by(owner: &str, changed: &BTreeMap<&str, String>) -> Self {
        let set_up = std::env::var_os("COFER_TEST_CONTAINERS").is_some();
        assert!(set_up, "run this under scripts/test, which sets Podman up");
        let dir = tempfile::tempdir().unwrap();
        let mut environment: BTreeMap<_, _> = std::env::vars_os().collect();
        environment.extend(changed.iter().map(|(key, value)| (key.into(), value.into())));
        let podman = Podman::with_environment(
            "podman".into(),
            owner.to_owned(),
            dir.path().join("state"),
            env!("CARGO_BIN_EXE_cofer-shim").into(),
            environment,
        );
        Self { podman, owner: owner.to_owned(), dir }
    }

    pub(crate) async fn start(&self, plan: &ContainerPlan) -> Running {
        self.try_start(plan).await.unwrap_or_else(|error| panic!("{error} ({error:?})"))
    }

    pub(crate) async fn try_start(&self, plan: &ContainerPlan) -> Result<Running, PodmanError> {
        let (container, streams) = timeout(PATIENCE, self.podman.start(plan)).await.unwrap()?;
        let Streams { stdin, stdout, stderr } = streams;
        Ok(Running { container, stdin: Some(stdin), stdout: BufReader::new(stdout), stderr })
    }

    /// Why a plan does not start.
    pub(crate) async fn refusal(&self, plan: &ContainerPlan) -> PodmanError {
        match self.try_start(plan).await {
            Ok(running) => panic!("it started: {:?}", running.container),
            Err(error) => error,
        }
    }

    /// Waits until all is gone, and makes sure of it.
    pub(crate) async fn close(self) {
        timeout(PATIENCE, self.podman.close()).await.unwrap();
        assert_eq!(self.containers().await, Vec::<String>::new());
        let files = std::fs::read_dir(self.dir.path().join("state")).into_iter().flatten();
        assert_eq!(files.count(), 0, "no file of a start is left");
    }

    /// The ids of this owner's containers, running or not.
    pub(crate) async fn containers(&self) -> Vec<String> {
        containers_of(&self.owner).await
    }
}

pub(crate) async fn containers_of(owner: &str) -> Vec<String> {
    let filter = format!("label=cofer.owner={owner}");
    let ids = podman(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]).await;
    ids.split_ascii_whitespace().map(str::to_owned).collect()
}

/// A container and its streams.
pub(crate) struct Running {
    pub(crate) container: Container,
    pub(crate) stdin: Option<ByteSink>,
    pub(crate) stdout: BufReader<ByteSource>,
    pub(crate) stderr: ByteSource,
}

impl Running {
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(PATIENCE, self.stdout.read_line(&mut line)).await.unwrap().unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) async fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        timeout(PATIENCE, stdin.write_all(text.as_bytes())).await.unwrap().unwrap();
    }

    /// Everything it still says on stdout and stderr.
    pub(crate) async fn rest(&mut self) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let both = async {
            tokio::join!(self.stdout.read_to_end(&mut out), self.stderr.read_to_end(&mut err))
        };
        let (first, second) = timeout(PATIENCE, both).await.unwrap();
        first.and(second).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(out), text(err))
    }

    pub(crate) async fn exited(&self) -> Exit {
        timeout(PATIENCE, self.container.exited()).await.unwrap()
    }

    pub(crate) async fn gone(&self) {
        timeout(PATIENCE, self.container.gone()).await.unwrap();
    }

    /// What the engine says of it.
    pub(crate) async fn inspect(&self) -> Value {
        let text = podman(&["container", "inspect", self.container.id()]).await;
        serde_json::from_str::<Value>(&text).unwrap()[0].clone()
    }
}

/// A plan for a shell script, in the given runtime.
pub(crate) fn sh(runtime: Runtime, script: &str) -> ContainerPlan {
    let [high, low] = [uuid_half(), uuid_half()];
    let server = format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high & 0xffff,
        low & 0xfff,
        (low >> 12) & 0xfff,
        low >> 16
    );
    ContainerPlan {
        server: server.parse::<ServerId>().unwrap(),
        name: "test".to_owned(),
        image: IMAGE.to_owned(),
        command: None,
        args: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        cwd: None,
        user: None,
        environment: BTreeMap::new(),
        ports: Vec::new(),
        volumes: Vec::new(),
        limits: Limits::default(),
        network: Network::None,
        provider: Some(runtime.provider()),
        require: None,
        stdio: true,
        openings: Openings::default(),
    }
}

fn uuid_half() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Runs Podman; what it prints.
pub(crate) async fn podman(args: &[&str]) -> String {
    let output = try_podman(args).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "podman {args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) async fn try_podman(args: &[&str]) -> Output {
    #[expect(clippy::disallowed_methods, reason = "a second opinion, not through our own code")]
    let mut command = tokio::process::Command::new("podman");
    command.args(args).stdin(std::process::Stdio::null());
    timeout(PATIENCE, command.output()).await.unwrap().unwrap()
}

/// Waits for a condition that has to be asked for.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, ask: impl Fn() -> F) {
    let wait = async {
        while !ask().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}

/// A program of the test's own, in a directory that goes away with it.
pub(crate) fn script(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
