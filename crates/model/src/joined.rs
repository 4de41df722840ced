//! The name of a server's tool or prompt where the tools of all servers are listed together.
//!
//! A pure function of the server's prefix (its name, if the registration has no `prefix`) and the
//! tool's name: it does not depend on the other servers, and two different pairs never get the
//! same one (but for a collision of 38 bits of SHA-256).
//!
//! ```text
//! github__create_issue                        plain
//! Filesystem_Server__read_file--4k3v7q2m      characters were replaced or cut
//! ```

use sha2::{Digest as _, Sha256};

/// The longest joined name: model APIs accept at most 64 characters of `[A-Za-z0-9_-]`.
pub const MAX_JOINED: usize = 64;
/// The longest joined name if the tool's own name leaves room for it: clients put prefixes of
/// their own (`mcp__cofer__`) before it, and the limit of the API applies to the whole.
const PREFERRED_JOINED: usize = 48;
/// Stands between the names.
const SEPARATOR: &str = "__";
/// Stands before the hash. With the digit behind it, it does not occur in names that people give.
const MARK: &str = "--";
/// The characters of the hash: a digit, and seven of `ALPHABET`.
const HASH_CHARS: usize = 8;
const SUFFIX_CHARS: usize = MARK.len() + HASH_CHARS;
/// The characters of the server's part that are kept if it has to be cut.
const KEPT_OF_SERVER: usize = 4;
/// The longest prefix of a registration.
pub const MAX_PREFIX: usize = 24;

/// `server__tool`, followed by a hash of both if characters had to be replaced or cut, or if the
/// plain form could be that of another pair.
pub fn joined_name(server: &str, tool: &str) -> String {
    let plain_len = server.len() + SEPARATOR.len() + tool.len();
    // A shorter form exists only if the hash and the start of the server's name fit as well.
    let can_be_preferred =
        KEPT_OF_SERVER + SEPARATOR.len() + tool.chars().count() + SUFFIX_CHARS <= PREFERRED_JOINED;
    let limit = if can_be_preferred { PREFERRED_JOINED } else { MAX_JOINED };
    if is_plain_server(server) && is_plain_tool(tool) && plain_len <= limit {
        return format!("{server}{SEPARATOR}{tool}");
    }
    let room = limit - SEPARATOR.len() - SUFFIX_CHARS;
    let (server_safe, tool_safe) = (safe(server), safe(tool));
    let server_room = room.saturating_sub(tool_safe.len()).max(KEPT_OF_SERVER);
    let server_safe = &server_safe[..server_safe.len().min(server_room)];
    let tool_safe = &tool_safe[..tool_safe.len().min(room - server_safe.len())];
    format!("{server_safe}{SEPARATOR}{tool_safe}{MARK}{}", hash(server, tool))
}

/// Whether `name` can be the joined name of a tool of this server.
pub fn may_be_joined_of(server: &str, name: &str) -> bool {
    if looks_hashed(name) {
        let server = safe(server);
        return name.starts_with(&server[..server.len().min(KEPT_OF_SERVER)]);
    }
    name.strip_prefix(server).is_some_and(|rest| rest.starts_with(SEPARATOR))
}

/// Why a text cannot be the `prefix` of a registration, if it cannot.
pub(crate) fn wrong_prefix(prefix: &str) -> Option<String> {
    let starts_well = prefix.starts_with(|first: char| first.is_ascii_alphanumeric());
    if prefix.len() > MAX_PREFIX || !starts_well || !is_plain_server(prefix) {
        return Some(format!(
            "invalid prefix {prefix:?}: expected 1 to {MAX_PREFIX} characters of A-Z, a-z, 0-9, `_` and `-`, a letter or digit first, no `__`, no `_` at the end"
        ));
    }
    None
}

/// Whether the first separator in a joined name is the one behind this server's name.
fn is_plain_server(name: &str) -> bool {
    is_safe(name) && !name.contains(SEPARATOR) && !name.ends_with('_')
}

/// A tool whose name has the form of a hashed one is hashed too: plain, it could be equal to the
/// joined name of another tool.
fn is_plain_tool(name: &str) -> bool {
    is_safe(name) && !looks_hashed(name)
}

