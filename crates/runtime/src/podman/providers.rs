//! The isolation providers of this machine: which are available, why the others are not, and
//! which one runs a container. An OCI runtime counts as available once its trial has passed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofer_model::{Network, Provider, Requirement};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Podman;
use super::choice::RuntimeChoice;
use super::error::PodmanError;
use super::plan::ContainerPlan;
use super::probe;

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

/// The container can create sockets in its mounts, and its root is written to its layer: later
/// releases write it to a file of the sandbox by default, which is gone with it.
const GVISOR_SHARING: [&str; 2] = ["host-uds=all", "overlay2=none"];

/// gVisor's OCI runtime.
const RUNSC: &str = "runsc";

/// libkrun's OCI runtime. Kata has none any more: its OCI commands were removed in 2.0.
const KRUN: &str = "krun";

const NO_FIRECRACKER: &str = "this version of Cofer cannot launch Firecracker microVMs";

const NO_E2B: &str = "this version of Cofer cannot launch sandboxes of the E2B service";

/// One provider and its availability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderReport {
    /// `gvisor`, `firecracker`, `e2b`, `krun` or `podman`.
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

/// The results of trials.
#[derive(Debug)]
pub(crate) struct Providers {
    gvisor: Mutex<Option<Remembered>>,
    krun: Mutex<Option<Remembered>>,
    /// The device that a microVM needs.
    kvm: PathBuf,
}

impl Default for Providers {
    fn default() -> Self {
        Self { gvisor: Mutex::default(), krun: Mutex::default(), kvm: "/dev/kvm".into() }
    }
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
    /// Every provider with its availability and the reason if it is not available: in the order
    /// of preference, then those used only if they are named, then the fallback. Runs the trials
    /// that were not run yet.
    pub async fn providers(&self) -> Vec<ProviderReport> {
        let engine = self.info().await;
        let mut reports = Vec::new();
        for provider in Provider::PREFERENCE.into_iter().chain([Provider::Krun]) {
            let runtime = match (&engine, provider) {
                (Err(error), Provider::Gvisor | Provider::Krun) => Err(error.to_string()),
                _ => self.availability(provider).await.map(|choice| choice.in_words()),
            };
            let installed = match provider {
                Provider::Gvisor => self.find_runtime(RUNSC).is_some(),
                Provider::Krun => self.find_runtime(KRUN).is_some(),
                _ => false,
            };
            reports.push(report(provider, installed, runtime));
        }
        let installed = !matches!(engine, Err(PodmanError::NotInstalled { .. }));
        let runtime = engine.map(|info| info.runtime.clone()).map_err(|error| error.to_string());
        reports.push(report(Provider::Podman, installed, runtime));
        reports
    }

    /// The OCI runtime of a container: the named provider's, else the preferred one's.
    pub(crate) async fn choose(&self, plan: &ContainerPlan) -> Result<RuntimeChoice, PodmanError> {
        let named = plan.provider;
        if named == Some(Provider::Process) {
            let what = "`provider: process`".to_owned();
            return Err(PodmanError::BadPlan { what, why: "an image runs in a container" });
        }
        if plan.require == Some(Requirement::Gvisor) {
            let runtime = match named.filter(|provider| *provider != Provider::Gvisor) {
                Some(other) => Err(format!("`provider` is `{}`", other.name())),
                None => self.availability(Provider::Gvisor).await,
            };
            return runtime.map_err(|reason| PodmanError::RequirementUnmet { reason });
        }
        match named {
            Some(provider) => self.availability(provider).await.map_err(|reason| {
                PodmanError::ProviderUnavailable { provider: provider.name(), reason }
            }),
            None => Ok(self.preferred().await),
        }
    }

    /// Podman's global flags for a container that shares Unix sockets with this machine and keeps its
    /// root over a restart, or the reason why the provider is not available.
    pub async fn socket_sharing_flags(&self, provider: Provider) -> Result<Vec<String>, String> {
        let mut choice = self.availability(provider).await?;
        if provider == Provider::Gvisor {
            choice.flags.extend(GVISOR_SHARING.map(str::to_owned));
        }
        Ok(choice.global_flags(Network::Egress))
    }

    /// The first available provider in the order of preference, else Podman's own runtime.
    async fn preferred(&self) -> RuntimeChoice {
        let mut available = Vec::new();
        for provider in Provider::PREFERENCE {
            if let Ok(choice) = self.availability(provider).await {
                available.push((provider, choice));
            }
        }
        let best =
            Provider::preferred(|one| available.iter().any(|(provider, _)| *provider == one));
        let choice = available.into_iter().find(|(provider, _)| *provider == best);
        choice.map_or_else(RuntimeChoice::of_engine, |(_, choice)| choice)
    }

