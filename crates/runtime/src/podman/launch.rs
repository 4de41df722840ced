//! The first part of a container's life: from the plan to a process that is known to be the
//! container's, in the runtime it should be in.

use std::process::{ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cofer_model::ServerId;
use tokio::time::timeout;

use super::arguments::{ENVIRONMENT_FILE, ID_FILE, Launch, PID_FILE};
use super::bundle::Bundle;
use super::cgroup::Cgroup;
use super::client::{MAX_COMPLAINT, PATIENCE, read_some};
use super::complaint;
use super::container::Shared;
use super::disk::Measure;
use super::error::PodmanError;
use super::files::RunFiles;
use super::inspect::Inspected;
use super::isolation::DiskLimit;
use super::label;
use super::life::Life;
use super::shortfall;
use super::witness::Witness;
use crate::pipes::{self, WideShare};
use crate::proc::Process;
use crate::workload::Streams;

/// How long `podman run` may take. A quarter of a second is usual; the rest is for machines on
/// which many start at once.
const START_LIMIT: Duration = Duration::from_secs(120);

/// How long the words of a failed `podman run` are waited for.
const WORDS_LIMIT: Duration = Duration::from_secs(2);

/// How often a start is tried for which another can go better.
const MAX_STARTS: usize = 3;

/// A container that runs, or did a moment ago.
pub(crate) struct Up {
    pub(crate) shared: Arc<Shared>,
    pub(crate) witness: Witness,
    pub(crate) streams: Streams,
    pub(crate) wide_pipes: Option<WideShare>,
}

/// What came of one `podman run`.
enum Attempt {
    Up(Box<Up>),
    /// It is worth another one.
    Again,
}

impl Life {
    /// Starts the container, as often as it is worth it.
    pub(crate) async fn bring_up(&self) -> Result<Box<Up>, PodmanError> {
        for _ in 0..MAX_STARTS {
            if self.orders.ending.is_cancelled() {
                break;
            }
            if let Attempt::Up(up) = self.attempt().await? {
                return Ok(up);
            }
        }
        let name = self.plan.container_name();
        Err(PodmanError::NameTaken { name })
    }

    async fn attempt(&self) -> Result<Attempt, PodmanError> {
        let inner = &self.podman.inner;
        let run = self.podman.next_run();
        let internal = |source| PodmanError::Internal { action: "prepare the container", source };
        let files = RunFiles::make(&inner.state_dir, &run).map_err(internal)?;
        let launch = Launch {
            plan: &self.plan,
            info: &self.info,
            runtime: &self.runtime,
            owner: &inner.owner,
            daemon: &inner.daemon,
            run: &run,
            files: files.path(),
            init: inner.has_init.load(Ordering::Relaxed),
        };
        if let Some(text) = launch.environment_file() {
            files.write(ENVIRONMENT_FILE, &text).map_err(internal)?;
        }
        let (streams, ends, wide_pipes) = pipes::open().map_err(internal)?;
        let (status, mut streams) = {
            // Held while Podman works: more at once only wait for each other.
            let _permit = inner.starts.acquire().await;
            self.run_client(&launch, streams, ends).await
        };
        let status = match status {
            Ok(status) => status,
            Err(error) => {
                self.podman.remove_run(&run).await;
                return Err(error);
            }
        };
        if !status.success() {
            let words = timeout(WORDS_LIMIT, read_some(Some(&mut streams.stderr), MAX_COMPLAINT));
            let words = words.await.unwrap_or_default();
            return self.failed(&run, &String::from_utf8_lossy(&words)).await;
        }
        let up = self.meet(&files).await;
        match up {
            Ok((shared, witness)) => {
                Ok(Attempt::Up(Box::new(Up { shared, witness, streams, wide_pipes })))
            }
            Err(error) => {
                self.podman.remove_run(&run).await;
                Err(error)
            }
        }
    }

    /// Runs `podman run` to its end, with the container's ends of the pipes for its own.
    async fn run_client(
        &self,
        launch: &Launch<'_>,
        mut streams: Streams,
        ends: pipes::ServerEnds,
    ) -> (Result<ExitStatus, PodmanError>, Streams) {
        let client = &self.podman.inner.client;
        let environment = launch.environment(&client.environment);
        let stdin = if self.plan.stdio {
            Stdio::from(ends.stdin)
        } else {
            streams.stdin = Box::new(tokio::io::sink());
            Stdio::null()
        };
        let output = Some((Stdio::from(ends.stdout), Stdio::from(ends.stderr)));
        let mut running = match client.spawn(&launch.arguments(), &environment, stdin, output) {
            Ok(running) => running,
            Err(error) => return (Err(error), streams),
        };
        let status = match timeout(START_LIMIT, running.child.wait()).await {
            Ok(status) => status.map_err(|source| PodmanError::Internal {
                action: "wait for `podman run`",
                source,
            }),
            Err(_) => {
                running.end().await;
                Err(PodmanError::Timeout { action: "run".to_owned(), after: START_LIMIT })
            }
        };
        (status, streams)
    }

    /// Says why, and whether another start is worth it: after removing a container of ours that
    /// was in the way, or without a first process that Podman does not have.
    async fn failed(&self, run: &str, words: &str) -> Result<Attempt, PodmanError> {
        let inner = &self.podman.inner;
        let name = self.plan.container_name();
        let error = complaint::of_run(&name, &self.plan.image, words);
        if let PodmanError::NameTaken { .. } = error {
            return match self.remove_our_own(&name).await? {
                true => Ok(Attempt::Again),
                false => Err(error),
            };
        }
        self.podman.remove_run(run).await;
        let lacks_init = words.contains("init binary") || words.contains("container-init");
        if lacks_init && inner.has_init.swap(false, Ordering::Relaxed) {
            tracing::info!("Podman has no catatonit; containers run without a first process");
            return Ok(Attempt::Again);
        }
        Err(error)
    }

    /// Removes a container of this name where it was made for this server.
    async fn remove_our_own(&self, name: &str) -> Result<bool, PodmanError> {
        let args = ["container", "inspect", name];
        let answer = self.podman.inner.client.run(&args, PATIENCE).await?;
        let Some(found) = Inspected::parse(&answer.stdout).filter(|_| answer.status.success())
        else {
            // Storage that a killed client left without its container. The name is made of
            // this server's id, so that it is nobody else's.
            self.podman.inner.client.ask(&["rm", "--force", "--time=0", name]).await?;
            return Ok(true);
        };
        let its_server = found.label(label::SERVER).and_then(|id| id.parse::<ServerId>().ok());
        let its_owner = found.label(label::OWNER);
        let is_ours = its_server == Some(self.plan.server)
            && its_owner == Some(self.podman.inner.owner.as_str());
        if is_ours {
            tracing::warn!(name, "a container of this server was left; replacing it");
            self.podman.remove([name].into_iter()).await?;
        }
        Ok(is_ours)
    }

    /// Learns who the container is, and refuses one that runs in something else than it should.
    async fn meet(&self, files: &RunFiles) -> Result<(Arc<Shared>, Witness), PodmanError> {
        let missing = || PodmanError::Failed {
            action: "run".to_owned(),
            message: "it did not say which container it started".to_owned(),
        };
        let id = files.read(ID_FILE).ok_or_else(missing)?;
        let pid: u32 = files.read(PID_FILE).and_then(|pid| pid.parse().ok()).ok_or_else(missing)?;
        let witness = Witness::of(pid, &id);
        let asked = self.asked_runtime();
        if let Some(found) = &witness.runtime
            && *found != asked
        {
            return Err(PodmanError::WrongRuntime { asked, found: found.clone() });
        }
        let is_gvisor = self.runtime.provider == "gvisor";
        if is_gvisor && witness.is_sandbox == Some(false) {
            let found = "a process of this machine's kernel".to_owned();
            return Err(PodmanError::WrongRuntime { asked, found });
        }
        let bundle = witness.bundle.as_deref().and_then(|path| Bundle::read(path, &id));
        let disk_limit = bundle.as_ref().and_then(|bundle| self.disk_limit(bundle));
        let cgroup = Cgroup::of(pid);
        // One that has ended has no limits any more.
        let has_ended = || Process::read(pid).is_none_or(|process| process.is_dead);
        let holds = |name: &str| cgroup.has_limit(name) || has_ended();
        let mut warnings = shortfall::of_limits(&self.info, holds);
        if disk_limit.is_none() {
            warnings.push("the disk limit is not enforced: its storage cannot be measured".into());
        }
        let shared = Arc::new(Shared {
            id,
            name: self.plan.container_name(),
            pid,
            provider: self.runtime.provider,
            is_sandbox: witness.is_sandbox.unwrap_or(is_gvisor),
            runtime: witness.runtime.clone(),
            cgroup,
            bundle,
            warnings,
            inspected: OnceLock::new(),
            disk: Measure::new(),
            disk_limit,
        });
        if !self.plan.stdio {
            // Its ports are all there is to reach it by.
            self.inspect(&shared).await?;
        }
        Ok((shared, witness))
    }

    /// How what it writes can be limited, where it can.
    fn disk_limit(&self, bundle: &Bundle) -> Option<DiskLimit> {
        let places = bundle.writable_places()?;
        if places.is_empty() {
            return Some(DiskLimit::NothingToWriteTo);
        }
        let limit = self.plan.limits.disk_bytes()?;
        let has_quota = self.info.quota && !bundle.read_only_root();
        let can_be_measured = places.iter().all(|place| place.read_dir().is_ok());
        can_be_measured.then_some(match has_quota {
            true => DiskLimit::Quota(limit),
            false => DiskLimit::Watched(limit),
        })
    }

    fn asked_runtime(&self) -> String {
        let name = self.runtime.program.as_ref().unwrap_or(&self.info.runtime);
        name.rsplit('/').next().unwrap_or(name).to_owned()
    }

    /// Asks the engine about the container, once.
    pub(crate) async fn inspect<'a>(
        &self,
        shared: &'a Shared,
    ) -> Result<&'a Inspected, PodmanError> {
        if let Some(known) = shared.inspected.get() {
            return Ok(known);
        }
        let args = ["container", "inspect", &shared.id];
        let answer = self.podman.inner.client.ask(&args).await?;
        let inspected = Inspected::parse(&answer).ok_or_else(|| PodmanError::Failed {
            action: "container inspect".to_owned(),
            message: "its answer cannot be read".to_owned(),
        })?;
        let asked = self.asked_runtime();
        match inspected.runtime() {
            Some(found) if found != asked => {
                Err(PodmanError::WrongRuntime { asked, found: found.to_owned() })
            }
            _ => Ok(shared.inspected.get_or_init(|| inspected)),
        }
    }
}
