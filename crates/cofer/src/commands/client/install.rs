//! `cofer client install`: writes Cofer's entry into a client's configuration.

use std::path::{Path, PathBuf};

use clap::Args;
use reqwest::Url;

use super::change::{Change, Outcome, is_open_to_others, report};
use super::{Place, Whose, not_edited, remove};
use crate::cli::Global;
use crate::config::Target;
use crate::failure::Failure;
use crate::mcp_clients::undo::Memory;
use crate::mcp_clients::{Way, edit};
use crate::output::{Output, warn};

/// Put Cofer into an MCP client's configuration
///
/// Shows the change as a diff, asks, and writes it; everything else in the file stays as it is,
/// byte for byte. What was there before is kept, and `--undo` brings it back.
///
///   cofer client install claude-code
///   cofer client install vscode --project
///   cofer client install cursor --server github --yes
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    whose: Whose,
    /// Write the daemon's URL and token instead of a command that finds both
    #[arg(long, conflicts_with_all = ["project", "start"])]
    http: bool,
    /// Let the client start the daemon where none runs
    #[arg(long)]
    start: bool,
    /// Bring back what was there before, byte for byte
    #[arg(long)]
    undo: bool,
}

pub(super) fn run(
    args: InstallArgs,
    global: &Global,
    data_dir: &Path,
    out: &mut Output,
) -> Result<(), Failure> {
    if args.undo {
        return remove::undo(&args.whose, data_dir, out);
    }
    let place = args.whose.place()?;
    let way = args.way(global, data_dir)?;
    let entry = place.client.entry(&way).ok_or_else(|| {
        Failure::mistyped(format!("{} takes no URL in its configuration", place.client.title))
            .hint("leave `--http` out: the command works everywhere.")
    })?;
    let after = edit::set(place.client, place.config.text(), &place.entry, &entry)
        .map_err(|error| not_edited(&place.config.path, &error))?;
    let secret = match &way {
        Way::Http { authorization, .. } => authorization.strip_prefix("Bearer "),
        Way::Command { .. } => None,
    };
    let change = Change { place: &place, after: Some(after), secret };
    let outcome = change.agreed(&args.whose, out)?;
    if outcome == Outcome::Written {
        change.install(&Memory::new(data_dir))?;
        if secret.is_some() && is_open_to_others(&place.config.path) {
            warn(
                "others on this machine can read the token in that file; `chmod 600` keeps it yours.",
            );
        }
    }
    tell(&place, outcome, out)
}

fn tell(place: &Place, outcome: Outcome, out: &mut Output) -> Result<(), Failure> {
    let title = place.client.title;
    let same = format!("{title} has this entry already: nothing to do.");
    let written = format!(
        "{title} has Cofer as `{}` now: start it again to see it. `cofer client remove {}` takes it out.",
        place.entry, place.client.name
    );
    report(place, outcome, [&same, &written], out)
}

impl InstallArgs {
    fn way(&self, global: &Global, data_dir: &Path) -> Result<Way, Failure> {
        if self.http {
            return self.http_way(&Target::find(data_dir, global.url.as_deref())?);
        }
        let mut args = vec!["connect".to_owned()];
        args.extend(self.whose.server.clone());
        if self.start {
            args.push("--start".to_owned());
        }
        // Where it was named, the client has to be told too: it has not our environment.
        if global.data_dir.is_some() {
            args.extend(["--data-dir".to_owned(), text(data_dir)?]);
        }
        if let Some(url) = &global.url {
            args.extend(["--url".to_owned(), url.clone()]);
        }
        // A project is shared with others, who have it elsewhere.
        let program = if self.whose.project { "cofer".to_owned() } else { text(&program()?)? };
        Ok(Way::Command { program, args })
    }

    fn http_way(&self, target: &Target) -> Result<Way, Failure> {
        let token = target.token.as_ref().ok_or_else(|| {
            Failure::new("the daemon's token is not there yet")
                .caused_by(format!("there is no file `{}`", target.token_file.display()))
                .hint("start the daemon once with `cofer serve`.")
        })?;
        let mut url = Url::parse(&target.url).map_err(|error| {
            Failure::new(format!("`{}` is no URL", target.url)).caused_by(error)
        })?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("mcp").extend(&self.whose.server);
        }
        Ok(Way::Http { url: url.to_string(), authorization: format!("Bearer {token}") })
    }
}

/// This program, by the path that stays the same when it is upgraded, where there is one.
fn program() -> Result<PathBuf, Failure> {
    let us = std::env::current_exe()
        .map_err(|error| Failure::new("could not tell where `cofer` is").caused_by(error))?;
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&paths)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("cofer"))
        .find(|candidate| candidate.canonicalize().is_ok_and(|found| found == us));
    Ok(on_path.unwrap_or(us))
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::mistyped(format!("`{}` is not UTF-8", path.display())))
}