/// Whether a name ends like a hashed one.
fn looks_hashed(name: &str) -> bool {
    let Some((head, tail)) = name.as_bytes().split_last_chunk::<HASH_CHARS>() else {
        return false;
    };
    head.ends_with(MARK.as_bytes())
        && tail[0].is_ascii_digit()
        && tail[1..].iter().all(|byte| ALPHABET.contains(byte))
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

/// 38 bits of SHA-256 of both names, each with its length before it.
fn hash(server: &str, tool: &str) -> String {
    let mut digest = Sha256::new();
    for name in [server, tool] {
        digest.update((name.len() as u64).to_be_bytes());
        digest.update(name.as_bytes());
    }
    let digest = digest.finalize();
    let bits = digest.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let digit = char::from(b"0123456789"[(bits % 10) as usize]);
    let rest =
        (1..HASH_CHARS).map(|at| char::from(ALPHABET[(bits >> (64 - 5 * at) & 31) as usize]));
    std::iter::once(digit).chain(rest).collect()
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
        // Last words of eight and ten letters, and words with a digit, are no hashes.
        for tool in ["create_repository", "list-abcdefgh", "get_x_k3v7q2mzpa", "a-1abcdefg"] {
            assert_eq!(joined_name("github", tool), format!("github__{tool}"));
        }
        let long = "t".repeat(64 - 4);
        assert_eq!(joined_name("fs", &long), format!("fs__{long}"));
    }

    #[test]
    fn names_that_do_not_fit_are_cut_and_hashed() {
        // covers: GTW-1
        let name = joined_name("Filesystem Server", "read file");
        assert!(name.starts_with("Filesystem_Server__read_file--"), "{name}");
        let long = joined_name(&"s".repeat(64), &"t".repeat(200));
        assert_eq!(long.len(), MAX_JOINED);
        assert!(long.starts_with("ssss__t"), "{long}");
        assert!(joined_name("ファイル", "読む").len() <= 64);
        assert!(joined_name("", "").len() <= 64);
    }

    #[test]
    fn the_servers_part_is_cut_so_that_the_name_has_at_most_48_characters() {
        let tool = "get_the_current_weather";
        let name = joined_name("a-server-with-a-rather-long-name", tool);
        assert_eq!(name.len(), PREFERRED_JOINED);
        assert!(name.starts_with(&format!("a-server-with__{tool}--")), "{name}");
        // 32 characters leave room for four of the server's, the separator and the hash; 33 do not.
        let (fits, does_not) = ("t".repeat(32), "t".repeat(33));
        assert_eq!(joined_name("a-server-of-24-characters", &fits).len(), PREFERRED_JOINED);
        let plain = format!("a-server-of-24-characters__{does_not}");
        assert_eq!(joined_name("a-server-of-24-characters", &does_not), plain);
    }

    #[test]
    fn a_joined_name_leads_to_its_server() {
        let long = "a-server-with-a-rather-long-name";
        for (server, tool) in [("gh", "x"), ("a b", "c"), (long, "x"), (long, &"t".repeat(70))] {
            let name = joined_name(server, tool);
            assert!(may_be_joined_of(server, &name), "{server} {name}");
            assert!(!may_be_joined_of("other", &name), "{name}");
        }
        assert!(!may_be_joined_of("g", "gh__x"));
    }

    #[test]
    fn prefixes_are_short_and_plain() {
        for prefix in ["gh", "a", "git-hub_2", "9", &"x".repeat(MAX_PREFIX)] {
            assert_eq!(wrong_prefix(prefix), None, "{prefix}");
        }
        for prefix in ["", "a b", "é", "_a", "-a", "a_", "a__b", "a.b", &"x".repeat(25)] {
            assert!(wrong_prefix(prefix).is_some(), "{prefix}");
        }
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
            if tool.chars().count() <= 32 {
                prop_assert!(name.len() <= PREFERRED_JOINED, "{}", name);
            }
            prop_assert!(may_be_joined_of(&server, &name));
        }

        #[test]
        fn different_pairs_have_different_names(
            a in "[ab_ é]{0,5}", b in "[ab_ é]{0,5}", c in "[ab_ é]{0,5}", d in "[ab_ é]{0,5}",
        ) {
            prop_assert_eq!(joined_name(&a, &b) == joined_name(&c, &d), (a, b) == (c, d));
        }
    }
}
