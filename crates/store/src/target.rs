//! From the database URL to where the store is. A URL may hold a password, so that nothing of
//! it is ever repeated in an error.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;

use crate::StoreError;

/// The embedded database's file in the data directory.
const FILE: &str = "kb.db";

/// What may stand behind the `?` of a PostgreSQL URL. Checked here because the driver logs
/// a parameter it does not know together with its value.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// Where the store is.
pub(crate) enum Target {
    /// A file.
    Sqlite(PathBuf),
    /// A server.
    Postgres(Box<PgConnectOptions>),
}

impl Target {
    pub(crate) fn parse(url: Option<&str>, data_dir: &Path) -> Result<Self, StoreError> {
        let Some(url) = url else {
            return Ok(Self::Sqlite(data_dir.join(FILE)));
        };
        match url.split_once("://") {
            Some(("postgres" | "postgresql", rest)) => postgres(url, rest),
            Some(("sqlite", path)) => sqlite(path),
            _ => bad("it begins with neither postgres://, postgresql:// nor sqlite://"),
        }
    }
}

fn sqlite(path: &str) -> Result<Target, StoreError> {
    if path.is_empty() || path.ends_with('/') {
        return bad("sqlite:// needs the path of a file");
    }
    if path.contains('?') {
        return bad("sqlite:// takes no parameters");
    }
    if path.starts_with(":memory:") {
        return bad("a database in memory would be lost with the daemon");
    }
    Ok(Target::Sqlite(PathBuf::from(path)))
}

fn postgres(url: &str, rest: &str) -> Result<Target, StoreError> {
    // An `@` behind the authority, or a `#` anywhere, comes from a password that was not
    // percent-encoded; read further, parts of that password would pass for a host or a database.
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if rest[authority.len()..].contains('@') || rest.contains('#') {
        return bad("it has a special character that is not percent-encoded");
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let key = parameter.split_once('=').map_or(parameter, |(key, _)| key);
        if !PARAMETERS.contains(&key) {
            return bad("it has a parameter that is not known");
        }
    }
    match PgConnectOptions::from_str(url) {
        Ok(options) => Ok(Target::Postgres(Box::new(options))),
        // The driver's own words are left out: they may quote the URL.
        Err(_) => bad("it is not well-formed"),
    }
}

fn bad<T>(reason: &str) -> Result<T, StoreError> {
    Err(StoreError::BadUrl { reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: Option<&str>) -> Result<Target, StoreError> {
        Target::parse(url, Path::new("/data"))
    }

    #[test]
    fn without_a_url_the_store_is_a_file_in_the_data_directory() {
        let Ok(Target::Sqlite(path)) = parse(None) else { panic!("not SQLite") };
        assert_eq!(path, Path::new("/data/kb.db"));
    }

    #[test]
    fn a_sqlite_url_names_a_file() {
        for (url, path) in [("sqlite:///var/x.db", "/var/x.db"), ("sqlite://x.db", "x.db")] {
            let Ok(Target::Sqlite(found)) = parse(Some(url)) else { panic!("{url}") };
            assert_eq!(found, Path::new(path));
        }
    }

    #[test]
    fn a_postgres_url_is_read_whole() {
        for url in
            ["postgres://u:p%23w@db.lan:5433/kb?sslmode=require", "postgresql://db.lan:5433/kb"]
        {
            let Ok(Target::Postgres(options)) = parse(Some(url)) else { panic!("{url}") };
            assert_eq!((options.get_host(), options.get_port()), ("db.lan", 5433));
            assert_eq!(options.get_database(), Some("kb"));
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_without_repeating_it() {
        for url in [
            "mysql://u:hunter2@h/db",
            "hunter2",
            "sqlite://",
            "sqlite:///dir/",
            "sqlite://:memory:",
            "sqlite:///x?hunter2",
            "postgres://u:hunter2@h:port/db",
            "postgres://u:12/hunter2@h/db",
            "postgres://u:12#hunter2@h/db",
            "postgres://u:12?hunter2@h/db",
            "postgres://h/db?passwd=hunter2",
            "postgres://h/db?sslmode=hunter2",
        ] {
            let Err(error) = parse(Some(url)) else { panic!("{url} was taken") };
            assert!(matches!(error, StoreError::BadUrl { .. }), "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
            assert!(error.hint().is_some());
        }
    }
}