    /// The provider's runtime, or the reason why it is not available.
    async fn availability(&self, provider: Provider) -> Result<RuntimeChoice, String> {
        match provider {
            Provider::Gvisor => self.gvisor().await,
            Provider::Krun => self.krun().await,
            Provider::Firecracker => Err(NO_FIRECRACKER.to_owned()),
            Provider::E2b => Err(NO_E2B.to_owned()),
            Provider::Podman => Ok(RuntimeChoice::of_engine()),
            Provider::Process => Err("an image runs in a container".to_owned()),
        }
    }

    async fn gvisor(&self) -> Result<RuntimeChoice, String> {
        let mut memory = self.inner.providers.gvisor.lock().await;
        let found = self.find_runtime(RUNSC);
        let missing = "gVisor's `runsc` is not installed";
        self.remembered(&mut memory, found, Provider::Gvisor, &GVISOR_WAYS, missing).await
    }

    async fn krun(&self) -> Result<RuntimeChoice, String> {
        let mut memory = self.inner.providers.krun.lock().await;
        let found = self.find_runtime(KRUN);
        let missing = "libkrun's OCI runtime `krun` is not installed";
        let kvm = &self.inner.providers.kvm;
        if let Some(found) = &found
            && let Err(error) = fs::File::options().read(true).write(true).open(kvm)
        {
            let (name, kvm) = (found.path.display(), kvm.display());
            return Err(format!("`{name}` is installed, but {kvm} cannot be used: {error}"));
        }
        self.remembered(&mut memory, found, Provider::Krun, &[&[]], missing).await
    }

    /// The last result while it holds, else a new one.
    async fn remembered(
        &self,
        memory: &mut Option<Remembered>,
        found: Option<Found>,
        provider: Provider,
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
            Ok(choice) => {
                tracing::info!(
                    provider = choice.provider,
                    runtime = choice.in_words(),
                    "works here"
                );
            }
            Err(reason) => {
                tracing::info!(provider = provider.name(), reason, "is not available");
            }
        }
        *memory = Some(Remembered { found, at: Instant::now(), result: result.clone() });
        result
    }

    /// The first way that runs a container.
    async fn try_ways(
        &self,
        found: &Found,
        provider: Provider,
        ways: &[&[&str]],
    ) -> Result<RuntimeChoice, String> {
        let mut reasons: Vec<String> = Vec::new();
        for way in ways {
            let flags = way.iter().map(|flag| (*flag).to_owned()).collect();
            let program = Some(program_name(&found.path));
            let choice = RuntimeChoice { provider: provider.name(), program, flags };
            let tried = self.try_runtime(&choice).await;
            match tried.and_then(|kernel| check_kernel(provider, &kernel)) {
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

    fn find_runtime(&self, name: &str) -> Option<Found> {
        let path = self.inner.client.environment.get(OsStr::new("PATH"));
        let own = path.map(std::env::split_paths).into_iter().flatten();
        let mut places = PLACES.iter().map(PathBuf::from).chain(own);
        places.find_map(|place| Found::at(place.join(name)))
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

/// A microVM has a kernel of its own. A runtime that ran the trial on this machine's kernel gives
/// no more isolation than any other (crun#1098: krun's exec ran on the host).
fn check_kernel(provider: Provider, guest: &str) -> Result<(), String> {
    if provider != Provider::Krun {
        return Ok(());
    }
    let host = probe::host_kernel()
        .map_err(|error| format!("the release of this machine's kernel cannot be read: {error}"))?;
    if guest.is_empty() {
        return Err("its trial container did not report its kernel".to_owned());
    }
    if guest == host {
        return Err(format!(
            "its trial container ran on this machine's kernel {host}: it is not a microVM"
        ));
    }
    Ok(())
}

fn report(provider: Provider, installed: bool, result: Result<String, String>) -> ProviderReport {
    let (runtime, reason) = match result {
        Ok(runtime) => (Some(runtime), None),
        Err(reason) => (None, Some(reason)),
    };
    let available = reason.is_none();
    ProviderReport { provider: provider.name(), installed, available, reason, runtime }
}

/// By name where Podman finds it by itself, so that `podman inspect` shows the name.
fn program_name(path: &Path) -> String {
    let known =
        path.parent().is_some_and(|place| PLACES.iter().any(|known| place == Path::new(known)));
    let name = path.file_name().filter(|_| known).map_or(path.as_os_str(), |name| name);
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
