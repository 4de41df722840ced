//! What a person should know about a remote server's registration: what goes over the network
//! in plain text, and what is kept in plain text here.

use cofer_model::{
    FieldError, Limits, is_private_url, looks_secret_key, looks_secret_value, parse_remote_url,
};

use crate::validate::PLAIN_TEXT;

/// Headers that hold a secret, whatever they are called by.
const SECRET_HEADERS: [&str; 3] =
    ["authorization", "proxy-authorization", "x-serverless-authorization"];

/// Warnings about what can be read of a registration, whatever else is wrong with it.
pub(crate) fn remote_warnings<'a>(
    url: Option<&str>,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<FieldError> {
    let mut warnings: Vec<FieldError> = headers
        .filter(|(name, value)| is_secret(name, value))
        .map(|(name, _)| {
            let message = format!("the header `{name}` looks like a secret: it {PLAIN_TEXT}");
            FieldError::new(format!("headers.{name}"), message)
        })
        .collect();
    warnings.extend(url.into_iter().flat_map(url_warnings));
    warnings
}

fn is_secret(name: &str, value: &str) -> bool {
    let known = SECRET_HEADERS.iter().any(|secret| name.eq_ignore_ascii_case(secret));
    !value.trim().is_empty()
        && !value.starts_with('$')
        && (known || looks_secret_key(name) || looks_secret_value(value))
}

fn url_warnings(text: &str) -> Vec<FieldError> {
    let Ok(url) = parse_remote_url(text) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    if !is_private_url(&url) {
        let message = "plain http: everybody on the way to the server can read and change what is said, headers too; use https";
        warnings.push(FieldError::new("url", message));
    }
    let pairs = url.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    for (key, _) in pairs.filter(|(key, value)| {
        !value.is_empty() && (looks_secret_key(key) || looks_secret_value(value))
    }) {
        let message = format!(
            "`{key}` in the URL looks like a secret: URLs are shown and logged; `headers` is the better place"
        );
        warnings.push(FieldError::new("url", message));
    }
    warnings
}

/// Limits that were given for what runs elsewhere.
pub(crate) fn remote_limits_warning(limits: &Limits) -> Option<FieldError> {
    (*limits != Limits::default()).then(|| {
        let message = "`resource_limits` have no effect on a server that runs elsewhere";
        FieldError::new("resource_limits", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(url: &str, headers: &[(&str, &str)]) -> Vec<String> {
        let warnings = remote_warnings(Some(url), headers.iter().copied());
        warnings.into_iter().map(|warning| warning.field).collect()
    }

    #[test]
    fn secrets_in_headers_are_warned_about() {
        let headers = [
            ("Authorization", "Bearer abc"),
            ("X-Api-Key", "abc"),
            ("X-Region", "eu"),
            ("X-Token", ""),
            ("X-Other-Token", "${TOKEN}"),
            ("X-Plain", "ghp_abcdefghijklmnopqrstuvwxyz"),
        ];
        let expected = ["headers.Authorization", "headers.X-Api-Key", "headers.X-Plain"];
        assert_eq!(fields("https://example.com/mcp", &headers), expected);
        let message = &remote_warnings(None, headers.into_iter())[0].message;
        assert!(message.contains("plain text") && !message.contains("abc"), "{message}");
    }

    #[test]
    fn what_others_can_read_is_warned_about() {
        assert_eq!(fields("http://example.com/mcp", &[]), ["url"]);
        assert_eq!(fields("http://127.0.0.1:8080/mcp", &[]), [""; 0]);
        assert_eq!(fields("https://example.com/mcp?api_key=abc&x=1", &[]), ["url"]);
        assert_eq!(fields("not a url", &[]), [""; 0]);
    }
}
