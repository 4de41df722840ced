//! One running daemon: started from the real binary, asked over HTTP, ended as a test wants.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout};
use tokio::task::JoinSet;

use crate::builder::DaemonBuilder;
use crate::events::Events;
use crate::http::{Answer, tool_params};
use crate::process::signal;
use crate::programs::{Ended, cofer, run};
use crate::wait::within;

/// A running daemon. Dropping it kills it, and fails a test in which it had ended by itself or
/// panicked.
pub struct Daemon {
    pub(crate) child: Child,
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) data_dir: PathBuf,
    /// Its home directory, which has the data directory in it where a test gave none.
    pub(crate) _home: TempDir,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) stderr: Arc<Mutex<String>>,
    pub(crate) client: reqwest::Client,
    /// Whether the test itself has ended it.
    pub(crate) ended: bool,
    pub(crate) _tasks: JoinSet<()>,
}

impl Daemon {
    /// One with an empty data directory of its own.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// For one with settings.
    pub fn builder() -> DaemonBuilder {
        DaemonBuilder::default()
    }

    /// `http://127.0.0.1:PORT`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// Its bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Its data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.data_dir.clone()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// What it has written to stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("nobody panics with it").clone()
    }

    /// A request to any path, without the token: for what must be refused.
    pub fn raw(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    /// A request below `/api/v1` with the token.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.raw(method, &format!("/api/v1{path}")).bearer_auth(&self.token)
    }

    /// Sends a request and reads its whole answer.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let answer = async { Ok(Answer::read(request.send().await?).await) };
        match within("an HTTP answer comes", answer).await {
            Ok(answer) => answer,
            Err::<_, reqwest::Error>(error) => {
                panic!("{error:?}\nthe daemon said: {}", tail(&self.stderr()))
            }
        }
    }

    /// `GET`.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// `POST` with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// `PATCH` with a JSON body.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::PATCH, path).json(body)).await
    }

    /// `DELETE`.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// Registers a server and waits until it is ready.
    pub async fn register(&self, body: &Value) -> Value {
        let server = self.post("/mcp/servers?wait=30", body).await.expect(201);
        assert_eq!(server["status"], "ready", "{server}");
        server
    }

    /// The server object.
    pub async fn server(&self, name: &str) -> Value {
        self.get(&format!("/mcp/servers/{name}")).await.expect(200)
    }

    /// The process of a server that runs.
    pub async fn server_pid(&self, name: &str) -> u32 {
        pid_of(&self.server(name).await)
    }

    /// `POST …/ACTION`, waiting until it has come to its end.
    pub async fn act(&self, name: &str, action: &str) -> Value {
        let path = format!("/mcp/servers/{name}/{action}?wait=30");
        self.send(self.request(Method::POST, &path)).await.expect(200)
    }

    /// `POST …/call`.
    pub async fn call(&self, name: &str, method: &str, params: &Value) -> Answer {
        let body = json!({"method": method, "params": params});
        self.post(&format!("/mcp/servers/{name}/call"), &body).await
    }

    /// `POST …/call` of a tool.
    pub async fn tool(&self, name: &str, tool: &str, arguments: &Value) -> Answer {
        self.call(name, "tools/call", &tool_params(tool, arguments)).await
    }

    /// The event stream from now on.
    pub async fn events(&self) -> Events {
        self.events_after(None).await
    }

    /// The event stream, from behind the event with this id where one is given.
    pub async fn events_after(&self, id: Option<&str>) -> Events {
        let mut request = self.request(Method::GET, "/events");
        if let Some(id) = id {
            request = request.header("Last-Event-ID", id);
        }
        let response = within("the event stream opens", request.send()).await;
        let response = response.expect("the event stream opens");
        assert_eq!(response.status(), 200);
        Events::new(response)
    }

    /// The events of one turn of a chat, as `POST /chat` streams them.
    pub async fn chat(&self, body: &Value) -> Events {
        self.stream(self.request(Method::POST, "/chat").json(body)).await
    }

    /// The events that a request is answered with.
    pub async fn stream(&self, request: RequestBuilder) -> Events {
        let response = within("the event stream opens", request.send()).await;
        let response = response.expect("the event stream opens");
        if response.status() != 200 {
            panic!("{}: {}", response.status(), response.text().await.unwrap_or_default());
        }
        Events::new(response)
    }

    /// Waits until a server has this status, told by the events, and returns the server.
    pub async fn wait_status(&self, name: &str, status: &str) -> Value {
        self.wait_server(name, &format!("status {status}"), |server| server["status"] == status)
            .await
    }

    /// Waits until the server object is as wanted; looks again at each event.
    pub async fn wait_server(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut events = self.events().await;
        let mut last = Value::Null;
        let looking = async {
            loop {
                last = self.server(name).await;
                if wanted(&last) {
                    return;
                }
                // What no event tells (usage, uptime) is looked at again after a while.
                let pause = Duration::from_millis(250);
                drop(tokio::time::timeout(pause, events.next()).await);
            }
        };
        if tokio::time::timeout(*crate::DEADLINE, looking).await.is_err() {
            panic!("waited in vain for `{name}` to have {what}: {last:#}");
        }
        last
    }

    /// The log lines of a server, all streams.
    pub async fn log_lines(&self, name: &str) -> Vec<String> {
        let page = self.get(&format!("/mcp/servers/{name}/logs?tail=1000")).await.expect(200);
        let lines = page["lines"].as_array().expect("a log page has lines");
        lines.iter().map(|line| line["line"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Runs the command line against this daemon.
    pub async fn cli(&self, args: &[&str]) -> Ended {
        let data = self.data_dir();
        let data = data.to_str().expect("temporary paths are text");
        let env = [("COFER_DATA_DIR", data), ("COFER_LISTEN", self.address()), ("HOME", data)];
        run(&cofer(), args, &env, "").await
    }

    /// SIGKILL, and waits for its end.
    pub async fn kill9(&mut self) {
        signal(self.pid(), Signal::KILL);
        self.wait().await;
    }

    /// SIGTERM, and waits for its end.
    pub async fn terminate(&mut self) -> ExitStatus {
        signal(self.pid(), Signal::TERM);
        self.wait().await
    }

    /// Waits for its end, however that comes about.
    pub async fn wait(&mut self) -> ExitStatus {
        self.ended = true;
        let status = within("the daemon ends", self.child.wait()).await;
        status.expect("it can be waited for")
    }

    /// What came on stdout behind the ready line, once it has ended.
    pub async fn rest_of_stdout(&mut self) -> String {
        let mut rest = String::new();
        let read = within("stdout ends", self.stdout.read_to_string(&mut rest)).await;
        read.expect("stdout is text");
        rest
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let ended_by_itself = !self.ended && matches!(self.child.try_wait(), Ok(Some(_)));
        if self.child.id().is_some() {
            drop(self.child.start_kill());
        }
        let stderr = self.stderr();
        if std::thread::panicking() {
            say(&format!("the daemon said:\n{}", tail(&stderr)));
            return;
        }
        assert!(!ended_by_itself, "the daemon ended by itself:\n{}", tail(&stderr));
        assert!(!stderr.contains("panicked at"), "the daemon panicked:\n{}", tail(&stderr));
    }
}

#[expect(clippy::print_stderr, reason = "what the test runner shows of a failed test")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// The pid in a server object.
pub fn pid_of(server: &Value) -> u32 {
    let pid = server["pid"].as_u64().unwrap_or_else(|| panic!("no pid in {server}"));
    pid.try_into().expect("a pid is small")
}

/// The end of a long text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
