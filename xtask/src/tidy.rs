//! Tidiness that no other tool checks: file headers, white space, the changelog, and addresses
//! or paths that belong to one machine.

use std::io;
use std::path::Path;

use crate::{Report, files};

/// Lists what is untidy, one line each; nothing untidy is success.
pub(crate) fn report(root: &Path) -> io::Result<Report> {
    let mut complaints = Vec::new();
    let mut checked = 0;
    for path in files::of_project(root)? {
        let Some(text) = files::text(root, &path)? else { continue };
        let name = path.to_string_lossy();
        checked += 1;
        complaints.extend(complaints_about(&name, &text));
    }
    if complaints.is_empty() {
        return Ok(Report { text: format!("tidy: {checked} files, nothing to say\n"), code: 0 });
    }
    complaints.push(format!("tidy: {} to mend", complaints.len()));
    Ok(Report { text: complaints.join("\n") + "\n", code: 1 })
}

fn complaints_about(name: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if is_crate_source(name) && !text.starts_with("//!") {
        complaints.push(format!("{name}: does not open with `//!` and its purpose"));
    }
    if name == "CHANGELOG.md" && !text.lines().any(|line| line.starts_with("## [Unreleased]")) {
        complaints.push(format!("{name}: has no `## [Unreleased]`"));
    }
    for (line, number) in text.lines().zip(1..) {
        if !is_generated(name) && line.ends_with([' ', '\t']) {
            complaints.push(format!("{name}:{number}: white space at the end of the line"));
        }
        if let Some(found) = belongs_elsewhere(line) {
            complaints.push(format!(
                "{name}:{number}: `{found}` belongs to a machine, not to the project"
            ));
        }
    }
    complaints
}

fn is_crate_source(name: &str) -> bool {
    let mut parts = name.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("src") && name.ends_with(".rs")
}

/// Written by tools, or quoted word for word: not ours to trim.
fn is_generated(name: &str) -> bool {
    name == "LICENSE"
        || name.ends_with(".lock")
        || name.ends_with("package-lock.json")
        || name.ends_with(".snap")
        || name.ends_with(".proptest-regressions")
}

/// The address of a package registry, or a path of the machine something was written on.
fn belongs_elsewhere(line: &str) -> Option<String> {
    let registries = ["registry.npmjs.org", "pypi.org/simple", "files.pythonhosted.org"];
    let mut registries = registries.into_iter().map(|name| format!("https://{name}"));
    // A lock file says where it got a package from, whatever registry that was.
    let resolved = ["\"resolved\": ", "\"http"].concat();
    let registry = registries.find(|address| line.contains(address));
    registry
        .or_else(|| line.contains(&resolved).then(|| line.trim().to_owned()))
        .or_else(|| ["work", "root"].into_iter().find_map(|folder| path_under(line, folder)))
}

/// `/FOLDER/` where a path begins, so that it may stand further down one.
fn path_under(line: &str, folder: &str) -> Option<String> {
    let path = format!("/{folder}/");
    let begins = |at: usize| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"./-_~}".contains(c))
    };
    line.match_indices(&path).any(|(at, _)| begins(at)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, complaints: usize) {
        assert_eq!(complaints_about(name, text).len(), complaints, "{name}: {text:?}");
    }

    #[test]
    fn a_source_file_opens_with_its_purpose() {
        check("crates/mcp/src/sub/line.rs", "//! Lines.\n", 0);
        check("crates/mcp/src/sub/line.rs", "use std::io;\n", 1);
        check("crates/mcp/tests/line.rs", "use std::io;\n", 0);
    }

    #[test]
    fn trailing_white_space_is_found_but_not_in_what_tools_wrote() {
        check("README.md", "one \ntwo\t\nthree\n", 2);
        check("a.snap", "one \n", 0);
    }

    #[test]
    fn the_changelog_keeps_a_place_for_what_is_new() {
        check("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n", 0);
        check("CHANGELOG.md", "# Changelog\n", 1);
    }

    #[test]
    fn addresses_and_paths_of_a_machine_are_found() {
        check("a.md", &["see https://registry.", "npmjs.org/x\n"].concat(), 1);
        check(
            "a/package-lock.json",
            &["  \"resolved\": ", "\"https://mirror.example/x\"\n"].concat(),
            1,
        );
        check("a.md", &["cd /wo", "rk/main\n"].concat(), 1);
        check("a.md", "x/work/y and ./root/z and /network/a\n", 0);
    }
}
