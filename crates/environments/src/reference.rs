//! Which git refs may be asked for: whatever names a commit, nothing that git could read as an
//! option, a range, a path or a search.

use crate::failure::Failure;

/// The ref as it may stand in git's arguments.
pub(crate) fn checked(reference: &str) -> Result<&str, Failure> {
    let refuse = |why: &str| {
        let message = format!("invalid git ref: {reference:?} {why}");
        Err(Failure::invalid(message).recovering(
            "name a branch, a tag, a commit id or another environment; nothing was done.",
        ))
    };
    if reference.is_empty() || reference.len() > 250 {
        return refuse("is empty or longer than 250 bytes");
    }
    if reference.starts_with('-') {
        return refuse("starts with '-'");
    }
    if reference.contains("..") || reference.starts_with('^') || reference.contains(':') {
        return refuse("names more than one commit");
    }
    let fits =
        |c: char| c.is_ascii_alphanumeric() || "._~/-^@{}+#%=,!".contains(c) || !c.is_ascii();
    if !reference.chars().all(|c| fits(c) && !c.is_control()) {
        return refuse("has a character that no ref has");
    }
    Ok(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_commit_is_taken() {
        for good in
            ["HEAD", "HEAD~2", "HEAD^", "v1.0", "feature/x", "@{u}", "cofer/add-login", "größe"]
        {
            assert_eq!(checked(good).unwrap(), good);
        }
    }

    #[test]
    fn what_git_could_read_otherwise_is_refused() {
        let long = "a".repeat(251);
        for bad in [
            "",
            "-x",
            "--upload-pack=x",
            "a..b",
            "^a",
            "a b",
            "a\nb",
            "a\0",
            "HEAD:f",
            "a\u{85}b",
            "a;b",
            &long,
        ] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }
}
