//! Starts workloads: checks what can be checked first, then a shim, then hears from it that
//! the server runs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::command::{self, Attached, ShimPlan};
use crate::environment::server_environment;
use crate::keeper::{Keeper, Progress};
use crate::orphans::Claim;
use crate::pipes;
use crate::resolve::{ResolveError, resolve};
use crate::server_cgroup::ServerCgroup;
use crate::sweeper;
use crate::terminal::{self, Terminal, TerminalSize};
use crate::usage::Meter;
use crate::workload::{Control, Launch, Streams, Workload};

/// Why a workload did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program is not there.
    #[error(transparent)]
    CommandNotFound(ResolveError),
    /// It is there and is no program this user may run.
    #[error(transparent)]
    NotExecutable(ResolveError),
    /// It is a script whose interpreter is not there.
    #[error("could not run `{}`: the interpreter it names does not exist", program.display())]
    NoInterpreter {
        /// The script.
        program: PathBuf,
    },
    /// The working directory cannot be one.
    #[error("could not use `{path}` as the working directory")]
    BadDirectory {
        /// The directory as it was given.
        path: String,
        /// What is wrong with it.
        source: io::Error,
    },
    /// A variable's name cannot be one, or something holds a NUL byte.
    #[error("could not pass {what} to the program: {why}")]
    BadArgument {
        /// The argument or variable; never its value.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It may be executed and has no format that the kernel runs.
    #[error("could not run `{}`: it is neither a binary for this machine nor a script that begins with `#!`", program.display())]
    UnknownFormat {
        /// The file.
        program: PathBuf,
    },
    /// The system refused to run the program.
    #[error("could not run `{}`", program.display())]
    Spawn {
        /// The program, found.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no terminal to be had for the program.
    #[error("could not open a pseudo-terminal")]
    NoTerminal {
        /// The system's reason.
        source: io::Error,
    },
    /// Something on our side, before the program's turn came.
    #[error("could not start the shim `{}` for the program", shim.display())]
    Shim {
        /// The program that has the shim in it.
        shim: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

/// Counts the runs of this process: with its pid, a name that no other run has.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// How workloads are started. Cheap to clone; clones share their books.
#[derive(Debug, Clone)]
pub struct Runner {
    shim: PathBuf,
    /// The daemon's own environment, of which servers get a part.
    base: Arc<BTreeMap<OsString, OsString>>,
    /// The tasks beside the shims: they outlive their workloads by the end of the tree.
    keepers: TaskTracker,
}

/// A launch that was checked.
struct Plan {
    program: PathBuf,
    cwd: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    marker: String,
}

/// A shim that was started and has not reported yet.
struct Started {
    shim: u32,
    cgroup: Option<ServerCgroup>,
    control: Control,
    progress: watch::Receiver<Progress>,
}

impl Runner {
    /// A runner whose shim is `shim`, which the daemon gives as `/proc/self/exe`: the program
    /// that runs, also when its file was replaced.
    pub fn new(shim: PathBuf) -> Self {
        Self { shim, base: Arc::new(std::env::vars_os().collect()), keepers: TaskTracker::new() }
    }

    /// The same with another environment to pass parts of than this process's.
    #[must_use]
    pub fn with_environment(mut self, base: BTreeMap<OsString, OsString>) -> Self {
        self.base = Arc::new(base);
        self
    }

    /// Checks a launch without starting it; returns the program that would run.
    pub fn check(&self, launch: &Launch) -> Result<PathBuf, StartError> {
        self.plan(launch).map(|plan| plan.program)
    }

    /// Starts a workload; returns when its program runs. Dropped midway, it leaves nothing.
    pub async fn start(&self, launch: &Launch) -> Result<(Workload, Streams), StartError> {
        let plan = self.plan(launch)?;
        let (streams, ends, wide_pipes) = pipes::open().map_err(|error| self.failed(error))?;
        let workload = self.begin(plan, launch, Attached::Pipes, ends).await?;
        Ok((Workload { _wide_pipes: wide_pipes, ..workload }, streams))
    }

    /// The same, with a terminal of the program's own for its stdin, stdout and stderr.
    pub async fn start_on_terminal(
        &self,
        launch: &Launch,
        size: TerminalSize,
    ) -> Result<(Workload, Terminal), StartError> {
        let plan = self.plan(launch)?;
        let opened = terminal::open(size);
        let (terminal, ends) = opened.map_err(|source| StartError::NoTerminal { source })?;
        let workload = self.begin(plan, launch, Attached::Terminal, ends).await?;
        Ok((workload, terminal))
    }

    async fn begin(
        &self,
        plan: Plan,
        launch: &Launch,
        stdio: Attached,
        ends: pipes::ServerEnds,
    ) -> Result<Workload, StartError> {
        let program = plan.program.clone();
        let Started { shim, cgroup, control, mut progress } =
            self.start_shim(plan, launch, stdio, ends)?;
        let seen = progress.wait_for(|progress| progress.started.is_some() || progress.gone).await;
        let started = seen.ok().and_then(|progress| progress.started);
        let pid = match started {
            Some(Ok(pid)) => pid,
            Some(Err(errno)) => return Err(refused(program, stdio, errno)),
            None => return Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
        };
        let meter = Mutex::new(Meter::new());
        Ok(Workload { pid, shim, cgroup, control, progress, meter, _wide_pipes: None })
    }

    /// Waits until the trees of all workloads dropped so far, or ended, are gone.
    pub async fn drained(&self) {
        self.keepers.close();
        self.keepers.wait().await;
        self.keepers.reopen();
    }

    fn plan(&self, launch: &Launch) -> Result<Plan, StartError> {
        check_arguments(launch)?;
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let marker = format!("{}/{}-{run}", launch.marker, std::process::id());
        let base = self.base.iter().map(|(key, value)| (key.clone(), value.clone()));
        let environment = server_environment(base, &launch.environment, &marker);
        let cwd = working_directory(launch.cwd.as_deref(), environment_home(&self.base))?;
        let path_var = environment.get(OsStr::new("PATH")).map(OsString::as_os_str);
        let program = resolve(&launch.program, path_var, &cwd).map_err(|error| match error {
            ResolveError::NotFound { .. } => StartError::CommandNotFound(error),
            ResolveError::NotExecutable { .. } | ResolveError::IsDirectory { .. } => {
                StartError::NotExecutable(error)
            }
        })?;
        Ok(Plan { program, cwd, environment, marker })
    }

    fn start_shim(
        &self,
        plan: Plan,
        launch: &Launch,
        stdio: Attached,
        ends: pipes::ServerEnds,
    ) -> Result<Started, StartError> {
        let failed = |error| self.failed(error);
        let (ours, its) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let (reports, orders) = UnixStream::from_std(ours).map_err(failed)?.into_split();
        let owner = launch.marker.split('/').next().unwrap_or_default();
        sweeper::ensure(&self.shim, owner);
        let cgroup = make_cgroup(&plan.marker);
        let command = command::shim(ShimPlan {
            shim: &self.shim,
            cgroup: cgroup.as_ref().map(ServerCgroup::path),
            program: &plan.program,
            args: &launch.args,
            environment: &plan.environment,
            cwd: &plan.cwd,
            stdio,
            ends,
            control: its.into(),
        });
        let spawned = command.and_then(Claim::spawn);
        let (child, claim) = spawned.map_err(|error| {
            if let Some(cgroup) = &cgroup {
                cgroup.remove();
            }
            match Errno::from_io_error(&error) {
                // Arguments and environment are the server's own, and too long for it as well.
                Some(Errno::TOOBIG) => StartError::Spawn { program: plan.program, source: error },
                _ => self.failed(error),
            }
        })?;
        let shim = child.id().unwrap_or_default();
        let ending = CancellationToken::new();
        let (sender, progress) = watch::channel(Progress::default());
        let control = Control::new(orders, ending.clone());
        let keeper = Keeper {
            child,
            claim,
            reports,
            progress: sender,
            ending,
            marker: plan.marker,
            cgroup: cgroup.clone(),
        };
        self.keepers.spawn(keeper.run());
        Ok(Started { shim, cgroup, control, progress })
    }

    fn failed(&self, source: io::Error) -> StartError {
        StartError::Shim { shim: self.shim.clone(), source }
    }
}

/// The cgroup of a run. Where cgroups are not writable, the subreapers contain it alone.
fn make_cgroup(marker: &str) -> Option<ServerCgroup> {
    ServerCgroup::create(marker)
        .inspect_err(|error| tracing::debug!(%error, marker, "no cgroup for this run"))
        .ok()
}

/// The system's reason, told apart from a missing file: the program itself was just there.
fn refused(program: PathBuf, stdio: Attached, errno: i32) -> StartError {
    if errno == Errno::NOENT.raw_os_error() {
        return StartError::NoInterpreter { program };
    }
    if errno == Errno::NOEXEC.raw_os_error() {
        return StartError::UnknownFormat { program };
    }
    let of_terminal = [Errno::PERM, Errno::NOTTY].map(Errno::raw_os_error);
    if stdio == Attached::Terminal && of_terminal.contains(&errno) {
        return StartError::NoTerminal { source: io::Error::from_raw_os_error(errno) };
    }
    StartError::Spawn { program, source: io::Error::from_raw_os_error(errno) }
}

/// What the system could only refuse with "invalid argument", or would misread.
fn check_arguments(launch: &Launch) -> Result<(), StartError> {
    let bad = |what: String, why| Err(StartError::BadArgument { what, why });
    if launch.program.contains('\0') {
        return bad("the command".to_owned(), "it holds a NUL byte");
    }
    if let Some(nth) = launch.args.iter().position(|arg| arg.contains('\0')) {
        return bad(format!("argument {}", nth + 1), "it holds a NUL byte");
    }
    for (key, value) in &launch.environment {
        if key.is_empty() || key.contains(['=', '\0']) {
            return bad(format!("the variable {key:?}"), "a name is not empty and has no `=`");
        }
        if value.contains('\0') {
            return bad(format!("the variable {key:?}"), "its value holds a NUL byte");
        }
    }
    Ok(())
}

fn environment_home(base: &BTreeMap<OsString, OsString>) -> Option<&Path> {
    base.get(OsStr::new("HOME")).map(Path::new)
}

/// The directory asked for, which must be one; else the user's home, else the root.
fn working_directory(asked: Option<&str>, home: Option<&Path>) -> Result<PathBuf, StartError> {
    let Some(asked) = asked else {
        let home = home.filter(|home| home.is_absolute() && home.is_dir());
        return Ok(home.unwrap_or(Path::new("/")).to_path_buf());
    };
    let bad = |source| StartError::BadDirectory { path: asked.to_owned(), source };
    let path = PathBuf::from(asked);
    if !path.is_absolute() {
        let reason = "it is not an absolute path";
        return Err(bad(io::Error::new(io::ErrorKind::InvalidInput, reason)));
    }
    if !path.metadata().map_err(bad)?.is_dir() {
        return Err(bad(Errno::NOTDIR.into()));
    }
    rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).map_err(|error| bad(error.into()))?;
    Ok(path)
}
