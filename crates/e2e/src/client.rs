//! An MCP client of a `cofer mcp …` on its own pipes: JSON lines, as any client would write them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::programs::{cofer, command};
use crate::wait::within;

/// A running server and the connection to it.
pub struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
    last_id: u64,
    /// Messages that came while something else was waited for.
    aside: Vec<Value>,
    /// Whether requests of the server are answered with an error.
    refuses: bool,
}

impl McpClient {
    /// Starts `cofer mcp` with these arguments and variables in this directory.
    pub fn start(args: &[&str], env: &[(&str, &str)], cwd: &Path) -> Self {
        Self::start_by(&cofer(), &[&["mcp"], args].concat(), env, cwd)
    }

    /// Starts any program that becomes such a server.
    pub fn start_by(program: &Path, args: &[&str], env: &[(&str, &str)], cwd: &Path) -> Self {
        let mut command = command(program);
        command.args(args).envs(env.iter().copied()).current_dir(cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self { child, stdin, stdout, last_id: 0, aside: Vec::new(), refuses: false }
    }

    /// The same, but each request of the server is answered with an error: some wait for their answer before
    /// they answer ours.
    pub fn refusing(mut self) -> Self {
        self.refuses = true;
        self
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it was not waited for")
    }

    /// The handshake of a client without capabilities.
    pub async fn initialize(&mut self) -> Value {
        self.initialize_with(json!({})).await
    }

    /// The handshake of a client with these capabilities.
    pub async fn initialize_with(&mut self, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "e2e", "version": "0"},
        });
        let answer = self.request("initialize", params).await;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        answer["result"].clone()
    }

    /// Writes a message.
    pub async fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{message}\n").as_bytes()).await.expect("it reads its stdin");
    }

    /// Sends a request and gives its id.
    pub async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request).await;
        id
    }

    /// The answer to a request.
    pub async fn answer(&mut self, id: u64) -> Value {
        self.until(&format!("an answer to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
        .await
    }

    /// The next notification of this method.
    pub async fn notification(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method).await["params"].clone()
    }

    /// The next request of the server with this method.
    pub async fn server_request(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method).await
    }

    /// Asks and waits.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool and gives its result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.request("tools/call", params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Closes its stdin and waits for its end: its exit code, what was left on stdout, stderr.
    pub async fn close(mut self) -> (Option<i32>, Vec<String>, String) {
        drop(self.stdin.take());
        self.wait().await
    }

    /// Waits until it ends by itself: its exit code, what was left on stdout, stderr.
    pub async fn wait(mut self) -> (Option<i32>, Vec<String>, String) {
        let mut rest = Vec::new();
        while let Some(line) = within("stdout ends", self.stdout.next_line()).await.expect("text") {
            rest.push(line);
        }
        let status = within("it ends", self.child.wait()).await.expect("it is our child");
        let mut stderr = String::new();
        let mut stream = self.child.stderr.take().expect("stderr is piped");
        stream.read_to_string(&mut stderr).await.expect("stderr is text");
        (status.code(), rest, stderr)
    }

    async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&wanted) {
            return self.aside.remove(at);
        }
        loop {
            let line = within(what, self.stdout.next_line()).await.expect("stdout is text");
            let line = line.unwrap_or_else(|| panic!("stdout ended before {what}"));
            let message: Value = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("not the protocol on stdout ({error}): {line}"));
            if wanted(&message) {
                return message;
            }
            if self.refuses && message.get("method").is_some() && message.get("id").is_some() {
                let error = json!({"code": -32601, "message": "Method not found"});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).await;
            }
            self.aside.push(message);
        }
    }
}

/// A program of `crates/e2e/doubles`.
pub fn double(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("doubles").join(name)
}
