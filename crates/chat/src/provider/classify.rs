//! From what a provider answers to a failure that a person can act on. Pure.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::settings::{ProviderKind, ProviderSettings};
use crate::{ModelFailure, ModelFailureKind as Kind};

/// What is shown of a provider's own words.
const MAX_WORDS: usize = 600;

/// How providers say that a conversation is too long.
const TOO_LONG: [&str; 10] = [
    "context_length_exceeded",
    "maximum context length",
    "context length",
    "context window",
    "prompt is too long",
    "too many tokens",
    "input token count",
    "exceeds the maximum number of tokens",
    "exceed_context_size",
    "request too large",
];
/// How providers say that a model cannot call tools.
const NO_TOOLS: [&str; 4] = [
    "does not support tools",
    "does not support function",
    "support tool use",
    "tool use is not supported",
];
/// How providers say that a key is wrong without the status for it.
const BAD_KEY: [&str; 4] =
    ["api key not valid", "api_key_invalid", "invalid api key", "invalid x-api-key"];

/// A provider's answer that is no success.
pub(super) struct Refusal<'a> {
    /// None for a failure told inside a stream.
    pub(super) status: Option<u16>,
    pub(super) body: &'a str,
    pub(super) retry_after: Option<f64>,
}

/// What a refusal means.
pub(super) fn refused(
    settings: &ProviderSettings,
    model: &str,
    refusal: &Refusal<'_>,
) -> ModelFailure {
    let words = settings.without_key(&words(refusal.body));
    let kind = kind_of(refusal.status, &refusal.body.to_lowercase());
    let name = &settings.name;
    let said = match refusal.status {
        Some(status) => format!("{name} answered {status}: {words}"),
        None => format!("{name} broke off its answer: {words}"),
    };
    let failure = ModelFailure::new(kind, said).retry_after(refusal.retry_after);
    match hint(settings, kind, model) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn kind_of(status: Option<u16>, body: &str) -> Kind {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| body.contains(phrase));
    if says(&BAD_KEY) {
        return Kind::WrongKey;
    }
    match status {
        Some(401 | 403) => Kind::WrongKey,
        // A quota that is used up does not come back by waiting.
        Some(429) if says(&["insufficient_quota"]) => Kind::Refused,
        Some(429 | 503 | 529) => Kind::RateLimited,
        Some(400..=499) | None if says(&NO_TOOLS) => Kind::NoTools,
        Some(413) => Kind::ContextOverflow,
        Some(400..=499) | None if says(&TOO_LONG) => Kind::ContextOverflow,
        Some(404) if says(&["model"]) => Kind::NoSuchModel,
        Some(400)
            if says(&[
                "model_not_found",
                "model not found",
                "is not a valid model",
                "invalid model",
            ]) =>
        {
            Kind::NoSuchModel
        }
        Some(400..=499) => Kind::Refused,
        None if says(&["overloaded", "rate_limit", "rate limit"]) => Kind::RateLimited,
        Some(_) | None => Kind::ProviderError,
    }
}

fn hint(settings: &ProviderSettings, kind: Kind, model: &str) -> Option<String> {
    let id = &settings.id;
    let hint = match kind {
        Kind::WrongKey if settings.api_key.is_none() => format!("give `{id}` a key in Settings"),
        Kind::WrongKey => {
            format!("check the key of `{id}` in Settings, or the variable that sets it")
        }
        Kind::NoSuchModel if settings.kind == ProviderKind::Ollama => {
            format!("get it with `ollama pull {model}`, or choose another model")
        }
        Kind::NoSuchModel => "choose one of the models that the provider lists".to_owned(),
        Kind::RateLimited => "wait a little, then try again".to_owned(),
        Kind::ContextOverflow => {
            "begin a new chat, or offer fewer servers: tool definitions count too".to_owned()
        }
        Kind::NoTools => {
            "choose a model that can call tools, or switch all servers off for this chat".to_owned()
        }
        Kind::Refused => {
            format!("check the address of `{id}` ({}) and the model", settings.base_url)
        }
        _ => return None,
    };
    Some(hint)
}

/// What it means that there was no answer at all.
pub(super) fn unreachable(settings: &ProviderSettings, cause: &str) -> ModelFailure {
    let (name, url) = (&settings.name, &settings.base_url);
    let hint = if settings.kind == ProviderKind::Ollama {
        "is Ollama running? start it with `ollama serve`".to_owned()
    } else {
        format!("check the address of `{}` and whether this machine reaches it", settings.id)
    };
    let cause = settings.without_key(cause);
    ModelFailure::new(Kind::Unreachable, format!("could not reach {name} at {url}: {cause}"))
        .hint(hint)
}

/// What it means that an answer ended before its end.
pub(super) fn cut(settings: &ProviderSettings, cause: &str) -> ModelFailure {
    let cause = settings.without_key(cause);
    ModelFailure::new(
        Kind::StreamCut,
        format!("the answer of {} broke off: {cause}", settings.name),
    )
    .hint("try again; if it happens often, look at the provider or at a proxy between")
}

/// What it means that nothing came for too long.
pub(super) fn silent(settings: &ProviderSettings, limit: Duration) -> ModelFailure {
    let message = format!("{} was silent for {} seconds", settings.name, limit.as_secs());
    ModelFailure::new(Kind::Timeout, message).hint("try again, or choose a faster model")
}

