//! A server's name: what a person calls it, and what stands in URLs beside its UUID.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest name, in characters.
const MAX_CHARS: usize = 64;

/// A name that was checked: 1 to 64 characters, nothing that a URL path or a terminal trips over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(Arc<str>);

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing but white space.
    #[error("Name is required")]
    Empty,
    /// More than 64 characters.
    #[error("a name has at most 64 characters")]
    TooLong,
    /// A control character, a slash or a backslash.
    #[error("a name has no control characters, `/` or `\\`")]
    BadCharacter,
    /// Only dots: a path component with a meaning of its own.
    #[error("a name is not `.` or `..`")]
    Dots,
    /// `:id` in a URL is a UUID or a name, so that a name which is a UUID would be ambiguous.
    #[error("a name is not a UUID")]
    Uuid,
}

impl ServerName {
    /// Checks `text`, with white space around it taken off.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.chars().count() > MAX_CHARS {
            return Err(NameError::TooLong);
        }
        if text.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | '\u{2028}' | '\u{2029}'))
        {
            return Err(NameError::BadCharacter);
        }
        if text == "." || text == ".." {
            return Err(NameError::Dots);
        }
        if Uuid::try_parse(text).is_ok() {
            return Err(NameError::Uuid);
        }
        Ok(Self(text.into()))
    }

    /// Stands in for a name that was wrong while the rest of a registration is checked.
    pub(crate) fn placeholder() -> Self {
        Self("unnamed".into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same, to be kept.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ServerName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_use_are_names() {
        for name in ["fs", "Filesystem Server", "ファイル", "a.b_c-d", "  trimmed  "] {
            assert_eq!(ServerName::new(name).unwrap().as_str(), name.trim());
        }
    }

    #[test]
    fn what_would_break_a_url_or_a_terminal_is_refused() {
        let long = "x".repeat(65);
        for (text, why) in [
            ("", NameError::Empty),
            (" \t", NameError::Empty),
            (long.as_str(), NameError::TooLong),
            ("a/b", NameError::BadCharacter),
            ("a\u{1b}[2J", NameError::BadCharacter),
            ("..", NameError::Dots),
            ("6f9619ff-8b86-d011-b42d-00cf4fc964ff", NameError::Uuid),
        ] {
            assert_eq!(ServerName::new(text), Err(why), "{text:?}");
        }
    }
}
