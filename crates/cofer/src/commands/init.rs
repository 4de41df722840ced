//! `cofer init`: prepares a repository for environments, and undoes it.

use std::path::PathBuf;

use clap::Args;
use cofer_environments::Environments;

use super::block_on;
use crate::failure::Failure;
use crate::output::{Output, text};

/// Prepare a git repository for environments
///
/// Records the repository as one that agents may make environments of; others are refused. Adds a
/// remote named `cofer` that the work of environments is kept in: it lies inside the repository's own
/// .git folder and shares its objects, so that nothing is copied. Running it again changes nothing.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The repository [default: the one this directory is in]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Undo it
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(args: InitArgs) -> Result<(), Failure> {
    let directory = args.directory.unwrap_or_else(|| PathBuf::from("."));
    block_on(async {
        let words = if args.remove { undo(&directory).await? } else { prepare(&directory).await? };
        Output::new(false).print(&words)?;
        Ok(())
    })
}

async fn prepare(directory: &std::path::Path) -> Result<String, Failure> {
    let done = Environments::new(super::env::settings()?).init(directory).await?;
    let top = text::line(&done.top.to_string_lossy());
    let remote = text::line(&done.remote.to_string_lossy());
    Ok(match (done.foreign, done.already) {
        (true, _) => format!(
            "{top} has a remote `cofer` of its own, {remote}: the work of environments is pushed there."
        ),
        (false, true) => format!("{top} is prepared already."),
        (false, false) => {
            format!("{top} is ready for environments; their work is kept in the remote `cofer`.")
        }
    })
}

async fn undo(directory: &std::path::Path) -> Result<String, Failure> {
    let undone = Environments::new(super::env::settings()?).remove(directory).await?;
    let top = text::line(&undone.top.to_string_lossy());
    if undone.already {
        return Ok(format!("{top} was not prepared; there is nothing to undo."));
    }
    let mut lines = vec![format!("The remote `cofer` of {top} is gone.")];
    for (branch, commit) in &undone.branches {
        lines.push(format!(
            "{} was at {commit}: `git branch NAME {commit}` brings it back.",
            text::line(branch)
        ));
    }
    Ok(lines.join("\n"))
}
