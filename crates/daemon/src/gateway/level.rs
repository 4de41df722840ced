//! The eight levels of log messages, from the one that says most to the one that says least.

use bytes::Bytes;
use cofer_mcp::member;

const NAMES: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// How bad something must be to be told. Orders by what is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    /// What is told to those who asked for no level, once somebody else asked for more.
    pub(super) const INFO: Self = Self(1);

    pub(super) fn parse(name: &str) -> Option<Self> {
        let at = NAMES.iter().position(|known| *known == name)?;
        Some(Self(u8::try_from(at).ok()?))
    }

    pub(super) fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// The level of a log message; none where it is no level that we know.
    pub(super) fn of_message(params: Option<&Bytes>) -> Option<Self> {
        let name: String = serde_json::from_slice(member(params?, "level")?).ok()?;
        Self::parse(&name)
    }

    /// As a number that is never 0, and back.
    pub(super) fn to_u8(level: Option<Self>) -> u8 {
        level.map_or(0, |level| level.0 + 1)
    }

    pub(super) fn from_u8(number: u8) -> Option<Self> {
        number.checked_sub(1).filter(|at| usize::from(*at) < NAMES.len()).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_an_order_and_a_name() {
        assert!(Level::parse("debug").unwrap() < Level::INFO);
        assert!(Level::parse("emergency").unwrap() > Level::parse("alert").unwrap());
        assert_eq!(Level::parse("verbose"), None);
        for name in NAMES {
            let level = Level::parse(name).unwrap();
            assert_eq!(level.name(), name);
            assert_eq!(Level::from_u8(Level::to_u8(Some(level))), Some(level));
        }
        assert_eq!(Level::from_u8(Level::to_u8(None)), None);
        let params = Bytes::from_static(br#"{"data":{"level":"debug"},"level":"error"}"#);
        assert_eq!(Level::of_message(Some(&params)), Level::parse("error"));
    }
}
