//! A change of a configuration: shown, asked about, written, and remembered.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;

use serde_json::json;

use super::{Place, Whose};
use crate::failure::Failure;
use crate::mcp_clients::diff::diff;
use crate::mcp_clients::undo::{Before, Memory, hash};
use crate::output::{Output, say, text};

/// What a configuration is to become.
pub(super) struct Change<'a> {
    pub(super) place: &'a Place,
    /// Its new text; none where it is taken away.
    pub(super) after: Option<String>,
    /// What is written but not shown.
    pub(super) secret: Option<&'a str>,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was so already.
    Same,
    /// It was only shown, or not wanted.
    Shown,
    Written,
}

impl Change<'_> {
    /// Shows it and asks; whether it is to be made.
    pub(super) fn agreed(&self, whose: &Whose, out: &mut Output) -> Result<Outcome, Failure> {
        let config = &self.place.config;
        if config.text.as_deref() == self.after.as_deref() {
            return Ok(Outcome::Same);
        }
        let shown = diff(config.text(), self.after.as_deref().unwrap_or_default(), self.secret);
        if !out.wants_json() {
            let path = text::line(&config.path.display().to_string());
            let what = match (&config.text, &self.after) {
                (None, _) => " (new)",
                (_, None) => " (removed)",
                _ => "",
            };
            out.print(&format!("{path}{what}\n{}", text::block(&shown)))?;
        }
        if whose.dry_run {
            return Ok(Outcome::Shown);
        }
        if !whose.yes && !ask()? {
            return Ok(Outcome::Shown);
        }
        Ok(Outcome::Written)
    }

    /// Writes it, once what was there is kept.
    pub(super) fn install(&self, memory: &Memory) -> Result<(), Failure> {
        let Place { entry, config, .. } = self.place;
        let after = self.after.as_deref().unwrap_or_default();
        let known = memory.recall(&config.path, entry);
        // What is there now is our own: what was before that is what a person wants back.
        let ours = known.clone().filter(|known| Some(&known.after) == digest(config).as_ref());
        let before = match ours {
            Some(ours) => Before { after: hash(after), ..ours },
            None => Before {
                path: config.path.clone(),
                entry: entry.clone(),
                text: config.text.clone(),
                before: digest(config),
                after: hash(after),
                made: Vec::new(),
            },
        };
        memory.keep(&before).map_err(|error| not_kept(&error))?;
        match config.write(after) {
            Ok(made) if made.is_empty() => Ok(()),
            Ok(made) => memory.keep(&Before { made, ..before }).map_err(|error| not_kept(&error)),
            Err(error) => {
                match known {
                    Some(known) => memory.keep(&known).unwrap_or_default(),
                    None => memory.forget(&config.path, entry),
                }
                Err(error.into())
            }
        }
    }
}

/// The digest of what a configuration holds.
pub(super) fn digest(config: &crate::mcp_clients::file::Config) -> Option<String> {
    config.text.as_deref().map(hash)
}

fn not_kept(error: &io::Error) -> Failure {
    Failure::new("could not keep what the configuration was before")
        .caused_by(error)
        .hint("check the permissions of the data directory; nothing was changed.")
}

fn ask() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::mistyped("nobody can be asked whether to write this")
            .hint("give `--yes` to write it, or `--dry-run` to only look."));
    }
    say("Write this? [y/N]");
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::new("could not read your answer").caused_by(error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Says what became of it.
pub(super) fn report(
    place: &Place,
    outcome: Outcome,
    words: [&str; 2],
    out: &mut Output,
) -> Result<(), Failure> {
    if out.wants_json() {
        let told = json!({
            "client": place.client.name,
            "path": place.config.path,
            "entry": place.entry,
            "changed": outcome == Outcome::Written,
            "would_change": outcome != Outcome::Same,
        });
        return Ok(out.print_json(&told.to_string())?);
    }
    let [same, written] = words;
    match outcome {
        Outcome::Same => out.print(same)?,
        Outcome::Shown => say("Nothing was written."),
        Outcome::Written => out.print(written)?,
    }
    Ok(())
}

/// Whether others than its owner can read a file.
pub(super) fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).is_ok_and(|about| about.mode() & 0o044 != 0)
}
