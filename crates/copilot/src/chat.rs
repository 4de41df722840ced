//! One request from its arguments to its answer. Reads in the order in which it happens.

use std::path::{Path, PathBuf};

use cofer_model::FieldError;
use cofer_runtime::{ResolveError, StartError, resolve};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::answer::{Answer, Mode};
use crate::capabilities::Way;
use crate::config::Config;
use crate::detect::{DetectError, Detector};
use crate::diagnose::{self, Verdict};
use crate::environment;
use crate::failure::{Failure, Kind};
use crate::launcher::{Cli, Launcher, Output, RunError};
use crate::limit::{Limit, Stop};
use crate::models::Models;
use crate::pipe;
use crate::request::{self, Request};
use crate::terminal::{self, TerminalError};

/// A running CLI takes about 300 MB.
const MOST_AT_ONCE: u32 = 8;

/// How a request ends that has no answer.
#[derive(Debug)]
pub(crate) enum ChatError {
    /// The client is told why.
    Failed(Box<Failure>),
    /// Nobody wants to know.
    Cancelled,
}

impl From<Failure> for ChatError {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Chat {
    config: Config,
    launcher: Launcher,
    detector: Detector,
    turns: Semaphore,
}

/// Where a request stands, for what is said when it is stopped.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Waiting,
    Detection,
    Chat(Mode),
}

impl Chat {
    pub(crate) fn new(config: Config) -> Self {
        let launcher = Launcher::new(config.shim.clone());
        let turns = Semaphore::new(MOST_AT_ONCE as usize);
        Self { config, launcher, detector: Detector::default(), turns }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Waits until no request runs, and nothing is left of what they started.
    pub(crate) async fn drained(&self) {
        // Only closing it makes this fail, which nobody does.
        drop(self.turns.acquire_many(MOST_AT_ONCE).await);
        self.launcher.drained().await;
    }

    /// The answer, and in `output` what the CLI has said of it at any time.
    pub(crate) async fn answer(
        &self,
        arguments: &Map<String, Value>,
        output: &Output,
        limit: &Limit,
    ) -> Result<Answer, ChatError> {
        let request = self.check(arguments)?;
        let stopped = |error, phase| self.stopped(error, phase, output, limit);
        let turn = limit.within(self.turns.acquire()).await;
        // Given back last, when the directory is gone too.
        let _turn = turn.map_err(|stop| stopped(stop.into(), Phase::Waiting))?;
        let program = find(&self.config.program)?;
        let place = Place::make(self.config.cwd.as_deref())?;
        let cli = Cli { program, cwd: place.path() };
        let detected = self.detector.capabilities(&cli, &self.launcher, limit).await;
        let capabilities = detected.map_err(|error| match error {
            DetectError::Run(error) => stopped(error, Phase::Detection),
            DetectError::Failed(failure) => failure.into(),
        })?;
        let way = capabilities.way(request.model.is_some());
        if way != Way::Terminal {
            let plan = pipe::plan(&request, &capabilities, way)?;
            let ran = pipe::run(plan, &cli, &self.launcher, output, limit).await;
            let answer = ran.map_err(|error| stopped(error, Phase::Chat(Mode::Pipe)))?;
            match diagnose::verdict(&answer) {
                Verdict::Said => return Ok(answer),
                Verdict::Failed(failure) => return Err(failure.with_output(answer).into()),
                // It did nothing yet, so that it can be asked in the other way.
                Verdict::NoSuchFlag => self.detector.correct(&cli, capabilities.without_flags()),
            }
        }
        let ran = terminal::run(&request, &cli, &self.launcher, output, limit).await;
        ran.map_err(|error| match error {
            TerminalError::Run(error) => stopped(error, Phase::Chat(Mode::Tty)),
            TerminalError::Failed(failure) => failure.with_output(so_far(output, Mode::Tty)).into(),
        })
    }

    /// Everything that can be wrong before something is run.
    fn check(&self, arguments: &Map<String, Value>) -> Result<Request, Failure> {
        let mut request = request::parse(arguments)?;
        let models = Models::load(self.config.models.as_deref())?;
        if let Some(model) = &request.model
            && !models.allows(model)
        {
            let known = models.names().join(", ");
            let words = format!("{model:?} is not one of the allowed models: {known}");
            return Err(Failure::invalid_request(&[FieldError::new("options.model", words)]));
        }
        request.model = request.model.or_else(|| models.default().map(str::to_owned));
        if std::env::var_os(environment::DEPTH).is_some() {
            return Err(Failure::new(
                Kind::InvalidConfig,
                "this server was started by a Copilot CLI that was itself started by `copilot.chat`",
                "take `cofer mcp copilot` out of ~/.copilot/mcp-config.json.",
            ));
        }
        Ok(request)
    }

    /// What a run without an exit code means for the client.
    fn stopped(&self, error: RunError, phase: Phase, output: &Output, limit: &Limit) -> ChatError {
        match error {
            RunError::Start(error) => diagnose::of_start(&error, &self.config.program).into(),
            RunError::Stopped(Stop::Cancelled) => ChatError::Cancelled,
            RunError::Stopped(Stop::Deadline) => timeout(phase, output, limit).into(),
        }
    }
}

/// The program, found as of now: it may have been installed a moment ago.
pub(crate) fn find(program: &str) -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let path = std::env::var_os("PATH");
    resolve(program, path.as_deref(), &here).map_err(|error| {
        let error = match error {
            ResolveError::NotFound { .. } => StartError::CommandNotFound(error),
            ResolveError::NotExecutable { .. } | ResolveError::IsDirectory { .. } => {
                StartError::NotExecutable(error)
            }
        };
        diagnose::of_start(&error, program)
    })
}

/// Where the CLI runs.
pub(crate) enum Place {
    /// As configured.
    Configured(PathBuf),
    /// Empty, private, and gone with the request.
    Private(TempDir),
}

impl Place {
    pub(crate) fn make(configured: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = configured {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            return Ok(Self::Configured(absolute));
        }
        let made = tempfile::Builder::new().prefix("cofer-copilot-").tempdir();
        made.map(Self::Private).map_err(|error| {
            let message = format!("could not make an empty directory for the CLI: {error}");
            Failure::new(Kind::SpawnFailed, message, "make TMPDIR a directory that can be written.")
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Configured(path) => path.clone(),
            Self::Private(folder) => folder.path().to_owned(),
        }
    }
}

fn so_far(output: &Output, mode: Mode) -> Answer {
    Answer { stdout: output.stdout.so_far(), stderr: output.stderr.so_far(), exit: None, mode }
}

fn timeout(phase: Phase, output: &Output, limit: &Limit) -> Failure {
    let seconds = limit.span().as_secs_f64();
    let (name, message, mode) = match phase {
        Phase::Waiting => ("waiting", "no turn among other requests", Mode::Pipe),
        Phase::Detection => ("detection", "no answer to `--version` and `--help`", Mode::Pipe),
        Phase::Chat(mode) => ("chat", "no complete answer", mode),
    };
    Failure::new(
        Kind::Timeout,
        format!("{message} within {seconds} s; the CLI was ended"),
        "ask for less at once, or try again: `stdout` and `stderr` have what came in time.",
    )
    .with_details(json!({"phase": name, "limit_ms": limit.span().as_millis() as u64}))
    .with_output(so_far(output, mode))
}
