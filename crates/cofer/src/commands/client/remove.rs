//! `cofer client remove`: takes Cofer's entry out of a client's configuration again.

use std::path::Path;

use clap::Args;

use super::change::{Change, Outcome, digest, report};
use super::{Place, Whose, not_edited};
use crate::failure::Failure;
use crate::mcp_clients::edit;
use crate::mcp_clients::undo::{Before, Memory};
use crate::output::Output;

/// Take Cofer out of an MCP client's configuration
///
/// Where nobody changed the file since, it becomes what it was before, byte for byte; else only
/// Cofer's entry is taken out.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    whose: Whose,
}

pub(super) fn run(args: &RemoveArgs, data_dir: &Path, out: &mut Output) -> Result<(), Failure> {
    let place = args.whose.place()?;
    let memory = Memory::new(data_dir);
    if let Some(before) = unchanged_since(&place, &memory) {
        return restore(&args.whose, &place, before, &memory, out);
    }
    let config = &place.config;
    let after = edit::remove(place.client, config.text(), &place.entry)
        .map_err(|error| not_edited(&config.path, &error))?;
    let token = token_in(&place);
    let after = after.or_else(|| config.text.clone());
    let change = Change { place: &place, after, secret: token.as_deref() };
    let outcome = change.agreed(&args.whose, out)?;
    if outcome == Outcome::Written {
        config.write(change.after.as_deref().unwrap_or_default())?;
        memory.forget(&config.path, &place.entry);
    }
    tell(&place, outcome, out)
}

/// Brings back what was there before, or nothing.
pub(super) fn undo(whose: &Whose, data_dir: &Path, out: &mut Output) -> Result<(), Failure> {
    let place = whose.place()?;
    let memory = Memory::new(data_dir);
    let path = &place.config.path;
    if memory.recall(path, &place.entry).is_none() {
        return Err(Failure::new(format!("nothing is known of `{}` before", path.display()))
            .hint("`cofer client remove` takes Cofer's entry out, where it is there."));
    }
    let before = unchanged_since(&place, &memory).ok_or_else(|| {
        Failure::new(format!("`{}` was changed since Cofer wrote it", path.display())).hint(
            "`cofer client remove` takes only Cofer's entry out, and leaves the other changes.",
        )
    })?;
    restore(whose, &place, before, &memory, out)
}

/// What was before, where what is there now is what we wrote.
fn unchanged_since(place: &Place, memory: &Memory) -> Option<Before> {
    let before = memory.recall(&place.config.path, &place.entry)?;
    (digest(&place.config).as_ref() == Some(&before.after)).then_some(before)
}

fn restore(
    whose: &Whose,
    place: &Place,
    before: Before,
    memory: &Memory,
    out: &mut Output,
) -> Result<(), Failure> {
    let Before { text, made, .. } = before;
    let token = token_in(place);
    let change = Change { place, after: text, secret: token.as_deref() };
    let outcome = change.agreed(whose, out)?;
    if outcome == Outcome::Written {
        match &change.after {
            Some(text) => drop(place.config.write(text)?),
            None => place.config.delete(&made)?,
        }
        memory.forget(&place.config.path, &place.entry);
    }
    tell(place, outcome, out)
}

/// The token in the entry of ours, which is not shown.
fn token_in(place: &Place) -> Option<String> {
    let entry = edit::get(place.client, place.config.text(), &place.entry).ok().flatten()?;
    let headers = entry.get("headers").or_else(|| entry.get("http_headers"))?;
    let value = headers.get("Authorization")?.as_str()?;
    value.strip_prefix("Bearer ").map(str::to_owned)
}

fn tell(place: &Place, outcome: Outcome, out: &mut Output) -> Result<(), Failure> {
    let title = place.client.title;
    let same = format!("{title} has no entry `{}`: nothing to do.", place.entry);
    let written = format!("`{}` is out of {title}: start it again to see that.", place.entry);
    report(place, outcome, [&same, &written], out)
}
