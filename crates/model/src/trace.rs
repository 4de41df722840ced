//! Where a call stands in a trace that somebody else began: `traceparent`, as W3C's Trace Context
//! writes it.

/// The span that caused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The whole trace.
    pub trace_id: [u8; 16],
    /// The span in it.
    pub span_id: [u8; 8],
    /// Whether whoever began it keeps it.
    pub sampled: bool,
}

/// The length of the form that version 00 has; later ones may be longer.
const LENGTH: usize = 55;

impl TraceParent {
    /// Reads it; none where it is not well formed, as it is then to be ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let (known, more) = (text.get(..LENGTH)?, &text[LENGTH..]);
        let mut parts = known.split('-');
        let mut next = || parts.next();
        let [version] = hex(next()?)?;
        let (trace_id, span_id): ([u8; 16], [u8; 8]) = (hex(next()?)?, hex(next()?)?);
        let [flags] = hex(next()?)?;
        let is_whole = match version {
            0 => more.is_empty(),
            0xff => false,
            _ => more.is_empty() || more.starts_with('-'),
        };
        let has_ids = trace_id != [0; 16] && span_id != [0; 8];
        (is_whole && has_ids).then_some(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

/// Exactly `N` bytes in lower case.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0b0902b7-01";

    #[test]
    fn a_parent_is_read_as_it_is_written() {
        let parent = TraceParent::parse(GOOD).unwrap();
        assert_eq!(parent.trace_id[..3], [0x4b, 0xf9, 0x2f]);
        assert_eq!(parent.trace_id[15], 0x36);
        assert_eq!(parent.span_id, [0, 0xf0, 0x67, 0xaa, 0x0b, 0x09, 0x02, 0xb7]);
        assert!(parent.sampled);
        let flags = |flags: &str| TraceParent::parse(&GOOD.replace("-01", flags)).unwrap().sampled;
        assert!(!flags("-00") && !flags("-02") && flags("-03"));
    }

    #[test]
    fn a_later_version_may_say_more_and_the_first_may_not() {
        let later = GOOD.replace("00-4b", "01-4b");
        let expected = TraceParent::parse(GOOD);
        assert_eq!(TraceParent::parse(&later), expected);
        assert_eq!(TraceParent::parse(&format!("{later}-more")), expected);
        assert_eq!(TraceParent::parse(&format!("{later}more")), None);
        assert_eq!(TraceParent::parse(&format!("{GOOD}-more")), None);
    }

    #[test]
    fn what_is_not_well_formed_is_no_parent() {
        let all_zero = GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        for text in [
            "",
            "00",
            &GOOD[..54],
            &GOOD.to_uppercase(),
            &GOOD.replace("00-4b", "ff-4b"),
            &GOOD.replace("4bf9", "4bg9"),
            &GOOD.replace("00f067aa0b0902b7", &"0".repeat(16)),
            &GOOD.replace("36-00", "3-600"),
            &all_zero,
            &"é".repeat(40),
        ] {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }
}
