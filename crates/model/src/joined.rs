//! The name that a server's tool or prompt has where all servers are offered together.
//!
//! A pure function of the two names: it stays the same when servers come and go, and two
//! different pairs never get the same one (but for a collision of 50 bits of SHA-256). Clients
//! pass such names to models, of which many take at most 64 characters of `[A-Za-z0-9_-]`.

use sha2::{Digest as _, Sha256};

/// The longest joined name.
pub const MAX_JOINED: usize = 64;
/// What stands between the names.
const SEPARATOR: &str = "__";
/// The characters of the hash behind a name that could not stay as it was.
const HASH_CHARS: usize = 10;
/// So much of a server's name is kept at least, where both are long.
const KEPT_OF_SERVER: usize = 20;

/// `server__tool`, with a hash of both behind it where characters had to be replaced or cut, or
/// where the plain form could be read in two ways.
pub fn joined_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}{SEPARATOR}{tool}");
    if is_plain_server(server) && is_plain_tool(tool) && plain.len() <= MAX_JOINED {
        return plain;
    }
    let room = MAX_JOINED - SEPARATOR.len() - 1 - HASH_CHARS;
    let (server_safe, tool_safe) = (safe(server), safe(tool));
    let server_room = room.saturating_sub(tool_safe.len()).max(KEPT_OF_SERVER);
    let server_safe = &server_safe[..server_safe.len().min(server_room)];
    let tool_safe = &tool_safe[..tool_safe.len().min(room - server_safe.len())];
    format!("{server_safe}{SEPARATOR}{tool_safe}_{}", hash(server, tool))
}

/// Whether the first separator in a joined name is the one behind this server's name.
fn is_plain_server(name: &str) -> bool {
    is_safe(name) && !name.contains(SEPARATOR) && !name.ends_with('_')
}

/// A tool that looks as if it had a hash gets one, so that it is not taken for another.
fn is_plain_tool(name: &str) -> bool {
    let looks_hashed = name.len() > HASH_CHARS && {
        let (head, tail) = name.as_bytes().split_at(name.len() - HASH_CHARS);
        head.ends_with(b"_") && tail.iter().all(|byte| ALPHABET.contains(byte))
    };
    is_safe(name) && !looks_hashed
}

fn is_safe(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_safe_byte)
}

fn is_safe_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The name with every other character replaced.
fn safe(name: &str) -> String {
    let keep = |c: char| if c.is_ascii() && is_safe_byte(c as u8) { c } else { '_' };
    name.chars().map(keep).collect()
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// 50 bits of SHA-256 of both names, each with its length before it.
fn hash(server: &str, tool: &str) -> String {
    let mut digest = Sha256::new();
    for name in [server, tool] {
        digest.update((name.len() as u64).to_be_bytes());
        digest.update(name.as_bytes());
    }
    let digest = digest.finalize();
    let bits = digest.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    (0..HASH_CHARS).map(|at| char::from(ALPHABET[(bits >> (59 - 5 * at) & 31) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_are_joined_as_they_are() {
        // covers: GTW-1
        assert_eq!(joined_name("github", "create_issue"), "github__create_issue");
        assert_eq!(joined_name("a-b_c", "_x"), "a-b_c___x");
        let longest = "t".repeat(64 - 4);
        assert_eq!(joined_name("fs", &longest).len(), 64);
        assert!(joined_name("fs", &longest).ends_with("tt"));
    }

    #[test]
    fn what_does_not_fit_is_cut_and_marked() {
        // covers: GTW-1
        let name = joined_name("Filesystem Server", "read file");
        assert!(name.starts_with("Filesystem_Server__read_file_"), "{name}");
        let long = joined_name(&"s".repeat(64), &"t".repeat(200));
        assert_eq!(long.len(), 64);
        assert!(long.starts_with(&format!("{}__t", "s".repeat(20))), "{long}");
        assert!(joined_name("ファイル", "読む").len() <= 64);
        assert!(joined_name("", "").len() <= 64);
    }

    #[test]
    fn names_that_would_be_read_in_two_ways_differ() {
        for ((a, b), (c, d)) in [
            (("a__b", "c"), ("a", "b__c")),
            (("a_", "b"), ("a", "_b")),
            (("a b", "c"), ("a_b", "c")),
            (("a", "é"), ("a", "è")),
            (("a", ""), ("a", "_")),
        ] {
            assert_ne!(joined_name(a, b), joined_name(c, d), "{a} {b} {c} {d}");
        }
        let marked = joined_name("a b", "c");
        let (server, tool) = marked.split_once("__").unwrap();
        assert_ne!(joined_name(server, tool), marked, "a tool that has the name of a marked one");
    }

    #[test]
    fn it_is_the_same_on_every_machine() {
        assert_eq!(joined_name("a b", "c"), joined_name("a b", "c"));
        assert_eq!(hash("a b", "c").len(), HASH_CHARS);
    }

    proptest! {
        #[test]
        fn every_name_is_safe_and_short(server in ".{0,64}", tool in ".{0,80}") {
            let name = joined_name(&server, &tool);
            prop_assert!(name.len() <= MAX_JOINED && name.bytes().all(is_safe_byte), "{}", name);
        }

        #[test]
        fn different_pairs_have_different_names(
            a in "[ab_ é]{0,5}", b in "[ab_ é]{0,5}", c in "[ab_ é]{0,5}", d in "[ab_ é]{0,5}",
        ) {
            prop_assert_eq!(joined_name(&a, &b) == joined_name(&c, &d), (a, b) == (c, d));
        }
    }
}
