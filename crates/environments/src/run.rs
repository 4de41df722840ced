//! Runs a command in an environment: in the foreground to its end, its limit or its
//! cancellation, whichever comes first. Nothing of it outlives the last two.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::executor::Executor;
use crate::failure::{Attempt as _, Failure, Kind};
use crate::output::{self, MOST_BYTES, Stream, Text};
use crate::secrets;
use crate::wire::{Answer, Request, Run, Step};

const EAGAIN: i32 = rustix::io::Errno::AGAIN.raw_os_error();

/// How long the end of a process tree may take.
const ENDING: Duration = Duration::from_secs(15);

/// A program to be run in a container.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: String,
    pub(crate) env: Vec<String>,
    pub(crate) secrets: BTreeMap<String, String>,
}

impl Program {
    pub(crate) fn request(&self, background: bool) -> Request {
        let bytes = |texts: &[String]| {
            texts.iter().map(|text| text.clone().into_bytes()).collect::<Vec<_>>()
        };
        let mut env = bytes(&self.env);
        env.extend(self.secrets.iter().map(|(name, value)| literal(name, value)));
        Request::Run(Run {
            background,
            cwd: self.cwd.clone().into_bytes(),
            argv: bytes(&self.argv),
            env,
        })
    }
}

/// A pair whose value means only itself: a `$` in it is a name for `$`.
fn literal(name: &str, value: &str) -> Vec<u8> {
    // The executor replaces `${}` by the value of the variable without a name, which is nothing.
    format!("{name}={}", value.replace('$', "$${}")).into_bytes()
}

/// How a command ended, and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) end: End,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    pub(crate) duration: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
}

impl End {
    /// As a shell tells it.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        let mut content = said(&self.stdout, &self.stderr);
        content["exit_code"] = json!(self.end.code());
        if let End::Signal(signal) = self.end {
            content["signal"] = json!(signal);
        }
        content["duration_ms"] =
            json!(u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX));
        content
    }
}

fn said(stdout: &Text, stderr: &Text) -> Value {
    json!({
        "exit_code": null, "stdout": stdout.text, "stderr": stderr.text,
        "stdout_truncated": stdout.truncated, "stderr_truncated": stderr.truncated,
    })
}

/// What a running command has said so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    /// What must not be told of it.
    secrets: Arc<OnceLock<BTreeMap<String, String>>>,
}

impl Output {
    /// The end of both streams.
    pub(crate) fn end(&self, most: usize) -> String {
        let text = [self.stdout.text(most).text, self.stderr.text(most).text].concat();
        match self.secrets.get() {
            Some(secrets) => secrets::without(text, secrets),
            None => text,
        }
    }
}

/// What a command must not outlive.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) longest: Duration,
    pub(crate) cancelled: CancellationToken,
}

/// Runs `program` to its end.
pub(crate) async fn foreground(
    executor: &Executor,
    program: &Program,
    output: &Output,
    limit: &Limit,
    leftovers: &TaskTracker,
) -> Result<Ran, Failure> {
    let started = Instant::now();
    let step = "command";
    output.secrets.get_or_init(|| program.secrets.clone());
    let (stdout, its_stdout) = output::pipe().attempting(step, "could not make a pipe")?;
    let (stderr, its_stderr) = output::pipe().attempting(step, "could not make a pipe")?;
    let ended = CancellationToken::new();
    let reading = async {
        tokio::join!(output.stdout.read(stdout, &ended), output.stderr.read(stderr, &ended))
    };
    let running = async {
        let end = attend(executor, program, vec![its_stdout, its_stderr], limit).await;
        ended.cancel();
        end
    };
    let ((out, err), end) = tokio::join!(reading, running);
    for rest in [out, err].into_iter().filter_map(|read| read.ok().flatten()) {
        leftovers.spawn(output::discard(rest));
    }
    let text = |stream: &Stream| {
        let Text { text, truncated } = stream.text(MOST_BYTES);
        Text { text: secrets::without(text, &program.secrets), truncated }
    };
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    match end {
        Ok(end) => Ok(Ran { end, stdout, stderr, duration: started.elapsed() }),
        Err(failure) => Err(failure.beside(said(&stdout, &stderr))),
    }
}

