//! Names that every provider takes: the joined names of the gateway, of which some providers
//! want the first character to be a letter or `_`.

use cofer_model::joined_name;

/// The tool's joined name; with a `_` before the server's prefix if that begins with another
/// character.
pub fn safe_name(prefix: &str, tool: &str) -> String {
    let name = joined_name(prefix, tool);
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return name;
    }
    joined_name(&format!("_{prefix}"), tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_name_is_the_one_of_the_gateway() {
        assert_eq!(safe_name("fs", "read_file"), "fs__read_file");
        assert_eq!(safe_name("copilot", "copilot.chat"), joined_name("copilot", "copilot.chat"));
        assert_eq!(safe_name("9lives", "x"), "_9lives__x");
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_all_providers_take(server in ".{1,80}", tool in ".{0,200}") {
            let name = safe_name(&server, &tool);
            prop_assert!(name.len() <= 64);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        }
    }
}
