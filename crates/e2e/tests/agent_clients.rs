//! Claude Code, Codex, Gemini CLI and opencode from npm, each with a scripted model: `cofer client install`
//! configures it, it calls a tool through `/mcp`, and the model gets the tool's result.

use std::fs;
use std::net::TcpListener as StdListener;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use cofer_e2e::{
    Daemon, Ended, cofer, eventually, follow, plain_client, run, tests_folder, wayward,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Child;
use tokio::task::JoinSet;

/// The answer of the model once it has the result of the tool.
const SAID: &str = "The tool said forty-two.";

/// A daemon with one server, and a client with a home of its own.
struct Agent {
    daemon: Daemon,
    home: TempDir,
}

impl Agent {
    async fn new() -> Self {
        let daemon = Daemon::start().await;
        daemon.register(&wayward("w", &[])).await;
        Self { daemon, home: tempfile::tempdir().expect("a temporary directory") }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    /// `cofer client install` over HTTP: the client connects to `/mcp` itself.
    async fn install(&self, client: &str) {
        let data = self.daemon.data_dir();
        let env = [
            ("HOME", self.home.path().to_str().expect("paths are text")),
            ("COFER_DATA_DIR", data.to_str().expect("paths are text")),
        ];
        let args = ["client", "install", client, "--http", "--yes"];
        let ended = run(&cofer(), &args, &env, "").await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }

    /// Runs the client to its end, with a proxy that nothing listens on for everything but loopback.
    async fn run(&self, program: &Path, args: &[&str], variables: &[(&str, &str)]) -> Ended {
        let node = tests_folder("COFER_TEST_NPM").join("node_modules/.bin");
        let path =
            format!("{}:{}", node.display(), std::env::var("PATH").expect("there is a PATH"));
        let nowhere = "http://127.0.0.1:9";
        let mut all = vec![
            ("HOME", self.home.path().to_str().expect("paths are text")),
            ("PATH", path.as_str()),
            ("http_proxy", nowhere),
            ("https_proxy", nowhere),
            ("HTTP_PROXY", nowhere),
            ("HTTPS_PROXY", nowhere),
            ("no_proxy", "127.0.0.1"),
            ("NO_PROXY", "127.0.0.1"),
        ];
        all.extend(variables);
        // In a folder without a project: its configuration would count as well.
        let script = r#"cd "$HOME" && exec "$0" "$@""#;
        let program = program.to_str().expect("paths are text");
        run(Path::new("sh"), &[&["-c", script, program], args].concat(), &all, "").await
    }

    /// The client ended with the model's last answer, and the daemon saw the call.
    async fn check(&self, ended: &Ended) {
        let (stdout, stderr) = (&ended.stdout, &ended.stderr);
        assert!(ended.code == Some(0) && stdout.contains(SAID), "{ended:?}\n{stdout}\n{stderr}");
        let calls = self.daemon.get("/activity").await.expect(200);
        assert!(calls.to_string().contains("echo"), "{calls}");
    }
}

/// A program of `scripts/test-tools/clients`; `ARCH` is the name that npm has for the processor.
fn client(path: &str) -> PathBuf {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    tests_folder("COFER_TEST_CLIENTS").join("node_modules").join(path.replace("ARCH", arch))
}

/// The model of `@copilotkit/aimock`, which speaks the protocols of Anthropic, Google and OpenAI. It calls the
/// tool of this name once.
struct Model {
    base: String,
    _child: Child,
    /// Reads its stdout, so that it never blocks on a full pipe.
    _reader: JoinSet<()>,
    _folder: TempDir,
}

fn free_port() -> u16 {
    let free = StdListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("a port is free").port()
}

impl Model {
    async fn start(tool: &str) -> Self {
        let fixtures = json!({"fixtures": [
            {"match": {"userMessage": "chain", "toolResultContains": "forty-two"}, "response": {"content": SAID}},
            {"match": {"userMessage": "chain"},
             "response": {"toolCalls": [{"name": tool, "arguments": {"word": "forty-two"}}]}},
        ]});
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = folder.path().join("fixtures.json");
        fs::write(&file, fixtures.to_string()).expect("a file is written");
        let port = free_port();
        let program = tests_folder("COFER_TEST_NPM").join("node_modules/.bin/llmock");
        let args = ["-p", &port.to_string(), "-f", file.to_str().expect("paths are text")];
        let (child, mut lines) =
            follow(&program, &args, &[("HOME", folder.path().to_str().expect("paths are text"))]);
        let mut reader = JoinSet::new();
        reader.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let base = format!("http://127.0.0.1:{port}");
        let (http, url) = (plain_client(), format!("{base}/health"));
        eventually("aimock listens", async || http.get(&url).send().await.ok().map(drop)).await;
        Self { base, _child: child, _reader: reader, _folder: folder }
    }
}

#[tokio::test]
async fn claude_code_calls_a_tool() {
    // covers: GTW-1
    let agent = Agent::new().await;
    agent.install("claude-code").await;
    let model = Model::start("mcp__cofer__w__echo").await;
    let variables = [
        ("ANTHROPIC_BASE_URL", model.base.as_str()),
        ("ANTHROPIC_API_KEY", "none"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ];
    let program = client("@anthropic-ai/claude-code-linux-ARCH/claude");
    let args =
        ["-p", "chain", "--allowedTools", "mcp__cofer__w__echo", "--model", "claude-sonnet-4-5"];
    agent.check(&agent.run(&program, &args, &variables).await).await;
}

#[tokio::test]
async fn gemini_cli_calls_a_tool() {
    // covers: GTW-1
    let agent = Agent::new().await;
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": false}, "privacy": {"usageStatisticsEnabled": false},
        "general": {"enableAutoUpdate": false}});
    fs::create_dir(agent.path(".gemini")).unwrap();
    fs::write(agent.path(".gemini/settings.json"), settings.to_string()).unwrap();
    agent.install("gemini").await;
    let model = Model::start("mcp_cofer_w__echo").await;
    let variables = [
        ("GOOGLE_GEMINI_BASE_URL", model.base.as_str()),
        ("GEMINI_API_KEY", "none"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ];
    let args = ["-p", "chain", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"];
    agent.check(&agent.run(&client(".bin/gemini"), &args, &variables).await).await;
}

#[tokio::test]
async fn opencode_calls_a_tool() {
    // covers: GTW-1
    let agent = Agent::new().await;
    let model = Model::start("cofer_w__echo").await;
    let authorization = format!("Bearer {}", agent.daemon.token());
    let config = json!({"autoupdate": false, "share": "disabled", "model": "double/scripted",
        "provider": {"double": {"npm": "@ai-sdk/openai-compatible", "name": "double",
            "options": {"baseURL": format!("{}/v1", model.base), "apiKey": "none"},
            "models": {"scripted": {"name": "scripted"}}}},
        "mcp": {"cofer": {"type": "remote", "url": format!("{}/mcp", agent.daemon.base()),
            "headers": {"Authorization": authorization}}}});
    fs::create_dir_all(agent.path(".config/opencode")).unwrap();
    fs::write(agent.path(".config/opencode/opencode.json"), config.to_string()).unwrap();
    let variables = [
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ];
    let program = client("opencode-linux-ARCH/bin/opencode");
    agent.check(&agent.run(&program, &["run", "chain"], &variables).await).await;
}

/// One answer of OpenAI's Responses API. Codex puts the tools of an MCP server into a namespace, which
/// aimock does not support.
async fn respond(body: String) -> impl IntoResponse {
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let input = body["input"].as_array().cloned().unwrap_or_default();
    let result = input.iter().find(|item| item["type"] == "function_call_output");
    let item = match result {
        None => json!({"type": "function_call", "call_id": "c1", "namespace": "mcp__cofer",
            "name": "w__echo", "arguments": r#"{"word":"forty-two"}"#}),
        Some(result) => {
            let said = result["output"].to_string().contains("forty-two");
            let text = if said { SAID } else { "The tool failed." };
            json!({"type": "message", "id": "m1", "role": "assistant",
                "content": [{"type": "output_text", "text": text}]})
        }
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let events = [
        json!({"type": "response.created", "response": {"id": "r1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r1", "usage": usage}}),
    ];
    let event = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    ([(CONTENT_TYPE, "text/event-stream")], events.iter().map(event).collect::<String>())
}

#[tokio::test]
async fn codex_calls_a_tool() {
    // covers: GTW-1
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    let routes = Router::new().route("/v1/responses", post(respond));
    serving.spawn(async move { axum::serve(listener, routes).await.unwrap_or_default() });
    let agent = Agent::new().await;
    let config = format!(
        "model = \"scripted\"\nmodel_provider = \"double\"\napproval_policy = \"never\"\n\
         sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n\
         [model_providers.double]\nname = \"double\"\nbase_url = \"{base}\"\nwire_api = \"responses\"\n"
    );
    fs::create_dir(agent.path(".codex")).unwrap();
    fs::write(agent.path(".codex/config.toml"), config).unwrap();
    agent.install("codex").await;
    let args = ["exec", "--skip-git-repo-check", "chain"];
    agent.check(&agent.run(&client(".bin/codex"), &args, &[]).await).await;
}
