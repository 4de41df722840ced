//! Cookies of one origin, in memory: load balancers keep a conversation on one instance by them.

use http::HeaderMap;
use http::header::{HeaderValue, SET_COOKIE};

/// How many are kept, and how long each may be.
const MAX_COOKIES: usize = 50;
const MAX_LENGTH: usize = 4096;

/// The cookies that the server set.
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<(String, String)>,
    header: Option<HeaderValue>,
}

impl Jar {
    /// What to send with a request.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        self.header.clone()
    }

    /// Takes what a response to a request for `path` sets.
    pub(super) fn take(&mut self, headers: &HeaderMap, path: &str) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        for value in headers.get_all(SET_COOKIE) {
            if let Some(cookie) = value.to_str().ok().filter(|text| text.len() <= MAX_LENGTH) {
                self.set(cookie, path);
            }
        }
        let pairs: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.header = (!pairs.is_empty())
            .then(|| HeaderValue::from_str(&pairs.join("; ")).ok())
            .flatten()
            .map(|mut header| {
                header.set_sensitive(true);
                header
            });
    }

    fn set(&mut self, cookie: &str, path: &str) {
        let mut parts = cookie.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return;
        };
        let (name, value) = (name.trim(), value.trim());
        let mut gone = false;
        for attribute in parts {
            let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if !covers(value, path) => return,
                "max-age" => gone = value.parse::<i64>().is_ok_and(|seconds| seconds <= 0),
                // How cookies are taken back; other dates are further off than any conversation.
                "expires" => gone |= value.contains("1970"),
                _ => {}
            }
        }
        self.cookies.retain(|(known, _)| known != name);
        if !name.is_empty() && !gone && self.cookies.len() < MAX_COOKIES {
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
    }
}

fn covers(cookie: &str, path: &str) -> bool {
    if !cookie.starts_with('/') {
        return true;
    }
    path.strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(set: &[&str]) -> Jar {
        let mut jar = Jar::default();
        for cookie in set {
            let mut headers = HeaderMap::new();
            headers.append(SET_COOKIE, cookie.parse().unwrap());
            jar.take(&headers, "/mcp/v1");
        }
        jar
    }

    #[track_caller]
    fn check(set: &[&str], expected: Option<&str>) {
        assert_eq!(jar(set).header().as_ref().map(|value| value.to_str().unwrap()), expected);
    }

    #[test]
    fn cookies_are_kept_changed_and_taken_back() {
        check(&[], None);
        check(&["GAESA=abc; Path=/; HttpOnly; Max-Age=100", "b=x=y"], Some("GAESA=abc; b=x=y"));
        check(&["a=1", "a=2"], Some("a=2"));
        check(&["a=1", "b=2", "a=; Max-Age=0"], Some("b=2"));
        check(&["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], None);
    }

    #[test]
    fn cookies_of_another_path_are_not_ours() {
        check(
            &["a=1; Path=/mcp", "b=1; Path=/mcp/", "c=1; Path=/other", "d=1; Path=/mc"],
            Some("a=1; b=1"),
        );
    }

    #[test]
    fn a_jar_has_a_bottom_and_a_value_stays_out_of_logs() {
        let many: Vec<String> = (0..100).map(|n| format!("c{n}=1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let jar = jar(&many);
        assert_eq!(jar.cookies.len(), MAX_COOKIES);
        assert!(!format!("{:?}", jar.header()).contains("c1=1"));
    }
}
