//! The versions of the tables, and which of them a database still needs. The two databases run
//! them in one transaction each; the bookkeeping table is `kb.schema_migrations`.

use crate::StoreError;

/// One step from a version of the tables to the next. Once released, it never changes.
pub(crate) struct Migration {
    /// Counts from 1, without gaps.
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

macro_rules! migrations {
    ($database:literal: $($version:literal $name:literal,)+) => {
        &[$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../migrations/", $database, "/", $name, ".sql")),
        }),+]
    };
}

pub(crate) const SQLITE: &[Migration] = migrations!("sqlite": 1 "0001_agent_workspaces", 2 "0002_chats", 3 "0003_ownership", 4 "0004_server_lists",);
pub(crate) const POSTGRES: &[Migration] = migrations!("postgres": 1 "0001_agent_workspaces", 2 "0002_chats", 3 "0003_ownership", 4 "0004_server_lists",);

/// What is to be run on a database that is at version `found`, 0 for an empty one.
pub(crate) fn pending<'a>(
    known: &'a [Migration],
    found: i64,
    place: &str,
) -> Result<&'a [Migration], StoreError> {
    let newest = known.last().map_or(0, |migration| migration.version);
    if found > newest {
        let place = place.to_owned();
        return Err(StoreError::NewerSchema { place, found, known: newest });
    }
    let done = known.partition_point(|migration| migration.version <= found);
    Ok(&known[done..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_have_the_same_versions_without_gaps() {
        let versions = |all: &[Migration]| all.iter().map(|one| one.version).collect::<Vec<_>>();
        assert_eq!(versions(SQLITE), (1..=SQLITE.len() as i64).collect::<Vec<_>>());
        assert_eq!(versions(SQLITE), versions(POSTGRES));
    }

    #[test]
    fn only_what_is_missing_is_run() {
        let known: Vec<_> =
            (1..=3).map(|version| Migration { version, name: "", sql: "" }).collect();
        for (found, expected) in [(0, vec![1, 2, 3]), (2, vec![3]), (3, vec![])] {
            let run = pending(&known, found, "kb").unwrap();
            assert_eq!(run.iter().map(|one| one.version).collect::<Vec<_>>(), expected);
        }
        assert!(matches!(
            pending(&known, 4, "kb"),
            Err(StoreError::NewerSchema { found: 4, known: 3, .. })
        ));
    }
}
