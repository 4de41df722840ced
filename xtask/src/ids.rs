//! Reads requirement ids as people write them: `HST-2.3`, `MGR-41..51, 55, 56`, `PRX-1.1..1.4`.
//! Pure: text in, ids out.

use std::collections::BTreeSet;

const FAMILIES: [&str; 6] = ["ENV-", "COP-", "MGR-", "PRX-", "HST-", "GTW-"];

/// The ids of the specification's tables: the first cell of every row that starts with one.
pub(crate) fn in_tables(markdown: &str) -> BTreeSet<String> {
    markdown
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split('|').next())
        .flat_map(in_list)
        .collect()
}

/// The ids of one comma-separated list. An item without a family takes that of the item before it;
/// reading ends at the first word that is neither.
pub(crate) fn in_list(list: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut family = None;
    for item in list.split(',').map(str::trim) {
        let Some(word) = item.split_whitespace().next() else { break };
        let own = FAMILIES.into_iter().find(|family| word.starts_with(family));
        let Some(prefix) = own.or(family) else { break };
        let Some(found) = expand(prefix, word.strip_prefix(prefix).unwrap_or(word)) else { break };
        ids.extend(found);
        family = Some(prefix);
    }
    ids
}

/// `1.1..1.4` becomes four ids, `7` one; nothing where it is not an id.
fn expand(family: &str, numbers: &str) -> Option<Vec<String>> {
    let (first, last) = numbers.split_once("..").unwrap_or((numbers, numbers));
    let (stem, from) = split_number(first)?;
    let (last_stem, to) = split_number(last)?;
    if stem != last_stem {
        return None;
    }
    let width = first.len() - stem.len();
    Some((from..=to).map(|number| format!("{family}{stem}{number:0width$}")).collect())
}

/// `1.4` is (`1.`, 4), `S3` is (`S`, 3), `001` is (``, 1).
fn split_number(text: &str) -> Option<(&str, u32)> {
    let digits = text.chars().rev().take_while(char::is_ascii_digit).count();
    let (stem, number) = text.split_at(text.len() - digits);
    let known = stem.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 'S' || c == 'E');
    known.then(|| number.parse().ok()).flatten().map(|number| (stem, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_ranges_and_inherited_families() {
        assert_eq!(
            in_list(" MGR-9..11, 55, 56 "),
            ["MGR-9", "MGR-10", "MGR-11", "MGR-55", "MGR-56"]
        );
        assert_eq!(in_list("PRX-1.1..1.3"), ["PRX-1.1", "PRX-1.2", "PRX-1.3"]);
        assert_eq!(in_list("MGR-S1..S3"), ["MGR-S1", "MGR-S2", "MGR-S3"]);
        assert_eq!(in_list("COP-001, COP-E2"), ["COP-001", "COP-E2"]);
        assert_eq!(in_list("HST-2.3, GTW-1"), ["HST-2.3", "GTW-1"]);
    }

    #[test]
    fn what_follows_an_id_in_prose_is_not_read_as_one() {
        assert_eq!(in_list("HST-2.3, and the rest of 4 words"), ["HST-2.3"]);
        assert_eq!(in_list("HST-2.3 (the hint), 7"), ["HST-2.3", "HST-7"]);
        assert!(in_list("nothing of ours").is_empty());
        assert!(in_list("HST-x").is_empty());
    }

    #[test]
    fn only_the_first_cell_of_a_table_row_counts() {
        let page = "HST-9.9 in prose\n| id | requirement |\n|---|---|\n| HST-1.1 | as HST-1.2 |\n";
        assert_eq!(in_tables(page).into_iter().collect::<Vec<_>>(), ["HST-1.1"]);
    }
}
