//! The terminal way, for a CLI that has no flags for prompt or model: a session on a
//! pseudo-terminal as a person would have it, and what came over the terminal as the answer.
//!
//! When the answer is complete: a CLI that reads whole lines (the terminal itself collects
//! them) is left with `/exit` and the end of input behind the question, which it reads when it
//! has answered; it is complete when the CLI has ended. One that draws its own prompt is
//! complete when that prompt is back as it was before the question. Neither counts seconds of
//! thinking: a CLI that does not come back runs into the limit.

use std::time::Duration;

use cofer_model::FieldError;
use cofer_runtime::{Terminal, Workload};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::answer::{Answer, Mode};
use crate::capture::{Capture, Captured};
use crate::diagnose;
use crate::failure::Failure;
use crate::launcher::{Cli, Launcher, Output, RunError, end};
use crate::limit::Limit;
use crate::request::Request;
use crate::screen::{Prompt, SIZE, Screen, refusal};

/// How long nothing may come until a drawing counts as finished. Drawings come in pieces.
const STILL: Duration = Duration::from_millis(1000);
/// Between typing and Enter: an Enter that comes with the text is taken for part of it.
const BEFORE_ENTER: Duration = Duration::from_millis(500);
/// How long a CLI may say nothing at its start before it is typed to all the same.
const FIRST_WORDS: Duration = Duration::from_secs(6);
/// How long a CLI with a complete answer may take to leave.
const LEAVING: Duration = Duration::from_secs(3);
/// The terminal itself collects no longer lines.
const LONGEST_LINE: usize = 4000;

/// Ends a CLI's session, old and new.
const EXIT: &str = "/exit";
/// End of input, where the terminal collects lines.
const END_OF_INPUT: &[u8] = b"\x04";

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum TerminalError {
    Run(RunError),
    Failed(Failure),
}

impl<E: Into<RunError>> From<E> for TerminalError {
    fn from(error: E) -> Self {
        Self::Run(error.into())
    }
}

/// Holds the session and waits for its end.
pub(crate) async fn run(
    request: &Request,
    cli: &Cli,
    launcher: &Launcher,
    output: &Output,
    limit: &Limit,
) -> Result<Answer, TerminalError> {
    if let Some(error) = refusal(&request.input) {
        return Err(TerminalError::Failed(Failure::invalid_request(&[error])));
    }
    let (workload, terminal) = launcher.start_on_terminal(cli, SIZE, limit).await?;
    let mut session = Session {
        terminal,
        screen: Screen::new(),
        output: output.stdout.clone(),
        chunk: vec![0; 16 * 1024],
        has_ended: false,
    };
    let talk = async {
        session.converse(request).await.map_err(TerminalError::Failed)?;
        Ok::<_, TerminalError>(session.leave(&workload).await)
    };
    let talked = limit.within(talk).await;
    end(&workload).await;
    let exit = talked??;
    let (stdout, stderr) = (output.stdout.so_far(), Captured::default());
    Ok(Answer { stdout, stderr, exit, mode: Mode::Tty })
}

/// A conversation on a terminal.
struct Session {
    terminal: Terminal,
    screen: Screen,
    output: Capture,
    chunk: Vec<u8>,
    has_ended: bool,
}

impl Session {
    /// Model, question, answer.
    async fn converse(&mut self, request: &Request) -> Result<(), Failure> {
        self.until_ready().await;
        if self.screen.asks_for_trust() {
            self.write(b"\r").await;
            self.until_ready().await;
        }
        self.check()?;
        if let Some(model) = &request.model {
            self.enter(format!("/model {model}").as_bytes()).await;
            self.until_still(STILL).await;
            self.check()?;
        }
        let keys = self.keys(&request.input)?;
        let prompt = self.screen.prompt();
        self.enter(&keys).await;
        self.until_answered(&prompt).await;
        Ok(())
    }

    /// What the CLI says about itself before it is asked.
    fn check(&self) -> Result<(), Failure> {
        diagnose::known(&self.screen.text()).map_or(Ok(()), Err)
    }

    /// Waits until the CLI has drawn its first screen.
    async fn until_ready(&mut self) {
        if timeout(FIRST_WORDS, self.read()).await.is_err() {
            return;
        }
        self.until_still(STILL).await;
        if self.terminal.reads_lines() && !self.screen.asks() {
            // Only a greeting so far; the prompt may be about to come.
            self.until_still(STILL * 2).await;
        }
    }

    /// What to type for this input.
    fn keys(&self, input: &str) -> Result<Vec<u8>, Failure> {
        let refuse = |words: &str| Failure::invalid_request(&[FieldError::new("input", words)]);
        if input.contains('\n') {
            if !self.screen.takes_paste() {
                return Err(refuse(
                    "must be one line: the installed CLI takes no more on its terminal",
                ));
            }
            return Ok(format!("\x1b[200~{input}\x1b[201~").into_bytes());
        }
        if self.terminal.reads_lines() && input.len() > LONGEST_LINE {
            return Err(refuse(
                "is too long for a line of the terminal that the installed CLI is used on",
            ));
        }
        Ok(input.as_bytes().to_vec())
    }

    async fn enter(&mut self, keys: &[u8]) {
        self.write(keys).await;
        if !self.terminal.reads_lines() {
            self.until_still(BEFORE_ENTER).await;
        }
        self.write(b"\r").await;
    }

    /// Waits until the prompt is back, or until a CLI that reads lines can be left to itself.
    async fn until_answered(&mut self, prompt: &Prompt) {
        let asked = self.screen.text();
        while !self.has_ended {
            self.until_still(STILL).await;
            let is_back = self.screen.prompt() == *prompt && self.screen.text() != asked;
            if is_back || self.terminal.reads_lines() {
                return;
            }
            if self.screen.text() == asked {
                // The Enter went unnoticed.
                self.write(b"\r").await;
            }
        }
    }

    /// Says goodbye and waits for the end. None where the CLI stayed although it had answered.
    async fn leave(&mut self, workload: &Workload) -> Option<cofer_model::Exit> {
        let reads_lines = self.terminal.reads_lines();
        if !self.has_ended {
            self.enter(EXIT.as_bytes()).await;
        }
        if reads_lines {
            self.write(END_OF_INPUT).await;
            self.until_ended().await;
            return Some(workload.exited().await);
        }
        timeout(LEAVING, self.until_ended()).await.ok()?;
        Some(workload.exited().await)
    }

    async fn until_ended(&mut self) {
        while !self.has_ended {
            self.read().await;
        }
    }

    /// Reads until nothing has come for this long.
    async fn until_still(&mut self, span: Duration) {
        while !self.has_ended && timeout(span, self.read()).await.is_ok() {}
    }

    /// Reads what there is; at the end, says so.
    async fn read(&mut self) {
        let count = self.terminal.output.read(&mut self.chunk).await;
        self.take(count.unwrap_or(0));
    }

    /// Writes, and reads meanwhile: a terminal that nobody reads stops who writes to it.
    async fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.has_ended {
            let Terminal { input, output, .. } = &mut self.terminal;
            tokio::select! {
                written = input.write(bytes) => match written {
                    Ok(count @ 1..) => bytes = &bytes[count..],
                    Ok(_) | Err(_) => return,
                },
                count = output.read(&mut self.chunk) => self.take(count.unwrap_or(0)),
            }
        }
    }

    fn take(&mut self, count: usize) {
        let bytes = &self.chunk[..count];
        self.output.push(bytes);
        self.screen.show(bytes);
        self.has_ended |= bytes.is_empty();
    }
}
