//! `envFile` of a client's configuration: variables, one `KEY=VALUE` a line.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The largest file that is read.
const MAX_BYTES: u64 = 256 << 10;

/// Reads the variables of a file; a relative path is one of the workspace. The error names the
/// path and the reason, never a line of the file.
pub(super) fn read(path: &str, workspace: Option<&str>) -> Result<Vec<(String, String)>, String> {
    let path = match workspace {
        Some(folder) => Path::new(folder).join(path),
        None => PathBuf::from(path),
    };
    let failed = |why: String| format!("`envFile` {}: {why}", path.display());
    if !path.is_absolute() {
        return Err(failed("is relative, and no workspace was given".to_owned()));
    }
    let text = read_text(&path).map_err(|error| failed(error.to_string()))?;
    parse(&text).map_err(|line| failed(format!("line {line} is not KEY=VALUE")))
}

fn read_text(path: &Path) -> io::Result<String> {
    // Opening a pipe without a writer would block the daemon.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// The variables, or the number of the line that is none.
fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (key, value) = line.split_once('=').ok_or(number + 1)?;
        if key.trim().is_empty() {
            return Err(number + 1);
        }
        variables.push((key.trim().to_owned(), unquote(value.trim())));
    }
    Ok(variables)
}

/// Quotes keep spaces and `#`; only double quotes have escapes.
fn unquote(value: &str) -> String {
    if let Some(inside) = value.strip_prefix('\'').and_then(|rest| rest.split('\'').next()) {
        return inside.to_owned();
    }
    if let Some(rest) = value.strip_prefix('"') {
        return double_quoted(rest);
    }
    value.split(" #").next().unwrap_or_default().trim_end().to_owned()
}

fn double_quoted(rest: &str) -> String {
    let mut inside = String::new();
    let mut chars = rest.chars();
    while let Some(next) = chars.next() {
        match next {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => inside.push('\n'),
                Some('t') => inside.push('\t'),
                Some(other) => inside.push(other),
                None => inside.push('\\'),
            },
            other => inside.push(other),
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_editors_do() {
        let text = "# none\n\nA=1\nexport B = two words # note\nC='x # y'\nD=\"l1\\nl2 \\\"q\\\"\"\nE=\nF=a=b\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x # y"),
            ("D", "l1\nl2 \"q\""),
            ("E", ""),
            ("F", "a=b"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(parse(text), Ok(expected.to_vec()));
        assert_eq!(parse("A=1\nsecret"), Err(2));
        assert_eq!(parse("=x"), Err(1));
    }

    #[test]
    fn only_small_regular_files_are_read_and_their_text_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().to_str();
        std::fs::write(folder.path().join(".env"), "A=1").unwrap();
        assert_eq!(read(".env", workspace).unwrap(), [("A".to_owned(), "1".to_owned())]);
        assert!(read(".env", None).unwrap_err().contains("relative"));
        assert!(read(".", workspace).unwrap_err().contains("not a regular file"));
        assert!(read("none", workspace).unwrap_err().contains("No such file"));
        std::fs::write(folder.path().join("bad"), "canary").unwrap();
        let error = read("bad", workspace).unwrap_err();
        assert!(error.contains("line 1") && !error.contains("canary"), "{error}");
        let large = "A=1\n".repeat((MAX_BYTES / 4) as usize + 1);
        std::fs::write(folder.path().join("large"), large).unwrap();
        assert!(read("large", workspace).unwrap_err().contains("more than"));
    }
}
