//! The variables of a server as a person gives them: `--env KEY=VALUE`, `--env KEY` from the
//! caller's own environment so that a secret is in no command line, and `--env-file`.

use std::collections::BTreeMap;
use std::path::Path;

use cofer_model::looks_secret_key;

use super::input::read_text;
use crate::failure::Failure;
use crate::output::warn;

/// The largest file of variables that is read.
const MAX_FILE: u64 = 1 << 20;

/// What the flags say; a flag wins over a file, a later one over an earlier one.
pub(super) fn read(
    flags: &[String],
    files: &[impl AsRef<Path>],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = BTreeMap::new();
    for file in files {
        variables
            .extend(parse_file(&read_text(file.as_ref(), "the variables in", MAX_FILE)?, &caller)?);
    }
    for flag in flags {
        if let Some((key, _)) = flag.split_once('=').filter(|(key, _)| looks_secret_key(key)) {
            warn(&format!(
                "the value of {key} stands in the process list; `--env {key}` takes it from your environment."
            ));
        }
        let (key, value) = parse_pair(flag, &caller)?;
        variables.insert(key, value);
    }
    Ok(variables)
}

fn caller(key: &str) -> Option<String> {
    std::env::var(key).ok()
}

/// One variable a line; blank lines and `#` lines are skipped, `export` and quotes around a
/// value are taken off. Nothing is expanded.
fn parse_file(
    text: &str,
    caller: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, Failure> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (key, value) = parse_pair(line.strip_prefix("export ").unwrap_or(line), caller)?;
            Ok((key.trim().to_owned(), unquote(value.trim()).to_owned()))
        })
        .collect()
}

fn parse_pair(
    pair: &str,
    caller: &dyn Fn(&str) -> Option<String>,
) -> Result<(String, String), Failure> {
    match pair.split_once('=') {
        Some(("", _)) => {
            Err(Failure::mistyped("a variable has no name").hint("write it as KEY=VALUE."))
        }
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => match caller(pair) {
            Some(value) => Ok((pair.to_owned(), value)),
            None => Err(Failure::mistyped(format!("your environment has no variable `{pair}`"))
                .hint("set and export it first, or write it as KEY=VALUE.")),
        },
    }
}

fn unquote(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inside = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inside) = inside {
            return inside;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn a_value_may_hold_anything_a_key_may_not_be_empty() {
        let pair = |text| parse_pair(text, &nobody);
        assert_eq!(pair("URL=a=b c").unwrap(), ("URL".to_owned(), "a=b c".to_owned()));
        assert_eq!(pair("EMPTY=").unwrap(), ("EMPTY".to_owned(), String::new()));
        assert!(pair("=x").is_err());
    }

    #[test]
    fn a_name_alone_takes_the_callers_value() {
        let caller = |key: &str| (key == "TOKEN").then(|| "from-caller".to_owned());
        assert_eq!(parse_pair("TOKEN", &caller).unwrap().1, "from-caller");
        let failure = parse_pair("OTHER", &caller).unwrap_err();
        assert!(failure.render().contains("your environment has no variable `OTHER`"));
    }

    #[test]
    fn a_file_of_variables_is_read_without_a_shell() {
        let text = "\n# comment\nA=1\nexport B='two words'\n  C = \"$HOME\"\r\nD=it's\n";
        let pairs = parse_file(text, &nobody).unwrap();
        let pairs: Vec<(&str, &str)> =
            pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "two words"), ("C", "$HOME"), ("D", "it's")]);
    }

    #[test]
    fn a_flag_wins_over_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "A=file\nB=file\n").unwrap();
        let variables = read(&["A=flag".to_owned()], &[file.path()]).unwrap();
        assert_eq!((variables["A"].as_str(), variables["B"].as_str()), ("flag", "file"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let failure = read(&[], &["/nowhere/env"]).unwrap_err();
        assert!(failure.render().contains("`/nowhere/env`"));
    }
}
