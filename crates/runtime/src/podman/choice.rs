//! Which OCI runtime a container is run by, and how Podman is told so.

use cofer_model::Network;

/// Which OCI runtime a container is run by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuntimeChoice {
    /// The isolation provider: `gvisor`, `krun` or `podman`.
    pub(crate) provider: &'static str,
    /// What Podman is to be told, where it is not its default.
    pub(crate) program: Option<String>,
    /// The runtime's own flags, without dashes.
    pub(crate) flags: Vec<String>,
}

impl RuntimeChoice {
    /// The engine's own default.
    pub(crate) fn of_engine() -> Self {
        Self { provider: "podman", program: None, flags: Vec::new() }
    }

    /// Whether Podman can put an init into the container. A krun guest does not find the program
    /// that `--init` mounts (containers/podman#21083).
    pub(crate) fn allows_init(&self) -> bool {
        self.provider != "krun"
    }

    /// Podman's global flags for it. A sandbox that shares the host's network can have it only
    /// as it is.
    pub(crate) fn global_flags(&self, network: Network) -> Vec<String> {
        let mut flags = vec!["--log-level=error".to_owned()];
        if let Some(program) = &self.program {
            flags.push(format!("--runtime={program}"));
        }
        for flag in &self.flags {
            let shares_host = network == Network::Host && flag.starts_with("network=");
            let flag = if shares_host { "network=host" } else { flag };
            flags.push(format!("--runtime-flag={flag}"));
        }
        flags
    }
}
