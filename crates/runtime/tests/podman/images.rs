//! Images: found, missing, pulled from a registry of the test's own, given up midway.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use cofer_runtime::podman::PodmanError;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;

use crate::world::{IMAGE, PATIENCE, Runtime, World, podman, sh, try_podman};

/// Debian's registry, on a port of its own.
struct Registry {
    port: u16,
    _child: Child,
    _dir: TempDir,
}

impl Registry {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let root = dir.path().join("data");
        let config = dir.path().join("config.yml");
        let text = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\n\
             http: {{addr: '127.0.0.1:{port}'}}\n",
            root.display()
        );
        std::fs::write(&config, text).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the registry of the test")]
        let mut command = tokio::process::Command::new("docker-registry");
        command.arg("serve").arg(&config).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("docker-registry is set up by scripts/setup-containers");
        let answers =
            || async move { tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() };
        crate::world::eventually("the registry answers", answers).await;
        Self { port, _child: child, _dir: dir }
    }

    fn image(&self, name: &str) -> String {
        format!("127.0.0.1:{}/{name}", self.port)
    }
}

#[tokio::test]
async fn an_image_is_pulled_with_progress_and_its_digest() {
    let world = World::new("pull");
    let registry = Registry::start().await;
    let reference = registry.image("server:1");
    podman(&["push", "--quiet", "--tls-verify=false", IMAGE, &reference]).await;
    assert_eq!(world.podman.image(&reference).await.unwrap(), None);
    let mut lines = Vec::new();
    let pulling = world.podman.pull(&reference, |line| lines.push(line.to_owned()));
    let image = tokio::time::timeout(PATIENCE, pulling).await.unwrap().unwrap();
    assert!(lines.iter().any(|line| line.contains(&reference)), "{lines:?}");
    assert!(image.digest.as_deref().is_some_and(|digest| digest.starts_with("sha256:")));
    assert_eq!(world.podman.image(&reference).await.unwrap(), Some(image.clone()));

    let plan = cofer_runtime::podman::ContainerPlan {
        image: reference.clone(),
        ..sh(Runtime::Runc, "echo up; exec cat")
    };
    let mut running = world.start(&plan).await;
    assert_eq!(running.line().await, "up");
    drop(running);

    let error = world.podman.pull(&registry.image("none:1"), |_| ()).await.unwrap_err();
    assert!(matches!(error, PodmanError::ImageNotFound { .. }), "{error:?}");
    world.podman.drained().await;
    podman(&["rmi", &reference]).await;
    world.close().await;
}

/// A registry that answers everything the same.
async fn answering(answer: &'static str) -> (u16, tokio::task::JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            // An answer before the request was read would be a reset.
            if stream.read(&mut request).await.is_ok() && !answer.is_empty() {
                stream.write_all(answer.as_bytes()).await.ok();
            } else {
                std::future::pending::<()>().await;
            }
        }
    });
    (port, tasks)
}

#[tokio::test]
async fn a_registry_that_needs_a_login_says_so() {
    let world = World::new("login");
    let body = r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\
         Docker-Distribution-Api-Version: registry/2.0\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (port, _tasks) = answering(answer.leak()).await;
    let image = format!("127.0.0.1:{port}/private:1");
    let error = world.podman.pull(&image, |_| ()).await.unwrap_err();
    assert!(matches!(error, PodmanError::LoginNeeded { .. }), "{error:?}");
    assert!(error.hint().contains(&format!("podman login 127.0.0.1:{port}")), "{}", error.hint());
    world.close().await;
}

#[tokio::test]
async fn a_registry_that_is_not_there_says_so() {
    let world = World::new("unreachable");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = world.podman.pull(&format!("127.0.0.1:{port}/x:1"), |_| ()).await.unwrap_err();
    assert!(matches!(error, PodmanError::Unreachable { .. }), "{error:?}");
    world.close().await;
}

#[tokio::test]
async fn a_pull_that_is_given_up_ends() {
    let world = World::new("given-up-pull");
    let (port, _tasks) = answering("").await;
    let image = format!("127.0.0.1:{port}/slow:1");
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let pulling = world.podman.pull(&image, move |line| said.send(line.to_owned()).unwrap());
    tokio::select! {
        result = pulling => panic!("{result:?}"),
        line = heard.recv() => assert!(line.unwrap().contains(&image)),
    }
    let needle = format!("pull\0{image}");
    let pulls = || {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = pids.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&needle)).count()
    };
    crate::support::until("the client has ended", || pulls() == 0).await;
    assert!(!try_podman(&["image", "exists", &image]).await.status.success());
    // Nothing of it keeps the daemon.
    tokio::time::timeout(Duration::from_secs(60), world.close()).await.unwrap();
}

#[tokio::test]
async fn what_is_no_image_is_not_taken_for_an_option() {
    let world = World::new("no-image");
    for reference in ["", "--all", "a b"] {
        let error = world.podman.image(reference).await.unwrap_err();
        assert!(matches!(error, PodmanError::BadPlan { .. }), "{error:?}");
    }
    assert!(world.podman.image(IMAGE).await.unwrap().is_some());
    world.close().await;
}
