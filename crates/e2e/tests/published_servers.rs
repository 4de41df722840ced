//! Twenty published MCP servers of npm and PyPI, hosted by the real binary: the lists and one call are
//! those of a direct connection, for a client of 2025-11-25 and one of 2026-07-28, and no process is left.
//!
//! Servers that need an account or a network are called all the same: the error has to be equal. Their
//! requests go to a proxy that nothing listens on, so that none leaves the machine.

use std::fs;
use std::path::{Path, PathBuf};

use cofer_e2e::{
    Daemon, GatewayClient, McpClient, alive, eventually, run, stateless, tests_folder,
};
use serde_json::{Value, json};

/// Folders of `scripts/setup-tests` that servers are installed in.
#[derive(Clone, Copy)]
enum Home {
    /// Packages of npm that other tests use as well.
    Tools,
    /// Packages of npm.
    Npm,
    /// PyPI, servers of the Python SDK 1.x.
    Python1,
    /// PyPI, servers of the Python SDK 2.x.
    Python2,
}

impl Home {
    fn program(self, name: &str) -> PathBuf {
        let servers = || tests_folder("COFER_TEST_SERVERS");
        match self {
            Self::Tools => tests_folder("COFER_TEST_NPM").join("node_modules/.bin").join(name),
            Self::Npm => servers().join("npm/node_modules/.bin").join(name),
            Self::Python1 => servers().join("python-1/bin").join(name),
            Self::Python2 => servers().join("python-2/bin").join(name),
        }
    }
}

/// A server and the call that is compared. `DIR` stands for the folder of the test, a git repository
/// with one file.
struct Published {
    home: Home,
    /// The program and its arguments.
    command: &'static str,
    /// `KEY=VALUE …`.
    variables: &'static str,
    tool: &'static str,
    arguments: &'static str,
    /// A part of the answer, by which the call is known to have done its work or to have failed as it should.
    says: &'static str,
}

macro_rules! servers {
    ($($test:ident: $home:ident, $command:literal, $variables:literal, $tool:literal, $arguments:literal, $says:literal;)*) => {
        $(#[tokio::test]
        async fn $test() {
            // covers: HST-2.1, GTW-1
            check(&Published {
                home: Home::$home,
                command: $command,
                variables: $variables,
                tool: $tool,
                arguments: $arguments,
                says: $says,
            })
            .await;
        })*
    };
}

servers! {
    everything: Tools, "mcp-server-everything", "", "echo", r#"{"message": "안녕 👋"}"#, "안녕 👋";
    filesystem: Tools, "mcp-server-filesystem DIR", "", "read_text_file", r#"{"path": "DIR/note.txt"}"#, "hej på dig";
    memory: Npm, "mcp-server-memory", "MEMORY_FILE_PATH=DIR/memory", "read_graph", "{}", "entities";
    sequential_thinking: Npm, "mcp-server-sequential-thinking", "", "sequentialthinking",
        r#"{"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}"#, "thoughtHistoryLength";
    playwright: Npm, "playwright-mcp --headless --executable-path DIR/none", "", "browser_close", "{}", "executable doesn't exist";
    chrome_devtools: Npm, "chrome-devtools-mcp --executablePath DIR/none", "", "list_pages", "{}", "Chrome failed to start";
    context7: Npm, "context7-mcp", "", "query-docs", r#"{"libraryId": "/a/b", "query": "x"}"#, "fetch failed";
    notion: Npm, "notion-mcp-server", "NOTION_TOKEN=none", "API-get-self", "{}", "ECONNREFUSED";
    tavily: Npm, "tavily-mcp", "TAVILY_API_KEY=none", "tavily_search", r#"{"query": "x"}"#, "ECONNREFUSED";
    brave_search: Npm, "brave-search-mcp-server", "BRAVE_API_KEY=none", "brave_web_search", "{}", "at query";
    chart: Npm, "mcp-server-chart", "", "generate_bar_chart", r#"{"data": "none"}"#, "ECONNREFUSED";
    time: Python2, "mcp-server-time --local-timezone Asia/Tokyo", "", "convert_time",
        r#"{"source_timezone": "Etc/UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#, "21:00:00+09:00";
    git: Python2, "mcp-server-git", "", "git_log", r#"{"repo_path": "DIR"}"#, "Commit history";
    fetch: Python2, "mcp-server-fetch", "", "fetch", r#"{"url": "http://127.0.0.1:9/"}"#, "not a public address";
    duckduckgo: Python2, "duckduckgo-mcp-server", "", "expand_link", r#"{"token": "none"}"#, "Unknown link reference";
    aws_documentation: Python2, "awslabs.aws-documentation-mcp-server", "", "read_documentation",
        r#"{"url": "https://example.com/"}"#, "supported domains";
    clickhouse: Python2, "mcp-clickhouse",
        "CLICKHOUSE_HOST=127.0.0.1 CLICKHOUSE_USER=none CLICKHOUSE_PASSWORD=none",
        "run_query", "{}", "Missing required argument";
    sqlite: Python1, "mcp-server-sqlite --db-path DIR/a.db", "", "list_tables", "{}", "[]";
    calculator: Python1, "mcp-server-calculator", "", "calculate", r#"{"expression": "6 * 7"}"#, "42";
    text_editor: Python1, "mcp-text-editor", "", "get_text_file_contents",
        r#"{"files": [{"file_path": "DIR/note.txt", "ranges": [{"start": 1}]}]}"#, "total_lines";
}

/// The lists by the capability that declares them.
const LISTS: [(&str, &str); 4] = [
    ("tools", "tools/list"),
    ("resources", "resources/list"),
    ("resources", "resources/templates/list"),
    ("prompts", "prompts/list"),
];

