//! The flags that describe a server elsewhere, and the JSON they become.

use clap::Args;
use clap::builder::PossibleValuesParser;
use cofer_model::looks_secret_key;
use serde_json::{Map, Value};

use crate::cli::GLOBAL;
use crate::failure::Failure;
use crate::output::warn;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Remote servers")]
pub(super) struct RemoteFlags {
    /// Use the server at this Streamable HTTP endpoint, instead of a program of this machine
    #[arg(id = "remote_url", long = "url", value_name = "URL", conflicts_with = "image")]
    url: Option<String>,
    /// Send this header with every request; NAME alone takes its value from the variable of
    /// your environment with that name in capitals and `_` for `-`, so that a secret stands in no
    /// command line
    #[arg(long, value_name = "'NAME: VALUE'")]
    header: Vec<String>,
    /// Sign requests, for a server on Cloud Run, with the credentials that `cofer proxy` finds;
    /// `none` takes that back
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(["google-id-token", "none"]))]
    auth: Option<String>,
    /// Whom such a signature is for [default: the URL's origin]
    #[arg(long, value_name = "AUD")]
    audience: Option<String>,
    // Has the id of the global flag, whose name is taken here.
    /// The daemon's address [default: the running daemon's, else http://127.0.0.1:8787]
    #[arg(id = "url", long = "daemon-url", env = "COFER_URL", value_name = "URL", hide_env_values = true, help_heading = GLOBAL)]
    _daemon: Option<String>,
}

impl RemoteFlags {
    /// The fields that were given, and only those.
    pub(super) fn fields(&self) -> Result<Map<String, Value>, Failure> {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(key.to_owned(), value);
            }
        };
        put("url", self.url.clone().map(Value::from));
        put("audience", self.audience.clone().map(Value::from));
        put("auth", self.auth.as_deref().map(auth));
        if !self.header.is_empty() {
            let caller = |key: &str| std::env::var(key).ok();
            let headers = self.header.iter().map(|text| header(text, &caller));
            put("headers", Some(Value::Object(headers.collect::<Result<_, _>>()?)));
        }
        Ok(fields)
    }
}

fn auth(how: &str) -> Value {
    match how {
        "none" => Value::Null,
        how => Value::from(how.replace('-', "_")),
    }
}

/// `Name: value`, or a name whose value is a variable of the caller's.
fn header(text: &str, caller: &dyn Fn(&str) -> Option<String>) -> Result<(String, Value), Failure> {
    let Some((name, value)) = text.split_once(':') else {
        let name = text.trim();
        let variable = variable(name);
        let value = caller(&variable).ok_or_else(|| {
            Failure::mistyped(format!(
                "your environment has no variable `{variable}` for the header `{name}`"
            ))
            .hint("set and export it first, or write the header as 'NAME: VALUE'.")
        })?;
        return Ok((name.to_owned(), Value::from(value)));
    };
    let name = name.trim();
    if looks_secret_key(name) || name.eq_ignore_ascii_case("authorization") {
        let variable = variable(name);
        warn(&format!(
            "the value of {name} stands in the process list; `--header {name}` takes it from {variable} in your environment."
        ));
    }
    Ok((name.to_owned(), Value::from(value.trim())))
}

fn variable(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_given_is_sent() {
        assert_eq!(RemoteFlags::default().fields().unwrap(), Map::new());
        let flags = RemoteFlags {
            url: Some("https://x/mcp".to_owned()),
            header: vec!["X-Team: a:b".to_owned()],
            auth: Some("google-id-token".to_owned()),
            ..RemoteFlags::default()
        };
        assert_eq!(
            Value::Object(flags.fields().unwrap()),
            json!({"url": "https://x/mcp", "auth": "google_id_token", "headers": {"X-Team": "a:b"}})
        );
        let back = RemoteFlags { auth: Some("none".to_owned()), ..RemoteFlags::default() };
        assert_eq!(Value::Object(back.fields().unwrap()), json!({"auth": null}));
    }

    #[test]
    fn a_secret_can_come_from_the_environment() {
        let caller = |key: &str| (key == "X_API_KEY").then(|| "secret".to_owned());
        let read = header("X-Api-Key", &caller).unwrap();
        assert_eq!(read, ("X-Api-Key".to_owned(), json!("secret")));
        let failure = header("X-Other", &caller).unwrap_err();
        assert!(failure.render().contains("X_OTHER"), "{}", failure.render());
    }
}
