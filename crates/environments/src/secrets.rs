//! Secrets are named in `environment.json` and looked up when a command is started; their values
//! reach the command alone, and are taken out of what it prints.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::failure::{Failure, Kind};

/// Longer than any secret.
const LONGEST: u64 = 64 * 1024;

/// Name → value of all `references`, which are looked up below `top` where they are files.
pub(crate) fn look_up(
    references: &[String],
    top: &Path,
) -> Result<BTreeMap<String, String>, Failure> {
    let pairs = references.iter().filter_map(|reference| reference.split_once('='));
    pairs.map(|(name, place)| Ok((name.to_owned(), value(name, place, top)?))).collect()
}

fn value(name: &str, place: &str, top: &Path) -> Result<String, Failure> {
    let failed = |why: String| {
        let message = format!("the secret {name} ({place}) is not there: {why}");
        let recovery = "ask the user to set it where the server is started, or to correct `secrets` in environment.json.";
        Failure::new(Kind::PreconditionFailed, "secrets", message, recovery)
    };
    if let Some(variable) = place.strip_prefix("env://") {
        let found = std::env::var(variable);
        return found
            .map_err(|_| failed(format!("the variable {variable} is not set for this server")));
    }
    if let Some(path) = place.strip_prefix("file://") {
        let path = top.join(path);
        let length = path.metadata().map_err(|error| failed(error.to_string()))?.len();
        if length > LONGEST {
            return Err(failed(format!("the file is longer than {LONGEST} bytes")));
        }
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        return Ok(text.trim_end_matches('\n').to_owned());
    }
    Err(failed("only env:// and file:// can be looked up".to_owned()))
}

/// `text` with all values taken out.
pub(crate) fn without(text: String, secrets: &BTreeMap<String, String>) -> String {
    // The longest first: one may be part of another.
    let mut values: Vec<&String> = secrets.values().filter(|value| value.len() > 3).collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values.into_iter().fold(text, |text, value| text.replace(value.as_str(), cofer_model::MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_looked_up_and_taken_out_again() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("key"), "s3cret\n").unwrap();
        let found =
            look_up(&["KEY=file://key".to_owned(), "HOME2=env://PATH".to_owned()], top.path())
                .unwrap();
        assert_eq!(found["KEY"], "s3cret");
        assert_eq!(found["HOME2"], std::env::var("PATH").unwrap());
        let found = BTreeMap::from([
            ("A".to_owned(), "s3cret".to_owned()),
            ("B".to_owned(), "s3cret-long".to_owned()),
        ]);
        assert_eq!(without("x s3cret-long s3cret".to_owned(), &found), "x ******** ********");
    }

    #[test]
    fn one_that_is_not_there_is_named() {
        for place in ["env://COFER_NO_SUCH_VARIABLE", "file://none", "op://vault/item", "plain"] {
            let failure = look_up(&[format!("KEY={place}")], Path::new("/")).unwrap_err();
            assert!(
                failure.message.contains("KEY") && failure.kind == Kind::PreconditionFailed,
                "{failure}"
            );
        }
    }
}
