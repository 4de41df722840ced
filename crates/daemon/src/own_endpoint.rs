//! Recognises this daemon's own gateway in a registration or in a client's configuration: hosting
//! it would offer every tool again, under a longer name, without end.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use axum::http::Uri;
use axum::http::uri::Authority;
use cofer_model::{FieldError, ServerSpec, parse_remote_url};
use serde_json::{Map, Value};

use crate::public_url::PublicUrl;

/// Options and variables by which `cofer connect` is sent to another daemon.
const ELSEWHERE: [&str; 2] = ["--url", "--data-dir"];
const ELSEWHERE_VARIABLES: [&str; 3] = ["COFER_URL", "COFER_DATA_DIR", "COFER_LISTEN"];

/// Where this daemon is reached.
#[derive(Debug, Clone)]
pub(crate) struct OwnEndpoint {
    address: SocketAddr,
    public_url: Option<PublicUrl>,
    program: Option<PathBuf>,
}

impl OwnEndpoint {
    /// Of a daemon that listens on `address`, with the port it really has.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, public_url: None, program: std::env::current_exe().ok() }
    }

    /// It is reached by `--public-url` as well.
    pub(crate) fn with_public_url(self, public_url: Option<PublicUrl>) -> Self {
        Self { public_url, ..self }
    }

    /// Whether a URL is one of the gateway's endpoints.
    pub(crate) fn is_own_url(&self, text: &str) -> bool {
        let Ok(url) = parse_remote_url(text) else {
            return false;
        };
        let is_gateway = url.path() == "/mcp" || url.path().starts_with("/mcp/");
        is_gateway && (self.is_public(&url) || self.is_local(&url))
    }

    fn is_public(&self, url: &Uri) -> bool {
        let authority = url.authority().map_or("", Authority::as_str);
        let scheme = url.scheme_str().unwrap_or_default();
        self.public_url.as_ref().is_some_and(|public| {
            public.is_host(authority.as_bytes())
                && public.origin().starts_with(&format!("{scheme}:"))
        })
    }

    fn is_local(&self, url: &Uri) -> bool {
        url.scheme_str() == Some("http")
            && url.port_u16().unwrap_or(80) == self.address.port()
            && self.is_own_host(url.host().unwrap_or_default())
    }

    fn is_own_host(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        match host.parse::<IpAddr>() {
            // Connecting to the unspecified address reaches the loopback interface.
            Ok(ip) => ip.is_loopback() || ip.is_unspecified() || ip == self.address.ip(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        }
    }

    /// The first field of a registration that leads to this daemon's own gateway.
    pub(crate) fn find_in(&self, spec: &ServerSpec) -> Option<FieldError> {
        let leads_back = |what: &str| {
            format!(
                "{what} is this daemon's own gateway: its tools would multiply without end; \
                 register the server behind it instead"
            )
        };
        if let Some(url) = spec.url.as_deref().filter(|url| self.is_own_url(url)) {
            return Some(FieldError::new("url", leads_back(url)));
        }
        // Bridges such as `mcp-remote` take the URL as an argument.
        let (nth, url) = spec.args.iter().enumerate().find(|(_, arg)| self.is_own_url(arg))?;
        Some(FieldError::new(format!("args[{nth}]"), leads_back(url)))
    }

    /// Why an entry of a client's configuration is not imported, if it leads to this daemon.
    pub(crate) fn reason_to_skip(&self, server: &Map<String, Value>) -> Option<String> {
        let reason =
            |what: &str| Some(format!("it is Cofer itself ({what}): its servers are already here"));
        let texts = server.values().filter_map(Value::as_str);
        let args = server.get("args").and_then(Value::as_array).into_iter().flatten();
        let args: Vec<&str> = args.filter_map(Value::as_str).collect();
        if let Some(url) = texts.chain(args.iter().copied()).find(|text| self.is_own_url(text)) {
            return reason(url);
        }
        let command = server.get("command").and_then(Value::as_str)?;
        let is_connect = self.is_cofer(command) && args.contains(&"connect");
        (is_connect && !goes_elsewhere(&args, server)).then(|| reason("`cofer connect`")).flatten()
    }

    fn is_cofer(&self, command: &str) -> bool {
        let command = Path::new(command);
        command.file_name().is_some_and(|name| name == "cofer")
            || command.canonicalize().is_ok_and(|path| Some(path) == self.program)
    }
}

