//! Tool arguments that a server wants to see as headers (`x-mcp-header`, revision 2026-07-28):
//! which there are is learnt from `tools/list`, and a tool whose annotations break the rules is
//! taken out of that list, as the transport's client must.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use memchr::memmem;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::headers::encoded;
use super::raw::text_member;
use crate::members::member;

const ANNOTATION: &str = "x-mcp-header";
/// The largest tool whose schema is searched: parsed, JSON takes many times its memory.
const MAX_TOOL: usize = 1 << 20;

/// Keywords whose values are data, not schemas.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "required"];
/// Keywords whose values are schemas by name.
const NAMED_SCHEMAS: [&str; 4] = ["patternProperties", "$defs", "definitions", "dependentSchemas"];
/// The largest number that a header may carry, by the rules.
const SAFE: f64 = 9_007_199_254_740_991.0;
/// How deep a schema is looked into.
const MAX_DEPTH: usize = 64;

/// One argument that is mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirror {
    header: HeaderName,
    path: Vec<String>,
}

/// What is known of the server's tools.
#[derive(Debug, Default)]
pub struct MirroredArguments {
    mirrors: Mutex<HashMap<String, Arc<[Mirror]>>>,
}

impl MirroredArguments {
    fn mirrors(&self) -> MutexGuard<'_, HashMap<String, Arc<[Mirror]>>> {
        self.mirrors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no tool is known that has such arguments.
    pub fn is_empty(&self) -> bool {
        self.mirrors().is_empty()
    }

    /// Learns from a whole list.
    pub fn learn_items(&self, tools: &[Box<RawValue>]) {
        self.mirrors().clear();
        for tool in tools.iter().filter(|tool| tool.get().contains(ANNOTATION)) {
            self.learn_tool(tool.get());
        }
    }

    /// Adds what a call's arguments want to say in headers.
    pub fn mirror(&self, params: &[u8], headers: &mut HeaderMap) {
        if self.mirrors().is_empty() {
            return;
        }
        let name = text_member(params, "name").unwrap_or_default();
        let Some(mirrors) = self.mirrors().get(&name).cloned() else {
            return;
        };
        let Some(arguments) = member(params, "arguments") else {
            return;
        };
        let arguments: Value = serde_json::from_slice(arguments).unwrap_or_default();
        for mirror in &*mirrors {
            let found = mirror.path.iter().try_fold(&arguments, |value, key| value.get(key));
            if let Some(value) = found.and_then(header_value) {
                headers.insert(mirror.header.clone(), value);
            }
        }
    }

    /// Learns from a page of the list, and gives it back without the tools that break the rules;
    /// none where it can stay as it is.
    pub fn learn(&self, result: &[u8], first_page: bool) -> Option<Bytes> {
        if first_page {
            self.mirrors().clear();
        }
        memmem::find(result, ANNOTATION.as_bytes())?;
        let list = member(result, "tools")?;
        let tools: Vec<&RawValue> = serde_json::from_slice(list).ok()?;
        let kept: Vec<&RawValue> =
            tools.iter().filter(|tool| self.learn_tool(tool.get())).copied().collect();
        (kept.len() < tools.len()).then(|| with_list(result, list, &kept))
    }

    /// Whether the tool keeps the rules.
    fn learn_tool(&self, tool: &str) -> bool {
        if tool.len() > MAX_TOOL {
            return true;
        }
        let Ok(tool) = serde_json::from_str::<Value>(tool) else {
            return true;
        };
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut found = Found::default();
        if let Err(reason) = found.walk(tool.get("inputSchema").unwrap_or(&Value::Null), 0) {
            tracing::warn!(
                tool = name,
                reason,
                "a tool was left out of tools/list: its x-mcp-header breaks the rules"
            );
            return false;
        }
        if !found.mirrors.is_empty() {
            self.mirrors().insert(name.to_owned(), found.mirrors.into());
        }
        true
    }
}

/// The annotations found so far, and where the walk is.
#[derive(Default)]
struct Found {
    mirrors: Vec<Mirror>,
    names: BTreeSet<String>,
    path: Vec<String>,
    /// How many steps were made that are not through `properties`.
    astray: usize,
}

impl Found {
    fn walk(&mut self, schema: &Value, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("the schema is too deep");
        }
        let Value::Object(schema) = schema else {
            return Ok(());
        };
        if let Some(annotation) = schema.get(ANNOTATION) {
            self.annotated(annotation, schema)?;
        }
        for (key, value) in schema {
            match (key.as_str(), value) {
                (key, _) if DATA.contains(&key) || key == ANNOTATION => {}
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        self.path.push(name.clone());
                        self.walk(property, depth + 1)?;
                        self.path.pop();
                    }
                }
                (key, Value::Object(schemas)) if NAMED_SCHEMAS.contains(&key) => {
                    self.walk_astray(schemas.values(), depth)?;
                }
                (_, Value::Array(schemas)) => self.walk_astray(schemas, depth)?,
                (_, other) => self.walk_astray([other], depth)?,
            }
        }
        Ok(())
    }

    fn walk_astray<'a>(
        &mut self,
        schemas: impl IntoIterator<Item = &'a Value>,
        depth: usize,
    ) -> Result<(), &'static str> {
        self.astray += 1;
        for schema in schemas {
            self.walk(schema, depth + 1)?;
        }
        self.astray -= 1;
        Ok(())
    }

    fn annotated(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
    ) -> Result<(), &'static str> {
        if self.astray > 0 || self.path.is_empty() {
            return Err("it stands where no argument can be told by its path");
        }
        let kind = schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err("the argument is no string, integer or boolean");
        }
        let name = annotation
            .as_str()
            .filter(|name| !name.is_empty())
            .ok_or("it is empty or no string")?;
        let header = HeaderName::try_from(format!("mcp-param-{name}"))
            .map_err(|_| "it is no name of a header")?;
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err("two arguments have the same one");
        }
        self.mirrors.push(Mirror { header, path: self.path.clone() });
        Ok(())
    }
}

