//! `cofer mcp copilot` with the real Copilot CLI of npm: without a login, and with a model
//! provider of the test's own on loopback, which the CLI takes instead of GitHub.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cofer_e2e::{Ended, McpClient, cofer, double, eventually, processes_with, run};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The version that scripts/test-tools/npm pins.
const VERSION: &str = "1.0.102";

/// A folder that `scripts/setup-tests` fills.
fn npm() -> PathBuf {
    let folder = std::env::var_os("COFER_TEST_NPM").expect(
        "COFER_TEST_NPM is not set: run this under scripts/test, which installs the Copilot CLI",
    );
    PathBuf::from(folder)
}

fn real() -> PathBuf {
    let program = npm().join("node_modules/.bin/copilot");
    assert!(program.is_file(), "{} is missing: run scripts/setup-tests", program.display());
    program
}

/// A home for the CLI, and what it needs to know. It reaches nothing but this machine.
struct Home {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap().to_owned();
        // The CLI unpacks itself, which is done once for all tests.
        let cache = npm().join(".cache").to_str().unwrap().to_owned();
        let nowhere = "http://127.0.0.1:9";
        Self { folder, variables: Vec::new() }
            .set("HOME", &home)
            .set("XDG_CACHE_HOME", &cache)
            .set("COFER_COPILOT", real().to_str().unwrap())
            .set("HTTPS_PROXY", nowhere)
            .set("HTTP_PROXY", nowhere)
            .set("NO_PROXY", "127.0.0.1")
    }

    /// With this provider instead of GitHub, and its one model.
    fn with(provider: &Provider) -> Self {
        let home = Self::new();
        let models = json!({"models": ["loopback"], "default": "loopback"});
        std::fs::write(home.path("models.json"), models.to_string()).unwrap();
        home.set("COPILOT_PROVIDER_BASE_URL", &format!("http://{}/v1", provider.address))
            .set("COPILOT_OFFLINE", "true")
            .set("COFER_COPILOT_MODELS", "models.json")
    }

    fn set(mut self, key: &str, value: &str) -> Self {
        self.variables.push((key.to_owned(), value.to_owned()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        self.variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }

    async fn start(&self, args: &[&str]) -> McpClient {
        let args = [&["copilot"], args].concat();
        let mut client = McpClient::start(&args, &self.environment(), self.folder.path());
        client.initialize().await;
        client
    }

    async fn run(&self, program: &Path, args: &[&str]) -> Ended {
        run(program, args, &self.environment(), "").await
    }
}

/// A model provider as OpenAI's API has it, which says what it is told to say.
struct Provider {
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
    _serving: JoinSet<()>,
}

impl Provider {
    /// Answers with these words; with none, never.
    async fn start(words: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut serving = JoinSet::new();
        let log = Arc::clone(&asked);
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, words, Arc::clone(&log)));
            }
        });
        Self { address, asked, _serving: serving }
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

/// One connection: one question, one stream of words.
async fn serve(stream: TcpStream, words: &[&str], asked: Arc<Mutex<Vec<Value>>>) {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).await.unwrap_or(0) > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let Ok(question) = serde_json::from_slice::<Value>(&body) else {
        return;
    };
    asked.lock().unwrap().push(question);
    if words.is_empty() {
        // Until the CLI hangs up.
        stream.read_line(&mut line).await.unwrap_or(0);
        return;
    }
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "loopback", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let mut answer =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned();
    for word in words {
        answer.push_str(&chunk(json!({"role": "assistant", "content": word}), Value::Null));
    }
    answer.push_str(&chunk(json!({}), json!("stop")));
    answer.push_str("data: [DONE]\n\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
}

#[tokio::test]
async fn without_a_login_the_real_cli_is_understood() {
    // covers: COP-008
    let home = Home::new();
    let mut client = home.start(&[]).await;
    let arguments = json!({"input": "hi", "options": {"model": "gpt-5.4"}});
    let result = client.call("copilot.chat", arguments).await;
    let content = &result["structuredContent"];
    assert_eq!(content["error"]["kind"], "not_logged_in", "{result}");
    assert_eq!(content["exit_code"], 1);
    assert_eq!(content["mode"], "pipe");
}

