//! A server's resources as tools, for clients that show tools to a model and nothing else: one
//! tool for each resource of a server that has few, and one that takes a URI for the rest.

use std::collections::HashSet;

use bytes::Bytes;
use cofer_mcp::{member, read_object};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::lists::{ListKind, Listed, Lists};
use super::rpc::{Answer, Fault, INTERNAL, text_member};

/// A server with more resources than this has one tool for all of them: each tool takes room
/// in a model's context.
const MAX_EACH: usize = 32;
/// The tool that reads any resource.
pub(super) const READ_ANY: &str = "read_resource";
/// How the tools begin that read one.
const PREFIX: &str = "resource_";
/// The longest part of a name that is made of a resource's name.
const MAX_SLUG: usize = 48;

/// A tool that reads a resource.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResourceTool {
    pub(super) name: String,
    pub(super) definition: String,
    /// The resource; none where the caller says which.
    pub(super) uri: Option<String>,
}

/// Whether a tool may be one of these.
pub(super) fn may_be(name: &str) -> bool {
    name == READ_ANY || name.starts_with(PREFIX)
}

/// The tools for a server's resources. A tool of the server's own keeps its name.
pub(super) fn resource_tools(lists: &Lists) -> Vec<ResourceTool> {
    let resources = lists.get(ListKind::Resources);
    let templates = lists.get(ListKind::Templates);
    let mut taken: HashSet<String> =
        lists.get(ListKind::Tools).iter().map(|tool| tool.key.clone()).collect();
    let mut tools = Vec::new();
    if resources.len() <= MAX_EACH {
        for resource in resources {
            let name = free_name(resource, &mut taken);
            let definition = describe_one(&name, resource);
            tools.push(ResourceTool { name, definition, uri: Some(resource.key.clone()) });
        }
    }
    let has_more = resources.len() > MAX_EACH || !templates.is_empty();
    if has_more && taken.insert(READ_ANY.to_owned()) {
        let definition = describe_any(templates);
        tools.push(ResourceTool { name: READ_ANY.to_owned(), definition, uri: None });
    }
    tools
}

fn free_name(resource: &Listed, taken: &mut HashSet<String>) -> String {
    let raw = resource.raw.get().as_bytes();
    let name = text_member(raw, "name").filter(|name| !name.is_empty());
    let slug = slug(name.as_deref().unwrap_or(&resource.key));
    let plain = format!("{PREFIX}{slug}");
    let mut name = plain.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{plain}_{number}");
        number += 1;
    }
    name
}

fn slug(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let slug: String = name.chars().map(keep).take(MAX_SLUG).collect();
    slug.trim_matches('_').to_owned()
}

fn describe_one(name: &str, resource: &Listed) -> String {
    let raw = resource.raw.get().as_bytes();
    let text = |key| text_member(raw, key).filter(|text| !text.is_empty());
    let title = text("title").or_else(|| text("name")).unwrap_or_else(|| resource.key.clone());
    let mut description = format!("Reads the resource “{title}” ({}).", resource.key);
    if let Some(more) = text("description") {
        description = format!("{description} {more}");
    }
    definition(name, &title, &description, &json!({"type": "object", "properties": {}}))
}

fn describe_any(templates: &[Listed]) -> String {
    let mut description = "Reads a resource of this server by its URI.".to_owned();
    for template in templates.iter().take(MAX_EACH) {
        let raw = template.raw.get().as_bytes();
        let about = text_member(raw, "description").or_else(|| text_member(raw, "name"));
        description = format!("{description}\n{}: {}", template.key, about.unwrap_or_default());
    }
    let uri = json!({"type": "string", "description": "The resource's URI"});
    let schema = json!({"type": "object", "properties": {"uri": uri}, "required": ["uri"]});
    definition(READ_ANY, "Read a resource", &description, &schema)
}

fn definition(name: &str, title: &str, description: &str, schema: &Value) -> String {
    json!({
        "name": name, "title": title, "description": description, "inputSchema": schema,
        "annotations": {"title": title, "readOnlyHint": true},
    })
    .to_string()
}

