//! The isolation of an environment's container: closed like a server's, with the capabilities that
//! package managers need. Relaxations are settings of the user who runs Cofer. A repository
//! cannot name any: its `environment.json` comes with the code that is to be isolated.

use cofer_model::{Limits, Openings, Provider, is_capability};
use cofer_runtime::host_memory;

/// What a package manager needs as the container's root, and nothing that reaches the machine:
/// neither device nodes (MKNOD) nor raw sockets (NET_RAW) nor another root (SYS_CHROOT).
pub const CAPABILITIES: [&str; 8] = [
    // apt, npm and tar give unpacked files to their owners.
    "CHOWN",
    // The container's root writes to directories of other users, such as apt's `_apt`.
    "DAC_OVERRIDE",
    // chmod and utimes on files of other users: dpkg, tar.
    "FOWNER",
    // chmod keeps the setgid bit of directories such as /var/mail: dpkg, rpm.
    "FSETID",
    // Services that run as another user are stopped by root.
    "KILL",
    // rpm unpacks programs with file capabilities, and postinst scripts call setcap.
    "SETFCAP",
    // apt drops to `_apt`, and `su` starts programs as another user.
    "SETGID",
    "SETUID",
];

/// Cores of an environment, if the machine has as many.
const CPUS: usize = 2;

/// Memory of an environment, at most half of the machine's.
const MEMORY: u64 = 4 << 30;

/// Processes and threads: a parallel build or a browser needs hundreds.
const PIDS: u32 = 2048;

/// Bytes written to the container's layer and the worktree.
const DISK: &str = "10G";

/// What every container of this user's environments gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// CPU, memory, pids and disk.
    pub limits: Limits,
    /// The container's root is writable and has [`CAPABILITIES`]; the rest is closed unless the
    /// user opened it.
    pub openings: Openings,
    /// The isolation provider.
    pub provider: Option<Provider>,
}

impl Isolation {
    /// Reads `COFER_ENV_*`. An error names the variable.
    pub(crate) fn from_variables(
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mut limits = default_limits();
        for (name, field) in [
            ("COFER_ENV_CPUS", &mut limits.cpu),
            ("COFER_ENV_MEMORY", &mut limits.memory),
            ("COFER_ENV_DISK", &mut limits.disk),
        ] {
            if let Some(value) = variable(name) {
                value.trim().clone_into(field);
            }
        }
        let wrong = |name: &str, expected: &str| {
            let value = variable(name).unwrap_or_default();
            Err(format!("{name}={value:?} is not {expected}"))
        };
        if limits.cores().is_none() {
            return wrong("COFER_ENV_CPUS", "a number of cores such as 2 or 0.5");
        }
        if limits.memory_bytes().is_none() {
            return wrong("COFER_ENV_MEMORY", "a size such as 4G or 512M");
        }
        if limits.disk_bytes().is_none() {
            return wrong("COFER_ENV_DISK", "a size such as 10G");
        }
        if let Some(pids) = variable("COFER_ENV_PIDS") {
            limits.pids = match pids.trim().parse() {
                Ok(pids) if pids > 0 => pids,
                _ => return wrong("COFER_ENV_PIDS", "a number above 0"),
            };
        }
        let provider = match variable("COFER_ENV_PROVIDER") {
            None => None,
            Some(name) => match serde_json::from_value(name.trim().into()) {
                Ok(provider) => Some(provider),
                Err(_) => return wrong("COFER_ENV_PROVIDER", "a provider such as podman"),
            },
        };
        Ok(Self { limits, openings: openings(variable)?, provider })
    }
}

fn openings(variable: &impl Fn(&str) -> Option<String>) -> Result<Openings, String> {
    let switch = |name: &str| match variable(name).as_deref().map(str::trim) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(other) => Err(format!("{name}={other:?} is not true or false")),
    };
    let mut capabilities: Vec<String> = CAPABILITIES.map(str::to_owned).into();
    let added = variable("COFER_ENV_CAP_ADD").unwrap_or_default();
    for name in added.split([',', ' ']).filter(|name| !name.is_empty()) {
        if !is_capability(name) {
            return Err(format!("COFER_ENV_CAP_ADD: {name:?} is not a capability of Linux"));
        }
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name).to_owned();
        if !capabilities.contains(&name) {
            capabilities.push(name);
        }
    }
    Ok(Openings {
        capabilities,
        new_privileges: switch("COFER_ENV_NEW_PRIVILEGES")?,
        writable_root: true,
        all_system_calls: switch("COFER_ENV_ALL_SYSTEM_CALLS")?,
        mounts: Vec::new(),
    })
}

/// Bounded by the machine, so that an environment cannot starve it.
fn default_limits() -> Limits {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = MEMORY.min(host_memory() / 2);
    Limits {
        cpu: CPUS.min(cores).to_string(),
        memory: memory.to_string(),
        disk: DISK.to_owned(),
        pids: PIDS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Isolation, String> {
        Isolation::from_variables(&|name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_settings_only_what_package_managers_need_is_open() {
        let Isolation { limits, openings, provider } = read(&[]).unwrap();
        assert_eq!(provider, None);
        assert_eq!(openings.capabilities, CAPABILITIES);
        assert!(openings.writable_root && !openings.new_privileges && !openings.all_system_calls);
        assert!(limits.cores().unwrap() <= 2.0);
        assert!(limits.memory_bytes().unwrap() <= 4 << 30);
        assert_eq!((limits.pids, limits.disk_bytes()), (2048, Some(10 << 30)));
        for closed in ["MKNOD", "NET_RAW", "SYS_CHROOT", "SYS_ADMIN", "SYS_PTRACE"] {
            assert!(!openings.capabilities.iter().any(|name| name == closed), "{closed}");
        }
    }

    #[test]
    fn limits_and_relaxations_are_settings() {
        let Isolation { limits, openings, provider } = read(&[
            ("COFER_ENV_PROVIDER", "gvisor"),
            ("COFER_ENV_CPUS", "0.5"),
            ("COFER_ENV_MEMORY", "256M"),
            ("COFER_ENV_PIDS", "64"),
            ("COFER_ENV_DISK", "1G"),
            ("COFER_ENV_CAP_ADD", "cap_net_raw, SYS_PTRACE,CHOWN"),
            ("COFER_ENV_NEW_PRIVILEGES", "true"),
            ("COFER_ENV_ALL_SYSTEM_CALLS", "1"),
        ])
        .unwrap();
        assert_eq!((limits.cores(), limits.pids), (Some(0.5), 64));
        assert_eq!(limits.memory_bytes(), Some(256 << 20));
        assert_eq!(limits.disk_bytes(), Some(1 << 30));
        assert_eq!(openings.capabilities[8..], ["NET_RAW", "SYS_PTRACE"]);
        assert!(openings.new_privileges && openings.all_system_calls);
        assert_eq!(provider, Some(Provider::Gvisor));
    }

    #[test]
    fn a_setting_that_cannot_be_parsed_is_named_with_its_value() {
        for (name, value) in [
            ("COFER_ENV_CPUS", "0"),
            ("COFER_ENV_MEMORY", "much"),
            ("COFER_ENV_DISK", "-1"),
            ("COFER_ENV_PIDS", "0"),
            ("COFER_ENV_CAP_ADD", "ALL"),
            ("COFER_ENV_NEW_PRIVILEGES", "maybe"),
            ("COFER_ENV_PROVIDER", "kata"),
            ("COFER_ENV_ALL_SYSTEM_CALLS", "yes"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
