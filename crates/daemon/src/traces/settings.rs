//! OpenTelemetry's own variables, as far as they concern spans that are sent by OTLP over HTTP.
//! By its rules an empty one counts as not set, and one that cannot be meant is said and ignored.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::sampler::Sampler;

/// What was asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Settings {
    /// Where spans are sent.
    pub(super) endpoint: Uri,
    /// What goes with them; may be secret.
    pub(super) headers: HeaderMap,
    /// How long one try may take.
    pub(super) timeout: Duration,
    /// A PEM file of certificates that are trusted beside the system's.
    pub(super) certificate: Option<PathBuf>,
    /// Who we are: attributes of all spans.
    pub(super) resource: Vec<(String, String)>,
    pub(super) sampler: Sampler,
    /// How long a span waits for company.
    pub(super) delay: Duration,
    /// How many spans wait at most.
    pub(super) queue_size: usize,
    /// How many are sent at once at most.
    pub(super) batch_size: usize,
}

impl Settings {
    /// Reads them; none where no spans are wanted. The texts say what is wrong.
    pub(super) fn read(get: impl Fn(&str) -> Option<String>) -> (Option<Self>, Vec<String>) {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let mut reader = Reader { get: &get, complaints: Vec::new() };
        let settings = reader.settings();
        (settings, reader.complaints)
    }

    /// The endpoint without what may be a password.
    pub(super) fn shown_endpoint(&self) -> String {
        let authority = self.endpoint.authority().map_or("", |authority| authority.as_str());
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let scheme = self.endpoint.scheme_str().unwrap_or_default();
        format!("{scheme}://{host}{}", self.endpoint.path())
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    complaints: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self) -> Option<Settings> {
        let endpoint = self.endpoint()?;
        let queue_size = self.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048).clamp(1, 1 << 20);
        let batch_size = self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512).clamp(1, queue_size);
        Some(Settings {
            endpoint,
            headers: self.headers(),
            timeout: Duration::from_millis(self.of_traces_number("TIMEOUT", 10_000)),
            certificate: self.of_traces("CERTIFICATE").map(|(_, path)| path.into()),
            resource: self.resource(),
            sampler: self.sampler(),
            delay: Duration::from_millis(self.number("OTEL_BSP_SCHEDULE_DELAY", 5000)),
            queue_size: queue_size as usize,
            batch_size: batch_size as usize,
        })
    }

    /// Where to, where spans are wanted at all.
    fn endpoint(&mut self) -> Option<Uri> {
        let (name, text) = self.of_traces("ENDPOINT")?;
        let is = |name: &str, word: &str| {
            (self.get)(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(word))
        };
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return None;
        }
        if let Some(exporters) = (self.get)("OTEL_TRACES_EXPORTER")
            && !exporters.split(',').any(|exporter| exporter.trim() == "otlp")
        {
            return self.no("OTEL_TRACES_EXPORTER", "only `otlp` is spoken; no spans are exported");
        }
        if let Some((name, protocol)) = self.of_traces("PROTOCOL")
            && !matches!(protocol.trim(), "http/json" | "http/protobuf")
        {
            let why =
                "only `http/json` is spoken, on the collector's HTTP port; no spans are exported";
            return self.no(&name, why);
        }
        // That of all signals is a place below which each has its own.
        let text = text.trim();
        let whole = if name.contains("_TRACES_") {
            text.to_owned()
        } else {
            format!("{}/v1/traces", text.trim_end_matches('/'))
        };
        let uri = whole.parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
        });
        uri.or_else(|| self.no(&name, "not an http or https URL; no spans are exported"))
    }

    fn headers(&mut self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some((name, text)) = self.of_traces("HEADERS") else {
            return headers;
        };
        for (key, value) in pairs(&text) {
            let key = key.to_ascii_lowercase().parse::<HeaderName>();
            let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
            match (key, value) {
                (Ok(key), Some(mut value)) => {
                    value.set_sensitive(true);
                    headers.insert(key, value);
                }
                // Neither is shown: who knows which of them is the secret.
                _ => self.complain(&name, "one of its headers is none, and is left out"),
            }
        }
        headers
    }

    fn resource(&mut self) -> Vec<(String, String)> {
        const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
        let mut resource = vec![("service.name".to_owned(), "cofer".to_owned())];
        resource.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        let mut set = |key: String, value: String| {
            resource.retain(|(known, _)| *known != key);
            resource.push((key, value));
        };
        let text = (self.get)(NAME).unwrap_or_default();
        let given: Option<Vec<_>> = pairs(&text)
            .map(|(key, value)| Some((key.to_owned(), value.filter(|_| !key.is_empty())?)))
            .collect();
        if given.is_none() {
            self.complaints.push(format!("{NAME}: not a list of key=value; it is ignored"));
        }
        for (key, value) in given.unwrap_or_default() {
            set(key, value);
        }
        if let Some(name) = (self.get)("OTEL_SERVICE_NAME") {
            set("service.name".to_owned(), name);
        }
        resource
    }

    fn sampler(&mut self) -> Sampler {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        let argument = (self.get)("OTEL_TRACES_SAMPLER_ARG");
        let Some(name) = (self.get)(NAME) else {
            return Sampler::default();
        };
        Sampler::read(name.trim(), argument.as_deref().map(str::trim)).unwrap_or_else(|| {
            self.complain(NAME, "no such sampler, or not with this argument; it is ignored");
            Sampler::default()
        })
    }

    /// A variable of the exporter: that for traces before that for all signals.
    fn of_traces(&self, what: &str) -> Option<(String, String)> {
        ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"].into_iter().find_map(|family| {
            let name = format!("{family}{what}");
            let value = (self.get)(&name)?;
            Some((name, value))
        })
    }

    fn of_traces_number(&mut self, what: &str, usual: u64) -> u64 {
        let named = self.of_traces(what);
        named.map_or(usual, |(name, _)| self.number(&name, usual))
    }

    fn number(&mut self, name: &str, usual: u64) -> u64 {
        let Some(text) = (self.get)(name) else {
            return usual;
        };
        text.trim().parse().ok().filter(|number| *number > 0).unwrap_or_else(|| {
            self.complain(name, &format!("not a positive number; {usual} is used"));
            usual
        })
    }

    fn complain(&mut self, name: &str, why: &str) {
        self.complaints.push(format!("{name}: {why}"));
    }

    fn no<T>(&mut self, name: &str, why: &str) -> Option<T> {
        self.complain(name, why);
        None
    }
}

