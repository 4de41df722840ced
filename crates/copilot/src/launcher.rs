//! Runs the CLI: contained by the runtime, so that whatever way a request ends, its whole
//! process tree ends with it, and when this process dies, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofer_model::Exit;
use cofer_runtime::{
    ByteSink, Launch, Runner, StartError, Streams, Terminal, TerminalSize, Workload,
};
use tokio::io::AsyncWriteExt as _;

use crate::capture::Capture;
use crate::environment;
use crate::limit::{Limit, Stop};

/// What our processes are known by.
const MARKER: &str = "copilot/chat";

/// How a run ended that brought no exit code.
#[derive(Debug)]
pub(crate) enum RunError {
    /// It never began.
    Start(StartError),
    /// It was stopped, with its whole tree.
    Stopped(Stop),
}

impl From<StartError> for RunError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<Stop> for RunError {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

/// The CLI that was found, and where it runs.
#[derive(Debug, Clone)]
pub(crate) struct Cli {
    pub(crate) program: PathBuf,
    pub(crate) cwd: PathBuf,
}

/// Where a run's two streams go. They are the caller's, and hold what came also when the run
/// was stopped.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
}

impl Output {
    pub(crate) fn new(most: usize) -> Self {
        Self { stdout: Capture::new(most), stderr: Capture::new(most) }
    }
}

/// How the CLI is started. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    runner: Runner,
    environment: BTreeMap<String, String>,
}

impl Launcher {
    pub(crate) fn new(shim: PathBuf) -> Self {
        Self {
            runner: Runner::new(shim),
            environment: environment::for_the_cli(std::env::vars_os()),
        }
    }

    /// Runs the CLI to its end, with `input` on its stdin and then the end of it.
    pub(crate) async fn run(
        &self,
        cli: &Cli,
        args: Vec<String>,
        input: &str,
        output: &Output,
        limit: &Limit,
    ) -> Result<Exit, RunError> {
        let (workload, streams) = self.start(cli, args, limit).await?;
        let Streams { stdin, stdout, stderr } = streams;
        let talk = async {
            // The tree ends with the CLI's own process, and the streams with the tree.
            tokio::join!(
                feed(stdin, input),
                output.stdout.fill(stdout),
                output.stderr.fill(stderr)
            );
            workload.exited().await
        };
        let exit = limit.within(talk).await;
        end(&workload).await;
        Ok(exit?)
    }

    /// Starts the CLI on pipes.
    pub(crate) async fn start(
        &self,
        cli: &Cli,
        args: Vec<String>,
        limit: &Limit,
    ) -> Result<(Workload, Streams), RunError> {
        let launch = self.launch(cli, args);
        Ok(limit.within(self.runner.start(&launch)).await??)
    }

    /// Starts the CLI on a terminal of its own.
    pub(crate) async fn start_on_terminal(
        &self,
        cli: &Cli,
        size: TerminalSize,
        limit: &Limit,
    ) -> Result<(Workload, Terminal), RunError> {
        let mut launch = self.launch(cli, Vec::new());
        launch.environment.insert("TERM".to_owned(), "xterm-256color".to_owned());
        Ok(limit.within(self.runner.start_on_terminal(&launch, size)).await??)
    }

    /// Waits until nothing is left of all that was started.
    pub(crate) async fn drained(&self) {
        self.runner.drained().await;
    }

    fn launch(&self, cli: &Cli, args: Vec<String>) -> Launch {
        Launch {
            program: text(&cli.program),
            args,
            environment: self.environment.clone(),
            cwd: Some(text(&cli.cwd)),
            marker: MARKER.to_owned(),
        }
    }
}

/// Ends the tree, where it has not ended, and waits until it is gone.
pub(crate) async fn end(workload: &Workload) {
    workload.kill();
    workload.gone().await;
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A CLI that does not read its input closes it, which is its right.
async fn feed(mut stdin: ByteSink, input: &str) {
    if let Err(error) = stdin.write_all(input.as_bytes()).await {
        tracing::debug!(%error, "the CLI did not read its input");
    }
}