#[tokio::test]
async fn the_doctor_knows_its_version_and_that_nobody_is_logged_in() {
    // covers: COP-008
    let doctor = Home::new().run(&cofer(), &["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let copilot = checks.iter().find(|check| check["name"] == "copilot").unwrap();
    assert_eq!(copilot["level"], "warning", "{copilot}");
    let message = copilot["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("{VERSION}, not logged in")), "{message}");
}

#[tokio::test]
async fn the_real_cli_answers_and_hears_every_word_as_it_was_said() {
    // covers: COP-001, COP-003, COP-E2
    let provider = Provider::start(&["Hello ", "from ", "loopback."]).await;
    let home = Home::with(&provider);
    let mut client = home.start(&[]).await;
    let long = "word ".repeat(40_000);
    for input in ["--allow-all-tools\n\"quotes\" $(id)", "!id", "/allow-all on", long.trim_end()] {
        let result = client.call("copilot.chat", json!({"input": input})).await;
        let content = &result["structuredContent"];
        assert_eq!(content["stdout"], "Hello from loopback.\n\n", "{result}");
        assert_eq!((&content["exit_code"], &content["mode"]), (&json!(0), &json!("pipe")));
        let question = provider.asked().pop().unwrap();
        let said = question["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        assert!(said.as_str().unwrap().trim_end().ends_with(input), "{said}");
        assert_eq!(question["model"], "loopback");
        // No tools for the model.
        assert!(question["tools"].as_array().is_none_or(Vec::is_empty), "{}", question["tools"]);
    }
}

#[tokio::test]
async fn the_real_cli_that_waits_for_ever_is_ended_behind_its_launcher_too() {
    // covers: COP-009
    let provider = Provider::start(&[]).await;
    let home = Home::with(&provider);
    let mut client = home.start(&["--timeout", "15"]).await;
    let word = format!("question-{}", std::process::id());
    let call = json!({"name": "copilot.chat", "arguments": {"input": word}});
    let id = client.ask("tools/call", call).await;
    // Node's launcher, and the binary behind it.
    eventually("the CLI asks its provider", async || {
        (!provider.asked().is_empty() && processes_with(&word).len() >= 2).then_some(())
    })
    .await;
    let result = client.answer(id).await["result"].clone();
    assert_eq!(result["structuredContent"]["error"]["kind"], "timeout", "{result}");
    assert_eq!(processes_with(&word), Vec::<u32>::new());
}

#[tokio::test]
async fn the_real_cli_is_used_on_a_terminal_where_its_flags_are_hidden() {
    // covers: COP-001
    let provider = Provider::start(&["Hello ", "from ", "loopback."]).await;
    let home = Home::with(&provider);
    let old = home.path("copilot");
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in --help) echo 'Usage: copilot';; *) exec '{}' \"$@\";; esac\n",
        real().display()
    );
    std::fs::write(&old, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&old, mode).unwrap();
    let home = home.set("COFER_COPILOT", old.to_str().unwrap()).set("COPILOT_MODEL", "loopback");
    std::fs::write(home.path("models.json"), json!({"models": ["loopback"]}).to_string()).unwrap();
    let mut client = home.start(&[]).await;
    let result = client.call("copilot.chat", json!({"input": "say hello"})).await;
    let content = &result["structuredContent"];
    assert_eq!(content["mode"], "tty");
    assert_eq!(content["error"], Value::Null);
    assert_eq!(content["exit_code"], 0);
    assert_eq!(provider.asked().len(), 1);
}

#[tokio::test]
async fn the_stand_in_says_nothing_that_the_real_cli_does_not() {
    let home = Home::new().set("DOUBLE", "logged-out");
    for (args, compared) in [
        (&["--version"][..], usize::MAX),
        (&["--prompt=hi"][..], usize::MAX),
        (&["--prompt=--help", "--model=gpt-5.4"][..], usize::MAX),
        (&["--bogus"][..], 1),
        (&[][..], 0),
    ] {
        let real = home.run(&real(), args).await;
        let stand_in = home.run(&double("copilot"), args).await;
        let told = |ended: &Ended| {
            let stderr: Vec<String> =
                ended.stderr.trim().lines().take(compared).map(str::to_owned).collect();
            (ended.code, ended.stdout.clone(), stderr)
        };
        assert_eq!(told(&stand_in), told(&real), "{args:?}");
    }
    let real = home.run(&real(), &["--help"]).await.stdout;
    let stand_in = home.run(&double("copilot"), &["--help"]).await.stdout;
    let options = |help: &str| -> Vec<String> {
        let lines = help.lines().map(str::trim).filter(|line| line.starts_with('-'));
        lines.map(str::to_owned).collect()
    };
    let known = options(&real);
    for option in options(&stand_in) {
        assert!(known.contains(&option), "{option}");
    }
}

#[tokio::test]
async fn the_built_in_models_are_those_the_real_cli_names() {
    // covers: COP-005
    let ended = Home::new().run(&real(), &["--model"]).await;
    let list = ended.stderr.split_once("[possible values: ").unwrap().1;
    let mut named: Vec<&str> = list.split_once(']').unwrap().0.split(", ").collect();
    let file: Value = serde_json::from_str(include_str!("../../../config/models.json")).unwrap();
    let mut ours: Vec<&str> =
        file["models"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    named.sort_unstable();
    ours.sort_unstable();
    assert_eq!(ours, named);
}
