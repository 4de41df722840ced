//! Asks an installed CLI what it can do, and remembers it for as long as the installed file is
//! the same.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::capabilities::Capabilities;
use crate::capture::Captured;
use crate::diagnose;
use crate::failure::Failure;
use crate::launcher::{Cli, Launcher, Output, RunError};
use crate::limit::Limit;

/// A help is far shorter.
const LONGEST_HELP: usize = 256 * 1024;

/// More installed CLIs than anybody has.
const MOST_REMEMBERED: usize = 16;

/// Why nothing is known.
#[derive(Debug)]
pub(crate) enum DetectError {
    /// The CLI could not be asked.
    Run(RunError),
    /// It is not what it should be.
    Failed(Failure),
}

impl<E: Into<RunError>> From<E> for DetectError {
    fn from(error: E) -> Self {
        Self::Run(error.into())
    }
}

/// What tells one installed file from another. The times that package managers set are often
/// the same for every release, but nobody sets the time of the last change of the file itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

type Books = HashMap<PathBuf, (Stamp, Arc<Capabilities>)>;

/// What is known of installed CLIs.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    // Held while a CLI is asked: requests that come meanwhile have the same question.
    books: Mutex<Books>,
}

impl Detector {
    /// What the CLI can do.
    pub(crate) async fn capabilities(
        &self,
        cli: &Cli,
        launcher: &Launcher,
        limit: &Limit,
    ) -> Result<Arc<Capabilities>, DetectError> {
        let mut books = limit.within(self.books.lock()).await?;
        // A file that is gone by now fails at its start, which says it better.
        let stamp = Stamp::of(&cli.program).ok();
        if let Some((known, capabilities)) = books.get(&cli.program)
            && Some(known) == stamp.as_ref()
        {
            return Ok(Arc::clone(capabilities));
        }
        let capabilities = Arc::new(ask(cli, launcher, limit).await?);
        tracing::info!(cli = %cli.program.display(), version = capabilities.version, "asked the CLI what it can do");
        if books.len() >= MOST_REMEMBERED {
            books.clear();
        }
        if let Some(stamp) = stamp {
            books.insert(cli.program.clone(), (stamp, Arc::clone(&capabilities)));
        }
        Ok(capabilities)
    }

    /// What is remembered of a CLI turned out to be wrong. Where somebody is asking just now,
    /// the next request will find out as well.
    pub(crate) fn correct(&self, cli: &Cli, capabilities: Capabilities) {
        if let Ok(mut books) = self.books.try_lock()
            && let Some((_, known)) = books.get_mut(&cli.program)
        {
            *known = Arc::new(capabilities);
        }
    }
}

/// One after the other: the first run of a fresh installation unpacks itself.
async fn ask(cli: &Cli, launcher: &Launcher, limit: &Limit) -> Result<Capabilities, DetectError> {
    let (version, complaint) = told(cli, "--version", launcher, limit).await?;
    if let Some(failure) = diagnose::of_version(&version, &complaint) {
        return Err(DetectError::Failed(failure));
    }
    let (help, _) = told(cli, "--help", launcher, limit).await?;
    Ok(Capabilities::read(&version, &help))
}

/// What the CLI says on stdout and stderr when asked with one flag.
async fn told(
    cli: &Cli,
    flag: &str,
    launcher: &Launcher,
    limit: &Limit,
) -> Result<(String, String), RunError> {
    let output = Output::new(LONGEST_HELP);
    launcher.run(cli, vec![flag.to_owned()], "", &output, limit).await?;
    let text = |captured: Captured| String::from_utf8_lossy(&captured.bytes).into_owned();
    Ok((text(output.stdout.so_far()), text(output.stderr.so_far())))
}
