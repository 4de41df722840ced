//! From a client's JSON to what is meant, as forgiving as container-use: a boolean may be `"true"`
//! or 1, a port may be a text, and what is not known is not looked at.

use std::path::PathBuf;

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::create::Wish;
use crate::failure::Failure;

/// Shells that may be asked for.
const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "ash"];

/// The longest text of an argument.
const LONGEST: usize = 1024 * 1024;

/// Arguments of `environment_run_cmd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) source: PathBuf,
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) shell: String,
    pub(crate) background: bool,
    pub(crate) use_entrypoint: bool,
    pub(crate) ports: Vec<u16>,
    pub(crate) explanation: Option<String>,
}

/// Arguments of `environment_destroy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Farewell {
    pub(crate) source: PathBuf,
    pub(crate) id: String,
    pub(crate) force: bool,
}

pub(crate) fn wish(arguments: &JsonObject) -> Result<Wish, Failure> {
    Ok(Wish {
        source: source(arguments)?,
        title: required(arguments, "title")?,
        id: optional(arguments, "environment_id")?,
        image: optional(arguments, "image")?,
        reference: optional(arguments, "from_git_ref")?,
        replace: boolean(arguments, "allow_replace")?,
    })
}

pub(crate) fn order(arguments: &JsonObject) -> Result<Order, Failure> {
    let shell = optional(arguments, "shell")?.unwrap_or_else(|| "sh".to_owned());
    let name = shell.strip_prefix("/usr/bin/").or(shell.strip_prefix("/bin/")).unwrap_or(&shell);
    if !SHELLS.contains(&name) {
        let recovery = format!("use one of {}; nothing was run.", SHELLS.join(", "));
        return Err(Failure::invalid(format!("unsupported shell: {shell}")).recovering(recovery));
    }
    let background = boolean(arguments, "background")?;
    let ports = ports(arguments)?;
    if !ports.is_empty() && !background {
        return Err(Failure::invalid("`ports` are for commands with `background` true"));
    }
    Ok(Order {
        source: source(arguments)?,
        id: required(arguments, "environment_id")?,
        command: optional(arguments, "command")?.unwrap_or_default(),
        shell,
        background,
        use_entrypoint: boolean(arguments, "use_entrypoint")?,
        ports,
        explanation: optional(arguments, "explanation")?,
    })
}

pub(crate) fn farewell(arguments: &JsonObject) -> Result<Farewell, Failure> {
    Ok(Farewell {
        source: source(arguments)?,
        id: required(arguments, "environment_id")?,
        force: boolean(arguments, "force")?,
    })
}

fn source(arguments: &JsonObject) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(required(arguments, "environment_source")?);
    if !path.is_absolute() {
        return Err(Failure::invalid(format!(
            "environment_source {:?} is not an absolute path",
            path.display()
        )));
    }
    Ok(path)
}

fn required(arguments: &JsonObject, name: &str) -> Result<String, Failure> {
    let missing = || Failure::invalid(format!("required argument \"{name}\" not found"));
    optional(arguments, name)?.ok_or_else(missing)
}

/// Nothing where it is missing or empty.
fn optional(arguments: &JsonObject, name: &str) -> Result<Option<String>, Failure> {
    let text = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(Failure::invalid(format!("argument \"{name}\" is not a string"))),
    };
    if text.len() > LONGEST || text.contains('\0') {
        return Err(Failure::invalid(format!(
            "argument \"{name}\" is longer than {LONGEST} bytes or holds a NUL byte"
        )));
    }
    Ok(Some(text.clone()).filter(|text| !text.is_empty()))
}

fn boolean(arguments: &JsonObject, name: &str) -> Result<bool, Failure> {
    let value = arguments.get(name).unwrap_or(&Value::Null);
    match value {
        Value::Null => Ok(false),
        Value::Bool(value) => Ok(*value),
        Value::String(text) if text.eq_ignore_ascii_case("true") || text == "1" => Ok(true),
        Value::String(text)
            if text.eq_ignore_ascii_case("false") || text == "0" || text.is_empty() =>
        {
            Ok(false)
        }
        Value::Number(number) if number.as_u64() == Some(1) => Ok(true),
        Value::Number(number) if number.as_u64() == Some(0) => Ok(false),
        _ => Err(Failure::invalid(format!("argument \"{name}\" is not a boolean"))),
    }
}

fn ports(arguments: &JsonObject) -> Result<Vec<u16>, Failure> {
    let list = match arguments.get("ports") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Failure::invalid("argument \"ports\" is not a list of numbers")),
    };
    let mut ports = Vec::new();
    for value in list {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let port =
            number.filter(|number| number.fract() == 0.0 && (1.0..=65535.0).contains(number));
        let Some(port) = port else {
            return Err(Failure::invalid(format!(
                "{value} in \"ports\" is not a port from 1 to 65535"
            )));
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        let port = port as u16;
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    if ports.len() > 64 {
        return Err(Failure::invalid("more than 64 ports"));
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> JsonObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_clients_send_in_other_types_is_understood() {
        let given = object(json!({
            "environment_source": "/r", "environment_id": "x", "command": "ls", "background": "true",
            "use_entrypoint": 1, "ports": ["8080", 8081, 8080.0], "explanation": "why", "unknown": {},
        }));
        let order = order(&given).unwrap();
        assert_eq!(order.ports, [8080, 8081]);
        assert!(order.background && order.use_entrypoint);
        assert_eq!((order.shell.as_str(), order.explanation.as_deref()), ("sh", Some("why")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (arguments, part) in [
            (json!({"title": "x"}), "environment_source"),
            (json!({"environment_source": "/r"}), "required argument \"title\" not found"),
            (json!({"environment_source": "r", "title": "x"}), "not an absolute path"),
            (json!({"environment_source": "/r", "title": 3}), "argument \"title\" is not a string"),
            (
                json!({"environment_source": "/r", "title": "x", "allow_replace": "maybe"}),
                "allow_replace",
            ),
        ] {
            let failure = wish(&object(arguments)).unwrap_err();
            assert!(failure.message.contains(part), "{failure}");
        }
        for (field, value, part) in [
            ("shell", json!("fish"), "unsupported shell: fish"),
            ("ports", json!([0]), "not a port"),
            ("ports", json!([8080.5]), "not a port"),
            ("ports", json!(8080), "ports"),
            ("ports", json!([80]), "background"),
            ("command", json!("a\u{0}b"), "NUL"),
        ] {
            let mut given = object(json!({"environment_source": "/r", "environment_id": "x"}));
            given.insert(field.to_owned(), value);
            let failure = order(&given).unwrap_err();
            assert!(failure.message.contains(part), "{failure}");
        }
    }
}
