//! What can go wrong with Podman, and what to do about it.

use std::io;
use std::time::Duration;

use crate::open_files::out_of_files;

/// Why something that was asked of Podman did not happen.
#[derive(Debug, thiserror::Error)]
pub enum PodmanError {
    /// There is no such program.
    #[error("Podman is not installed: there is no program `{program}`")]
    NotInstalled {
        /// What was looked for.
        program: String,
    },
    /// The program is there and cannot be run.
    #[error("could not run `{program}`")]
    Spawn {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It is there and cannot say what it can do.
    #[error("Podman does not work on this machine: {message}")]
    NotWorking {
        /// Podman's words.
        message: String,
    },
    /// It is older than what the bridge needs.
    #[error("Podman {version} is too old: containers need Podman 4.0 or newer")]
    TooOld {
        /// The version found.
        version: String,
    },
    /// It is a client of an engine elsewhere.
    #[error("Podman speaks to an engine on another machine, where stdio cannot be bridged to")]
    Remote,
    /// It did not answer in time.
    #[error("Podman did not finish `{action}` within {after:?}")]
    Timeout {
        /// The command.
        action: String,
        /// How long it had.
        after: Duration,
    },
    /// The image is not on this machine.
    #[error("the image `{image}` is not on this machine")]
    ImageMissing {
        /// The image.
        image: String,
    },
    /// The registry has no such image.
    #[error("the image `{image}` does not exist: {message}")]
    ImageNotFound {
        /// The image.
        image: String,
        /// The registry's words.
        message: String,
    },
    /// The registry wants to know who asks.
    #[error("the registry of `{image}` needs a login: {message}")]
    LoginNeeded {
        /// The image.
        image: String,
        /// The registry's words.
        message: String,
    },
    /// The registry does not answer.
    #[error("the registry of `{image}` could not be reached: {message}")]
    Unreachable {
        /// The image.
        image: String,
        /// Podman's words.
        message: String,
    },
    /// The registry's certificate is not trusted, or it speaks plain HTTP.
    #[error("no secure connection to the registry of `{image}`: {message}")]
    Insecure {
        /// The image.
        image: String,
        /// Podman's words.
        message: String,
    },
    /// The image is for another sort of machine.
    #[error("the image `{image}` is not for this machine: {message}")]
    WrongPlatform {
        /// The image.
        image: String,
        /// Podman's words.
        message: String,
    },
    /// The image has no such program, or it cannot be run.
    #[error("the image `{image}` could not run its program: {message}")]
    Program {
        /// The image.
        image: String,
        /// The runtime's words.
        message: String,
    },
    /// Somebody else's container has the name.
    #[error("a container named `{name}` that is not ours is in the way")]
    NameTaken {
        /// The container's name.
        name: String,
    },
    /// A port of this machine is in use.
    #[error("could not publish a port: {message}")]
    PortTaken {
        /// Podman's words.
        message: String,
    },
    /// The container's network could not be made.
    #[error("could not make the container's network: {message}")]
    Network {
        /// Podman's words.
        message: String,
    },
    /// A limit cannot be set.
    #[error("could not set the container's limits: {message}")]
    Limits {
        /// Podman's words.
        message: String,
    },
    /// The disk is full, or the storage is broken.
    #[error("the container storage failed: {message}")]
    Storage {
        /// Podman's words.
        message: String,
    },
    /// This user may not.
    #[error("Podman was denied what it needs: {message}")]
    Denied {
        /// Podman's words.
        message: String,
    },
    /// The OCI runtime failed.
    #[error("the container runtime failed: {message}")]
    Runtime {
        /// The runtime's words.
        message: String,
    },
    /// The required isolation is not available.
    #[error("gvisor is required and not available: {reason}")]
    RequirementUnmet {
        /// Why.
        reason: String,
    },
    /// The named provider is not available.
    #[error("{provider} is not available: {reason}")]
    ProviderUnavailable {
        /// The provider.
        provider: &'static str,
        /// Why.
        reason: String,
    },
    /// Podman ran the container in something else than it was told to.
    #[error("the container was to run in {asked} and ran in {found}; it was ended")]
    WrongRuntime {
        /// What it was told.
        asked: String,
        /// What was found.
        found: String,
    },
    /// A part of the plan cannot be passed to Podman.
    #[error("could not pass {what} to the container: {why}")]
    BadPlan {
        /// The part; never a value of the environment.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something on our side.
    #[error("could not {action}")]
    Internal {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Anything else Podman said.
    #[error("`podman {action}` failed: {message}")]
    Failed {
        /// The command.
        action: String,
        /// Podman's words.
        message: String,
    },
}

impl PodmanError {
    /// Whether trying again without a change could do, because Podman itself, and not this
    /// server, is the trouble.
    pub fn is_of_the_engine(&self) -> bool {
        matches!(
            self,
            Self::NotInstalled { .. }
                | Self::Spawn { .. }
                | Self::NotWorking { .. }
                | Self::TooOld { .. }
                | Self::Remote
                | Self::Timeout { .. }
        )
    }

    /// What a person does next.
    pub fn hint(&self) -> String {
        if let Some(limit) = out_of_files(self) {
            return limit.hint.to_owned();
        }
        let hint = match self {
            Self::NotInstalled { .. } => {
                "install Podman (`apt-get install podman`, `dnf install podman`), or name its \
                 program in COFER_PODMAN; servers given by `command` run without it"
            }
            Self::Spawn { .. } => "check that COFER_PODMAN names a program this user may run",
            // Made by systemd when its user logs in, and removed after.
            Self::NotWorking { message } if message.contains("/run/user/") => {
                "the daemon's user has no session here: `loginctl enable-linger` gives it one for \
                 good"
            }
            Self::NotWorking { .. } => {
                "run `podman info` as the daemon's user and follow what it says"
            }
            Self::TooOld { .. } => "install Podman 4.0 or newer",
            Self::Remote => {
                "unset CONTAINER_HOST for the daemon, or run the daemon beside the engine"
            }
            Self::Timeout { .. } => {
                "look at the machine's load and at `podman ps`; the server is tried again"
            }
            Self::ImageMissing { image } => {
                return format!("pull it with `podman pull {image}`, or build it");
            }
            Self::ImageNotFound { .. } => "check the image's name and tag",
            Self::LoginNeeded { image, .. } => {
                return format!(
                    "run `podman login {}` as the daemon's user, then start the server again",
                    registry(image)
                );
            }
            Self::Unreachable { .. } => {
                "check the registry's name and the network of this machine, then try again"
            }
            Self::Insecure { .. } => {
                "trust the registry's certificate, or name it as insecure in \
                 /etc/containers/registries.conf"
            }
            Self::WrongPlatform { .. } => "use an image that is built for this machine",
            Self::Program { .. } => {
                "check `args` and the image's entry point; a root that is read-only, or a user \
                 without rights in the image, can be the reason too"
            }
            Self::NameTaken { name } => {
                return format!("remove it with `podman rm -f {name}`");
            }
            Self::PortTaken { .. } => "choose another `host` port, or 0 for any free one",
            Self::Network { .. } => {
                "check Podman's network with `podman network ls`, or set `network` to `none`"
            }
            Self::Limits { .. } => {
                "raise the limit, or run the daemon where cgroups can be set for it"
            }
            Self::Storage { .. } => "free disk space, or look at `podman system check`",
            Self::Denied { .. } => "run the daemon as a user who may run `podman run`",
            Self::Runtime { .. } | Self::Failed { .. } => {
                "run the image by hand with `podman run` to see more"
            }
            Self::RequirementUnmet { .. } => {
                "set gVisor up on this machine (`cofer doctor` has the details), or remove `require`"
            }
            Self::ProviderUnavailable { .. } => {
                "`cofer doctor` lists the providers of this machine; name one of them in \
                 `provider`, or remove it"
            }
            Self::WrongRuntime { .. } => {
                "check the `runtimes` in containers.conf; the server is not run with less \
                 isolation than was asked for"
            }
            Self::BadPlan { .. } => "change it in the registration",
            Self::Internal { .. } => "look at the daemon's log",
        };
        hint.to_owned()
    }
}

/// The registry an image comes from, as `podman login` wants it.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => first,
        _ => "docker.io",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_session_is_told_how_to_have_one() {
        let hint = |message: &str| PodmanError::NotWorking { message: message.to_owned() }.hint();
        let gone = "creating events dirs: mkdir /run/user/1000: permission denied";
        assert!(hint(gone).contains("loginctl enable-linger"));
        assert!(hint("no runc").contains("podman info"));
    }

    #[test]
    fn a_login_is_asked_for_at_the_images_own_registry() {
        for (image, expected) in [
            ("ghcr.io/a/b:1", "ghcr.io"),
            ("localhost:5000/x", "localhost:5000"),
            ("mcp/filesystem", "docker.io"),
            ("busybox", "docker.io"),
        ] {
            assert_eq!(registry(image), expected, "{image}");
        }
    }
}
