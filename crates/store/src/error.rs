//! Why the store did not do what it was asked, with what to do about it. No text here ever
//! holds a database URL, since a URL may hold a password: a `place` is made without it.

use std::time::Duration;

use cofer_model::ServerId;

/// A row that cannot be read as a server: somebody edited it by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored server `{name}` ({id}) cannot be read: {problem}")]
pub struct BadRow {
    /// The row's id, as stored.
    pub id: String,
    /// The row's name, as stored.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another server has this name.
    #[error("a server named `{name}` is already registered")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No server has this id.
    #[error("no server {id} is registered")]
    NotFound {
        /// The id.
        id: ServerId,
    },
    /// The one row that was asked for cannot be read.
    #[error(transparent)]
    BadRow(#[from] BadRow),
    /// The database URL is none that can be used.
    #[error("the database URL cannot be used: {reason}")]
    BadUrl {
        /// What is wrong with it, without any part that may be a password.
        reason: String,
    },
    /// Another daemon has this database.
    #[error("{place} is in use by another Cofer daemon")]
    InUse {
        /// Which database.
        place: String,
    },
    /// The previous owner's lease has not expired: it may still run its servers.
    #[error("{place} is leased by daemon {owner} for another {} s", remaining.as_secs() + 1)]
    LeaseHeld {
        /// Which database.
        place: String,
        /// The id of the previous owner.
        owner: String,
        /// How long the lease lasts.
        remaining: Duration,
    },
    /// This daemon lost the ownership of the database, and has not regained it.
    #[error("this daemon does not own {place}: {reason}")]
    NotOwner {
        /// Which database.
        place: String,
        /// How the ownership was lost.
        reason: String,
    },
    /// The tables were made by a later version.
    #[error(
        "{place} was written by a newer Cofer: its schema is {found}, this version knows {known}"
    )]
    NewerSchema {
        /// Which database.
        place: String,
        /// The schema's version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The database file cannot be made or opened.
    #[error("could not open the database file {place}")]
    File {
        /// Which file.
        place: String,
        /// Why.
        source: std::io::Error,
    },
    /// The database file has nothing in it, and had before.
    #[error("the database file {place} is missing or empty, and servers were stored in it before")]
    Emptied {
        /// Which file.
        place: String,
    },
    /// The database cannot be reached, or does not let us in.
    #[error("could not {attempt}: {place} is not available")]
    Unavailable {
        /// What was to be done.
        attempt: &'static str,
        /// Which database.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
    /// No room for the change.
    #[error("could not {attempt}: the disk with {place} is full")]
    DiskFull {
        /// What was to be done.
        attempt: &'static str,
        /// Which database.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
    /// The database takes no changes.
    #[error("could not {attempt}: {place} is read-only")]
    ReadOnly {
        /// What was to be done.
        attempt: &'static str,
        /// Which database.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
    /// The file is damaged, or is none of SQLite's.
    #[error("could not {attempt}: {place} is damaged or not a database")]
    Corrupt {
        /// What was to be done.
        attempt: &'static str,
        /// Which database.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
    /// Somebody else holds a lock for too long.
    #[error("could not {attempt}: {place} is locked by another program")]
    Busy {
        /// What was to be done.
        attempt: &'static str,
        /// Which database.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
    /// The database refused for a reason of its own.
    #[error("could not {attempt} in {place}")]
    Query {
        /// What was to be done.
        attempt: &'static str,
        /// Which database.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
    /// A value cannot be written as JSON.
    #[error("could not write the configuration as JSON")]
    Encode(#[from] serde_json::Error),
    /// `close` was called.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NameTaken { .. } => "choose another name, or change the server that has it",
            Self::BadUrl { .. } => {
                "write postgres://user:password@host:port/database, with special characters of the \
                 password percent-encoded; or sqlite:///path/to/kb.db; or leave it out for the \
                 embedded database"
            }
            Self::InUse { .. } => {
                "stop the other daemon, or give this one a database of its own; if the other's \
                 machine is gone, PostgreSQL frees the database within a minute or two"
            }
            Self::LeaseHeld { .. } => {
                "wait until the lease has expired, then start the daemon again"
            }
            Self::NotOwner { .. } => {
                "its servers are stopped; they start again once the database can be reached and no \
                 other daemon owns it"
            }
            Self::NewerSchema { .. } => {
                "run the newer Cofer, or give this one another database; nothing was changed"
            }
            Self::File { .. } => {
                "check that the directory exists and that the daemon's user may write in it"
            }
            Self::Emptied { .. } => {
                "restore it from a backup; to begin without any servers, delete the file of the same \
                 name that ends in `.initialized`"
            }
            Self::Unavailable { source, .. } => unavailable_hint(source),
            Self::DiskFull { .. } => "free some space; what was stored before is safe",
            Self::ReadOnly { .. } => {
                "check the permissions of the database and of its directory, and that it was not \
                 moved or deleted while the daemon runs"
            }
            Self::Corrupt { .. } => {
                "restore the file from a backup, or move it away to begin with an empty one"
            }
            Self::Busy { .. } => "end the program that keeps the database locked, then try again",
            Self::BadRow(_) => "correct the row in kb.agent_workspaces, or delete the server",
            Self::NotFound { .. } | Self::Query { .. } | Self::Encode(_) | Self::Closed => {
                return None;
            }
        })
    }
}

fn unavailable_hint(source: &sqlx::Error) -> &'static str {
    let code = source.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        Some("28P01" | "28000") => "check the user and the password in the database URL",
        Some("3D000") => "create the database first, for example with `createdb`",
        Some("53300") => "PostgreSQL has no connection left: raise max_connections",
        _ => {
            "check that the database is running and can be reached from here; the daemon tries \
              again at the next request"
        }
    }
}
