//! Telling what is probably a secret, and keeping known secrets out of what is shown.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;

use crate::ServerSpec;

/// What stands where a secret was.
pub const MASK: &str = "********";

/// Values shorter than this are too likely to stand in a log by chance.
const MIN_REDACTED: usize = 8;

/// Words that mark a variable as holding a secret, as whole parts of its name.
const SECRET_WORDS: [&str; 14] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "PAT",
    "AUTH",
    "PRIVATE",
];

/// Beginnings by which issued credentials are known.
const SECRET_PREFIXES: [&str; 21] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJhbGci",
    "npm_",
    "-----BEGIN",
];

/// Whether a variable of this name usually holds a secret: `API_KEY`, `GITHUB_TOKEN`, `dbPassword`.
pub fn looks_secret_key(key: &str) -> bool {
    words(key).iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
}

/// Whether a value looks like an issued credential, or like a URL with a password in it.
pub fn looks_secret_value(value: &str) -> bool {
    let value = value.trim();
    SECRET_PREFIXES.iter().any(|prefix| value.starts_with(prefix)) && value.len() >= 16
        || has_url_password(value)
}

fn has_url_password(value: &str) -> bool {
    let Some((_, rest)) = value.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority
        .rsplit_once('@')
        .and_then(|(user, _)| user.split_once(':'))
        .is_some_and(|(_, password)| !password.is_empty())
}

/// `dbPassword` and `DB_PASSWORD` are both `DB`, `PASSWORD`.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous_lower = false;
    for c in key.chars() {
        let boundary = !c.is_ascii_alphanumeric() || (previous_lower && c.is_ascii_uppercase());
        if boundary {
            words.push(String::new());
        }
        if let (true, Some(last)) = (c.is_ascii_alphanumeric(), words.last_mut()) {
            last.push(c.to_ascii_uppercase());
        }
        previous_lower = c.is_ascii_lowercase();
    }
    words
}

/// Takes known secrets out of text by their value. Costs nothing where a server has none.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    values: Option<AhoCorasick>,
}

impl Redactor {
    /// Knows the values of `environment` whose name or value looks like a secret.
    pub fn new<'a>(environment: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        Self::of(secret_variables(environment))
    }

    /// Knows what these registrations keep secret: such variables, and all values of headers.
    pub fn of_specs<'a>(specs: impl IntoIterator<Item = &'a ServerSpec>) -> Self {
        let secrets = |spec: &'a ServerSpec| {
            let headers = spec.headers.values().flat_map(|value| header_secrets(value));
            secret_variables(&spec.environment).chain(headers)
        };
        Self::of(specs.into_iter().flat_map(secrets))
    }

    fn of<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let secrets: Vec<&str> = secrets.filter(|value| value.len() >= MIN_REDACTED).collect();
        if secrets.is_empty() {
            return Self::default();
        }
        let values = AhoCorasick::builder()
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(secrets)
            .ok();
        Self { values }
    }

    /// `text` with each known secret masked.
    pub fn redact<'a>(&self, text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
        let text = text.into();
        match &self.values {
            Some(values) if values.is_match(&*text) => {
                let mut out = String::with_capacity(text.len());
                values.replace_all_with(&text, &mut out, |_, _, out| {
                    out.push_str(MASK);
                    true
                });
                out.into()
            }
            _ => text,
        }
    }
}

fn secret_variables<'a>(
    environment: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> impl Iterator<Item = &'a str> {
    environment
        .into_iter()
        .filter(|(key, value)| looks_secret_key(key) || looks_secret_value(value))
        .map(|(_, value)| value.as_str())
}

/// A header's value, and the token in it where a word such as `Bearer` stands before it.
fn header_secrets(value: &str) -> impl Iterator<Item = &str> {
    let value = value.trim();
    let token = value.split_once(' ').map(|(_, token)| token.trim());
    [Some(value), token].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn secrets_are_known_by_name() {
        // covers: MGR-8
        for key in [
            "API_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "dbPassword",
            "client-secret",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(looks_secret_key(key), "{key}");
        }
        for key in
            ["PATH", "MONKEY", "KEYBOARD_LAYOUT", "LOG_LEVEL", "TOKENIZER", "PASSENGERS", "AUTHOR"]
        {
            assert!(!looks_secret_key(key), "{key}");
        }
    }

    #[test]
    fn secrets_are_known_by_shape() {
        // covers: MGR-8
        for value in [
            "ghp_abcdefghijklmnopqrstuvwxyz012345",
            "sk-proj-0123456789abcdef",
            "postgres://me:hunter2@db.example/app",
            "AKIAIOSFODNN7EXAMPLE",
        ] {
            assert!(looks_secret_value(value), "{value}");
        }
        for value in
            ["/tmp", "true", "sk-", "https://example.com/a:b@c", "postgres://me@db/app", "8080"]
        {
            assert!(!looks_secret_value(value), "{value}");
        }
    }

    #[test]
    fn known_secrets_are_masked_wherever_they_stand() {
        let environment = BTreeMap::from([
            ("API_KEY".to_owned(), "canary-0123456789".to_owned()),
            ("DEBUG".to_owned(), "canary-not-secret".to_owned()),
            ("PIN_TOKEN".to_owned(), "1234".to_owned()),
        ]);
        let redactor = Redactor::new(&environment);
        let text =
            redactor.redact("using canary-0123456789, canary-not-secret and 1234".to_owned());
        assert_eq!(text, format!("using {MASK}, canary-not-secret and 1234"));
    }

    #[test]
    fn headers_are_masked_whole_and_by_their_token() {
        let spec = crate::parse_registration(serde_json::json!({
            "name": "x", "url": "https://example.com/mcp",
            "headers": {"Authorization": "Bearer canary-0123456789", "X-Region": "europe-west1"},
        }));
        let redactor = Redactor::of_specs([&spec.unwrap()]);
        let text = "bad token canary-0123456789 (Bearer canary-0123456789) from europe-west1";
        let masked = format!("bad token {MASK} ({MASK}) from {MASK}");
        assert_eq!(redactor.redact(text.to_owned()), masked);
    }
}
