//! A server that lives in the test: it speaks MCP over two pipes in memory, and does what
//! the test tells it to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofer_model::{Exit, ServerId, ServerSpec, Usage};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::launch::{Explanation, Facts, Running};

/// How long a server takes to become ready, and to end when it is to: long enough for a test
/// to see the states between.
pub(super) const TAKES: Duration = Duration::from_millis(10);

/// What a server does from its start on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Script {
    /// Answers.
    Serves,
    /// Exits before it answered anything; what it wrote to stderr comes through the pipe
    /// only after that.
    Exits { code: i32, stderr: &'static str },
    /// Exits before it answered anything, and leaves a child that holds its pipes.
    LeavesChild,
    /// Runs and answers nothing.
    IsMute,
    /// Cannot be launched.
    IsMissing,
    /// Is launched for ever.
    IsNeverLaunched,
}

/// How a server behaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manners {
    pub(super) script: Script,
    /// Whether it exits when its stdin is closed.
    pub(super) heeds_eof: bool,
    /// Whether it exits on SIGTERM.
    pub(super) heeds_sigterm: bool,
}

impl Manners {
    pub(super) fn good(script: Script) -> Self {
        Self { script, heeds_eof: true, heeds_sigterm: true }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Life {
    exit: Option<Exit>,
    killed: bool,
    gone: bool,
}

enum Command {
    Say(String),
    Complain(&'static str),
    CloseStdout,
    End,
}

/// One run of such a server, as the test holds it.
pub(super) struct Puppet {
    pub(super) id: ServerId,
    pub(super) spec: ServerSpec,
    pub(super) pid: u32,
    manners: Manners,
    life: watch::Sender<Life>,
    silent: AtomicBool,
    asked_to_end: AtomicBool,
    commands: mpsc::UnboundedSender<Command>,
    heard: Mutex<Vec<Value>>,
    /// Its process has ended, and its runtime does not know yet how.
    pub(super) has_ended: AtomicBool,
    /// What its runtime will say of its end.
    pub(super) explanation: Mutex<Option<Explanation>>,
}

/// The server's ends of its pipes.
pub(super) struct Pipes {
    pub(super) stdin: DuplexStream,
    pub(super) stdout: DuplexStream,
    pub(super) stderr: DuplexStream,
}

impl Puppet {
    /// A run and what it does, which is to be spawned.
    pub(super) fn new(
        id: ServerId,
        spec: ServerSpec,
        pid: u32,
        manners: Manners,
        pipes: Pipes,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let (commands, inbox) = mpsc::unbounded_channel();
        let puppet = Arc::new(Self {
            id,
            spec,
            pid,
            manners,
            life: watch::Sender::default(),
            silent: AtomicBool::new(matches!(manners.script, Script::IsMute)),
            asked_to_end: AtomicBool::new(false),
            commands,
            heard: Mutex::default(),
            has_ended: AtomicBool::new(false),
            explanation: Mutex::default(),
        });
        let own = Arc::clone(&puppet);
        let living = async move {
            let mut life = own.life.subscribe();
            let held = own.until_exit(pipes, inbox).await;
            drop(life.wait_for(|life| life.killed).await);
            sleep(TAKES).await;
            drop(held);
            own.life.send_modify(|life| life.gone = true);
        };
        (puppet, living)
    }

    /// Ends by itself.
    pub(super) fn exit(&self, code: i32) {
        self.end(Exit { code: Some(code), signal: None });
    }

    /// Answers nothing from now on.
    pub(super) fn fall_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Answers from now on.
    pub(super) fn wake(&self) {
        self.silent.store(false, Ordering::Relaxed);
    }

    /// Says something nobody asked for.
    pub(super) fn say(&self) {
        self.utter(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    }

    /// Tells of a change.
    pub(super) fn announce(&self, method: &str) {
        self.utter(&json!({"jsonrpc": "2.0", "method": method}).to_string());
    }

    /// Writes a line to stdout.
    pub(super) fn utter(&self, line: &str) {
        self.commands.send(Command::Say(line.to_owned())).ok();
    }

    /// Writes a line to stderr.
    pub(super) fn complain(&self, line: &'static str) {
        self.commands.send(Command::Complain(line)).ok();
    }

    /// Closes its stdout and runs on.
    pub(super) fn close_stdout(&self) {
        self.commands.send(Command::CloseStdout).ok();
    }

    pub(super) fn was_asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Relaxed)
    }

    /// Whether anything of it is left.
    pub(super) fn is_there(&self) -> bool {
        !self.life.borrow().gone
    }

    /// How often it was asked for `method`.
    pub(super) fn heard(&self, method: &str) -> usize {
        self.all_heard(method).len()
    }

    /// What it was asked for `method` with, each time.
    pub(super) fn all_heard(&self, method: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        let asked = heard.iter().filter(|heard| heard["method"] == method);
        asked.map(|heard| heard["params"].clone()).collect()
    }

    fn end(&self, exit: Exit) {
        self.life.send_if_modified(|life| {
            let first = life.exit.is_none();
            life.exit = life.exit.or(Some(exit));
            first
        });
    }

    /// Lives until the server's own process ends; returns the pipes that a child holds.
    async fn until_exit(
        &self,
        mut pipes: Pipes,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Option<Pipes> {
        let mut life = self.life.subscribe();
        match self.manners.script {
            Script::Exits { code, stderr } => {
                self.exit(code);
                sleep(TAKES).await;
                pipes.stderr.write_all(stderr.as_bytes()).await.ok();
            }
            Script::LeavesChild => {
                self.exit(0);
                return Some(pipes);
            }
            Script::Serves | Script::IsMute | Script::IsMissing | Script::IsNeverLaunched => {
                tokio::select! {
                    biased;
                    // Whatever it was about to say, it says no more.
                    _ = life.wait_for(|life| life.exit.is_some()) => {}
                    () = self.live(pipes, commands) => {}
                }
            }
        }
        None
    }

    async fn live(&self, pipes: Pipes, mut commands: mpsc::UnboundedReceiver<Command>) {
        let Pipes { stdin, stdout, mut stderr } = pipes;
        let mut stdout = Some(stdout);
        let mut lines = BufReader::new(stdin).lines();
        let mut stdin_is_open = true;
        loop {
            tokio::select! {
                line = lines.next_line(), if stdin_is_open => match line {
                    Ok(Some(line)) => {
                        let answer = self.answer(&serde_json::from_str(&line).unwrap()).await;
                        if let (Some(answer), Some(stdout)) = (answer, &mut stdout) {
                            stdout.write_all(format!("{answer}\n").as_bytes()).await.ok();
                        }
                    }
                    Ok(None) | Err(_) if self.manners.heeds_eof => {
                        sleep(TAKES).await;
                        return self.exit(0);
                    }
                    Ok(None) | Err(_) => stdin_is_open = false,
                },
                Some(command) = commands.recv() => match command {
                    Command::CloseStdout => stdout = None,
                    Command::End => {
                        sleep(TAKES).await;
                        return self.end(Exit { code: None, signal: Some(15) });
                    }
                    Command::Complain(line) => {
                        stderr.write_all(format!("{line}\n").as_bytes()).await.ok();
                    }
                    Command::Say(line) => if let Some(stdout) = &mut stdout {
                        stdout.write_all(format!("{line}\n").as_bytes()).await.ok();
                    }
                },
            }
        }
    }

    async fn answer(&self, request: &Value) -> Option<Value> {
        let method = request["method"].as_str().unwrap_or_default();
        self.heard.lock().unwrap().push(request.clone());
        let is_request = !method.is_empty() && request.get("id").is_some();
        if self.silent.load(Ordering::Relaxed) || !is_request {
            return None;
        }
        let outcome = match (method, request["params"]["name"].as_str()) {
            ("initialize", _) => {
                sleep(TAKES).await;
                ("result", json!({"protocolVersion": "2025-11-25"}))
            }
            ("ping", _) => ("result", json!({})),
            ("tools/call", Some("echo")) => ("result", json!({"content": []})),
            ("tools/call", Some("fail")) => ("result", json!({"content": [], "isError": true})),
            ("tools/call", Some("hang")) => return None,
            ("tools/call", Some("crash")) => {
                self.exit(1);
                return None;
            }
            _ => ("error", json!({"code": -32601, "message": "no such thing"})),
        };
        Some(json!({"jsonrpc": "2.0", "id": request["id"], outcome.0: outcome.1}))
    }
}

/// One run of such a server, as the driver holds it.
pub(super) struct PuppetWorkload(pub(super) Arc<Puppet>);

#[async_trait]
impl Running for PuppetWorkload {
    fn pid(&self) -> Option<u32> {
        Some(self.0.pid)
    }

    fn facts(&self) -> Facts {
        let image = self.0.spec.image.as_ref();
        Facts {
            container_id: image.map(|_| format!("container-{}", self.0.pid)),
            image_digest: image.map(|_| "sha256:puppet".to_owned()),
            ..Facts::default()
        }
    }

    async fn exited(&self) -> Exit {
        let mut life = self.0.life.subscribe();
        let life = life.wait_for(|life| life.exit.is_some()).await.map(|life| *life);
        life.unwrap().exit.unwrap()
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Relaxed)
    }

    async fn gone(&self) {
        let mut life = self.0.life.subscribe();
        drop(life.wait_for(|life| life.gone).await);
    }

    fn terminate(&self) {
        self.0.asked_to_end.store(true, Ordering::Relaxed);
        if self.0.manners.heeds_sigterm {
            self.0.commands.send(Command::End).ok();
        }
    }

    fn kill(&self) {
        self.0.end(Exit { code: None, signal: Some(9) });
        self.0.life.send_modify(|life| life.killed = true);
    }

    async fn explain(&self) -> Option<Explanation> {
        self.0.explanation.lock().unwrap().clone()
    }

    async fn usage(&self) -> Option<Usage> {
        Some(Usage::default())
    }

    async fn isolation(&self) -> Value {
        json!({"puppet": true})
    }
}

impl Drop for PuppetWorkload {
    fn drop(&mut self) {
        self.kill();
    }
}
