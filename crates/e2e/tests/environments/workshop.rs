//! A repository that an agent works on, and the server it works with.

use std::fs;
use std::path::{Path, PathBuf};

use cofer_e2e::{Daemon, Ended, McpClient, cofer, eventually, image, plain_client, run};
use serde_json::{Value, json};

/// A prepared repository.
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
    pub(crate) variables: Vec<(String, String)>,
}

/// The files that every repository here begins with.
const FILES: [(&str, &str); 4] = [
    ("README", "hello\n"),
    ("src/a.txt", "a\n"),
    ("build/kept", "tracked\n"),
    (".gitignore", "build/\n"),
];

impl Workshop {
    /// A repository with one commit, and `cofer init` done in it.
    pub(crate) async fn open() -> Self {
        let workshop = Self::unprepared().await;
        workshop.init(&workshop.repo()).await;
        workshop
    }

    /// `cofer init` in a repository.
    pub(crate) async fn init(&self, folder: &Path) {
        let args = ["init", folder.to_str().unwrap()];
        let done = run(&cofer(), &args, &self.environment(), "").await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }

    pub(crate) async fn unprepared() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("repo")).unwrap();
        // Not the record of the user who runs the tests.
        let state = folder.path().join("state").to_str().unwrap().to_owned();
        let variables = vec![("XDG_STATE_HOME".to_owned(), state)];
        let workshop = Self { folder, variables };
        workshop.git(&["init", "-q", "-b", "main"]).await;
        workshop.git(&["config", "user.name", "Ada"]).await;
        workshop.git(&["config", "user.email", "ada@example.org"]).await;
        for (name, text) in FILES {
            workshop.write(name, text);
        }
        workshop.git(&["add", "-A", "-f"]).await;
        workshop.git(&["commit", "-q", "-m", "one"]).await;
        workshop
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// Beside the repository.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn worktree(&self, id: &str) -> PathBuf {
        self.repo().join(".cofer/worktrees").join(id)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.repo().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        let mut all = vec![("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];
        all.extend(self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        all
    }

    pub(crate) async fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args).await
    }

    pub(crate) async fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let args = [&["-C", folder.to_str().unwrap()], args].concat();
        let ended = run(Path::new("git"), &args, &self.environment(), "").await;
        assert_eq!(ended.code, Some(0), "git {args:?}: {}", ended.stderr);
        ended.stdout.trim_end().to_owned()
    }

    /// The same user's next repository, prepared.
    pub(crate) async fn neighbour(&self) -> Self {
        let mut neighbour = Self::unprepared().await;
        neighbour.variables.clone_from(&self.variables);
        neighbour.init(&neighbour.repo()).await;
        neighbour
    }

    /// A daemon of the same user.
    pub(crate) async fn daemon(&self) -> Daemon {
        let builder = Daemon::builder();
        let variables = self.variables.iter();
        variables.fold(builder, |builder, (name, value)| builder.env(name, value)).start().await
    }

    /// `cofer …` in the repository.
    pub(crate) async fn cofer(&self, args: &[&str]) -> Ended {
        let repo = self.repo();
        let words = match args {
            ["init", rest @ ..] => [&["init", repo.to_str().unwrap()], rest].concat(),
            ["env", command, rest @ ..] => {
                [&["env", command, "-C", repo.to_str().unwrap()], rest].concat()
            }
            other => other.to_vec(),
        };
        run(&cofer(), &words, &self.environment(), "").await
    }

    /// `cofer …` as this user, with the arguments as they are.
    pub(crate) async fn cofer_anywhere(&self, args: &[&str]) -> Ended {
        run(&cofer(), args, &self.environment(), "").await
    }

    /// A server, after the handshake.
    pub(crate) async fn agent(&self) -> Agent {
        self.agent_with(&[]).await
    }

    /// A server, before any message.
    pub(crate) fn client(&self) -> McpClient {
        McpClient::start(&["environments"], &self.environment(), &self.repo())
    }

    /// A server whose client shows forms to its user.
    pub(crate) async fn agent_that_elicits(&self) -> Agent {
        let mut client = self.client();
        client.initialize_with(json!({"elicitation": {}})).await;
        Agent { client, source: self.repo() }
    }

    /// A server that is told more than the others.
    pub(crate) async fn agent_with(&self, more: &[(&str, &str)]) -> Agent {
        let environment = [self.environment(), more.to_vec()].concat();
        let mut client = McpClient::start(&["environments"], &environment, &self.repo());
        client.initialize().await;
        Agent { client, source: self.repo() }
    }

    /// The containers of this repository, running or not.
    pub(crate) async fn containers(&self) -> Vec<String> {
        let filter = format!("label=io.cofer.source={}", self.repo().display());
        let listed =
            cofer_e2e::podman(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]).await;
        listed.lines().map(str::to_owned).collect()
    }

    /// An image of what is in a container, changed.
    pub(crate) async fn image_of(&self, container: &str, change: &str) -> Image {
        let name = image(&format!("of-{}", &container[..12]));
        let args = ["commit", "--quiet", "--change", change, container, &name];
        cofer_e2e::podman(&args).await;
        Image(name)
    }

    /// Whether nothing of an environment is left but its branch.
    pub(crate) async fn is_tidy(&self, id: &str) {
        assert_eq!(self.containers().await, Vec::<String>::new());
        assert!(!self.worktree(id).exists());
        let home = self.repo().join(".git/cofer");
        for name in ["environments", "locks", "remote.git/worktrees"] {
            let left: Vec<_> = fs::read_dir(home.join(name)).into_iter().flatten().collect();
            assert!(left.is_empty(), "{name}: {left:?}");
        }
        eventually("what was set aside is deleted", async || {
            fs::read_dir(home.join("trash")).unwrap().next().is_none().then_some(())
        })
        .await;
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(self.worktree(id).to_str().unwrap()), "{mounts}");
    }
}

