//! The last commands of an environment and how they ended, also those that changed nothing and
//! so left no commit. A line each; the file is shortened when it has grown.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::failure::{Failure, Kind};
use crate::run::Ran;

/// Where the file is shortened.
const LARGEST: u64 = 256 * 1024;

/// How much of its end is read, and kept when it is shortened.
const READ: u64 = 64 * 1024;

/// How much of a command is written down.
const LONGEST_COMMAND: usize = 500;

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) at: OffsetDateTime,
    pub(crate) command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The sort of failure of one that did not come to an end of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
}

impl Entry {
    pub(crate) fn new(at: OffsetDateTime, command: &str, ran: &Result<Ran, Failure>) -> Self {
        let word = |kind: Kind| {
            serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned))
        };
        let (exit_code, failure) = match ran {
            Ok(ran) => (Some(ran.end.code()), None),
            Err(failure) => (None, word(failure.kind)),
        };
        Self { at, command: command.chars().take(LONGEST_COMMAND).collect(), exit_code, failure }
    }
}

/// Adds a command. Two that shorten it at once may lose one: it is a help for people, and what
/// was changed is in the history.
pub(crate) fn note(file: &Path, entry: &Entry) -> io::Result<()> {
    let mut line = serde_json::to_vec(entry).map_err(io::Error::other)?;
    line.push(b'\n');
    let mut options = OpenOptions::new();
    let mut opened = options.append(true).create(true).mode(0o600).open(file)?;
    // One write, so that the lines of two servers do not mix.
    opened.write_all(&line)?;
    if opened.metadata()?.len() > LARGEST {
        shorten(file)?;
    }
    Ok(())
}

fn shorten(file: &Path) -> io::Result<()> {
    let kept = end_of(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let mut shorter = tempfile::NamedTempFile::new_in(folder)?;
    shorter.write_all(kept.as_bytes())?;
    shorter.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// The last commands, the newest first.
pub(crate) fn last(file: &Path, most: usize) -> Vec<Entry> {
    if !fs::exists(file).unwrap_or(false) {
        return Vec::new();
    }
    let text = end_of(file).unwrap_or_default();
    text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()).take(most).collect()
}

/// Whole lines from the end of the file.
fn end_of(file: &Path) -> io::Result<String> {
    let mut opened = File::open(file)?;
    let length = opened.metadata()?.len();
    let start = length.saturating_sub(READ);
    opened.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    opened.take(READ).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        Some((_, whole)) if start > 0 => whole.to_owned(),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(command: &str) -> Entry {
        let at = OffsetDateTime::UNIX_EPOCH;
        Entry { at, command: command.to_owned(), exit_code: Some(0), failure: None }
    }

    #[test]
    fn the_newest_command_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("commands");
        assert_eq!(last(&file, 3), []);
        for number in 0..5 {
            note(&file, &entry(&number.to_string())).unwrap();
        }
        let told: Vec<String> = last(&file, 3).into_iter().map(|entry| entry.command).collect();
        assert_eq!(told, ["4", "3", "2"]);
    }

    #[test]
    fn it_does_not_grow_without_bound_and_keeps_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("commands");
        for number in 0..1200 {
            note(&file, &entry(&format!("{number} {}", "x".repeat(400)))).unwrap();
        }
        assert!(fs::metadata(&file).unwrap().len() <= LARGEST);
        assert!(last(&file, 1)[0].command.starts_with("1199 "));
        assert_eq!(last(&file, 50).len(), 50);
    }

    #[test]
    fn a_command_that_was_ended_has_a_word_instead_of_a_code() {
        let failure = Failure::new(Kind::Timeout, "command", "too long", "less");
        let noted = Entry::new(OffsetDateTime::UNIX_EPOCH, &"y".repeat(9000), &Err(failure));
        assert_eq!((noted.exit_code, noted.failure.as_deref()), (None, Some("timeout")));
        assert_eq!(noted.command.len(), LONGEST_COMMAND);
    }
}
