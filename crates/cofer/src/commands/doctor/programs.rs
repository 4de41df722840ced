//! Which programs servers are commonly started with are on PATH, and of which version.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::task::JoinSet;

use super::{Check, Level};

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// The programs, and what they are good for.
const PROGRAMS: [(&str, &str); 5] = [
    ("node", "runs servers written in JavaScript"),
    ("npx", "fetches and runs servers published on npm"),
    ("python3", "runs servers written in Python"),
    ("uvx", "fetches and runs servers published on PyPI"),
    ("git", "keeps the work of environments"),
];

pub(super) async fn check() -> Vec<Check> {
    let mut probes = JoinSet::new();
    for (place, (name, purpose)) in PROGRAMS.into_iter().enumerate() {
        probes.spawn(async move { (place, check_program(name, purpose).await) });
    }
    let mut checks = probes.join_all().await;
    checks.sort_by_key(|(place, _)| *place);
    checks.into_iter().map(|(_, check)| check).collect()
}

async fn check_program(name: &str, purpose: &str) -> Check {
    match cofer_runtime::resolve(name, std::env::var_os("PATH").as_deref(), Path::new("/")) {
        Ok(path) => match version(path.clone()).await {
            Some(version) => Check::new(name, Level::Ok, format!("{version} ({})", path.display())),
            None => Check::new(name, Level::Warning, format!("{} does not run", path.display()))
                .hint(format!("it {purpose}; `{name} --version` shows what is wrong.")),
        },
        Err(_) => Check::new(name, Level::Missing, format!("not on PATH; it {purpose}")),
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
    async fn a_program_that_is_not_there_is_missing_and_says_what_for() {
        let check = check_program("cofer-no-such-program", "does nothing").await;
        assert_eq!(check.level, Level::Missing);
        assert_eq!(check.message, "not on PATH; it does nothing");
    }

    #[tokio::test]
    async fn a_program_that_is_there_is_asked_for_its_version() {
        assert!(version(PathBuf::from("/bin/bash")).await.unwrap().contains("bash"));
        assert_eq!(version(PathBuf::from("/bin/false")).await, None);
    }
}
