//! The address under which clients reach the daemon behind a reverse proxy: `--public-url`.

use std::str::FromStr;

use cofer_model::{RemoteUrlError, parse_remote_url};

/// An origin: `https://cofer.example.com`, without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    /// `Host` as a client sends it: the default port of the scheme may be given or left out.
    hosts: Vec<String>,
}

/// Why a text is not a public URL.
#[derive(Debug, thiserror::Error)]
pub enum PublicUrlError {
    /// Not an HTTP URL.
    #[error("{0}")]
    Url(#[from] RemoteUrlError),
    /// The console and the gateway have fixed paths.
    #[error(
        "has a path or a query; expected only scheme, host and port, such as https://cofer.example.com"
    )]
    Path,
}

impl PublicUrl {
    /// Such as `https://cofer.example.com`, without a slash at the end.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether `host` is the value of a `Host` header for this URL.
    pub(crate) fn is_host(&self, host: &[u8]) -> bool {
        self.hosts.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(host))
    }

    /// Whether an `Origin` header names this URL.
    pub(crate) fn is_origin(&self, origin: &[u8]) -> bool {
        self.origin.as_bytes().eq_ignore_ascii_case(origin)
    }
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let url = parse_remote_url(text)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() {
            return Err(PublicUrlError::Path);
        }
        let scheme = url.scheme_str().unwrap_or("http");
        let default = if scheme == "https" { 443 } else { 80 };
        let host = url.host().unwrap_or_default().to_ascii_lowercase();
        // Browsers leave out the scheme's default port in `Origin` and `Host`; proxies may add it.
        let hosts = match url.port_u16().filter(|port| *port != default) {
            Some(port) => vec![format!("{host}:{port}")],
            None => vec![host.clone(), format!("{host}:{default}")],
        };
        Ok(Self { origin: format!("{scheme}://{}", hosts.first().unwrap_or(&host)), hosts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_may_be_given_or_left_out() {
        for text in ["https://Cofer.example.com", "https://cofer.example.com:443/"] {
            let url: PublicUrl = text.parse().unwrap();
            assert_eq!(url.origin(), "https://cofer.example.com", "{text}");
            assert!(url.is_host(b"cofer.example.com") && url.is_host(b"COFER.example.com:443"));
            assert!(!url.is_host(b"cofer.example.com:80") && !url.is_host(b"example.com"));
            assert!(url.is_origin(b"https://cofer.example.com"));
            assert!(!url.is_origin(b"http://cofer.example.com"));
        }
        let url: PublicUrl = "http://[fd00::1]:9000".parse().unwrap();
        assert_eq!(url.origin(), "http://[fd00::1]:9000");
        assert!(url.is_host(b"[fd00::1]:9000") && !url.is_host(b"[fd00::1]"));
    }

    #[test]
    fn only_an_origin_is_a_public_url() {
        for wrong in
            ["", "cofer.example.com", "ftp://x", "https://me@x", "https://x/cofer", "https://x/?a"]
        {
            assert!(wrong.parse::<PublicUrl>().is_err(), "{wrong}");
        }
    }
}
