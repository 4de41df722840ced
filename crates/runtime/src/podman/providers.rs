//! Who can isolate a container on this machine. A runtime counts as there when it has run a
//! tiny container: some are installed and cannot work, and say so only then.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofer_model::{Network, Provider, Requirement};
use rustix::process::Signal;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::arguments::ID_FILE;
use super::choice::RuntimeChoice;
use super::complaint;
use super::error::PodmanError;
use super::label;
use super::plan::ContainerPlan;
use super::probe;
use super::{Podman, files::RunFiles};
use crate::proc::Snapshot;

/// How long a tiny container may take; one takes a second.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// A runtime that did not work is tried again after this.
const RETRY_AFTER: Duration = Duration::from_secs(300);

/// Where Podman looks for runtimes by itself.
const PLACES: [&str; 8] = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/sbin",
    "/bin",
    "/usr/lib/cri-o-runc/sbin",
    "/run/current-system/sw/bin",
];

/// Ways to run gVisor, best first: with its own network stack and its usual platform; with
/// the sockets of the container's network namespace, which its stack cannot join everywhere;
/// and the same on the platforms that need least of the kernel. Not `kvm`: where it does not
/// work it hangs, with a core at full use.
const GVISOR_WAYS: [&[&str]; 5] = [
    &[],
    &["network=host"],
    &["platform=systrap", "network=host"],
    &["platform=ptrace"],
    &["platform=ptrace", "network=host"],
];

/// gVisor's own.
const GVISOR_RUNTIMES: [&str; 1] = ["runsc"];

/// Runtimes that give a container a machine of its own.
const MICROVM_RUNTIMES: [&str; 3] = ["krun", "kata-fc", "kata-runtime"];

/// One provider and whether it can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderReport {
    /// `gvisor`, `firecracker`, `e2b` or `podman`.
    pub provider: &'static str,
    /// Whether its program is there, working or not.
    pub installed: bool,
    /// Whether it runs containers here.
    pub available: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The runtime and its flags, where it is there.
    pub runtime: Option<String>,
}

/// What was found out about the runtimes.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    gvisor: Mutex<Option<Remembered>>,
    microvm: Mutex<Option<Remembered>>,
}

/// A result, and what it holds for.
#[derive(Debug, Clone)]
struct Remembered {
    found: Option<Found>,
    at: Instant,
    result: Result<RuntimeChoice, String>,
}

impl Remembered {
    fn holds_for(&self, found: Option<&Found>, now: Instant) -> bool {
        let is_fresh = now.saturating_duration_since(self.at) < RETRY_AFTER;
        self.found.as_ref() == found && (self.result.is_ok() || found.is_none() || is_fresh)
    }
}

/// A runtime's program, as it was when it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    path: PathBuf,
    /// When it was changed, and its size.
    stamp: (i64, i64, u64),
}

impl Podman {
    /// Every provider, best first, with the reason where it is not available. Tries what was
    /// not tried yet.
    pub async fn providers(&self) -> Vec<ProviderReport> {
        let engine = self.info().await;
        let (gvisor, microvm, podman) = match &engine {
            Ok(info) => (self.gvisor().await, self.microvm().await, Ok(info.runtime.clone())),
            Err(error) => {
                let reason = error.to_string();
                (Err(reason.clone()), Err(reason.clone()), Err(reason))
            }
        };
        let of_choice = |provider, names, result: Result<RuntimeChoice, String>| {
            let installed = self.find_runtime(names).is_some();
            report(provider, installed, result.map(|choice| choice.in_words()))
        };
        let elsewhere = "it is a service elsewhere, and no access to it is set up".to_owned();
        vec![
            of_choice("gvisor", &GVISOR_RUNTIMES, gvisor),
            of_choice("firecracker", &MICROVM_RUNTIMES, microvm),
            report("e2b", false, Err(elsewhere)),
            report("podman", !matches!(engine, Err(PodmanError::NotInstalled { .. })), podman),
        ]
    }

