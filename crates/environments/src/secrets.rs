//! Values of secrets: read when a command is started, after `approvals` has checked the reference. They
//! reach the command alone, and are masked in its output.
//!
//! Masking is a courtesy for logs and transcripts: a command can always print a value in a form that
//! is not recognised. The boundary is the approval.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::failure::{Failure, Kind};

/// Longer than any secret.
const LONGEST: u64 = 64 * 1024;

/// The shortest text that is masked: shorter ones occur by chance.
const SHORTEST_MASKED: usize = 4;

/// The same for encoded values.
const SHORTEST_ENCODED: usize = 6;

/// Where a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A variable of this process.
    Variable(String),
    /// A file, canonical.
    File(PathBuf),
}

/// Where `reference` leads now; a relative file is one below `top`. The error says why nowhere.
pub(crate) fn place(reference: &str, top: &Path) -> Result<Place, String> {
    if let Some(variable) = reference.strip_prefix("env://") {
        return Ok(Place::Variable(variable.to_owned()));
    }
    let path = reference.strip_prefix("file://");
    let path = path.ok_or_else(|| "only env:// and file:// are supported".to_owned())?;
    let file = fs::canonicalize(top.join(path)).map_err(|error| error.to_string())?;
    Ok(Place::File(file))
}

/// The value of an approved reference.
pub(crate) fn read(name: &str, reference: &str, top: &Path) -> Result<String, Failure> {
    let value = match place(reference, top) {
        Ok(Place::Variable(variable)) => std::env::var(&variable)
            .map_err(|_| format!("the variable {variable} is not set for this server")),
        Ok(Place::File(file)) => read_file(&file),
        Err(why) => Err(why),
    };
    value.map_err(|why| not_there(name, reference, &why))
}

fn read_file(file: &Path) -> Result<String, String> {
    // The path is canonical: a link in its place was put there since.
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = opened.map_err(|error| error.to_string())?;
    if !opened.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    opened.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LONGEST {
        return Err(format!("the file is longer than {LONGEST} bytes"));
    }
    Ok(text.trim_end_matches('\n').to_owned())
}

pub(crate) fn not_there(name: &str, reference: &str, why: &str) -> Failure {
    let message = format!("the secret {name} ({reference}) is not there: {why}");
    let recovery = "ask the user to set it where the server is started, or to correct `secrets` in environment.json.";
    Failure::new(Kind::PreconditionFailed, "secrets", message, recovery)
}

/// `text` with all values masked: as they are, in Base64, in hexadecimal and percent-encoded.
pub(crate) fn without(text: String, secrets: &BTreeMap<String, String>) -> String {
    let mut masked: Vec<String> = secrets.values().flat_map(|value| forms(value)).collect();
    // The longest first: one may be part of another.
    masked.sort_by_key(|form| std::cmp::Reverse(form.len()));
    masked.dedup();
    masked.into_iter().fold(text, |text, form| text.replace(&form, cofer_model::MASK))
}

fn forms(value: &str) -> Vec<String> {
    if value.len() < SHORTEST_MASKED {
        return Vec::new();
    }
    let mut forms = vec![value.to_owned()];
    if value.len() >= SHORTEST_ENCODED {
        let hex = value.bytes().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            write!(hex, "{byte:02x}").unwrap_or_default();
            hex
        });
        forms.extend((0..3).flat_map(|offset| base64_at(value, offset)));
        forms.extend([hex.to_uppercase(), hex, percent_encoded(value)]);
    }
    forms
}

/// The characters that a value has in Base64 whatever is around it, if it begins `offset` bytes after
/// a multiple of three.
fn base64_at(value: &str, offset: usize) -> [String; 2] {
    let bytes = [&vec![0; offset], value.as_bytes()].concat();
    // A character has six bits: those that share bits with the bytes around are left out.
    let (first, end) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)]
        .map(|text| text.get(first..end).unwrap_or_default().to_owned())
}

fn percent_encoded(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn secrets_are_read_and_masked() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("key"), "s3cret\n").unwrap();
        assert_eq!(read("KEY", "file://key", top.path()).unwrap(), "s3cret");
        assert_eq!(read("P", "env://PATH", top.path()).unwrap(), std::env::var("PATH").unwrap());
        let found = BTreeMap::from([
            ("A".to_owned(), "s3cret".to_owned()),
            ("B".to_owned(), "s3cret-long".to_owned()),
        ]);
        assert_eq!(without("x s3cret-long s3cret".to_owned(), &found), "x ******** ********");
    }

    #[test]
    fn an_encoded_secret_is_masked_too() {
        let value = "pass/word?with+more~";
        let secrets = BTreeMap::from([("A".to_owned(), value.to_owned())]);
        for before in ["", "a", "ab", "abc"] {
            for after in ["", "\n", "yz"] {
                let text = format!("{before}{value}{after}");
                for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    let shown = without(format!("out: {encoded}"), &secrets);
                    let left = shown.replace(cofer_model::MASK, "").len() - "out: ".len();
                    assert!(shown.contains(cofer_model::MASK) && left <= 12, "{text:?}: {shown}");
                }
            }
        }
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        for encoded in [hex.to_uppercase(), hex, "pass%2Fword%3Fwith%2Bmore~".to_owned()] {
            assert_eq!(without(format!("<{encoded}>"), &secrets), "<********>");
        }
    }

    #[test]
    fn short_values_are_not_masked_in_every_word() {
        let secrets = BTreeMap::from([
            ("A".to_owned(), "abc".to_owned()),
            ("B".to_owned(), "wxyz".to_owned()),
        ]);
        assert_eq!(without("abc d3h5 wxyz".to_owned(), &secrets), "abc d3h5 ********");
    }

    #[test]
    fn one_that_is_not_there_is_named() {
        let none =
            ["env://COFER_NO_SUCH_VARIABLE", "file://none", "file:///", "op://vault/item", "plain"];
        for reference in none {
            let failure = read("KEY", reference, Path::new("/")).unwrap_err();
            assert!(
                failure.message.contains("KEY") && failure.kind == Kind::PreconditionFailed,
                "{failure}"
            );
        }
    }
}
