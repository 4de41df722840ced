//! Whether servers can run in containers here, and what would isolate them: asked of Podman,
//! and for each runtime tried with a container that ends at once.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use cofer_runtime::podman::{Info, Podman, PodmanError, ProviderReport};

use super::{Check, Level};
use crate::config;

pub(super) async fn check() -> Vec<Check> {
    let name = format!("cofer-doctor-{}-{}", std::process::id(), moment());
    let scratch = Scratch(std::env::temp_dir().join(&name));
    let shim = PathBuf::from("/proc/self/exe");
    let podman = Podman::new(config::podman(), name, scratch.0.clone(), shim);
    let mut checks = vec![match podman.info().await {
        Ok(info) => Check::new("podman", Level::Ok, describe(&info)),
        Err(error) => return vec![without(&error)],
    }];
    // Nobody else may have made it, or could look into it.
    let made = std::fs::DirBuilder::new().mode(0o700).create(&scratch.0);
    if let Err(error) = made {
        let message = format!("could not be tried: {}: {error}", scratch.0.display());
        checks.push(Check::new("gvisor", Level::Warning, message));
        return checks;
    }
    let reports = podman.providers().await;
    checks.extend(reports.iter().filter(|report| report.provider != "podman").map(provider));
    podman.close().await;
    checks
}

/// The directory in which runtimes are tried, gone with this.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn moment() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_nanos()
}

fn describe(info: &Info) -> String {
    let root = if info.rootless { "without root" } else { "as root" };
    let Info { version, cgroup_version, runtime, storage_driver, .. } = info;
    format!("{version} {root}, cgroups {cgroup_version}, {runtime}, {storage_driver}")
}

/// Not everybody needs containers; one that is there and does not work is another matter.
fn without(error: &PodmanError) -> Check {
    let level = match error {
        PodmanError::NotInstalled { .. } => Level::Missing,
        _ => Level::Warning,
    };
    Check::new("podman", level, error.to_string()).hint(error.hint())
}

fn provider(report: &ProviderReport) -> Check {
    let name = report.provider;
    if report.available {
        let runtime = report.runtime.as_deref().unwrap_or("works");
        return Check::new(name, Level::Ok, runtime);
    }
    let reason = report.reason.as_deref().unwrap_or("not available");
    // Not everybody needs it; one that is there and does not work is another matter.
    let level = if report.installed { Level::Warning } else { Level::Missing };
    let check = Check::new(name, level, reason);
    match (name, report.installed) {
        ("gvisor", false) => check.hint("servers in containers run without it, with less isolation; `apt-get install runsc` or gvisor.dev."),
        ("gvisor", true) => check.hint("servers in containers run without it, with less isolation; a newer runsc from gvisor.dev may work here."),
        _ => check,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_why() {
        let missing = without(&PodmanError::NotInstalled { program: "podman".to_owned() });
        assert_eq!(missing.level, Level::Missing);
        assert!(missing.hint.unwrap().contains("install"));
        let broken = without(&PodmanError::NotWorking { message: "no runc".to_owned() });
        assert_eq!(broken.level, Level::Warning);
        assert!(broken.message.contains("no runc"));
        let report = |installed, available| ProviderReport {
            provider: "gvisor",
            installed,
            available,
            reason: Some("it says why".to_owned()),
            runtime: Some("runsc --platform=systrap".to_owned()),
        };
        assert_eq!(provider(&report(true, true)).message, "runsc --platform=systrap");
        let gone = provider(&report(false, false));
        assert_eq!((gone.level, gone.message.as_str()), (Level::Missing, "it says why"));
        assert!(gone.hint.unwrap().contains("install runsc"));
        let broken = provider(&report(true, false));
        assert_eq!((broken.level, broken.message.as_str()), (Level::Warning, "it says why"));
        assert!(!broken.hint.unwrap().contains("install"), "it is installed already");
    }
}
