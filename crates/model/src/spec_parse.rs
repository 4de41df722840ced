//! From the JSON of a registration or a change to a `ServerSpec`, with every mistake found
//! at once rather than the first one only.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::spec;
use crate::spec_check::check;
use crate::{FieldError, ServerName, ServerSpec};

/// Reads the body of a registration.
pub fn parse_registration(body: Value) -> Result<ServerSpec, Vec<FieldError>> {
    let Value::Object(map) = body else {
        return Err(vec![FieldError::new("", "the body is not a JSON object")]);
    };
    let mut fields = Fields { map, errors: Vec::new() };
    let spec = read(&mut fields);
    fields.refuse_the_rest();
    check(&spec, &mut fields.errors);
    if fields.errors.is_empty() { Ok(spec) } else { Err(fields.errors) }
}

/// Reads the body of a change: the fields it names replace those of `current`; null takes a
/// field back to its default.
pub fn parse_patch(current: &ServerSpec, body: Value) -> Result<ServerSpec, Vec<FieldError>> {
    let Value::Object(changes) = body else {
        return Err(vec![FieldError::new("", "the body is not a JSON object")]);
    };
    let Ok(Value::Object(mut merged)) = serde_json::to_value(current) else {
        return Err(vec![FieldError::new("", "the stored configuration cannot be read")]);
    };
    for (key, value) in changes {
        merged.insert(key, value);
    }
    parse_registration(Value::Object(merged))
}

/// The fields that are still to be read, and what was wrong with those that were.
struct Fields {
    map: Map<String, Value>,
    errors: Vec<FieldError>,
}

impl Fields {
    /// The field's value, or `default` where it is missing or null. Where it is wrong, that is
    /// noted and `default` stands in for it, so that the other fields can still be checked.
    fn take<T: DeserializeOwned>(&mut self, key: &str, default: impl FnOnce() -> T) -> T {
        match self.map.shift_remove(key) {
            None | Some(Value::Null) => default(),
            Some(value) => serde_json::from_value(value).unwrap_or_else(|error| {
                self.errors.push(FieldError::new(key, error.to_string()));
                default()
            }),
        }
    }

    /// A text that means something: blank is as good as missing.
    fn take_text(&mut self, key: &str) -> Option<String> {
        let text: Option<String> = self.take(key, || None);
        text.filter(|text| !text.trim().is_empty())
    }

    fn take_name(&mut self) -> ServerName {
        let wrong_before = self.errors.len();
        let text: String = self.take("name", String::new);
        ServerName::new(&text).unwrap_or_else(|error| {
            if self.errors.len() == wrong_before {
                self.errors.push(FieldError::new("name", error.to_string()));
            }
            ServerName::placeholder()
        })
    }

    fn is_wrong(&self, key: &str) -> bool {
        self.errors.iter().any(|error| error.field == key)
    }

    fn refuse_the_rest(&mut self) {
        for key in self.map.keys() {
            self.errors.push(FieldError::new(key, format!("unknown field `{key}`")));
        }
    }
}

/// Reads each field by itself, so that one mistake does not hide another.
fn read(fields: &mut Fields) -> ServerSpec {
    let spec = ServerSpec {
        name: fields.take_name(),
        description: fields.take_text("description"),
        prefix: fields.take_text("prefix"),
        command: fields.take_text("command"),
        args: fields.take("args", Vec::new),
        cwd: fields.take_text("cwd"),
        image: fields.take_text("image"),
        url: fields.take_text("url"),
        headers: fields.take("headers", BTreeMap::new),
        auth: fields.take("auth", || None),
        audience: fields.take_text("audience"),
        stdio_bridge: fields.take("stdio_bridge", spec::yes),
        ports: fields.take("ports", Vec::new),
        http_path: fields.take_text("http_path"),
        environment: fields.take("environment", BTreeMap::new),
        volumes: fields.take("volumes", Vec::new),
        resource_limits: fields.take("resource_limits", Default::default),
        restart_policy: fields.take("restart_policy", Default::default),
        provider: fields.take("provider", || None),
        enabled: fields.take("enabled", spec::yes),
        include_resources: fields.take("include_resources", || false),
        tools_allow: fields.take("tools_allow", Vec::new),
        tools_deny: fields.take("tools_deny", Vec::new),
        call_timeout_ms: fields.take("call_timeout_ms", || None),
        start_timeout_ms: fields.take("start_timeout_ms", spec::default_start_timeout),
        max_in_flight: fields.take("max_in_flight", || None),
        heartbeat: fields.take("heartbeat", Default::default),
        sharing: fields.take("sharing", Default::default),
        network: fields.take("network", Default::default),
        require: fields.take("require", || None),
        user: fields.take_text("user"),
        openings: fields.take("openings", Default::default),
    };
    read_kind(&spec, fields);
    spec
}

