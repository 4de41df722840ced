//! Telling what is probably a secret, and keeping known secrets out of what is shown.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;

use crate::ServerSpec;
use crate::secret_args::secret_args;

/// What stands where a secret was.
pub const MASK: &str = "********";

/// Values of fewer characters are too likely to stand in a log by chance.
const MIN_REDACTED: usize = 6;

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
        || url_password(value).is_some()
}

fn url_password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
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

/// Takes configured values out of text, whatever their names are: a `DSN`, a `COOKIE` or a
/// `CONFIG` holds a secret as often as a `TOKEN`. Costs nothing where a server has none.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    values: Option<AhoCorasick>,
}

impl Redactor {
    /// Knows the values of `environment`.
    pub fn new<'a>(environment: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        Self::of(environment.into_iter().map(|(_, value)| value.as_str()))
    }

    /// Knows the values that these registrations configure: of variables and headers, and the
    /// secrets in arguments.
    pub fn of_specs<'a>(specs: impl IntoIterator<Item = &'a ServerSpec>) -> Self {
        let configured = |spec: &'a ServerSpec| {
            let variables = spec.environment.values().map(String::as_str);
            let headers = spec.headers.values().flat_map(|value| header_secrets(value));
            variables.chain(headers).chain(secret_args(&spec.args))
        };
        Self::of(specs.into_iter().flat_map(configured))
    }

    fn of<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = values.flat_map(forms).collect();
        forms.retain(|form| form.chars().count() >= MIN_REDACTED);
        forms.sort_unstable();
        forms.dedup();
        if forms.is_empty() {
            return Self::default();
        }
        let values = AhoCorasick::builder()
            .match_kind(aho_corasick::MatchKind::LeftmostLongest)
            .build(forms)
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

/// The forms in which a value appears: as it is, line by line, as text in JSON, as text in JSON
/// that is itself text in JSON (tools return so), and, for a URL, its password alone.
fn forms(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut forms = vec![value.to_owned()];
    if value.contains('\n') {
        forms.extend(value.lines().map(|line| line.trim().to_owned()));
    }
    let quoted = quoted(value);
    forms.push(self::quoted(&quoted));
    forms.push(quoted);
    forms.extend(url_password(value).map(str::to_owned));
    forms
}

/// `value` as it is between the quotation marks of a JSON string.
fn quoted(value: &str) -> String {
    let text = serde_json::Value::from(value).to_string();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default().to_owned()
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

    fn check(environment: &[(&str, &str)], text: &str, masked: &str) {
        let environment: BTreeMap<String, String> =
            environment.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        assert_eq!(Redactor::new(&environment).redact(text), masked);
    }

    #[test]
    fn configured_values_are_masked_whatever_their_names() {
        // covers: MGR-8
        for name in ["API_KEY", "DSN", "COOKIE", "JWT", "CONFIG"] {
            check(&[(name, "canary")], "using canary, canaries", "using ********, canaries");
        }
        check(&[("PIN", "12345")], "using 12345", "using 12345");
    }

    #[test]
    fn values_are_masked_in_each_form_in_which_they_appear() {
        check(&[("CERT", "-----BEGIN\nMIIabcdef\n--")], "read MIIabcdef", "read ********");
        check(&[("CONFIG", r#"{"a":1}"#)], r#"{"text":"{\"a\":1}"}"#, r#"{"text":"********"}"#);
        check(&[("CONFIG", r#"{"a":1}"#)], r#""{\\\"a\\\":1}""#, r#""********""#);
        check(&[("DSN", "postgres://me:hunter2@db/app")], "bad hunter2", "bad ********");
        check(&[("A", "canary"), ("B", "canary-two")], "canary-two", "********");
    }

    #[test]
    fn secrets_in_arguments_are_masked() {
        let spec = crate::parse_registration(serde_json::json!({
            "name": "x", "command": "y", "args": ["--api-key=canary-1", "--root", "/srv/files"],
        }));
        let redactor = Redactor::of_specs([&spec.unwrap()]);
        assert_eq!(redactor.redact("canary-1 of /srv/files"), format!("{MASK} of /srv/files"));
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
