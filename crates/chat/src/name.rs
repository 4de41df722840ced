//! Names that every provider takes: at most 64 characters of `[A-Za-z0-9_-]`, the first a
//! letter or `_`. A pure function of the server's and the tool's name; two different tools have
//! different names, because a name that had to be changed ends in a hash of what it was.

/// The longest name that all providers take.
const MAX: usize = 64;
/// `_` and eight hexadecimal digits.
const TAIL: usize = 9;

/// `server__tool` where that is a name already; else something close to it and a hash.
pub fn safe_name(server: &str, tool: &str) -> String {
    let joined = format!("{server}__{tool}");
    let plain = joined.len() <= MAX
        && joined.bytes().all(is_plain)
        && joined.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        // Otherwise `a__b` with `c` and `a` with `b__c` would be one name.
        && !server.contains("__")
        && !server.ends_with('_')
        && !tool.is_empty();
    if plain {
        return joined;
    }
    let mut name: String =
        joined.chars().map(|c| if c.is_ascii() && is_plain(c as u8) { c } else { '_' }).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    name.truncate(MAX - TAIL);
    format!("{name}_{:08x}", hash(server, tool))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// FNV-1a over both names with a byte between them that is in neither, folded to 32 bits: the
/// name must be the same tomorrow and on another machine, which std's hasher does not promise.
fn hash(server: &str, tool: &str) -> u32 {
    let bytes = server.bytes().chain([0xff]).chain(tool.bytes());
    let long = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (long ^ (long >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_name_stays_readable() {
        assert_eq!(safe_name("fs", "read_file"), "fs__read_file");
        assert_eq!(safe_name("my-server", "a-b"), "my-server__a-b");
    }

    #[test]
    fn what_a_provider_refuses_is_replaced_and_told_apart() {
        let dotted = safe_name("copilot", "copilot.chat");
        assert!(dotted.starts_with("copilot__copilot_chat_"), "{dotted}");
        assert_ne!(dotted, safe_name("copilot", "copilot/chat"));
        assert!(safe_name("9lives", "x").starts_with('_'));
        assert!(safe_name("日本", "道具").is_ascii());
        assert_ne!(safe_name("a__b", "c"), safe_name("a", "b__c"));
        assert_ne!(safe_name("a_", "b"), safe_name("a", "_b"));
        assert_eq!(safe_name("s", &"x".repeat(200)).len(), 64);
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_all_providers_take(server in ".{1,80}", tool in ".{0,200}") {
            let name = safe_name(&server, &tool);
            prop_assert!(name.len() <= 64);
            prop_assert!(name.bytes().all(is_plain));
            prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
            prop_assert_eq!(&name, &safe_name(&server, &tool));
        }

        #[test]
        fn names_of_different_tools_differ(a in "[a-c_.]{1,5}", b in "[a-c_.]{1,5}", c in "[a-c_.]{1,5}", d in "[a-c_.]{1,5}") {
            prop_assume!((&a, &b) != (&c, &d));
            prop_assert_ne!(safe_name(&a, &b), safe_name(&c, &d));
        }
    }
}
