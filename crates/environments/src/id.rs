//! What an environment may be called, and what it is called when nobody said.

use crate::failure::Failure;

const LONGEST: usize = 40;

/// The id that was asked for, as far as it can be a branch, a folder and a host name.
pub(crate) fn given(id: &str) -> Result<String, Failure> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || id.len() > LONGEST || !id.chars().all(fits) {
        return Err(Failure::invalid(format!(
            "environment_id {id:?} is not 1 to {LONGEST} lower-case ASCII letters, digits and `-`"
        )));
    }
    if id.starts_with('-') || id.ends_with('-') {
        return Err(Failure::invalid(format!("environment_id {id:?} begins or ends with `-`")));
    }
    Ok(id.to_owned())
}

/// A slug of the title; where nothing ASCII is left of it, a hash.
pub(crate) fn of_title(title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if slug.len() == LONGEST {
            break;
        }
        match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    match slug.trim_end_matches('-') {
        "" => format!("env-{:08x}", fnv1a(title.as_bytes())),
        slug => slug.to_owned(),
    }
}

/// FNV-1a: the same on every machine and in every release, unlike the standard library's.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_a_slug() {
        for (title, id) in [
            ("Add login", "add-login"),
            ("  Fix #42: crash!  ", "fix-42-crash"),
            ("Über-Größe", "ber-gr-e"),
            ("日本語", "env-dea3401a"),
            ("", "env-811c9dc5"),
            ("---", "env-3b5b7bae"),
        ] {
            assert_eq!(of_title(title).len().min(LONGEST), of_title(title).len());
            if id.starts_with("env-") {
                assert!(of_title(title).starts_with("env-"), "{title}");
                assert_eq!(of_title(title).len(), 12);
            } else {
                assert_eq!(of_title(title), id);
            }
        }
        let long = of_title(&"ab ".repeat(30));
        assert!(long.len() <= LONGEST && !long.ends_with('-'), "{long}");
    }

    #[test]
    fn every_slug_may_be_given() {
        for title in ["Add login", "日本語", "a", "-x-", &"word ".repeat(20)] {
            let id = of_title(title);
            assert_eq!(given(&id).unwrap(), id);
        }
    }

    #[test]
    fn what_cannot_be_a_branch_or_a_folder_is_refused() {
        for id in ["", "-x", "x-", "A", "a/b", "a.b", "..", "a b", "ä", "a\n", &"a".repeat(41)] {
            assert!(given(id).is_err(), "{id:?}");
        }
    }
}