/// A server is given by exactly one of three fields.
fn read_kind(spec: &ServerSpec, fields: &mut Fields) {
    let named = [(&spec.command, "command"), (&spec.image, "image"), (&spec.url, "url")];
    let given: Vec<&str> = named
        .iter()
        .filter(|(value, key)| value.is_some() || fields.is_wrong(key))
        .map(|(_, key)| *key)
        .collect();
    match given.as_slice() {
        [] => fields.errors.push(FieldError::new("command", "Command is required")),
        [first, extra @ ..] => {
            for key in extra {
                let message =
                    format!("give one of `command`, `image` and `url`, not `{first}` and `{key}`");
                fields.errors.push(FieldError::new(*key, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use serde_json::json;

    fn fields_of(body: Value) -> Vec<String> {
        parse_registration(body).unwrap_err().into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn the_smallest_registration_has_every_default() {
        let spec = parse_registration(json!({"name": "fs", "command": "npx"})).unwrap();
        assert_eq!(spec.kind(), Kind::Process);
        assert!(spec.enabled && spec.stdio_bridge && !spec.include_resources);
        assert_eq!(
            (spec.call_timeout_ms, spec.start_timeout_ms, spec.max_in_flight),
            (None, 60_000, None)
        );
        assert_eq!(
            spec.heartbeat,
            crate::HeartbeatSpec { interval_ms: 15_000, timeout_ms: 10_000 }
        );
    }

    #[test]
    fn every_mistake_is_named_at_once() {
        // covers: MGR-5
        let body = json!({
            "name": " ", "args": "not a list", "max_in_flight": 0, "colour": "red",
            "environment": {"A=B": "x"}, "heartbeat": {"interval": 3},
        });
        assert_eq!(
            fields_of(body),
            ["name", "args", "max_in_flight", "heartbeat", "command", "colour", "environment.A=B"]
        );
        let body = json!({"name": "x", "command": "y", "max_in_flight": 0, "call_timeout_ms": 0, "environment": {"A=B": "x"}});
        assert_eq!(fields_of(body), ["max_in_flight", "environment.A=B", "call_timeout_ms"]);
    }

    #[test]
    fn a_server_is_one_kind_of_thing() {
        assert_eq!(fields_of(json!({"name": "x", "command": "y", "url": "http://z"})), ["url"]);
        assert_eq!(fields_of(json!({"name": "x"})), ["command"]);
        assert_eq!(fields_of(json!({"name": "x", "command": "  "})), ["command"]);
        assert_eq!(fields_of(json!([])), [""]);
    }

    #[test]
    fn limits_are_checked_where_they_are_written() {
        let body = json!({"name": "x", "command": "y", "resource_limits": {"cpu": "lots", "memory": "-1", "pids": 0}});
        assert_eq!(
            fields_of(body),
            ["resource_limits.cpu", "resource_limits.memory", "resource_limits.pids"]
        );
    }

    #[test]
    fn a_prefix_is_checked_and_replaces_the_name_in_joined_names() {
        let spec = json!({"name": "git hub", "command": "y", "prefix": "gh"});
        let spec = parse_registration(spec).unwrap();
        assert_eq!(spec.joined_prefix(), "gh");
        let without = parse_patch(&spec, json!({"prefix": null})).unwrap();
        assert_eq!((without.joined_prefix(), &without.prefix), ("git hub", &None));
        assert_eq!(fields_of(json!({"name": "x", "command": "y", "prefix": "a b"})), ["prefix"]);
        assert_eq!(fields_of(json!({"name": "x", "command": "y", "prefix": 5})), ["prefix"]);
    }

    #[test]
    fn a_patch_changes_what_it_names_and_null_resets() {
        let spec = parse_registration(
            json!({"name": "x", "command": "y", "args": ["1"], "max_in_flight": 4}),
        )
        .unwrap();
        let patched = parse_patch(&spec, json!({"args": ["2"], "max_in_flight": null})).unwrap();
        assert_eq!((patched.args, patched.max_in_flight), (vec!["2".to_owned()], None));
        let errors = parse_patch(&spec, json!({"colour": 1})).unwrap_err();
        assert_eq!(errors[0].field, "colour");
    }

    #[test]
    fn a_change_of_words_does_not_need_a_new_process() {
        let spec = parse_registration(json!({"name": "x", "command": "y"})).unwrap();
        let renamed = parse_patch(
            &spec,
            json!({"name": "z", "description": "d", "prefix": "p", "call_timeout_ms": 5}),
        )
        .unwrap();
        assert!(spec.runs_like(&renamed));
        let rerun = parse_patch(&spec, json!({"args": ["a"]})).unwrap();
        assert!(!spec.runs_like(&rerun));
    }
}
