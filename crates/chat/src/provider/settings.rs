//! Who a provider is: its kind, its address, its key. Pure.

use std::fmt;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest address.
const MAX_URL: usize = 2048;
/// The longest id of a provider.
const MAX_ID: usize = 40;

/// The protocols that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// OpenAI's chat completions, which many servers speak.
    Openai,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl ProviderKind {
    /// All, in the order in which a default is looked for.
    pub const ALL: [Self; 4] = [Self::Openai, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// As it is written; also the id of the provider that the environment sets.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// The kind that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Openai => "OpenAI and compatible servers",
            Self::Anthropic => "Anthropic",
            Self::Gemini => "Google Gemini",
            Self::Ollama => "Ollama",
        }
    }

    /// Where it is, unless it is said otherwise.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::Openai => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
            Self::Ollama => "http://127.0.0.1:11434/",
        }
    }

    /// Whether the provider behind the usual address wants a key.
    pub fn needs_key(self) -> bool {
        self != Self::Ollama
    }

    /// The variables that set it.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Openai => &["OPENAI_API_KEY", "OPENAI_BASE_URL"],
            Self::Anthropic => &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"],
            Self::Gemini => &["GEMINI_API_KEY", "GEMINI_BASE_URL"],
            Self::Ollama => &["OLLAMA_HOST"],
        }
    }

    /// The path below which the API is, where an address names none.
    fn path(self) -> &'static str {
        match self {
            Self::Openai | Self::Anthropic => "/v1/",
            Self::Gemini => "/v1beta/",
            Self::Ollama => "/",
        }
    }
}

/// One provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// By which it is named in requests and conversations.
    pub id: String,
    /// What it speaks.
    pub kind: ProviderKind,
    /// For people.
    pub name: String,
    /// Checked, with a slash at its end.
    pub base_url: String,
    /// Never shown.
    pub api_key: Option<String>,
    /// The model that is asked where none is named.
    pub default_model: Option<String>,
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("has_key", &self.api_key.is_some())
            .finish_non_exhaustive()
    }
}

impl ProviderSettings {
    /// `text` without the key, wherever a provider's answer repeats it.
    pub fn without_key(&self, text: &str) -> String {
        match self.api_key.as_deref().filter(|key| key.len() >= 4) {
            Some(key) => text.replace(key, cofer_model::MASK),
            None => text.to_owned(),
        }
    }
}

/// An id that can stand in a URL and in a table.
pub fn check_provider_id(id: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(plain) {
        return Err(format!("is not 1 to {MAX_ID} of a-z, 0-9 and -"));
    }
    Ok(())
}

/// An address that can be asked, in the form in which it is kept: with a slash at its end, and
/// with the API's usual path where it names none.
pub fn check_base_url(kind: ProviderKind, text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.len() > MAX_URL {
        return Err(format!("is longer than {MAX_URL} bytes"));
    }
    let mut url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("is neither http:// nor https://".to_owned());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("names no host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user name or password in it; give the key as `api_key`".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("has a `?` or `#` in it; it is the address below which the API is".to_owned());
    }
    let path = match url.path() {
        "" | "/" => kind.path().to_owned(),
        path if path.ends_with('/') => path.to_owned(),
        path => format!("{path}/"),
    };
    url.set_path(&path);
    Ok(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_the_form_in_which_they_are_asked() {
        for (kind, given, expected) in [
            (ProviderKind::Openai, "http://127.0.0.1:1234", "http://127.0.0.1:1234/v1/"),
            (ProviderKind::Openai, "http://h/api/v1", "http://h/api/v1/"),
            (
                ProviderKind::Anthropic,
                "https://api.anthropic.com/",
                "https://api.anthropic.com/v1/",
            ),
            (ProviderKind::Gemini, "http://h", "http://h/v1beta/"),
            (ProviderKind::Ollama, " http://h:1 ", "http://h:1/"),
        ] {
            assert_eq!(check_base_url(kind, given).as_deref(), Ok(expected), "{given}");
        }
        for kind in ProviderKind::ALL {
            assert_eq!(check_base_url(kind, kind.base_url()).as_deref(), Ok(kind.base_url()));
        }
    }

    #[test]
    fn addresses_that_cannot_be_asked_are_refused() {
        for text in [
            "",
            "api.openai.com",
            "file:///etc/passwd",
            "ftp://h/",
            "http://",
            "http://me:pw@h/",
            "http://h/?key=1",
            "http://h/#x",
            "javascript:alert(1)",
        ] {
            assert!(check_base_url(ProviderKind::Openai, text).is_err(), "{text}");
        }
        assert!(
            check_base_url(ProviderKind::Openai, &format!("http://h/{}", "x".repeat(3000)))
                .is_err()
        );
    }

    #[test]
    fn ids_are_short_and_plain() {
        assert!(check_provider_id("lm-studio2").is_ok());
        for id in ["", "A", "a b", "a/b", "..", &"x".repeat(41)] {
            assert!(check_provider_id(id).is_err(), "{id}");
        }
    }

    #[test]
    fn a_key_is_in_no_debug_output_and_taken_out_of_texts() {
        let settings = ProviderSettings {
            id: "x".to_owned(),
            kind: ProviderKind::Openai,
            name: String::new(),
            base_url: "http://h/".to_owned(),
            api_key: Some("canary-key".to_owned()),
            default_model: None,
        };
        assert!(!format!("{settings:?}").contains("canary"));
        assert_eq!(settings.without_key("bad key canary-key!"), "bad key ********!");
    }
}