fn header_value(value: &Value) -> Option<HeaderValue> {
    match value {
        Value::String(text) => Some(encoded(text)),
        Value::Bool(truth) => Some(encoded(if *truth { "true" } else { "false" })),
        Value::Number(number) => Some(match number.as_f64() {
            Some(float) if !number.is_i64() && float.fract() == 0.0 && float.abs() <= SAFE => {
                encoded(&format!("{float:.0}"))
            }
            _ => encoded(&number.to_string()),
        }),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `result` with `kept` in the place of `list`, which is a part of it.
fn with_list(result: &[u8], list: &[u8], kept: &[&RawValue]) -> Bytes {
    let start = list.as_ptr() as usize - result.as_ptr() as usize;
    let mut text = BytesMut::with_capacity(result.len());
    text.put_slice(&result[..start]);
    text.put_u8(b'[');
    for (number, tool) in kept.iter().enumerate() {
        if number > 0 {
            text.put_u8(b',');
        }
        text.put_slice(tool.get().as_bytes());
    }
    text.put_u8(b']');
    text.put_slice(&result[start + list.len()..]);
    text.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(tools: &[Value]) -> Vec<u8> {
        json!({"tools": tools, "vendor": 1.0}).to_string().into_bytes()
    }

    fn tool(name: &str, properties: &Value) -> Value {
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
    }

    fn headers_of(tools: &MirroredArguments, call: &Value) -> HashMap<String, String> {
        let mut headers = HeaderMap::new();
        tools.mirror(call.to_string().as_bytes(), &mut headers);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
    }

    #[test]
    fn annotated_arguments_become_headers() {
        let tools = MirroredArguments::default();
        let listed = page(&[tool(
            "sql",
            &json!({
                "region": {"type": "string", "x-mcp-header": "Region"},
                "rows": {"type": "integer", "x-mcp-header": "Rows"},
                "dry": {"type": "boolean", "x-mcp-header": "Dry"},
                "gone": {"type": "string", "x-mcp-header": "Gone"},
                "deep": {"type": "object", "properties": {"er": {"type": "string", "x-mcp-header": "Deeper"}}},
                "plain": {"type": "string"},
            }),
        )]);
        assert_eq!(tools.learn(&listed, true), None);
        let call = json!({"name": "sql", "arguments": {"region": "世", "rows": 42.0, "dry": false, "gone": null, "deep": {"er": "x"}, "plain": "p"}});
        let expected = [
            ("mcp-param-region", "=?base64?5LiW?="),
            ("mcp-param-rows", "42"),
            ("mcp-param-dry", "false"),
            ("mcp-param-deeper", "x"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers_of(&tools, &call), HashMap::from(expected));
        assert!(
            headers_of(&tools, &json!({"name": "other", "arguments": {"region": "x"}})).is_empty()
        );
        tools.learn(&page(&[]), true);
        assert!(headers_of(&tools, &call).is_empty(), "the tool is gone from the list");
    }

    #[test]
    fn tools_that_break_the_rules_are_left_out_and_the_rest_stays_as_it_is() {
        let bad = [
            json!({"v": {"type": "string", "x-mcp-header": ""}}),
            json!({"v": {"type": "string", "x-mcp-header": 5}}),
            json!({"v": {"type": "number", "x-mcp-header": "N"}}),
            json!({"v": {"type": "object", "x-mcp-header": "O"}}),
            json!({"v": {"type": "null", "x-mcp-header": "O"}}),
            json!({"v": {"x-mcp-header": "T"}}),
            json!({"v": {"type": "string", "x-mcp-header": "My Region"}}),
            json!({"v": {"type": "string", "x-mcp-header": "Région"}}),
            json!({"v": {"type": "string", "x-mcp-header": "a:b"}}),
            json!({"v": {"type": "string", "x-mcp-header": "a\u{1}"}}),
            json!({"v": {"type": "string", "x-mcp-header": "A"}, "w": {"type": "string", "x-mcp-header": "a"}}),
            json!({"v": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}),
            json!({"v": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}),
        ];
        let good = tool(
            "good",
            &json!({"v": {"type": "string", "default": {"x-mcp-header": ""}}, "x-mcp-header": {"type": "string"}}),
        );
        for properties in bad {
            let tools = MirroredArguments::default();
            let listed = page(&[good.clone(), tool("bad", &properties), good.clone()]);
            let shown = tools.learn(&listed, true).unwrap_or_else(|| panic!("{properties}"));
            assert_eq!(shown, page(&[good.clone(), good.clone()]), "{properties}");
        }
        assert_eq!(MirroredArguments::default().learn(&page(&[good]), true), None);
    }
}
