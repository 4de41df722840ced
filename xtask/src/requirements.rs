//! Which requirements have a test: ids of the specification against `covers:` in the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::{Report, files, ids};

const MARK: &str = "covers:";

/// Says which ids no test carries. Fails where a test carries an id that does not exist.
pub(crate) fn report(root: &Path) -> io::Result<Report> {
    let wanted = wanted(root)?;
    let covered = covered(root)?;
    let mut text = String::new();
    for (family, members) in by_family(&wanted) {
        let missing: Vec<&str> =
            members.iter().copied().filter(|id| !covered.contains_key(*id)).collect();
        let tested = members.len() - missing.len();
        line(&mut text, &format!("{family}: {tested} of {} have a test", members.len()));
        if !missing.is_empty() {
            line(&mut text, &format!("  none for: {}", missing.join(" ")));
        }
    }
    let tested = wanted.iter().filter(|id| covered.contains_key(*id)).count();
    line(&mut text, &format!("all: {tested} of {} have a test", wanted.len()));
    let mut code = 0;
    for (id, places) in covered.iter().filter(|(id, _)| !wanted.contains(*id)) {
        line(&mut text, &format!("{id} is no requirement: {}", places.join(", ")));
        code = 1;
    }
    Ok(Report { text, code })
}

/// All ids, one per line: what docs/requirements.txt holds.
pub(crate) fn list(root: &Path) -> io::Result<Report> {
    let mut text = String::new();
    for (_, members) in by_family(&wanted(root)?) {
        for id in members {
            line(&mut text, id);
        }
    }
    Ok(Report { text, code: 0 })
}

/// From the specification where it lies beside the project, else from the committed list.
fn wanted(root: &Path) -> io::Result<BTreeSet<String>> {
    if let Ok(page) = fs::read_to_string(root.join("../shared/SPEC.md")) {
        return Ok(ids::in_tables(&page));
    }
    Ok(fs::read_to_string(root.join("docs/requirements.txt"))?.lines().map(str::to_owned).collect())
}

/// The ids that tests carry, and where.
fn covered(root: &Path) -> io::Result<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files::of_project(root)?.into_iter().filter(|path| may_carry(path)) {
        let Some(text) = files::text(root, &path)? else { continue };
        for (number, line) in text.lines().enumerate() {
            for id in carried(line) {
                found.entry(id).or_default().push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    Ok(found)
}

fn carried(line: &str) -> Vec<String> {
    line.split_once(MARK).map(|(_, list)| ids::in_list(list)).unwrap_or_default()
}

/// This program is left out: its own tests quote the mark.
fn may_carry(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    !path.starts_with("xtask/src") && matches!(extension, Some("rs" | "ts" | "tsx" | "py" | "sh"))
}

/// Ids by family, in the order a person counts.
fn by_family(ids: &BTreeSet<String>) -> BTreeMap<&str, Vec<&str>> {
    let mut families: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for id in ids {
        families.entry(id.split('-').next().unwrap_or(id)).or_default().push(id);
    }
    for members in families.values_mut() {
        members.sort_by_key(|id| counting_key(id));
    }
    families
}

/// Numbers before letters, numbers by value.
fn counting_key(id: &str) -> (bool, Vec<u32>, &str) {
    let number = id.split_once('-').map_or("", |(_, number)| number);
    let lettered = number.starts_with(|c: char| c.is_ascii_alphabetic());
    (lettered, number.split('.').filter_map(|part| part.parse().ok()).collect(), id)
}

fn line(text: &mut String, words: &str) {
    // Writing to a string cannot fail.
    writeln!(text, "{words}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_carries_the_ids_after_the_mark() {
        assert_eq!(carried("    // covers: HST-2.3, MGR-15"), ["HST-2.3", "MGR-15"]);
        assert!(carried("// HST-2.3 is told about here").is_empty());
    }

    #[test]
    fn ids_are_listed_as_people_count() {
        let ids = ["MGR-10", "MGR-S1", "MGR-9", "HST-1.2"].map(str::to_owned).into();
        assert_eq!(by_family(&ids)["MGR"], ["MGR-9", "MGR-10", "MGR-S1"]);
    }

    #[test]
    fn the_committed_list_has_every_family_and_no_double() {
        let list = include_str!("../../docs/requirements.txt");
        let ids: BTreeSet<&str> = list.lines().collect();
        assert_eq!(ids.len(), list.lines().count());
        let families: BTreeSet<&str> = ids.iter().filter_map(|id| id.split('-').next()).collect();
        assert_eq!(
            families.into_iter().collect::<Vec<_>>(),
            ["COP", "ENV", "GTW", "HST", "MGR", "PRX"]
        );
        assert_eq!(ids.iter().filter(|id| id.starts_with("MGR-")).count(), 77 + 3);
        assert!(!ids.contains("COP-006"));
    }
}
