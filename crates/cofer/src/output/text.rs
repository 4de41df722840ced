//! Small pieces of text for people: what a server sent made harmless for a terminal, command
//! lines as a shell would need them, times and sizes, and JSON laid out.

use std::fmt::Write as _;
use std::time::Duration;

/// Whether a character can change what a terminal shows elsewhere: control characters, and
/// those that reorder text.
fn drives_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` on one line, with each character that could drive the terminal written out.
pub(crate) fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// `text` with its lines and tabs kept, and every other character that could drive the terminal
/// written out.
pub(crate) fn block(text: &str) -> String {
    escape(&text.replace("\r\n", "\n"), |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if keep(c) || !drives_terminal(c) => out.push(c),
            c => out.extend(c.escape_default()),
        }
    }
    out
}

/// A command line as a person would type it into a shell; for reading, never for running.
pub(crate) fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(quote).collect();
    line(&quoted.join(" "))
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A time span in at most two units.
pub(crate) fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (minutes, hours, days) {
        (0, ..) => format!("{seconds} s"),
        (_, 0, _) => format!("{minutes} min"),
        (_, _, 0) => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// A number of bytes in the largest unit that leaves something before the point.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// `1 tool`, `2 tools`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The name among `names` that `typed` was probably meant to be.
pub(crate) fn closest<'a>(typed: &str, names: &[&'a str]) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    names
        .iter()
        .map(|name| (distance(&typed, &name.to_lowercase()), *name))
        .filter(|(far, name)| *far <= (typed.chars().count().max(name.chars().count()) / 3).max(1))
        .min()
        .map(|(_, name)| name)
}

/// How many edits lead from one text to the other: a character more, less or changed, or two
/// neighbours swapped.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut table = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            table[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let changed = table[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                    changed.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
                }
            };
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                table[i][j] = table[i][j].min(table[i - 2][j - 2] + 1);
            }
        }
    }
    table[from.len()][to.len()]
}

/// JSON laid out over lines. Works on the text, so that numbers and the order of keys stay as
/// they came; what could drive a terminal becomes a JSON escape.
pub(crate) fn pretty_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut rest = json.chars().peekable();
    while let Some(c) = rest.next() {
        if in_string {
            push_json(&mut out, c);
            (in_string, escaped) = (c != '"' || escaped, c == '\\' && !escaped);
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                if let Some(close) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => push_json(&mut out, c),
        }
    }
    out
}

fn push_json(out: &mut String, c: char) {
    if !drives_terminal(c) {
        out.push(c);
        return;
    }
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        // Writing to a String cannot fail.
        write!(out, "\\u{unit:04x}").unwrap_or_default();
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_sends_cannot_drive_the_terminal() {
        assert_eq!(line("a\u{1b}[2Jb\r\nc"), r"a\u{1b}[2Jb\r\nc");
        assert_eq!(line("x\u{9b}31m\u{202e}y"), r"x\u{9b}31m\u{202e}y");
        assert_eq!(line("日本語 é 🦀"), "日本語 é 🦀");
        assert_eq!(block("one\r\n\ttwo\u{7}\rthree"), "one\n\ttwo\\u{7}\\rthree");
    }

    #[test]
    fn a_command_line_is_quoted_where_a_shell_would_need_it() {
        assert_eq!(
            command_line(["npx", "-y", "@scope/server@1.2", "/tmp/a b", "it's", "", "$HOME;ls"]),
            r"npx -y @scope/server@1.2 '/tmp/a b' 'it'\''s' '' '$HOME;ls'"
        );
    }

    #[test]
    fn ages_have_at_most_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (3599, "59 min"),
            (3600, "1 h"),
            (3660, "1 h 1 min"),
            (86_400, "1 d"),
            (97_200, "1 d 3 h"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn sizes_are_in_powers_of_1024() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (64 << 20, "64.0 MiB"),
            (3 << 29, "1.5 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!((count(1, "tool"), count(0, "tool")), ("1 tool".into(), "0 tools".into()));
    }

    #[test]
    fn a_mistyped_name_finds_its_neighbour() {
        let names = ["github", "filesystem", "time"];
        assert_eq!(closest("gihub", &names), Some("github"));
        assert_eq!(closest("FILESYSTEM", &names), Some("filesystem"));
        assert_eq!(closest("tiem", &names), Some("time"));
        assert_eq!(closest("tim", &names), Some("time"));
        assert_eq!(closest("postgres", &names), None);
        assert_eq!(closest("x", &[]), None);
    }

    #[test]
    fn json_is_laid_out_without_changing_its_values() {
        let json = r#"{"a":[1.50,-0,1e400,12345678901234567890],"b":{ },"c":"{\"x\":[,]}\\","d":[[],null]}"#;
        insta::assert_snapshot!(pretty_json(json), @r#"
        {
          "a": [
            1.50,
            -0,
            1e400,
            12345678901234567890
          ],
          "b": {},
          "c": "{\"x\":[,]}\\",
          "d": [
            [],
            null
          ]
        }
        "#);
    }

    #[test]
    fn control_characters_in_json_become_json_escapes() {
        let shown = pretty_json("{\"a\":\"\u{9b}31m\u{202e}\"}");
        assert_eq!(shown, "{\n  \"a\": \"\\u009b31m\\u202e\"\n}");
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok());
    }
}