    /// What runs the container: what was asked for, else the best there is.
    pub(crate) async fn choose(&self, plan: &ContainerPlan) -> Result<RuntimeChoice, PodmanError> {
        let default = RuntimeChoice { provider: "podman", program: None, flags: Vec::new() };
        let must = plan.require == Some(Requirement::Gvisor);
        match plan.provider {
            Some(Provider::Podman) if must => {
                let reason = "`provider` names another".to_owned();
                Err(PodmanError::ProviderUnavailable { provider: "gvisor", reason })
            }
            Some(Provider::Podman) => Ok(default),
            Some(Provider::Process) => Err(PodmanError::BadPlan {
                what: "`provider: process`".to_owned(),
                why: "an image runs in a container",
            }),
            Some(Provider::Gvisor) | None => match self.gvisor().await {
                Ok(choice) => Ok(choice),
                Err(reason) if must || plan.provider.is_some() => {
                    Err(PodmanError::ProviderUnavailable { provider: "gvisor", reason })
                }
                Err(_) => Ok(self.microvm().await.unwrap_or(default)),
            },
        }
    }

    async fn gvisor(&self) -> Result<RuntimeChoice, String> {
        let mut memory = self.inner.providers.gvisor.lock().await;
        let found = self.find_runtime(&GVISOR_RUNTIMES);
        let missing = "gVisor's `runsc` is not installed";
        self.remembered(&mut memory, found, "gvisor", &GVISOR_WAYS, missing).await
    }

    async fn microvm(&self) -> Result<RuntimeChoice, String> {
        let mut memory = self.inner.providers.microvm.lock().await;
        let found = self.find_runtime(&MICROVM_RUNTIMES);
        let missing = "no microVM runtime is installed (krun, kata-fc or kata-runtime)";
        if let Some(found) = &found
            && let Err(error) = fs::File::options().read(true).write(true).open("/dev/kvm")
        {
            let name = found.path.display();
            return Err(format!("`{name}` is installed, but /dev/kvm cannot be used: {error}"));
        }
        self.remembered(&mut memory, found, "firecracker", &[&[]], missing).await
    }

    /// The last result while it holds, else a new one.
    async fn remembered(
        &self,
        memory: &mut Option<Remembered>,
        found: Option<Found>,
        provider: &'static str,
        ways: &[&[&str]],
        missing: &str,
    ) -> Result<RuntimeChoice, String> {
        let now = Instant::now();
        if let Some(known) = memory.as_ref().filter(|known| known.holds_for(found.as_ref(), now)) {
            return known.result.clone();
        }
        let result = match &found {
            Some(found) => self.try_ways(found, provider, ways).await,
            None => Err(missing.to_owned()),
        };
        match &result {
            Ok(choice) => tracing::info!(provider, runtime = choice.in_words(), "works here"),
            Err(reason) => tracing::info!(provider, reason, "is not available"),
        }
        *memory = Some(Remembered { found, at: Instant::now(), result: result.clone() });
        result
    }

    /// The first way that runs a container.
    async fn try_ways(
        &self,
        found: &Found,
        provider: &'static str,
        ways: &[&[&str]],
    ) -> Result<RuntimeChoice, String> {
        let mut reasons: Vec<String> = Vec::new();
        for way in ways {
            let flags = way.iter().map(|flag| (*flag).to_owned()).collect();
            let choice =
                RuntimeChoice { provider, program: Some(program_name(&found.path)), flags };
            match self.try_runtime(&choice).await {
                Ok(()) => return Ok(choice),
                Err(reason) => {
                    tracing::debug!(runtime = choice.in_words(), reason, "does not work");
                    reasons.push(reason);
                }
            }
        }
        let last = reasons.pop().unwrap_or_default();
        Err(format!("`{}` is installed and does not work: {last}", found.path.display()))
    }

    /// Runs a container that has nothing but a program of a hundred bytes.
    async fn try_runtime(&self, choice: &RuntimeChoice) -> Result<(), String> {
        let run = self.next_run();
        let files =
            RunFiles::make(&self.inner.state_dir, &run).map_err(|error| error.to_string())?;
        let root = files.path().join("root");
        write_program(&root).map_err(|error| format!("could not write the trial: {error}"))?;
        let mut args = choice.global_flags(Network::Egress);
        args.extend(["run", "--rm", "--pull=never", "--network=private"].map(str::to_owned));
        args.extend(["--cap-drop=all", "--security-opt=no-new-privileges"].map(str::to_owned));
        args.extend(["--read-only", "--read-only-tmpfs=false"].map(str::to_owned));
        for (key, value) in [
            (label::OWNER, &self.inner.owner),
            (label::DAEMON, &self.inner.daemon),
            (label::RUN, &run),
        ] {
            args.push(format!("--label={key}={value}"));
        }
        args.push(format!("--cidfile={}", files.path().join(ID_FILE).display()));
        // Says that what stands where an image would is a directory.
        args.extend(["--rootfs".to_owned(), root.display().to_string(), "/trial".to_owned()]);
        match self.inner.client.run(&args, PROBE_LIMIT).await {
            Ok(answer) if answer.status.code() == Some(probe::EXIT_CODE) => Ok(()),
            Ok(answer) => {
                self.remove_run(&run).await;
                Err(complaint::message(&answer.stderr))
            }
            Err(error) => {
                self.remove_run(&run).await;
                end_sandbox(&files);
                Err(error.to_string())
            }
        }
    }

