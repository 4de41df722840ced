//! The isolation providers that can run environments: Podman's OCI runtimes on this machine's
//! kernel, and gVisor if it is named. Everything else is refused before anything is made.

use std::path::PathBuf;

use cofer_model::Provider;
use cofer_runtime::podman::{Info, Podman};

use crate::environments::Environments;
use crate::failure::{Failure, Kind};
use crate::settings::Settings;

/// A socket in a mount of a microVM belongs to the guest's kernel.
const NO_SOCKET: &str = "commands are sent over a Unix socket that the container shares with this machine, and a microVM does not share any";

const NO_FLAGS: &str = "commands are sent over a Unix socket that the container shares with this machine, and without `--host-uds` a gVisor sandbox does not share any";

/// The setting of the user.
const SETTING: &str = "COFER_ENV_PROVIDER";

impl Environments {
    /// Podman's global flags if an environment is to run in a sandbox: named by the user or by the
    /// repository, which can ask for more isolation and not for less.
    pub(crate) async fn sandbox(
        &self,
        repository: Option<Provider>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let Some(place) = check(self.settings.isolation.provider, repository)? else {
            return Ok(None);
        };
        let flags = self.trials.socket_sharing_flags(Provider::Gvisor).await;
        flags.map(Some).map_err(|reason| refusal(Provider::Gvisor, &reason, place))
    }
}

/// The runtime's Podman for the trials of providers alone; it starts no guard.
pub(crate) fn trials(settings: &Settings) -> Podman {
    let state = settings.registry_file.as_deref().and_then(|file| file.parent());
    let state = state.map_or_else(std::env::temp_dir, PathBuf::from).join("trials");
    let owner = "environments".to_owned();
    Podman::new(settings.podman.clone().into(), owner, state, settings.forwarder.clone())
}

/// Where gVisor is named, if it is. Refuses a provider that cannot run environments.
fn check(
    user: Option<Provider>,
    repository: Option<Provider>,
) -> Result<Option<&'static str>, Failure> {
    let mut sandbox = None;
    let named = [(user, SETTING), (repository, "`provider` in environment.json")];
    for (provider, place) in named {
        let Some(provider) = provider else { continue };
        let reason = match provider {
            Provider::Podman => continue,
            Provider::Gvisor => {
                sandbox = sandbox.or(Some(place));
                continue;
            }
            Provider::Krun => NO_SOCKET,
            Provider::Firecracker | Provider::E2b => "this version of Cofer cannot launch it",
            Provider::Process => "an environment is a container",
        };
        return Err(refusal(provider, reason, place));
    }
    Ok(sandbox)
}

fn refusal(provider: Provider, reason: &str, place: &str) -> Failure {
    unavailable(
        format!("the provider `{}` cannot run environments: {reason}", provider.name()),
        format!("remove {place}, or set it to `podman`; nothing was made."),
    )
}

/// Refuses an engine whose default OCI runtime does not share sockets.
pub(crate) fn check_engine(info: &Info) -> Result<(), Failure> {
    let (reason, recovery) = match info.runtime.as_str() {
        "runsc" => (NO_FLAGS, "ask the user to set COFER_ENV_PROVIDER to `gvisor`"),
        "krun" => {
            (NO_SOCKET, "ask the user to set `runtime` in containers.conf to `crun` or `runc`")
        }
        _ => return Ok(()),
    };
    let name = &info.runtime;
    Err(unavailable(
        format!("Podman's default OCI runtime `{name}` cannot run environments: {reason}"),
        format!("{recovery}; everything made so far was taken back."),
    ))
}

fn unavailable(message: String, recovery: String) -> Failure {
    Failure::new(Kind::ProviderUnavailable, "provider", message, recovery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gvisor_is_used_only_if_named_and_a_repository_cannot_ask_for_less() {
        let (podman, gvisor) = (Some(Provider::Podman), Some(Provider::Gvisor));
        assert_eq!(check(None, None).unwrap(), None);
        assert_eq!(check(podman, podman).unwrap(), None);
        assert_eq!(check(gvisor, None).unwrap(), Some(SETTING));
        assert_eq!(check(gvisor, podman).unwrap(), Some(SETTING));
        let by_repository = check(podman, gvisor).unwrap().unwrap();
        assert!(by_repository.contains("environment.json"), "{by_repository}");
    }

    #[tokio::test]
    async fn gvisor_that_does_not_work_is_unavailable_with_the_reason_of_its_trial() {
        let mut settings = Settings::from_variables(|_| None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        settings.podman = "/no/such/podman".to_owned();
        settings.registry_file = Some(folder.path().join("repositories.json"));
        let environments = Environments::new(settings);
        let refused = environments.sandbox(Some(Provider::Gvisor)).await.unwrap_err();
        assert_eq!(refused.kind, Kind::ProviderUnavailable);
        assert!(refused.message.contains("runsc"), "{refused:?}");
        assert!(refused.recovery.contains("environment.json"), "{refused:?}");
        assert_eq!(environments.sandbox(None).await.unwrap(), None);
    }

    #[test]
    fn a_provider_that_cannot_run_environments_is_refused_with_the_reason() {
        for provider in [Provider::Krun, Provider::Firecracker, Provider::E2b] {
            let by_user = check(Some(provider), None).unwrap_err();
            assert_eq!(by_user.kind, Kind::ProviderUnavailable);
            assert!(by_user.message.contains(provider.name()), "{by_user:?}");
            assert!(by_user.recovery.contains("COFER_ENV_PROVIDER"), "{by_user:?}");
            // A repository can name a stronger one, and is not run with less.
            let by_repository = check(Some(Provider::Podman), Some(provider)).unwrap_err();
            assert!(by_repository.recovery.contains("environment.json"), "{by_repository:?}");
        }
    }

    #[test]
    fn an_engine_that_runs_everything_in_a_sandbox_is_refused() {
        let info = |runtime: &str| {
            let answer = serde_json::json!({"host": {"ociRuntime": {"name": runtime}}});
            Info::read(answer.to_string().as_bytes(), "").unwrap()
        };
        for runtime in ["runsc", "krun"] {
            let refused = check_engine(&info(runtime)).unwrap_err();
            assert_eq!(refused.kind, Kind::ProviderUnavailable);
            assert!(refused.message.contains(runtime), "{refused:?}");
        }
        assert!(check_engine(&info("crun")).is_ok() && check_engine(&info("runc")).is_ok());
    }
}
