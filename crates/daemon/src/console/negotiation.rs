//! What a request says about the form it wants a file in, and the version it has already.
//! Pure: headers in, a decision out.

use axum::http::header::{ACCEPT_ENCODING, HeaderMap, IF_NONE_MATCH};

/// A compressed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// Two forms of one file are two things to a cache.
    pub(super) fn version_suffix(self) -> &'static str {
        match self {
            Self::Brotli => "-br",
            Self::Gzip => "-gz",
        }
    }
}

/// The form that the request likes best, the smaller one where it likes both; none is plain.
pub(super) fn encoding_for(headers: &HeaderMap) -> Option<Encoding> {
    let brotli = weight(headers, "br");
    let gzip = weight(headers, "gzip");
    if brotli > 0.0 && brotli >= gzip {
        Some(Encoding::Brotli)
    } else if gzip > 0.0 {
        Some(Encoding::Gzip)
    } else {
        None
    }
}

/// How much the request likes `name`, from 0 (not at all) to 1.
fn weight(headers: &HeaderMap, name: &str) -> f32 {
    let mut others = 0.0;
    for item in list(headers, ACCEPT_ENCODING) {
        let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
        let quality =
            parameters.trim().strip_prefix("q=").map_or(1.0, |q| q.parse().unwrap_or(0.0));
        if coding.trim().eq_ignore_ascii_case(name) {
            return quality;
        }
        if coding.trim() == "*" {
            others = quality;
        }
    }
    others
}

/// Whether the client has this version already.
pub(super) fn has_version(headers: &HeaderMap, version: &str) -> bool {
    list(headers, IF_NONE_MATCH).any(|tag| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        tag == "*" || tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) == Some(version)
    })
}

/// The items of a header that is a list; one that is not text has none.
fn list(headers: &HeaderMap, name: axum::http::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(accepted: &str) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accepted.parse().unwrap());
        encoding_for(&headers).map(Encoding::name)
    }

    #[test]
    fn the_smallest_form_that_the_client_takes_is_chosen() {
        assert_eq!(encoding_for(&HeaderMap::new()), None);
        for (accepted, form) in [
            ("gzip, deflate, br, zstd", Some("br")),
            ("gzip, deflate", Some("gzip")),
            ("GZIP", Some("gzip")),
            ("br;q=0.1, gzip;q=0.9", Some("gzip")),
            ("br;q=0, gzip;q=0", None),
            ("*", Some("br")),
            ("*;q=0.5, br;q=0", Some("gzip")),
            ("br;q=much", None),
            ("identity", None),
            ("", None),
        ] {
            assert_eq!(wants(accepted), form, "{accepted}");
        }
    }

    #[test]
    fn a_version_is_known_by_its_whole_tag_in_any_of_a_list() {
        let mut headers = HeaderMap::new();
        assert!(!has_version(&headers, "abc"));
        for (tags, known) in [
            (r#""abc""#, true),
            (r#"W/"abc""#, true),
            (r#""x", "abc""#, true),
            ("*", true),
            ("abc", false),
            (r#""abcd""#, false),
            (r#""abc-br""#, false),
        ] {
            headers.insert(IF_NONE_MATCH, tags.parse().unwrap());
            assert_eq!(has_version(&headers, "abc"), known, "{tags}");
        }
    }
}
