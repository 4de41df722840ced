//! Which HTTP proxy stands between us and an https server, by the usual variables.
//!
//! Only https goes through a proxy: what is plain http here is on this machine or is the
//! metadata server beside it, which no proxy can reach in our place.

use http::Uri;

/// A proxy, and who is reached without it.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    https: Option<Uri>,
    except: Vec<String>,
}

/// A proxy variable that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is not the address of an HTTP proxy: {reason}")]
pub struct ProxyError {
    /// The variable.
    pub name: String,
    /// What is wrong. Not its value, which may hold a password.
    pub reason: &'static str,
}

impl ProxySettings {
    /// As the process's environment has it.
    pub fn from_env() -> Result<Self, ProxyError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// As `variable` has it: `https_proxy`, else `all_proxy`, in either case; and `no_proxy`.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
        let found = names.iter().find_map(|name| Some((*name, given(name)?)));
        let https = found.map(|(name, value)| parse(name, value.trim())).transpose()?;
        let except = given("no_proxy").or_else(|| given("NO_PROXY")).unwrap_or_default();
        let except = except.split(',').map(|host| host.trim().to_ascii_lowercase());
        Ok(Self { https, except: except.filter(|host| !host.is_empty()).collect() })
    }

    /// The proxy on the way to `host`, where there is one.
    pub(super) fn on_the_way_to(&self, host: &str, port: u16) -> Option<&Uri> {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        self.https.as_ref().filter(|_| !self.except.iter().any(|rule| matches(rule, &host, port)))
    }
}

fn parse(name: &str, value: &str) -> Result<Uri, ProxyError> {
    let wrong = |reason| ProxyError { name: name.to_owned(), reason };
    let whole = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    let uri: Uri = whole.parse().map_err(|_| wrong("it is not a URL"))?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err(wrong("only http:// and https:// proxies are supported")),
    }
}

/// `*`, a host, a domain with or without a leading dot, each with or without a port.
fn matches(rule: &str, host: &str, port: u16) -> bool {
    let (rule, rule_port) = match rule.rsplit_once(':') {
        Some((name, number)) if !name.contains(':') => match number.parse::<u16>() {
            Ok(number) => (name, Some(number)),
            Err(_) => (rule, None),
        },
        _ => (rule.trim_matches(['[', ']']), None),
    };
    if rule_port.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if rule == "*" {
        return true;
    }
    let domain = rule.trim_start_matches("*.").trim_start_matches('.');
    host == domain || host.strip_suffix(domain).is_some_and(|front| front.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<ProxySettings, ProxyError> {
        ProxySettings::read(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_variable_of_https_goes_before_that_of_all() {
        let found = settings(&[("ALL_PROXY", "a:1"), ("HTTPS_PROXY", "http://b:2")]).unwrap();
        let proxy = found.on_the_way_to("x.run.app", 443).unwrap();
        assert_eq!(proxy.authority().unwrap(), "b:2");
        let found = settings(&[("ALL_PROXY", "a:1"), ("HTTPS_PROXY", " ")]).unwrap();
        assert_eq!(found.on_the_way_to("x.run.app", 443).unwrap().host(), Some("a"));
        assert!(settings(&[]).unwrap().on_the_way_to("x.run.app", 443).is_none());
    }

    #[test]
    fn hosts_and_domains_are_excepted() {
        let rules = "localhost, .corp.example,run.app:8443,::1";
        let found = settings(&[("https_proxy", "p:1"), ("NO_PROXY", rules)]).unwrap();
        for (host, port, through) in [
            ("localhost", 443, false),
            ("a.corp.example", 443, false),
            ("corp.example", 443, false),
            ("notcorp.example", 443, true),
            ("x.run.app", 443, true),
            ("x.run.app", 8443, false),
            ("[::1]", 443, false),
        ] {
            assert_eq!(found.on_the_way_to(host, port).is_some(), through, "{host}:{port}");
        }
        let all = settings(&[("https_proxy", "p:1"), ("NO_PROXY", "*")]).unwrap();
        assert!(all.on_the_way_to("x.run.app", 443).is_none());
    }

    #[test]
    fn a_wrong_proxy_is_named_without_its_password() {
        let error = settings(&[("HTTPS_PROXY", "socks5://me:secret@p:1")]).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("HTTPS_PROXY") && !said.contains("secret"), "{said}");
    }
}
