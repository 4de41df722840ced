//! What the server is told at its start.

use std::path::PathBuf;
use std::time::Duration;

use crate::isolation::Isolation;
use crate::registry::Registry;
use crate::worktree::Mode;

/// What the server is told at its start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Podman: a name to find on `PATH`, or a path.
    pub podman: String,
    /// The image where nobody names one.
    pub default_image: String,
    /// How long a command may run.
    pub run_limit: Duration,
    /// The isolation of containers.
    pub isolation: Isolation,
    /// How many environments one repository may have.
    pub most_environments: usize,
    /// How worktrees are made; the best that works where nobody says.
    pub mode: Option<Mode>,
    /// The program that forwards ports when it is called [`crate::forward::NAME`].
    pub forwarder: PathBuf,
    /// The record of repositories that `cofer init` prepared; absent if there is no home.
    pub registry_file: Option<PathBuf>,
}

impl Settings {
    /// What the environment says, with defaults for the rest. An error names the variable.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let number = |name: &str| match given(name).map(|value| value.trim().parse::<u64>()) {
            None => Ok(None),
            Some(Ok(number)) if number > 0 => Ok(Some(number)),
            Some(_) => Err(format!("{name} is not a number above 0")),
        };
        let run_limit = match number("COHERRA_TIMEOUT_RUN")? {
            None => number("COFER_TIMEOUT_RUN")?,
            some => some,
        };
        let most = number("COFER_MAX_ENVIRONMENTS")?
            .map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let mode = match given("COFER_WORKTREE").as_deref() {
            None | Some("auto") => None,
            Some("overlay") => Some(Mode::Overlay),
            Some("reflink") => Some(Mode::Reflink),
            Some("checkout") => Some(Mode::Checkout),
            Some(_) => {
                return Err("COFER_WORKTREE is not auto, overlay, reflink or checkout".to_owned());
            }
        };
        Ok(Self {
            podman: given("COFER_PODMAN").unwrap_or_else(|| "podman".to_owned()),
            default_image: given("COFER_DEFAULT_IMAGE")
                .unwrap_or_else(|| "ubuntu:24.04".to_owned()),
            run_limit: Duration::from_millis(run_limit.unwrap_or(600_000)),
            isolation: Isolation::from_variables(&given)?,
            most_environments: most.unwrap_or(50),
            mode,
            // Not the path of the binary: an upgrade may have put another one there.
            forwarder: PathBuf::from("/proc/self/exe"),
            registry_file: registry_file(given("XDG_STATE_HOME"), given("HOME")),
        })
    }

    pub(crate) fn registry(&self) -> Option<Registry> {
        self.registry_file.clone().map(Registry::new)
    }
}

/// By the XDG rules: a path that is not absolute counts as not set.
fn registry_file(state_home: Option<String>, home: Option<String>) -> Option<PathBuf> {
    let absolute = |text: String| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
    let state = state_home.and_then(absolute);
    let state = state.or_else(|| Some(home.and_then(absolute)?.join(".local/state")))?;
    Some(state.join("cofer/repositories.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn both_names_of_the_time_limit_are_read_and_the_first_counts() {
        // covers: ENV-2.3
        let limit = |variables: &[(&str, &str)]| read(variables).unwrap().run_limit.as_millis();
        assert_eq!(limit(&[]), 600_000);
        assert_eq!(limit(&[("COFER_TIMEOUT_RUN", "7")]), 7);
        assert_eq!(limit(&[("COFER_TIMEOUT_RUN", "7"), ("COHERRA_TIMEOUT_RUN", "8")]), 8);
    }

    #[test]
    fn repositories_are_recorded_in_the_xdg_state_directory() {
        let file = |variables: &[(&str, &str)]| read(variables).unwrap().registry_file;
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(file(&[]), None);
        let home = ("HOME", "/home/me");
        assert_eq!(file(&[home]), path("/home/me/.local/state/cofer/repositories.json"));
        let state = ("XDG_STATE_HOME", "/var/me");
        assert_eq!(file(&[home, state]), path("/var/me/cofer/repositories.json"));
        let relative = ("XDG_STATE_HOME", "me");
        assert_eq!(file(&[home, relative]), file(&[home]));
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        for (name, value) in [
            ("COHERRA_TIMEOUT_RUN", "soon"),
            ("COFER_MAX_ENVIRONMENTS", "0"),
            ("COFER_WORKTREE", "zfs"),
        ] {
            assert!(read(&[(name, value)]).unwrap_err().contains(name));
        }
    }
}
