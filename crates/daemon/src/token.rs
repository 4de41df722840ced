//! The bearer token: made from the system's randomness, compared in constant time, never shown.

use std::fmt;

use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq as _;

/// Bytes of randomness in a token that we make.
const RANDOM_BYTES: usize = 32;
/// The shortest text that is taken for a token: below it, guessing is thinkable.
const MIN_CHARS: usize = 32;
/// The longest: more would not be a token but some other file.
pub(crate) const MAX_CHARS: usize = 1024;

/// Whoever shows this text may do everything.
#[derive(Clone)]
pub(crate) struct Token(Box<str>);

/// Why a text is not a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The file is there and has nothing in it.
    #[error("it is empty")]
    Empty,
    /// Too short to be safe.
    #[error("it has {0} characters, fewer than {MIN_CHARS}")]
    TooShort(usize),
    /// Too long to be sent in a header.
    #[error("it has more than {MAX_CHARS} characters")]
    TooLong,
    /// Something that does not go in an HTTP header as it is.
    #[error("it has characters other than visible ASCII")]
    BadCharacter,
}

impl Token {
    /// A new one, from the system's randomness, as hexadecimal digits.
    pub(crate) fn random() -> Result<Self, rustix::io::Errno> {
        use fmt::Write as _;
        let mut bytes = [0_u8; RANDOM_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        let mut text = String::with_capacity(2 * RANDOM_BYTES);
        for byte in bytes {
            // Writing to a String does not fail.
            write!(text, "{byte:02x}").unwrap_or_default();
        }
        Ok(Self(text.into()))
    }

    /// Checks `text`, with white space around it taken off.
    pub(crate) fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim_ascii();
        match text.len() {
            0 => Err(TokenError::Empty),
            _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => Err(TokenError::BadCharacter),
            short @ 1..MIN_CHARS => Err(TokenError::TooShort(short)),
            MIN_CHARS..=MAX_CHARS => Ok(Self(text.into())),
            _ => Err(TokenError::TooLong),
        }
    }

    /// Whether `shown` is the token; takes as long for a near miss as for a far one.
    pub(crate) fn matches(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }

    /// The text itself: for the token file and for the console's link, nothing else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// A token in a log would be a token for everyone who reads the log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(********)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tokens_are_long_url_safe_and_never_the_same() {
        let (one, two) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.reveal().len(), 64);
        assert!(one.reveal().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one.reveal(), two.reveal());
        assert!(one.matches(one.reveal().as_bytes()) && !one.matches(two.reveal().as_bytes()));
    }

    #[test]
    fn what_is_not_a_token_is_refused_with_the_reason() {
        let (short, long) = ("x".repeat(31), "x".repeat(1025));
        for (text, why) in [
            ("", TokenError::Empty),
            (" \n", TokenError::Empty),
            (short.as_str(), TokenError::TooShort(31)),
            (long.as_str(), TokenError::TooLong),
            ("0123456789abcdef 0123456789abcdef", TokenError::BadCharacter),
        ] {
            assert_eq!(Token::new(text).unwrap_err(), why, "{text:?}");
        }
        assert!(Token::new(&format!("{}\n", "x".repeat(32))).is_ok());
    }

    #[test]
    fn a_token_is_not_printed() {
        let token = Token::random().unwrap();
        assert!(!format!("{token:?}").contains(token.reveal()));
    }
}
