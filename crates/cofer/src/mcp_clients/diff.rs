//! A change as people read it: the lines that go and come, with a few around them. A change of
//! ours is in one place, so that what is the same at both ends is all that has to be found.

/// How many lines around it are shown.
const AROUND: usize = 3;

/// The change from `before` to `after`, without `secret`; empty where there is none.
pub(crate) fn diff(before: &str, after: &str, secret: Option<&str>) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let (gone, come) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    if gone.is_empty() && come.is_empty() {
        return String::new();
    }
    let from = head.saturating_sub(AROUND);
    let until = (head + gone.len() + AROUND).min(old.len());
    let start = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
    let old_count = until - from;
    let new_count = old_count - gone.len() + come.len();
    let place = format!(
        "@@ -{},{old_count} +{},{new_count} @@",
        start(from, old_count),
        start(from, new_count)
    );
    let marked = |sign: &'static str, lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("{sign}{line}")).collect()
    };
    let mut shown = vec![place];
    shown.extend(marked(" ", &old[from..head]));
    shown.extend(marked("-", gone));
    shown.extend(marked("+", come));
    shown.extend(marked(" ", &old[head + gone.len()..until]));
    let shown = shown.join("\n");
    match secret {
        Some(secret) => shown.replace(secret, cofer_model::MASK),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_change_are_shown_with_some_around_them() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let after = "1\n2\n3\n4\nfive\nmore\n6\n7\n8\n";
        assert_eq!(
            diff(before, after, None),
            "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+more\n 6\n 7\n 8"
        );
        assert_eq!(diff(before, before, None), "");
        assert_eq!(diff("", "a\n", None), "@@ -0,0 +1,1 @@\n+a");
        assert_eq!(diff("a\n", "", None), "@@ -1,1 +0,0 @@\n-a");
        assert_eq!(diff("a\na\n", "a\n", None), "@@ -1,2 +1,1 @@\n a\n-a");
    }

    #[test]
    fn a_secret_is_not_shown() {
        let shown = diff("", "Bearer t0ken\n", Some("t0ken"));
        assert_eq!(shown, "@@ -0,0 +1,1 @@\n+Bearer ********");
    }
}