/// More was sent than an answer can be.
pub(super) fn unbounded(settings: &ProviderSettings, why: &str) -> ModelFailure {
    let message = format!("what {} sends was read no further: {why}", settings.name);
    ModelFailure::new(Kind::ProviderError, message)
        .hint(format!("try again, or another model; `{}` is at {}", settings.id, settings.base_url))
}

/// The provider's own words: the message in its JSON, else the beginning of its text.
fn words(body: &str) -> String {
    let told = serde_json::from_str::<Value>(body).ok().and_then(|value| {
        let value = value.get(0).cloned().unwrap_or(value);
        let places = ["/error/message", "/error", "/message", "/detail", "/errors/0/message"];
        places.iter().find_map(|place| Some(value.pointer(place)?.as_str()?.to_owned()))
    });
    let text = told.unwrap_or_else(|| body.trim().to_owned());
    if text.is_empty() {
        return "(no words)".to_owned();
    }
    match text.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Seconds after which a provider asks to be tried again: `retry-after-ms`, or `Retry-After` as
/// a number or as a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<f64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Some(millis / 1000.0);
    }
    let text = text("retry-after")?;
    number(text).or_else(|| {
        let date = httpdate::parse_http_date(text).ok()?;
        Some(date.duration_since(now).unwrap_or_default().as_secs_f64().ceil())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    fn settings(kind: ProviderKind) -> ProviderSettings {
        ProviderSettings {
            id: "p".to_owned(),
            kind,
            name: "P".to_owned(),
            base_url: "http://h/".to_owned(),
            api_key: Some("sk-canary-1".to_owned()),
            default_model: None,
        }
    }

    fn check(status: u16, body: &str, expected: Kind) {
        let refusal = Refusal { status: Some(status), body, retry_after: None };
        let failure = refused(&settings(ProviderKind::Openai), "m", &refusal);
        assert_eq!(failure.kind, expected, "{status} {body}");
        assert!(!failure.message.contains("canary"), "{}", failure.message);
    }

    #[test]
    fn each_providers_words_are_understood() {
        check(
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-canary-1"}}"#,
            Kind::WrongKey,
        );
        check(
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Kind::WrongKey,
        );
        check(
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            Kind::WrongKey,
        );
        check(
            404,
            r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#,
            Kind::NoSuchModel,
        );
        check(404, r#"{"error":"model 'x' not found"}"#, Kind::NoSuchModel);
        check(
            404,
            r#"{"error":{"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}"#,
            Kind::NoSuchModel,
        );
        check(404, "404 page not found", Kind::Refused);
        check(
            404,
            r#"{"error":{"message":"No endpoints found that support tool use."}}"#,
            Kind::NoTools,
        );
        check(
            400,
            r#"{"error":"registry.ollama.ai/library/x does not support tools"}"#,
            Kind::NoTools,
        );
        check(
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
            Kind::ContextOverflow,
        );
        check(
            400,
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            Kind::ContextOverflow,
        );
        check(
            400,
            r#"{"error":{"message":"The input token count (1) exceeds the maximum number of tokens allowed"}}"#,
            Kind::ContextOverflow,
        );
        check(413, "", Kind::ContextOverflow);
        check(429, r#"{"error":{"message":"Rate limit reached"}}"#, Kind::RateLimited);
        check(
            429,
            r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
            Kind::Refused,
        );
        check(
            529,
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Kind::RateLimited,
        );
        check(500, "oops", Kind::ProviderError);
        check(418, "teapot", Kind::Refused);
    }

    #[test]
    fn a_failure_inside_a_stream_is_understood_too() {
        let within = |body| {
            let refusal = Refusal { status: None, body, retry_after: None };
            refused(&settings(ProviderKind::Anthropic), "m", &refusal).kind
        };
        assert_eq!(
            within(r#"{"type":"overloaded_error","message":"Overloaded"}"#),
            Kind::RateLimited
        );
        assert_eq!(within(r#"{"message":"boom"}"#), Kind::ProviderError);
        assert_eq!(within(r#"{"message":"maximum context length"}"#), Kind::ContextOverflow);
    }

    #[test]
    fn the_hint_says_what_to_do() {
        let ollama = settings(ProviderKind::Ollama);
        let refusal = Refusal {
            status: Some(404),
            body: r#"{"error":"model 'q' not found"}"#,
            retry_after: None,
        };
        assert!(refused(&ollama, "q", &refusal).hint.unwrap().contains("ollama pull q"));
        assert!(unreachable(&ollama, "refused").hint.unwrap().contains("ollama serve"));
        assert!(
            unreachable(&settings(ProviderKind::Openai), "x").hint.unwrap().contains("address")
        );
    }

    #[test]
    fn a_pause_is_read_in_every_form() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
        for (name, value, expected) in [
            ("retry-after", "7", Some(7.0)),
            ("retry-after", "0.5", Some(0.5)),
            ("retry-after-ms", "1500", Some(1.5)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(30.0)),
            ("retry-after", "Sat, 05 Nov 1994 08:49:37 GMT", Some(0.0)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("x-other", "1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(retry_after(&headers, now), expected, "{name}: {value}");
        }
    }

    #[test]
    fn long_and_empty_words_are_bounded() {
        assert_eq!(words(""), "(no words)");
        assert_eq!(words(&"é".repeat(5000)).chars().count(), MAX_WORDS + 1);
        assert_eq!(words(r#"{"detail":"x"}"#), "x");
    }
}