async fn attend(
    executor: &Executor,
    program: &Program,
    pipes: Vec<OwnedFd>,
    limit: &Limit,
) -> Result<End, Failure> {
    let asked = executor.ask(&program.request(false), pipes).await;
    let mut conversation = asked.map_err(|error| gone(&error))?;
    let hearing = async {
        loop {
            let (answer, _) = conversation.answer().await.map_err(|error| gone(&error))?;
            match answer {
                Answer::Started { .. } => {}
                Answer::Exited { code } => return Ok(End::Code(code)),
                Answer::Signalled { signal } => return Ok(End::Signal(signal)),
                other => return Err(refusal(other, program)),
            }
        }
    };
    let why = tokio::select! {
        end = hearing => return end,
        () = tokio::time::sleep(limit.longest) => None,
        () = limit.cancelled.cancelled() => Some(()),
    };
    conversation.hang_up();
    // Whatever it says now, it says after everything has ended.
    let ended = timeout(ENDING, conversation.answer()).await;
    if !matches!(ended, Ok(Ok(_))) {
        tracing::warn!("the executor did not confirm that a command has ended");
    }
    Err(match why {
        None => timed_out(limit.longest),
        Some(()) => cancelled(),
    })
}

fn timed_out(limit: Duration) -> Failure {
    let message = format!(
        "the command ran longer than {} ms, and was ended with everything it had started",
        limit.as_millis()
    );
    let recovery = "give it less to do, run it with background true, or ask the user to raise COHERRA_TIMEOUT_RUN.";
    Failure::new(Kind::Timeout, "command", message, recovery)
}

pub(crate) fn cancelled() -> Failure {
    Failure::new(
        Kind::Internal,
        "command",
        "the request was cancelled",
        "send it again if it is still wanted.",
    )
    .retryable()
}

/// The container went away under the command.
pub(crate) fn gone(error: &io::Error) -> Failure {
    let message = format!("the environment's container ended while it was used: {error}");
    let recovery = "it was destroyed, stopped, or ran out of memory; the next command starts it again where it is still there.";
    Failure::new(Kind::PreconditionFailed, "command", message, recovery).retryable()
}

/// Why a program did not start, in the words of the agent's arguments.
pub(crate) fn refusal(answer: Answer, program: &Program) -> Failure {
    let Answer::Failed { step, errno } = answer else {
        return gone(&io::ErrorKind::InvalidData.into());
    };
    let name = program.argv.first().map(String::as_str).unwrap_or_default();
    let error = io::Error::from_raw_os_error(errno);
    let (kind, message, recovery) = match step {
        Step::Program => (
            Kind::PreconditionFailed,
            format!("the image has no `{name}` that can be run: {error}"),
            "use another shell, or an image that has this one.",
        ),
        Step::Directory => (
            Kind::PreconditionFailed,
            format!("the workdir {} cannot be used: {error}", program.cwd),
            "a command may have removed it; create a new environment from this one's branch.",
        ),
        Step::Request => (
            Kind::InvalidRequest,
            format!("the command cannot be run: {error}"),
            "a command has no NUL byte and is not empty.",
        ),
        // fork(2) reports EAGAIN at the limit of pids.
        Step::System if errno == EAGAIN => (
            Kind::LimitExceeded,
            "the container could not start a process: its limit of processes is reached".to_owned(),
            "end background commands, destroy the environment, or ask the user to raise COFER_ENV_PIDS for new ones.",
        ),
        Step::System => (
            Kind::Internal,
            format!("the container could not start a process: {error}"),
            "it may be out of processes or memory: end background commands, or create a new environment.",
        ),
    };
    Failure::new(kind, "command", message, recovery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_told_as_a_shell_tells_it() {
        assert_eq!((End::Code(3).code(), End::Signal(9).code()), (3, 137));
    }

    #[test]
    fn a_container_at_its_limit_of_processes_names_the_setting() {
        let program = Program {
            argv: Vec::new(),
            cwd: "/".to_owned(),
            env: Vec::new(),
            secrets: BTreeMap::new(),
        };
        let failed = |errno| refusal(Answer::Failed { step: Step::System, errno }, &program);
        let limited = failed(EAGAIN);
        assert_eq!(limited.kind, Kind::LimitExceeded);
        assert!(limited.recovery.contains("COFER_ENV_PIDS"), "{limited:?}");
        assert_eq!(failed(rustix::io::Errno::NOMEM.raw_os_error()).kind, Kind::Internal);
    }

    #[test]
    fn a_secret_with_a_dollar_stays_itself() {
        assert_eq!(literal("A", "p$PATH"), b"A=p$${}PATH");
    }
}
