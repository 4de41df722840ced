//! What an environment did, for somebody who looks: its commits and its changes since it was made.
//!
//! Read from the `cofer` remote with that store's own settings alone, so that neither the
//! repository's nor the worktree's attributes and filters have a say in it.

use cofer_model::{ChangedFile, EnvironmentDiff, EnvironmentLog, EnvironmentStep};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::environment::Environment;
use crate::environments::Environments;
use crate::failure::{Attempt as _, Failure};
use crate::git::{Git, GitError};
use crate::repository::Repository;
use crate::state::branch;

/// How many commits are told.
const MOST_STEPS: usize = 200;

/// How much of the commits is read.
const LONGEST_LOG: u64 = 4 * 1024 * 1024;

/// How much of the changes is told.
const LONGEST_DIFF: u64 = 1024 * 1024;

/// How many changed files are told.
const MOST_FILES: usize = 1000;

impl Environments {
    /// What was done in an environment.
    pub async fn log(&self, repository: &Repository, id: &str) -> Result<EnvironmentLog, Failure> {
        let environment = self.environment(repository.top(), id).await?;
        let range = format!("{}..{}", environment.state.start, branch(id));
        let most = format!("--max-count={}", MOST_STEPS + 1);
        let format = "--format=%H%x1f%cI%x1f%B";
        let words = ["log", "-z", "--no-show-signature", &most, format, "--end-of-options", &range];
        let asked = store(&environment).call(words).call(["--"]).beginning(LONGEST_LOG).await;
        let (said, cut) = asked.attempting("log", "could not read what was done")?;
        let mut entries: Vec<&[u8]> =
            said.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).collect();
        if cut {
            // The last one is not whole.
            entries.pop();
        }
        let truncated = cut || entries.len() > MOST_STEPS;
        let steps = entries.into_iter().take(MOST_STEPS).filter_map(step).collect();
        Ok(EnvironmentLog { steps, truncated })
    }

    /// What an environment changed.
    pub async fn diff(
        &self,
        repository: &Repository,
        id: &str,
    ) -> Result<EnvironmentDiff, Failure> {
        let environment = self.environment(repository.top(), id).await?;
        let (text, files) = tokio::join!(
            changes(&environment, "--patch", LONGEST_DIFF),
            changes(&environment, "--numstat", LONGEST_DIFF),
        );
        let (text, cut) = text.attempting("diff", "could not read what was changed")?;
        let (files, files_cut) = files.attempting("diff", "could not read what was changed")?;
        let mut files = changed_files(&files);
        let truncated = cut || files_cut || files.len() > MOST_FILES;
        files.truncate(MOST_FILES);
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if cut {
            // Not in the middle of a line.
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        }
        Ok(EnvironmentDiff { files, text, truncated })
    }
}

fn store(environment: &Environment) -> Git {
    Git::within(&environment.layout.store())
}

async fn changes(
    environment: &Environment,
    how: &str,
    most: u64,
) -> Result<(Vec<u8>, bool), GitError> {
    let safe = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"];
    let lines: &[&str] = if how == "--numstat" { &["-z"] } else { &[] };
    let (from, to) = (environment.state.start.as_str(), branch(&environment.state.id));
    let range = [how, "--end-of-options", from, &to, "--"];
    // People read it: names that are not ASCII stand there as they are.
    let git = store(environment).setting("core.quotePath=false");
    git.call(safe).call(lines).call(range).beginning(most).await
}

fn step(entry: &[u8]) -> Option<EnvironmentStep> {
    let text = String::from_utf8_lossy(entry);
    let mut fields = text.trim_start_matches('\n').splitn(3, '\x1f');
    let (commit, at, message) = (fields.next()?, fields.next()?, fields.next()?);
    let (command, exit_code) = told_by(message);
    Some(EnvironmentStep {
        commit: commit.to_owned(),
        at: OffsetDateTime::parse(at, &Rfc3339).ok()?,
        subject: message.lines().next().unwrap_or_default().to_owned(),
        command,
        exit_code,
    })
}

/// The command and its end, where the message is one that a command left.
fn told_by(message: &str) -> (Option<String>, Option<i32>) {
    let Some((_, rest)) = message.split_once("\n\n$ ") else { return (None, None) };
    let Some((command, code)) = rest.trim_end().rsplit_once("\nexit ") else {
        return (None, None);
    };
    (Some(command.to_owned()), code.trim().parse().ok())
}

/// From `diff --numstat -z`: added, removed and path; of a renamed file, the path it has now.
fn changed_files(said: &[u8]) -> Vec<ChangedFile> {
    let mut files = Vec::new();
    let mut fields = said.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let Some(field) = fields.next().filter(|field| !field.is_empty()) {
        let mut parts = field.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            break;
        };
        let path = if path.is_empty() {
            fields.next();
            fields.next().unwrap_or_default().into_owned()
        } else {
            path.to_owned()
        };
        files.push(ChangedFile { path, added: added.parse().ok(), removed: removed.parse().ok() });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_tells_its_command_and_how_that_ended() {
        let entry =
            "abc\u{1f}2026-01-02T03:04:05+09:00\u{1f}Say more\n\n$ echo a\necho b\nexit 3\n";
        let told = step(entry.as_bytes()).unwrap();
        assert_eq!((told.commit.as_str(), told.subject.as_str()), ("abc", "Say more"));
        assert_eq!((told.command.as_deref(), told.exit_code), (Some("echo a\necho b"), Some(3)));
        let ended = "Run x\n\n$ sleep 9\nexit Timeout\n";
        assert_eq!(told_by(ended), (Some("sleep 9".to_owned()), None));
        assert_eq!(told_by("Changes made in the background\n"), (None, None));
    }

    #[test]
    fn changed_files_are_counted_also_binary_and_renamed_ones() {
        let said = b"3\t1\ta b.txt\0-\t-\tpicture.png\x000\t0\t\0old\0new\0";
        let told: Vec<_> = changed_files(said)
            .into_iter()
            .map(|file| (file.path, file.added, file.removed))
            .collect();
        let expected = [
            ("a b.txt".to_owned(), Some(3), Some(1)),
            ("picture.png".to_owned(), None, None),
            ("new".to_owned(), Some(0), Some(0)),
        ];
        assert_eq!(told, expected);
        assert_eq!(changed_files(b""), []);
    }
}
