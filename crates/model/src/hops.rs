//! Names by which Cofer daemons recognise each other, so that a cycle is found: a daemon that hosts,
//! perhaps over others, itself.
//!
//! A client of a daemon's gateway that works for another daemon sends the id of that daemon
//! ([`HOPS_HEADER`], like `CDN-Loop` of RFC 8586). The gateway answers with all daemons behind its endpoint
//! ([`DAEMONS_HEADER`]): itself, and those behind the servers that it offers there. Connections
//! between daemons are shared by many clients, so that no request could carry its whole path; the set
//! in each response is the path seen from the other end, and grows as fast as the lists do.

use std::collections::BTreeSet;
use std::fmt;

use uuid::Uuid;

/// Request header: the daemon on whose behalf the request is sent.
pub const HOPS_HEADER: &str = "cofer-hops";

/// Response header: the daemons that are reached through this endpoint.
pub const DAEMONS_HEADER: &str = "cofer-daemons";

/// Environment variable of a server: the daemon that hosts it, sent as [`HOPS_HEADER`] by
/// `cofer connect` and `cofer proxy`.
pub const HOPS_VARIABLE: &str = "COFER_HOPS";

/// Notification from the HTTP client to the daemon that hosts it: [`DAEMONS_HEADER`] has changed.
pub const DAEMONS_NOTIFICATION: &str = "notifications/cofer/daemons";

/// More daemons than this are not recorded: the header comes from outside.
const MAX_DAEMONS: usize = 64;

/// A set of daemons, each known by the id of its current run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DaemonIds(BTreeSet<Uuid>);

impl DaemonIds {
    /// Reads a comma-separated list; entries that are no id are ignored.
    pub fn parse(text: &str) -> Self {
        let ids = text.split(',').filter_map(|id| Uuid::try_parse(id.trim()).ok());
        Self(ids.take(MAX_DAEMONS).collect())
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: Uuid) -> bool {
        self.0.contains(&id)
    }

    /// Adds one daemon.
    pub fn insert(&mut self, id: Uuid) {
        self.0.insert(id);
    }

    /// Adds all daemons of `other`, up to the bound.
    pub fn extend(&mut self, other: &Self) {
        for id in &other.0 {
            if self.0.len() < MAX_DAEMONS {
                self.0.insert(*id);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for DaemonIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, id) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{id}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_as_it_is_read_and_bounded() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let read = DaemonIds::parse(&format!("{b},{a} , nonsense,,{a}"));
        assert_eq!(read.to_string(), format!("{a}, {b}"));
        assert!(read.contains(a) && !read.contains(Uuid::from_u128(3)));
        let many: Vec<String> = (0..1000).map(|n| Uuid::from_u128(n).to_string()).collect();
        let mut many = DaemonIds::parse(&many.join(","));
        many.extend(&DaemonIds::parse(&Uuid::from_u128(5000).to_string()));
        assert_eq!(many.len(), MAX_DAEMONS);
        assert!(DaemonIds::parse("").is_empty());
    }
}
