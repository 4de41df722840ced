//! What the server offers: the lists, and the resources themselves.

use serde_json::{Value, json};

use crate::server::{Era, Fault};

/// A PNG of one point, and the shortest WAV.
pub(crate) const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
pub(crate) const SOUND: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// The tools without arguments.
const PLAIN: [&str; 27] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_error_handling",
    "test_reconnection",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_known_roots",
    "test_url_required",
    "test_url_opened",
];

pub(crate) fn capabilities() -> Value {
    let changing = json!({"listChanged": true});
    json!({"tools": changing, "prompts": changing, "logging": {}, "completions": {},
        "resources": {"subscribe": true, "listChanged": true}})
}

pub(crate) fn server_info() -> Value {
    json!({"name": "exemplary", "version": env!("CARGO_PKG_VERSION")})
}

pub(crate) fn tools() -> Vec<Value> {
    let tool = |name: &str, properties: Value, required: &[&str]| {
        json!({"name": name, "description": format!("The conformance suite calls {name}."),
            "inputSchema": {"type": "object", "properties": properties, "required": required}})
    };
    let mut tools: Vec<Value> = PLAIN.map(|name| tool(name, json!({}), &[])).to_vec();
    let text = json!({"type": "string"});
    tools.push(tool("test_sampling", json!({"prompt": text}), &["prompt"]));
    tools.push(tool("test_elicitation", json!({"message": text}), &["message"]));
    tools.push(tool("test_touch_resource", json!({"uri": text}), &["uri"]));
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    tools.push(tool("test_header_argument", json!({"region": region}), &[]));
    tools.push(json!({"name": "json_schema_2020_12_tool",
        "description": "Every keyword of JSON Schema stays.", "inputSchema": whole_schema()}));
    tools
}

fn whole_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

pub(crate) fn prompts() -> Vec<Value> {
    let argument = |name: &str| json!({"name": name, "description": "a text", "required": true});
    vec![
        json!({"name": "test_simple_prompt", "description": "No arguments"}),
        json!({"name": "test_prompt_with_arguments", "description": "Two arguments",
            "arguments": [argument("arg1"), argument("arg2")]}),
        json!({"name": "test_prompt_with_embedded_resource", "description": "A resource",
            "arguments": [argument("resourceUri")]}),
        json!({"name": "test_prompt_with_image", "description": "A picture"}),
        json!({"name": "test_input_required_result_prompt", "description": "Wants to know more"}),
    ]
}

pub(crate) fn resources() -> Vec<Value> {
    let one = |name: &str, kind: &str| {
        json!({"uri": format!("test://{name}"), "name": name, "mimeType": kind,
            "description": format!("The conformance suite reads {name}.")})
    };
    vec![
        one("static-text", "text/plain"),
        one("static-binary", "image/png"),
        one("watched-resource", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<Value> {
    vec![json!({"uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Filled in by its id", "mimeType": "application/json"})]
}

pub(crate) fn read(uri: &str, era: Era) -> Result<Value, Fault> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text", _) => json!({"mimeType": "text/plain",
            "text": "This is the content of the static text resource."}),
        ("test://static-binary", _) => json!({"mimeType": "image/png", "blob": PICTURE}),
        ("test://watched-resource", _) => {
            json!({"mimeType": "text/plain", "text": "Watched resource content"})
        }
        (_, Some(id)) => {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"mimeType": "application/json", "text": data.to_string()})
        }
        _ => {
            let code = if era == Era::Modern { -32602 } else { -32002 };
            return Err(Fault::with(code, "Resource not found", json!({"uri": uri})));
        }
    };
    let mut content = content;
    content["uri"] = uri.into();
    Ok(json!({"contents": [content]}))
}