/// `key=value` separated by commas, the values decoded; none for one that cannot be.
fn pairs(text: &str) -> impl Iterator<Item = (&str, Option<String>)> {
    text.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, "%"));
        (key.trim(), percent_decoded(value.trim()))
    })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (pair, rest) = part.as_bytes().split_at_checked(2)?;
        let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
        bytes.push(u8::from_str_radix(pair, 16).ok()?);
        bytes.extend_from_slice(rest);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    fn read(variables: &[(&str, &str)]) -> (Option<Settings>, Vec<String>) {
        Settings::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn good(variables: &[(&str, &str)]) -> Settings {
        let (settings, complaints) = read(&[&[ENDPOINT], variables].concat());
        assert_eq!(complaints, [] as [&str; 0]);
        settings.unwrap()
    }

    #[test]
    fn nothing_is_exported_unless_an_endpoint_is_named() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert_eq!(read(variables), (None, Vec::new()), "{variables:?}");
        }
        good(&[("OTEL_SDK_DISABLED", "false"), ("OTEL_TRACES_EXPORTER", "console,otlp")]);
    }

    #[test]
    fn the_usual_values_are_those_of_the_specification() {
        let settings = good(&[]);
        assert_eq!(settings.endpoint, "http://127.0.0.1:4318/v1/traces");
        assert!(settings.headers.is_empty() && settings.certificate.is_none());
        assert_eq!(settings.timeout, Duration::from_secs(10));
        assert_eq!(settings.delay, Duration::from_secs(5));
        assert_eq!((settings.queue_size, settings.batch_size), (2048, 512));
        assert_eq!(settings.sampler, Sampler::default());
        assert_eq!(settings.resource[0], ("service.name".to_owned(), "cofer".to_owned()));
    }

    #[test]
    fn a_place_for_traces_is_taken_as_it_is_and_one_for_all_has_a_path_of_its_own() {
        let endpoint = |name: &str, url: &str| read(&[(name, url)]).0.unwrap().endpoint.to_string();
        let all = |url: &str| endpoint("OTEL_EXPORTER_OTLP_ENDPOINT", url);
        assert_eq!(all("https://c.example/otlp/"), "https://c.example/otlp/v1/traces");
        let traces = |url: &str| endpoint("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url);
        assert_eq!(traces("http://c:4318/x"), "http://c:4318/x");
        assert_eq!(traces("http://c:4318"), "http://c:4318/");
        let both = good(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/spans")]);
        assert_eq!(both.endpoint, "http://t/spans");
    }

    #[test]
    fn headers_are_decoded_and_those_for_traces_stand_before_those_for_all() {
        let all = ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20a%3Db, x-team = core ,");
        let settings = good(&[all]);
        assert_eq!(settings.headers["authorization"], "Bearer a=b");
        assert_eq!(settings.headers["x-team"], "core");
        assert!(!format!("{settings:?}").contains("Bearer"), "{settings:?}");
        let settings = good(&[all, ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-only=1")]);
        assert_eq!(settings.headers.len(), 1);
    }

    #[test]
    fn a_service_has_the_name_that_it_is_given() {
        let attributes =
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=a%2Cb,service.name=one");
        let of = |settings: &Settings, key: &str| {
            let found = settings.resource.iter().find(|(known, _)| known == key);
            found.map(|(_, value)| value.clone())
        };
        let settings = good(&[attributes]);
        assert_eq!(of(&settings, "service.name").unwrap(), "one");
        assert_eq!(of(&settings, "deployment.environment.name").unwrap(), "a,b");
        let settings = good(&[attributes, ("OTEL_SERVICE_NAME", "two")]);
        assert_eq!(of(&settings, "service.name").unwrap(), "two");
        assert_eq!(settings.resource.len(), 3);
    }

    #[test]
    fn sizes_and_times_are_taken_and_a_batch_is_never_more_than_the_queue() {
        let settings = good(&[
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "700"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
        ]);
        assert_eq!(settings.delay, Duration::from_millis(50));
        assert_eq!((settings.queue_size, settings.batch_size), (10, 10));
        assert_eq!(settings.timeout, Duration::from_millis(700));
        assert_eq!(settings.sampler, Sampler::read("always_off", None).unwrap());
    }

    #[test]
    fn what_cannot_be_meant_is_said_without_its_value_and_is_ignored() {
        for (name, value, exports) in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "secret", false),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://secret", false),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "secret-grpc", false),
            ("OTEL_TRACES_EXPORTER", "secret", false),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret", true),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%f", true),
            ("OTEL_RESOURCE_ATTRIBUTES", "secret", true),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=%+1secret", true),
            ("OTEL_BSP_SCHEDULE_DELAY", "secret", true),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "-1secret", true),
            ("OTEL_TRACES_SAMPLER", "secret", true),
        ] {
            let (settings, complaints) = read(&[ENDPOINT, (name, value)]);
            assert_eq!(settings.is_some(), exports, "{name}={value}");
            let [complaint] = &complaints[..] else { panic!("{name}={value}: {complaints:?}") };
            assert!(complaint.starts_with(name) && !complaint.contains("secret"), "{complaint}");
            let (settings, usual) = (settings.unwrap_or_else(|| good(&[])), good(&[]));
            assert_eq!(settings, usual, "{name}={value}");
        }
    }

    #[test]
    fn a_password_in_the_endpoint_is_not_shown() {
        let settings = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:pw@c:4318/x?key=1")]).0;
        assert_eq!(settings.unwrap().shown_endpoint(), "http://c:4318/x");
    }
}
