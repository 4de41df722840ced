//! A text that a command is given as a file, or as `-` on stdin. One that is too long is refused
//! whole: half of it would be something else than was meant.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::Failure;

/// Reads the text; `what` says what it is to be, in the words of a failure.
pub(crate) fn read_text(path: &Path, what: &str, max_bytes: u64) -> Result<String, Failure> {
    let failed = || Failure::new(format!("could not read {what} `{}`", path.display()));
    let text = if path == Path::new("-") {
        up_to(io::stdin(), max_bytes)
    } else {
        File::open(path).and_then(|file| up_to(file, max_bytes))
    };
    match text {
        Ok(text) if text.len() as u64 > max_bytes => {
            Err(failed().caused_by(format!("it has more than {max_bytes} bytes")))
        }
        Ok(text) => Ok(text),
        Err(error) => Err(failed().caused_by(error)),
    }
}

/// One byte more than is allowed tells that there is more.
fn up_to(source: impl Read, max_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    source.take(max_bytes + 1).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_text_that_is_too_long_is_refused_and_not_cut() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"A=1\nB=2\n").unwrap();
        assert_eq!(read_text(file.path(), "the file", 8).unwrap(), "A=1\nB=2\n");
        assert!(read_text(file.path(), "the file", 7).is_err());
    }
}
