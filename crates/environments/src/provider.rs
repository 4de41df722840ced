//! The isolation providers that can run environments: Podman's OCI runtimes on this machine's
//! kernel. Everything else is refused before anything is made.

use cofer_model::Provider;
use cofer_runtime::podman::Info;

use crate::failure::{Failure, Kind};

/// The executor gets the pipes of a command as file descriptors over its Unix socket
/// (SCM_RIGHTS). runsc creates the socket on the host with `host-uds=all`, but a descriptor that
/// is sent to a sandbox does not arrive, and none crosses the border of a virtual machine.
const NO_DESCRIPTORS: &str = "a command's output passes through file descriptors that are sent to the container over a Unix socket, and they do not arrive in";

/// OCI runtimes whose containers are not processes of this machine's kernel.
const SANDBOXES: [(&str, &str); 2] = [("runsc", "a gVisor sandbox"), ("krun", "a microVM")];

/// Refuses a provider that cannot run environments, named by the user or by the repository.
pub(crate) fn check(user: Option<Provider>, repository: Option<Provider>) -> Result<(), Failure> {
    let named = [(user, "COFER_ENV_PROVIDER"), (repository, "`provider` in environment.json")];
    for (provider, place) in named {
        let reason = match provider {
            None | Some(Provider::Podman) => continue,
            Some(Provider::Gvisor) => format!("{NO_DESCRIPTORS} a gVisor sandbox"),
            Some(Provider::Krun) => format!("{NO_DESCRIPTORS} a microVM"),
            Some(Provider::Firecracker | Provider::E2b) => {
                "this version of Cofer cannot launch it".to_owned()
            }
            Some(Provider::Process) => "an environment is a container".to_owned(),
        };
        let name = provider.map_or("", Provider::name);
        return Err(unavailable(
            format!("the provider `{name}` cannot run environments: {reason}"),
            format!("remove {place}, or set it to `podman`; nothing was made."),
        ));
    }
    Ok(())
}

/// Refuses an engine whose default OCI runtime is such a provider.
pub(crate) fn check_engine(info: &Info) -> Result<(), Failure> {
    let Some((name, place)) = SANDBOXES.iter().find(|(name, _)| info.runtime == *name) else {
        return Ok(());
    };
    Err(unavailable(
        format!("Podman's default OCI runtime `{name}` cannot run environments: {NO_DESCRIPTORS} {place}"),
        "ask the user to set `runtime` in containers.conf to `crun` or `runc`; everything made so far was taken back.".to_owned(),
    ))
}

fn unavailable(message: String, recovery: String) -> Failure {
    Failure::new(Kind::ProviderUnavailable, "provider", message, recovery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_podman_runs_environments_and_the_reason_is_given() {
        assert!(check(None, None).is_ok());
        assert!(check(Some(Provider::Podman), Some(Provider::Podman)).is_ok());
        for provider in [Provider::Gvisor, Provider::Krun, Provider::Firecracker, Provider::E2b] {
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
