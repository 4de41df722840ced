//! What one server offers to a model: its tools, and its resources where it is told so.

use cofer_chat::{OfferedTool, ToolKind, safe_name};
use cofer_model::ServerSpec;
use cofer_supervisor::ServerHandle;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::gateway::List;

/// So many resources are named in the description of the tool that reads them.
const NAMED_RESOURCES: usize = 50;
/// The ways to a server's resources, named as MCP names them.
pub(super) const READ: &str = "resources/read";
pub(super) const ALL: &str = "resources/list";

/// One tool as a server lists it; what else it says is of no use to a model.
/// How much of a server's list of tools a model is offered, in bytes of JSON. Parsed, it takes
/// several times as much, and no model reads more.
const OFFERED: usize = 4 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
}

#[derive(Deserialize)]
struct ListedResource {
    uri: String,
    name: Option<String>,
}

/// All that a server offers now.
pub(super) async fn list(handle: &ServerHandle) -> Result<Vec<OfferedTool>, String> {
    let spec = handle.spec();
    let capability =
        |key: &str| handle.peer().is_some_and(|peer| peer.capabilities.get(key).is_some());
    let mut tools = match handle.list("tools/list", "tools").await {
        Ok(listing) => tools_of(&spec, listing.items.iter().map(|item| item.get())),
        Err(_) if !capability("tools") => Vec::new(),
        Err(failure) => return Err(format!("its tools cannot be listed: {failure}")),
    };
    if spec.include_resources && capability("resources") {
        let resources = handle.list(ALL, "resources").await.map(|listing| listing.items);
        let resources: Vec<&str> = resources.iter().flatten().map(|item| item.get()).collect();
        tools.extend(resource_tools(&spec, &resources));
    }
    Ok(tools)
}

/// All that a server offered when it last ran.
pub(super) fn list_known(
    spec: &ServerSpec,
    tools: &List,
    resources: Option<&List>,
) -> Vec<OfferedTool> {
    let mut tools = tools_of(spec, tools.raw_items());
    if let Some(resources) = resources.filter(|_| spec.include_resources) {
        let resources: Vec<&str> = resources.raw_items().collect();
        if !resources.is_empty() {
            tools.extend(resource_tools(spec, &resources));
        }
    }
    tools
}

fn tools_of<'a>(spec: &ServerSpec, items: impl Iterator<Item = &'a str>) -> Vec<OfferedTool> {
    let mut room = OFFERED;
    let fits = |item: &&str| {
        let left = room.checked_sub(item.len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    items
        .take_while(fits)
        .filter_map(|item| offered(spec.name.as_str(), spec.joined_prefix(), item))
        .collect()
}

fn offered(server: &str, prefix: &str, item: &str) -> Option<OfferedTool> {
    let listed: ListedTool = serde_json::from_str(item).ok()?;
    let schema = listed.input_schema.filter(Value::is_object);
    Some(OfferedTool {
        server: server.to_owned(),
        name: safe_name(prefix, &listed.name),
        tool: listed.name,
        title: listed.title,
        description: listed.description,
        schema: schema.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        kind: ToolKind::Tool,
    })
}

/// A server's resources as two tools: one reads, one lists.
fn resource_tools(spec: &ServerSpec, items: &[&str]) -> [OfferedTool; 2] {
    let server = spec.name.as_str();
    let named: Vec<String> = items
        .iter()
        .filter_map(|item| serde_json::from_str::<ListedResource>(item).ok())
        .take(NAMED_RESOURCES)
        .map(|resource| match resource.name {
            Some(name) => format!("{} ({name})", resource.uri),
            None => resource.uri,
        })
        .collect();
    let some = match (items.len(), named.len()) {
        (0, _) => String::new(),
        (total, shown) if total > shown => {
            format!(" {shown} of its {total} resources: {}", named.join(", "))
        }
        _ => format!(" Its resources: {}", named.join(", ")),
    };
    let tool = |tool: &str, description: String, schema: Value| OfferedTool {
        server: server.to_owned(),
        name: safe_name(spec.joined_prefix(), tool),
        tool: tool.to_owned(),
        title: None,
        description: Some(description),
        schema,
        kind: ToolKind::Resource,
    };
    let uri = json!({"type": "object", "properties": {"uri": {"type": "string", "description": "the resource's URI"}}, "required": ["uri"]});
    [
        tool(READ, format!("Reads a resource of the server {server} by its URI.{some}"), uri),
        tool(
            ALL,
            format!("Lists the resources of the server {server}."),
            json!({"type": "object", "properties": {}}),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_a_schema_takes_an_object() {
        let tool = offered("s", "p", r#"{"name":"a.b","title":"T"}"#).unwrap();
        assert_eq!(tool.schema["type"], "object");
        assert_eq!((tool.tool.as_str(), tool.title.as_deref()), ("a.b", Some("T")));
        assert_eq!(tool.server, "s");
        assert!(tool.name.starts_with("p__a_b--"), "{}", tool.name);
        assert!(offered("s", "s", "{}").is_none(), "a tool without a name is none");
    }
}