    fn find_runtime(&self, names: &[&str]) -> Option<Found> {
        let path = self.inner.client.environment.get(OsStr::new("PATH"));
        let own = path.map(std::env::split_paths).into_iter().flatten();
        let places: Vec<PathBuf> = PLACES.iter().map(PathBuf::from).chain(own).collect();
        names.iter().find_map(|name| places.iter().find_map(|place| Found::at(place.join(name))))
    }
}

impl Found {
    fn at(path: PathBuf) -> Option<Self> {
        let metadata = fs::metadata(&path).ok()?;
        let is_program = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        let stamp = (metadata.mtime(), metadata.mtime_nsec(), metadata.size());
        is_program.then_some(Self { path, stamp })
    }
}

impl RuntimeChoice {
    /// As people would write it.
    pub(crate) fn in_words(&self) -> String {
        let flags = self.flags.iter().map(|flag| format!(" --{flag}"));
        self.program.clone().unwrap_or_default() + &flags.collect::<String>()
    }
}

fn report(
    provider: &'static str,
    installed: bool,
    result: Result<String, String>,
) -> ProviderReport {
    let (runtime, reason) = match result {
        Ok(runtime) => (Some(runtime), None),
        Err(reason) => (None, Some(reason)),
    };
    ProviderReport { provider, installed, available: reason.is_none(), reason, runtime }
}

/// By name where Podman finds it by itself, so that `podman inspect` shows the name.
fn program_name(path: &Path) -> String {
    let known =
        path.parent().is_some_and(|place| PLACES.iter().any(|known| place == Path::new(known)));
    let name = path.file_name().filter(|_| known).map_or(path.as_os_str(), |name| name);
    name.to_string_lossy().into_owned()
}

fn write_program(root: &Path) -> std::io::Result<()> {
    fs::create_dir(root)?;
    let path = root.join("trial");
    fs::write(&path, probe::program())?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Ends what a runtime that hung left running without its container.
fn end_sandbox(files: &RunFiles) {
    let Some(id) = files.read(ID_FILE).filter(|id| id.len() >= 32) else {
        return;
    };
    for process in Snapshot::take().all() {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        if line.split(|byte| *byte == 0).any(|arg| arg == id.as_bytes()) {
            process.signal(Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(stamp: u64) -> Option<Found> {
        Some(Found { path: "/usr/bin/runsc".into(), stamp: (0, 0, stamp) })
    }

    fn remembered(result: Result<RuntimeChoice, String>) -> Remembered {
        Remembered { found: found(1), at: Instant::now(), result }
    }

    #[test]
    fn what_worked_holds_until_the_program_changes() {
        let choice = RuntimeChoice { provider: "gvisor", program: None, flags: Vec::new() };
        let known = remembered(Ok(choice));
        let later = known.at + RETRY_AFTER * 10;
        assert!(known.holds_for(found(1).as_ref(), later));
        assert!(!known.holds_for(found(2).as_ref(), later));
        assert!(!known.holds_for(None, later));
    }

    #[test]
    fn what_did_not_work_is_tried_again_later() {
        let known = remembered(Err("no".to_owned()));
        assert!(known.holds_for(found(1).as_ref(), known.at));
        assert!(!known.holds_for(found(1).as_ref(), known.at + RETRY_AFTER));
    }

    #[test]
    fn a_runtime_is_named_as_podman_knows_it() {
        assert_eq!(program_name(Path::new("/usr/bin/runsc")), "runsc");
        assert_eq!(program_name(Path::new("/opt/bin/runsc")), "/opt/bin/runsc");
    }

    #[test]
    fn gvisor_is_never_tried_on_kvm() {
        assert!(!GVISOR_WAYS.iter().flat_map(|way| way.iter()).any(|flag| flag.contains("kvm")));
    }
}
