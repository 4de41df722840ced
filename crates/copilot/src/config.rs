//! What the server is told at its start. None of it is checked there: each request looks
//! again, and says what is wrong in its answer.

use std::path::PathBuf;
use std::time::Duration;

/// The one limit on a request, from its arrival to its answer.
pub const LONGEST: Duration = Duration::from_secs(30);

/// What the server is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// The CLI: a name to find on `PATH`, or a path.
    pub program: String,
    /// The file of allowed models that was named; where none was, `config/models.json` below
    /// the working directory, else the built-in copy.
    pub models: Option<PathBuf>,
    /// Where the CLI runs; a private empty directory for each request where none is named.
    pub cwd: Option<PathBuf>,
    /// How long a request may take, at most [`LONGEST`].
    pub limit: Duration,
    /// List the tool as `copilot_chat`, for clients that refuse a dot.
    pub safe_names: bool,
    /// The program that has the runtime's shim in it.
    pub shim: PathBuf,
}
