//! Completes the OpenAPI document with what holds for every operation, so that no handler repeats it: the
//! errors of the guard and of the extractors, and the range of unsigned integers.

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// The document as it is served.
pub(super) fn complete_document(document: &OpenApi) -> Value {
    let mut json = json!(document);
    name_unsigned(&mut json);
    let paths = json.get_mut("paths").and_then(Value::as_object_mut);
    for (path, item) in paths.into_iter().flatten() {
        let operations = item.as_object_mut().into_iter().flatten();
        for (method, operation) in operations {
            if let (true, Some(operation)) =
                (METHODS.contains(&method.as_str()), operation.as_object_mut())
            {
                add_errors(path, operation);
            }
        }
    }
    json
}

/// Documents the errors that do not depend on the handler.
fn add_errors(path: &str, operation: &mut Map<String, Value>) {
    let has_body = operation.contains_key("requestBody");
    let has_parameters = operation.contains_key("parameters");
    let errors = [
        ("401", "the bearer token is missing or wrong", true),
        ("403", "`Host` is not an address of this daemon, or `Origin` is foreign", true),
        ("404", "there is no such thing", path.contains('{')),
        ("413", "the body is larger than the daemon takes", has_body),
        ("422", "a parameter or the body is invalid", has_body || has_parameters),
        ("429", "too many connections or requests; `Retry-After` says when to try again", true),
        ("503", "the store or the container engine is unavailable", true),
    ];
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    let Some(responses) = responses.as_object_mut() else {
        return;
    };
    for (status, description, is_possible) in errors {
        if is_possible && !responses.contains_key(status) {
            let schema = json!({"$ref": "#/components/schemas/ErrorBody"});
            let content = json!({"application/json": {"schema": schema}});
            let response = json!({"description": description, "content": content});
            responses.insert(status.to_owned(), response);
        }
    }
}

/// `int64` ends at 2^63 - 1, and unsigned numbers of 64 bits do not.
fn name_unsigned(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let is_unsigned = map.get("minimum").and_then(Value::as_f64) == Some(0.0);
            let format = match map.get("format").and_then(Value::as_str) {
                Some("int64") => Some("uint64"),
                Some("int32") => Some("uint32"),
                _ => None,
            };
            if let Some(format) = format.filter(|_| is_unsigned) {
                map.insert("format".to_owned(), format.into());
            }
            map.values_mut().for_each(name_unsigned);
        }
        Value::Array(items) => items.iter_mut().for_each(name_unsigned),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::api::openapi;

    #[test]
    fn every_operation_documents_the_errors_that_it_shares_with_all_others() {
        let document = openapi();
        let mut count = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let has = |status: &str| operation["responses"].get(status).is_some();
                assert!(["401", "403", "429", "503"].into_iter().all(has), "{method} {path}");
                assert_eq!(has("404"), path.contains('{') || has("404"), "{method} {path}");
                assert!(operation.get("requestBody").is_none() || has("413"), "{method} {path}");
                count += 1;
            }
        }
        assert!(count > 40, "{count} operations");
        let text = document.to_string();
        assert!(text.contains("uint64") && text.contains("\"ExportFormat\":"));
    }
}