/// Whether `cofer connect` is sent to another daemon, which is then found by its hop header if it
/// leads back here.
fn goes_elsewhere(args: &[&str], server: &Map<String, Value>) -> bool {
    let names = |arg: &&str| ELSEWHERE.contains(&arg.split('=').next().unwrap_or_default());
    let environment = server.get("env").or_else(|| server.get("environment"));
    args.iter().any(names)
        || ELSEWHERE_VARIABLES
            .iter()
            .any(|variable| environment.is_some_and(|set| set.get(variable).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::parse_registration;
    use serde_json::json;

    fn own() -> OwnEndpoint {
        OwnEndpoint::new("127.0.0.1:8787".parse().unwrap())
    }

    #[test]
    fn every_name_of_the_own_gateway_is_recognised() {
        for url in [
            "http://127.0.0.1:8787/mcp",
            "http://localhost:8787/mcp/fs",
            "http://LocalHost.:8787/mcp",
            "http://[::1]:8787/mcp",
            "http://0.0.0.0:8787/mcp",
            "http://127.1.2.3:8787/mcp?x=1",
        ] {
            assert!(own().is_own_url(url), "{url}");
        }
        for url in [
            "http://127.0.0.1:8788/mcp",
            "http://127.0.0.1:8787/other",
            "http://127.0.0.1:8787/mcpx",
            "https://127.0.0.1:8787/mcp",
            "http://example.com:8787/mcp",
            "not a url",
        ] {
            assert!(!own().is_own_url(url), "{url}");
        }
        let in_network = OwnEndpoint::new("192.168.0.7:80".parse().unwrap());
        assert!(in_network.is_own_url("http://192.168.0.7/mcp"));
        let public = "https://cofer.example.com".parse().unwrap();
        let behind_proxy = own().with_public_url(Some(public));
        assert!(behind_proxy.is_own_url("https://cofer.example.com/mcp"));
        assert!(behind_proxy.is_own_url("https://Cofer.example.com:443/mcp/fs"));
        assert!(behind_proxy.is_own_url("http://127.0.0.1:8787/mcp"));
        assert!(!behind_proxy.is_own_url("http://cofer.example.com/mcp"));
        assert!(!behind_proxy.is_own_url("https://cofer.example.com/"));
    }

    #[test]
    fn a_registration_of_the_own_gateway_names_the_field() {
        let field = |body| own().find_in(&parse_registration(body).unwrap()).map(|e| e.field);
        let url = "http://localhost:8787/mcp";
        assert_eq!(field(json!({"name": "a", "url": url})).as_deref(), Some("url"));
        let args = json!({"name": "a", "command": "npx", "args": ["-y", "mcp-remote", url]});
        assert_eq!(field(args).as_deref(), Some("args[2]"));
        assert_eq!(field(json!({"name": "a", "command": "cofer", "args": ["connect"]})), None);
    }

    #[test]
    fn own_entries_of_a_client_are_skipped_and_those_of_another_daemon_are_not() {
        let skips = |server: Value| own().reason_to_skip(server.as_object().unwrap()).is_some();
        assert!(skips(json!({"command": "cofer", "args": ["connect"]})));
        assert!(skips(json!({"command": "/usr/bin/cofer", "args": ["connect", "fs", "--start"]})));
        assert!(skips(json!({"serverUrl": "http://localhost:8787/mcp"})));
        assert!(skips(json!({"command": "npx", "args": ["mcp-remote", "http://[::1]:8787/mcp"]})));
        let current = std::env::current_exe().unwrap();
        assert!(skips(json!({"command": current.to_str(), "args": ["connect"]})));
        let elsewhere = ["--url", "http://other:8787", "connect"];
        assert!(!skips(json!({"command": "cofer", "args": elsewhere})));
        assert!(!skips(json!({"command": "cofer", "args": ["--data-dir=/x", "connect"]})));
        assert!(!skips(
            json!({"command": "cofer", "args": ["connect"], "env": {"COFER_DATA_DIR": "/x"}})
        ));
        assert!(!skips(json!({"command": "cofer", "args": ["mcp", "environments"]})));
        assert!(!skips(json!({"command": "npx", "args": ["connect"]})));
    }
}
