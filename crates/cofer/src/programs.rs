//! Which programs servers and environments are commonly run with are on PATH, and of which
//! version: what `cofer doctor` prints and the console shows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cofer_model::ProgramView;
use tokio::task::JoinSet;

use crate::config;

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// The programs, and what they are good for.
const PROGRAMS: [(&str, &str); 7] = [
    ("git", "keeps the work of environments"),
    ("podman", "runs containers"),
    ("runsc", "isolates containers with gVisor"),
    ("node", "runs servers written in JavaScript"),
    ("npx", "fetches and runs servers published on npm"),
    ("uvx", "fetches and runs servers published on PyPI"),
    ("python3", "runs servers written in Python"),
];

/// All of them, in the order of the table.
pub(crate) async fn look() -> Vec<ProgramView> {
    let mut probes = JoinSet::new();
    for (place, (name, purpose)) in PROGRAMS.into_iter().enumerate() {
        let podman = config::podman();
        let called = if name == "podman" { podman.into_os_string() } else { name.into() };
        probes.spawn(async move { (place, look_at(name, &called, purpose).await) });
    }
    let mut found = probes.join_all().await;
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, program)| program).collect()
}

async fn look_at(name: &str, called: &OsStr, purpose: &str) -> ProgramView {
    let search = std::env::var_os("PATH");
    let path = called
        .to_str()
        .and_then(|called| cofer_runtime::resolve(called, search.as_deref(), Path::new("/")).ok());
    let version = match &path {
        Some(path) => version(path.clone()).await,
        None => None,
    };
    ProgramView {
        name: name.to_owned(),
        purpose: purpose.to_owned(),
        path: path.map(|path| path.to_string_lossy().into_owned()),
        version,
    }
}

/// The first line of what the program says about its version.
#[expect(
    clippy::disallowed_methods,
    reason = "asks a program of the caller's PATH for its version, in the caller's environment; the runtime's commands are for servers"
)]
async fn version(program: PathBuf) -> Option<String> {
    let asked = tokio::process::Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    output.status.success().then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_is_not_there_has_neither_path_nor_version() {
        let missing = look_at("x", OsStr::new("cofer-no-such-program"), "does nothing").await;
        assert_eq!((missing.path, missing.version), (None, None));
        assert_eq!(missing.purpose, "does nothing");
    }

    #[tokio::test]
    async fn a_program_that_is_there_is_asked_for_its_version() {
        assert!(version(PathBuf::from("/bin/bash")).await.unwrap().contains("bash"));
        assert_eq!(version(PathBuf::from("/bin/false")).await, None);
        let shell = look_at("bash", OsStr::new("bash"), "runs commands").await;
        assert!(shell.path.unwrap().ends_with("/bash") && shell.version.is_some());
    }

    #[tokio::test]
    async fn all_programs_are_told_in_one_order() {
        let names: Vec<String> = look().await.into_iter().map(|program| program.name).collect();
        assert_eq!(names, ["git", "podman", "runsc", "node", "npx", "uvx", "python3"]);
    }
}
