//! The providers that the daemon's environment sets. Pure: it is given the variables.

use super::settings::{ProviderKind, ProviderSettings, check_base_url};

/// What the environment says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The providers, at most one of each kind.
    pub providers: Vec<ProviderSettings>,
    /// The provider that `COFER_CHAT_MODEL` names, written as `provider::model`.
    pub provider: Option<String>,
    /// The model that `COFER_CHAT_MODEL` names.
    pub model: Option<String>,
    /// Variables that could not be used, for the log.
    pub problems: Vec<String>,
}

impl Environment {
    /// Reads the variables through `variable`.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| {
            variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let mut environment = Self::default();
        for kind in ProviderKind::ALL {
            match provider(kind, &value) {
                Ok(Some(provider)) => environment.providers.push(provider),
                Ok(None) => {}
                Err(problem) => environment.problems.push(problem),
            }
        }
        let model = value("COFER_CHAT_MODEL");
        match model.as_deref().and_then(|text| text.split_once("::")) {
            Some((provider, model)) => {
                environment.provider = Some(provider.to_owned());
                environment.model = Some(model.to_owned());
            }
            None => environment.model = model,
        }
        environment
    }
}

fn provider(
    kind: ProviderKind,
    value: &impl Fn(&str) -> Option<String>,
) -> Result<Option<ProviderSettings>, String> {
    let (api_key, address, variable) = match kind.variables() {
        [key, url] => (value(key), value(url), *url),
        others => {
            let host = others.first().copied().unwrap_or_default();
            (None, value(host).map(|text| ollama(&text)), host)
        }
    };
    // An address alone is enough for a server of one's own, which wants no key.
    if api_key.is_none() && address.is_none() {
        return Ok(None);
    }
    let base_url = check_base_url(kind, address.as_deref().unwrap_or(kind.base_url()))
        .map_err(|problem| format!("{variable} {problem}"))?;
    Ok(Some(ProviderSettings {
        id: kind.as_str().to_owned(),
        kind,
        name: if kind == ProviderKind::Openai { "OpenAI" } else { kind.title() }.to_owned(),
        base_url,
        api_key,
        default_model: None,
    }))
}

/// `OLLAMA_HOST` is what Ollama itself takes: a host, a host and a port, or a URL; and it may be
/// the address to listen on, which is none to connect to.
fn ollama(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let rest = rest.trim_end_matches('/');
    let (authority, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let bracketed = authority.starts_with('[');
    let bare_v6 = !bracketed && authority.matches(':').count() > 1;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !bare_v6 && !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let host = match host {
        "" | "0.0.0.0" | "::" | "[::]" => "127.0.0.1".to_owned(),
        host if bare_v6 => format!("[{host}]"),
        host => host.to_owned(),
    };
    let default = if scheme == "https" { "443" } else { "11434" };
    format!("{scheme}://{host}:{}/{path}", port.unwrap_or(default))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Environment {
        Environment::read(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_is_nothing_configured() {
        assert_eq!(read(&[]), Environment::default());
        assert_eq!(read(&[("OPENAI_API_KEY", " "), ("OLLAMA_HOST", "")]), Environment::default());
    }

    #[test]
    fn each_variable_sets_its_provider() {
        let environment = read(&[
            ("OPENAI_API_KEY", "sk-1"),
            ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
            ("ANTHROPIC_API_KEY", "a"),
            ("GEMINI_API_KEY", "g"),
            ("OLLAMA_HOST", "box:1"),
            ("COFER_CHAT_MODEL", "gpt-x"),
        ]);
        let urls: Vec<_> =
            environment.providers.iter().map(|p| (p.id.as_str(), p.base_url.as_str())).collect();
        assert_eq!(
            urls,
            [
                ("openai", "http://127.0.0.1:9/v1/"),
                ("anthropic", ProviderKind::Anthropic.base_url()),
                ("gemini", ProviderKind::Gemini.base_url()),
                ("ollama", "http://box:1/"),
            ]
        );
        assert_eq!(environment.providers[0].api_key.as_deref(), Some("sk-1"));
        assert_eq!((environment.provider, environment.model), (None, Some("gpt-x".to_owned())));
    }

    #[test]
    fn a_server_of_ones_own_needs_no_key() {
        let environment = read(&[("OPENAI_BASE_URL", "http://127.0.0.1:1234/v1")]);
        assert_eq!(environment.providers[0].api_key, None);
    }

    #[test]
    fn a_wrong_address_is_named_and_leaves_the_others() {
        let environment = read(&[("OPENAI_BASE_URL", "nonsense"), ("GEMINI_API_KEY", "g")]);
        assert_eq!(environment.providers.len(), 1);
        assert!(
            environment.problems[0].starts_with("OPENAI_BASE_URL is no URL"),
            "{environment:?}"
        );
    }

    #[test]
    fn a_model_may_name_its_provider() {
        let environment = read(&[("COFER_CHAT_MODEL", "ollama::qwen3:8b")]);
        assert_eq!(environment.provider.as_deref(), Some("ollama"));
        assert_eq!(environment.model.as_deref(), Some("qwen3:8b"));
    }

    #[test]
    fn ollamas_own_forms_of_an_address_are_understood() {
        for (text, expected) in [
            ("127.0.0.1", "http://127.0.0.1:11434/"),
            ("0.0.0.0:5000", "http://127.0.0.1:5000/"),
            (":5000", "http://127.0.0.1:5000/"),
            ("https://box", "https://box:443/"),
            ("http://box:80/", "http://box:80/"),
            ("[::1]:9", "http://[::1]:9/"),
            ("::1", "http://[::1]:11434/"),
        ] {
            assert_eq!(ollama(text), expected, "{text}");
        }
    }
}