/// An image that a test made. Goes with its owner.
pub(crate) struct Image(String);

impl Image {
    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "a destructor cannot wait for a future")]
        let ended = std::process::Command::new("podman").args(["rmi", "--force", &self.0]).output();
        drop(ended);
    }
}

impl Drop for Workshop {
    /// What a failed test left, so that its folder can be removed.
    fn drop(&mut self) {
        let repo = self.repo();
        let args = ["env", "destroy", "--all", "--force", "-C", repo.to_str().unwrap_or_default()];
        #[expect(clippy::disallowed_methods, reason = "a destructor cannot wait for a future")]
        let ended = std::process::Command::new(cofer())
            .args(args)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output();
        drop(ended);
    }
}

/// An agent with its server.
pub(crate) struct Agent {
    pub(crate) client: McpClient,
    source: PathBuf,
}

impl Agent {
    /// Calls a tool on the repository.
    pub(crate) async fn call(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["environment_source"] = json!(self.source);
        self.client.call(tool, arguments).await
    }

    pub(crate) async fn try_create(&mut self, mut arguments: Value) -> Value {
        if arguments.get("image").is_none() {
            arguments["image"] = json!(image("busybox"));
        }
        self.call("environment_create", arguments).await
    }

    /// Creates an environment of the test image, and gives what is told of it.
    pub(crate) async fn create(&mut self, title: &str) -> Value {
        facts(&self.try_create(json!({"title": title})).await)
    }

    pub(crate) async fn try_run(&mut self, id: &str, command: &str) -> Value {
        self.call("environment_run_cmd", json!({"environment_id": id, "command": command})).await
    }

    /// Runs a command that may fail and must be answered.
    pub(crate) async fn run(&mut self, id: &str, command: &str) -> Value {
        facts(&self.try_run(id, command).await)
    }

    /// Starts a command in the background, and gives where its port answers.
    pub(crate) async fn serve(&mut self, id: &str, command: &str, port: u16) -> String {
        let arguments =
            json!({"environment_id": id, "command": command, "background": true, "ports": [port]});
        let result = self.call("environment_run_cmd", arguments).await;
        let told = facts(&result);
        let address = told["endpoints"][port.to_string()]["host_external"].as_str().unwrap();
        address.strip_prefix("tcp://").unwrap().to_owned()
    }

    pub(crate) async fn destroy(&mut self, id: &str) -> Value {
        facts(&self.call("environment_destroy", json!({"environment_id": id})).await)
    }
}

/// The structured content of a success.
pub(crate) fn facts(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

/// The error of a failure, which has all that it must have.
pub(crate) fn error(result: &Value, kind: &str) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["kind"], kind, "{error}");
    for name in ["message", "step", "recovery", "trace_id"] {
        assert!(error[name].as_str().is_some_and(|text| !text.is_empty()), "{name} in {error}");
    }
    assert!(error["retryable"].is_boolean(), "{error}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(error["recovery"].as_str().unwrap()), "{text}");
    error.clone()
}

/// What a web server answers.
pub(crate) async fn fetch(address: &str, path: &str) -> String {
    let url = format!("http://{address}/{path}");
    let answer = plain_client().get(&url).send().await.unwrap();
    answer.text().await.unwrap()
}
