//! Placeholders in a client's configuration: `${VAR}`, `${VAR:-default}`, `${env:VAR}`,
//! `${workspaceFolder}`, `${workspaceFolderBasename}` and `${userHome}`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

/// Keys of a server in which clients expand placeholders.
const EXPANDED: [&str; 11] = [
    "command",
    "args",
    "env",
    "environment",
    "envFile",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "image",
];

/// The values of placeholders. Not `Debug`: they may be secrets.
#[derive(Default)]
pub(crate) struct Variables {
    /// The variables of the requesting client; the daemon's own environment if none were sent.
    pub(crate) environment: Option<BTreeMap<String, String>>,
    /// The folder of the project that the configuration belongs to.
    pub(crate) workspace: Option<String>,
}

impl Variables {
    /// Replaces every placeholder of a server that has a value; describes those that have none.
    pub(crate) fn expand(&self, server: &mut Map<String, Value>) -> Vec<String> {
        let mut missing = Vec::new();
        for (key, value) in server.iter_mut().filter(|(key, _)| EXPANDED.contains(&key.as_str())) {
            self.expand_value(key, value, &mut missing);
        }
        missing
    }

    fn expand_value(&self, at: &str, value: &mut Value, missing: &mut Vec<String>) {
        match value {
            Value::String(text) => *text = self.expand_text(at, text, missing),
            Value::Array(parts) => {
                for (number, part) in parts.iter_mut().enumerate() {
                    self.expand_value(&format!("{at}[{number}]"), part, missing);
                }
            }
            Value::Object(parts) => {
                for (key, part) in parts.iter_mut() {
                    self.expand_value(&format!("{at}.{key}"), part, missing);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// An expanded value is not expanded again: it may be a password with `${` in it.
    fn expand_text(&self, at: &str, text: &str, missing: &mut Vec<String>) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, inside, after)) = split_placeholder(rest) {
            expanded.push_str(before);
            match self.value_of(inside) {
                Some(value) => expanded.push_str(&value),
                None => {
                    expanded.push_str(&format!("${{{inside}}}"));
                    missing.push(format!("`${{{inside}}}` in `{at}` has no value"));
                }
            }
            rest = after;
        }
        expanded + rest
    }

    fn value_of(&self, placeholder: &str) -> Option<String> {
        match placeholder {
            "workspaceFolder" => return self.workspace.clone(),
            "workspaceFolderBasename" => {
                let name = Path::new(self.workspace.as_deref()?).file_name()?;
                return Some(name.to_string_lossy().into_owned());
            }
            "userHome" => return self.variable("HOME"),
            _ => {}
        }
        let name = placeholder.strip_prefix("env:").unwrap_or(placeholder);
        if let Some((name, default)) = name.split_once(":-") {
            // As in a shell: an empty variable has the default too.
            let value = self.variable(name).filter(|value| !value.is_empty());
            return is_name(name).then(|| value.unwrap_or_else(|| default.to_owned()));
        }
        is_name(name).then(|| self.variable(name)).flatten()
    }

    fn variable(&self, name: &str) -> Option<String> {
        match &self.environment {
            Some(environment) => environment.get(name).cloned(),
            None => std::env::var(name).ok(),
        }
    }
}

/// The text before the first `${…}`, its inside, and the text after it.
fn split_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (inside, after) = rest.split_once('}')?;
    Some((before, inside, after))
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variables() -> Variables {
        let environment = [("TOKEN", "s3cret ${X}"), ("EMPTY", ""), ("HOME", "/home/me")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Variables { environment: Some(environment.into()), workspace: Some("/src/app".to_owned()) }
    }

    #[test]
    fn placeholders_are_replaced_where_clients_do() {
        let mut server = json!({
            "command": "${workspaceFolder}/run", "args": ["${TOKEN}", "${env:TOKEN}-${NO:-x y}", "a${b"],
            "env": {"A": "${EMPTY}", "B": "${EMPTY:-z}"}, "cwd": "${userHome}/${workspaceFolderBasename}",
            "description": "${TOKEN}",
        });
        let missing = variables().expand(server.as_object_mut().unwrap());
        assert_eq!(missing, Vec::<String>::new());
        let expected = json!({
            "command": "/src/app/run", "args": ["s3cret ${X}", "s3cret ${X}-x y", "a${b"],
            "env": {"A": "", "B": "z"}, "cwd": "/home/me/app", "description": "${TOKEN}",
        });
        assert_eq!(server, expected);
    }

    #[test]
    fn placeholders_without_a_value_are_named_and_stay() {
        let mut server = json!({
            "args": ["${input:key}", "${UNSET}"], "headers": {"X": "Bearer ${env:UNSET}"},
        });
        let before = server.clone();
        let missing = variables().expand(server.as_object_mut().unwrap());
        assert_eq!(
            missing,
            [
                "`${input:key}` in `args[0]` has no value",
                "`${UNSET}` in `args[1]` has no value",
                "`${env:UNSET}` in `headers.X` has no value",
            ]
        );
        assert_eq!(server, before);
        let mut server = json!({"cwd": "${workspaceFolder}"});
        let nowhere = Variables { workspace: None, ..variables() };
        assert_eq!(nowhere.expand(server.as_object_mut().unwrap()).len(), 1);
    }
}
