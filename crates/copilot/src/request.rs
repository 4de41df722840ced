//! The tool's arguments: `input`, and of all options only `model`. Everything else is refused,
//! and all that is wrong is said at once. Pure: nothing runs before this has passed.

use cofer_model::FieldError;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// The longest input. Past it, no model takes it anyway.
const LONGEST_INPUT: usize = 1024 * 1024;

/// What is asked of the CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) input: String,
    pub(crate) model: Option<String>,
}

/// Reads the arguments of a call.
pub(crate) fn parse(arguments: &Map<String, Value>) -> Result<Request, Failure> {
    let mut errors = Vec::new();
    for key in arguments.keys().filter(|key| !["input", "options"].contains(&key.as_str())) {
        errors.push(FieldError::new(key, "is not an argument of this tool"));
    }
    let input = match arguments.get("input") {
        Some(Value::String(input)) => {
            errors.extend(wrong_with_input(input));
            input.clone()
        }
        Some(_) => {
            errors.push(FieldError::new("input", "must be a text"));
            String::new()
        }
        None => {
            errors.push(FieldError::new("input", "is required"));
            String::new()
        }
    };
    let model = arguments.get("options").and_then(|options| model(options, &mut errors));
    if errors.is_empty() {
        Ok(Request { input, model })
    } else {
        Err(Failure::invalid_request(&errors))
    }
}

fn wrong_with_input(input: &str) -> Option<FieldError> {
    let wrong = |message: &str| Some(FieldError::new("input", message));
    if input.trim().is_empty() {
        wrong("must not be blank")
    } else if input.contains('\0') {
        wrong("must not hold a NUL character")
    } else if input.len() > LONGEST_INPUT {
        wrong("must not be longer than 1 MiB")
    } else {
        None
    }
}

/// The one option there is.
fn model(options: &Value, errors: &mut Vec<FieldError>) -> Option<String> {
    let Some(options) = options.as_object() else {
        errors.push(FieldError::new("options", "must be an object"));
        return None;
    };
    for key in options.keys().filter(|key| *key != "model") {
        errors.push(FieldError::new(format!("options.{key}"), "is not an allowed option"));
    }
    match options.get("model")? {
        Value::String(model) => Some(model.clone()),
        _ => {
            errors.push(FieldError::new("options.model", "must be a text"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Kind;
    use serde_json::json;

    fn check(arguments: Value) -> Result<Request, Vec<String>> {
        parse(arguments.as_object().unwrap()).map_err(|failure| {
            assert_eq!(failure.kind, Kind::InvalidRequest);
            let fields = failure.details.unwrap()["fields"].as_array().unwrap().clone();
            fields.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
        })
    }

    #[test]
    fn input_and_model_are_taken_as_they_are() {
        // covers: COP-002
        let asked = check(json!({"input": "--help\n$(id) \"x\"", "options": {"model": "gpt-5"}}));
        let expected =
            Request { input: "--help\n$(id) \"x\"".to_owned(), model: Some("gpt-5".to_owned()) };
        assert_eq!(asked, Ok(expected));
        assert_eq!(check(json!({"input": "hi", "options": {}})).unwrap().model, None);
        assert_eq!(check(json!({"input": "hi"})).unwrap().model, None);
    }

    #[test]
    fn everything_that_is_wrong_is_named_at_once() {
        // covers: COP-002, COP-005, COP-010
        for (arguments, fields) in [
            (json!({}), vec!["input"]),
            (json!({"input": 1}), vec!["input"]),
            (json!({"input": " \n"}), vec!["input"]),
            (json!({"input": "a\0b"}), vec!["input"]),
            (json!({"input": "x".repeat(LONGEST_INPUT + 1)}), vec!["input"]),
            (json!({"input": "hi", "options": []}), vec!["options"]),
            (json!({"input": "hi", "options": null}), vec!["options"]),
            (json!({"input": "hi", "options": {"model": 5}}), vec!["options.model"]),
            (
                json!({"prompt": "x", "options": {"allow-all-tools": true, "model": "m"}}),
                vec!["prompt", "input", "options.allow-all-tools"],
            ),
        ] {
            assert_eq!(check(arguments), Err(fields.into_iter().map(str::to_owned).collect()));
        }
    }
}