/// The URI that a call of such a tool asks for.
pub(super) fn wanted_uri(tool: &ResourceTool, params: &[u8]) -> Result<String, Fault> {
    if let Some(uri) = &tool.uri {
        return Ok(uri.clone());
    }
    let arguments = member(params, "arguments").unwrap_or(b"{}");
    text_member(arguments, "uri").ok_or_else(|| Fault::bad_params("the argument `uri` is missing"))
}

/// What `resources/read` gave as the result of a tool: each content as it came, embedded.
pub(super) fn as_tool_result(read: &Bytes) -> Answer {
    let unreadable =
        |why: &str| Fault::new(INTERNAL, format!("the server's answer to resources/read {why}"));
    if member(read, "resultType") == Some(br#""input_required""#) {
        return Ok(read.clone());
    }
    let contents = member(read, "contents").ok_or_else(|| unreadable("has no contents"))?;
    let contents: Vec<&RawValue> =
        serde_json::from_slice(contents).map_err(|_| unreadable("has no list of contents"))?;
    let blocks: Vec<String> = contents
        .iter()
        .map(|content| format!(r#"{{"type":"resource","resource":{}}}"#, content.get()))
        .collect();
    Ok(format!(r#"{{"content":[{}]}}"#, blocks.join(",")).into())
}

/// The params of the `resources/read` for a call: its `_meta` and input go along.
pub(super) fn read_params(uri: &str, params: &[u8]) -> Bytes {
    let mut read = format!(r#"{{"uri":{}"#, Value::from(uri)).into_bytes();
    let carried = ["_meta", "inputResponses", "requestState"];
    // The params were read before: they are an object.
    drop(read_object(params, |key, value| {
        if carried.iter().any(|name| name.as_bytes() == key) {
            read.extend([b",\"", key, b"\":", value].concat());
        }
    }));
    read.push(b'}');
    read.into()
}

#[cfg(test)]
mod tests {
    use super::super::lists::List;
    use super::*;

    fn lists(tools: &[Value], resources: &[Value], templates: &[Value]) -> Lists {
        let mut lists = Lists::default();
        for (kind, items) in [
            (ListKind::Tools, tools),
            (ListKind::Resources, resources),
            (ListKind::Templates, templates),
        ] {
            let raw = |item: &Value| RawValue::from_string(item.to_string()).unwrap();
            lists.set(kind, List::read(kind, items.iter().map(raw).collect(), None));
        }
        lists
    }

    fn names(lists: &Lists) -> Vec<String> {
        resource_tools(lists).into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn few_resources_are_a_tool_each_and_many_are_one() {
        // covers: GTW-4, MGR-52
        let resource = |n: usize| json!({"uri": format!("x://{n}"), "name": format!("Note {n}!")});
        let few = lists(&[json!({"name": "resource_Note_0"})], &[resource(0), resource(1)], &[]);
        assert_eq!(names(&few), ["resource_Note_0_2", "resource_Note_1"]);
        let many: Vec<Value> = (0..40).map(resource).collect();
        assert_eq!(names(&lists(&[], &many, &[])), [READ_ANY]);
        let template = json!({"uriTemplate": "x://{id}", "name": "t"});
        assert_eq!(names(&lists(&[], &[resource(0)], &[template])), ["resource_Note_0", READ_ANY]);
        assert!(names(&lists(&[], &[], &[])).is_empty());
    }

    #[test]
    fn what_is_read_becomes_a_tools_result() {
        let read = Bytes::from_static(br#"{"contents":[{"uri":"x://1","text":"\ud800","n":1.0}]}"#);
        assert_eq!(
            as_tool_result(&read).unwrap(),
            r#"{"content":[{"type":"resource","resource":{"uri":"x://1","text":"\ud800","n":1.0}}]}"#
        );
        assert!(as_tool_result(&Bytes::from_static(b"{}")).is_err());
        let params =
            br#"{"name":"read_resource","arguments":{"uri":"x"},"_meta":{"progressToken":1}}"#;
        assert_eq!(read_params("x", params), r#"{"uri":"x","_meta":{"progressToken":1}}"#);
    }
}