const ENDPOINT: &str = "/mcp/published";

/// The method and the answer of each request, the call first.
type Round = Vec<(&'static str, Value)>;

async fn check(published: &Published) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let dir = folder.path().canonicalize().expect("it is there");
    repository(&dir).await;
    let server = Hosted::new(published, &dir);
    let [first, second] = server.direct().await;
    assert!(first[0].1.to_string().contains(published.says), "the direct call: {}", first[0].1);
    wait_none_left(&dir).await;

    let mut daemon = Daemon::start().await;
    daemon.register(&server.registration()).await;
    let mut client = GatewayClient::open(&daemon, ENDPOINT, json!({})).await;
    for (method, answer) in &first {
        let hosted = client.answer(method, server.params(method)).await;
        assert_eq!(outcome(&hosted), outcome(answer), "{method}, 2025-11-25");
    }
    for (method, answer) in &second {
        let params = server.params(method);
        let (_, exchange) = stateless(&daemon, ENDPOINT, method, params, json!({})).await;
        let hosted = exchange.answer("s-1").await;
        assert_eq!(outcome(&hosted), outcome(answer), "{method}, 2026-07-28");
    }
    daemon.delete("/mcp/servers/published").await.expect(204);
    wait_none_left(&dir).await;
    assert!(daemon.terminate().await.success());
}

/// A server with everything that it is started with.
struct Hosted {
    program: PathBuf,
    args: Vec<String>,
    variables: Vec<(String, String)>,
    call: Value,
    dir: PathBuf,
}

impl Hosted {
    fn new(published: &Published, dir: &Path) -> Self {
        let here = |text: &str| text.replace("DIR", dir.to_str().expect("paths are text"));
        let command = here(published.command);
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = published.home.program(&words.next().expect("a program"));
        // The Node.js of the tests: some of the packages need a newer one than the machine may have.
        let node = tests_folder("COFER_TEST_NPM").join("node_modules/.bin");
        let path =
            format!("{}:{}", node.display(), std::env::var("PATH").expect("there is a PATH"));
        let nowhere = "http://127.0.0.1:9";
        let mut variables: Vec<(String, String)> = [
            ("HOME", dir.to_str().expect("paths are text")),
            ("PATH", &path),
            ("http_proxy", nowhere),
            ("https_proxy", nowhere),
            ("HTTP_PROXY", nowhere),
            ("HTTPS_PROXY", nowhere),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .to_vec();
        let more = here(published.variables);
        variables.extend(more.split_whitespace().map(|pair| {
            let (key, value) = pair.split_once('=').expect("KEY=VALUE");
            (key.to_owned(), value.to_owned())
        }));
        let arguments: Value =
            serde_json::from_str(&here(published.arguments)).expect("arguments are JSON");
        let call = json!({"name": published.tool, "arguments": arguments});
        Self { program, args: words.collect(), variables, call, dir: dir.to_owned() }
    }

    /// The answers of the server itself, in two rounds, as a server may count its calls.
    async fn direct(&self) -> [Round; 2] {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut client =
            McpClient::start_by(&self.program, &args, &variables, &self.dir).refusing();
        // Those of Cofer: a server may offer tools by them.
        let capabilities = json!({"sampling": {"tools": {}},
            "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}});
        let opened = client.initialize_with(capabilities).await;
        let declared = LISTS.iter().filter(|(kind, _)| opened["capabilities"].get(kind).is_some());
        let methods: Vec<&str> =
            ["tools/call"].into_iter().chain(declared.map(|(_, method)| *method)).collect();
        let mut rounds = [Round::new(), Round::new()];
        for round in &mut rounds {
            for method in &methods {
                round.push((method, client.request(method, self.params(method)).await));
            }
        }
        rounds
    }

    fn params(&self, method: &str) -> Value {
        if method == "tools/call" { self.call.clone() } else { json!({}) }
    }

    fn registration(&self) -> Value {
        let variables: Value =
            self.variables.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json!({"name": "published", "command": self.program, "args": self.args,
            "environment": variables, "cwd": self.dir})
    }
}

/// The result or error of an answer without the members that 2026-07-28 adds to a result.
fn outcome(answer: &Value) -> Value {
    let mut answer = answer.clone();
    let Some(result) = answer.get_mut("result").and_then(Value::as_object_mut) else {
        return json!({"error": answer["error"]});
    };
    for added in ["resultType", "ttlMs", "cacheScope", "_meta"] {
        result.remove(added);
    }
    // Playwright's error has this prefix in most runs and not in others.
    if let Some(Value::String(text)) = answer.pointer_mut("/result/content/0/text") {
        *text = text.replace("async initializeServer: ", "");
    }
    answer["result"].take()
}

async fn repository(dir: &Path) {
    fs::write(dir.join("note.txt"), "hej på dig\n").expect("a file is written");
    let home = dir.to_str().expect("paths are text");
    let identity = "-c user.name=a -c user.email=a@example.com";
    let script =
        format!("cd '{home}' && git init -q && git add . && git {identity} commit -qm one");
    let made = run(Path::new("sh"), &["-c", &script], &[("HOME", home)], "").await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
}

/// Waits until no process has the folder as its home.
async fn wait_none_left(dir: &Path) {
    let home = format!("HOME={}\0", dir.display()).into_bytes();
    eventually("every process of the server ends", async || {
        let entries = fs::read_dir("/proc").expect("/proc is there");
        let mut pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let left = pids.any(|pid: u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(home.len()).any(|window| window == home) && alive(pid)
        });
        (!left).then_some(())
    })
    .await;
}
