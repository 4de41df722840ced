//! Text that is never shown: keys, refresh tokens, access tokens.

use std::fmt;

use cofer_model::{MASK, looks_secret_value};
use serde::Deserialize;

/// Its `Debug` is a mask and it has no `Display`: whoever needs the value says `expose`.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

/// Text from outside, fit to be shown: one line, not long, and without what was sent in secret.
pub(crate) fn shown(text: &str, secrets: &[&str]) -> String {
    let mut shown = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET) {
        shown = shown.replace(secret, MASK);
    }
    // Also what was sent at another time.
    let masked = |word| if looks_secret_value(word) { MASK } else { word };
    let line: Vec<&str> = shown
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .map(masked)
        .collect();
    let line = line.join(" ");
    match line.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Shorter values stand in a text by chance.
const SHORTEST_SECRET: usize = 8;

/// Characters of somebody else's words.
const LONGEST_SHOWN: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("canary")), MASK);
    }

    #[test]
    fn what_others_say_is_one_short_line_without_our_secrets() {
        let said = "bad\r\n\x1b[31m  token canary-token in\tthis";
        assert_eq!(shown(said, &["canary-token"]), format!("bad [31m token {MASK} in this"));
        assert_eq!(shown(&"é".repeat(600), &[]).chars().count(), LONGEST_SHOWN + 1);
    }
}
