//! All servers as one: the lists of every server in one list, and the way back from a joined
//! name or a URI to the server that knows it. Pure: `catalogue` gets the lists and keeps this.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use cofer_model::{ServerId, ServerSpec, joined_name};

use super::lists::{ListKind, Listed, Lists};
use super::resource_tools::{ResourceTool, resource_tools};
use super::ui_uris;

/// One server's part.
pub(super) struct Part {
    pub(super) id: ServerId,
    pub(super) spec: Arc<ServerSpec>,
    pub(super) lists: Lists,
}

/// Where a joined tool leads.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolRoute {
    pub(super) server: ServerId,
    pub(super) tool: RoutedTool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RoutedTool {
    /// A tool of the server's, by the name it has there.
    Own(String),
    /// A resource of the server's.
    Resource(ResourceTool),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// The results of the four list methods.
    results: [Bytes; 4],
    tools: HashMap<String, ToolRoute>,
    prompts: HashMap<String, (ServerId, String)>,
    resources: HashMap<String, ServerId>,
    templates: Vec<(String, ServerId)>,
    /// The servers by the first segment of their joined `ui://` URIs.
    ui_segments: HashMap<String, ServerId>,
    /// What is left out, as another server's has the same name or URI: the server and that.
    pub(super) clashes: BTreeSet<(String, String)>,
}

impl Joined {
    /// Joins what the servers offer; `parts` in the order in which they come first.
    pub(super) fn build(parts: &[Part]) -> Self {
        let mut joined = Self::default();
        let mut items: [Vec<Vec<u8>>; 4] = Default::default();
        for part in parts {
            let segment = ui_uris::segment(part.spec.joined_prefix());
            joined.ui_segments.entry(segment).or_insert(part.id);
            joined.add_tools(part, &mut items[ListKind::Tools as usize]);
            joined.add_prompts(part, &mut items[ListKind::Prompts as usize]);
            joined.add_resources(part, &mut items[ListKind::Resources as usize]);
            joined.add_templates(part, &mut items[ListKind::Templates as usize]);
        }
        joined.results = ListKind::ALL.map(|kind| {
            let list = items[kind as usize].join(&b","[..]);
            [format!(r#"{{"{}":["#, kind.key()).as_bytes(), &list, b"]}"].concat().into()
        });
        joined
    }

    /// The result of a list method.
    pub(super) fn result(&self, kind: ListKind) -> &Bytes {
        &self.results[kind as usize]
    }

    /// The lists in which this one differs from `other`.
    pub(super) fn differs(&self, other: &Self) -> Vec<ListKind> {
        let differs = |kind: &ListKind| self.result(*kind) != other.result(*kind);
        ListKind::ALL.into_iter().filter(differs).collect()
    }

    pub(super) fn tool(&self, name: &str) -> Option<&ToolRoute> {
        self.tools.get(name)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&(ServerId, String)> {
        self.prompts.get(name)
    }

    /// Who listed the template.
    pub(super) fn template(&self, template: &str) -> Option<ServerId> {
        self.templates.iter().find(|(known, _)| known == template).map(|(_, server)| *server)
    }

    /// The URI that a resource has at its server.
    pub(super) fn own_uri(&self, uri: &str) -> String {
        self.ui_owner(uri).map_or_else(|| uri.to_owned(), |(_, own)| own)
    }

    /// The server of a joined `ui://` URI, listed or not, and the URI that it has there.
    fn ui_owner(&self, uri: &str) -> Option<(ServerId, String)> {
        let (segment, own) = ui_uris::split(uri)?;
        Some((*self.ui_segments.get(segment)?, own))
    }

    /// The servers that may know a resource, the likeliest first: who listed it, then whose
    /// template it fits, then who listed others of the same scheme.
    pub(super) fn resource_owners(&self, uri: &str) -> Vec<ServerId> {
        if let Some((owner, _)) = self.ui_owner(uri) {
            return vec![owner];
        }
        if let Some(owner) = self.resources.get(uri) {
            return vec![*owner];
        }
        if let Some((_, owner)) = self.templates.iter().find(|(template, _)| fits(template, uri)) {
            return vec![*owner];
        }
        let scheme = scheme(uri);
        let listed = self.templates.iter().map(|(template, server)| (template, server));
        let mut owners: Vec<ServerId> = Vec::new();
        let mut of_scheme: Vec<(&String, &ServerId)> =
            self.resources.iter().chain(listed).collect();
        of_scheme.sort_unstable();
        for (known, server) in of_scheme {
            if self::scheme(known) == scheme && !owners.contains(server) {
                owners.push(*server);
            }
        }
        owners
    }

    fn add_tools(&mut self, part: &Part, items: &mut Vec<Vec<u8>>) {
        for tool in part.lists.get(ListKind::Tools) {
            if !part.spec.offers_tool(&tool.key) {
                continue;
            }
            let name = joined_name(part.spec.joined_prefix(), &tool.key);
            let own = RoutedTool::Own(tool.key.clone());
            if self.add_tool(part, &name, own) {
                items.push(ui_uris::join_tool(tool.renamed(&name), part.spec.joined_prefix()));
            }
        }
        if !part.spec.include_resources {
            return;
        }
        for tool in resource_tools(&part.lists) {
            let name = joined_name(part.spec.joined_prefix(), &tool.name);
            let renamed = tool.definition.replacen(
                &serde_json::Value::from(tool.name.as_str()).to_string(),
                &serde_json::Value::from(name.as_str()).to_string(),
                1,
            );
            if part.spec.offers_tool(&tool.name)
                && self.add_tool(part, &name, RoutedTool::Resource(tool))
            {
                items.push(renamed.into_bytes());
            }
        }
    }

    fn add_tool(&mut self, part: &Part, name: &str, tool: RoutedTool) -> bool {
        if self.tools.contains_key(name) {
            self.clashes.insert((part.spec.name.to_string(), name.to_owned()));
            return false;
        }
        self.tools.insert(name.to_owned(), ToolRoute { server: part.id, tool });
        true
    }

    fn add_prompts(&mut self, part: &Part, items: &mut Vec<Vec<u8>>) {
        for prompt in part.lists.get(ListKind::Prompts) {
            let name = joined_name(part.spec.joined_prefix(), &prompt.key);
            if let Entry::Vacant(free) = self.prompts.entry(name) {
                items.push(prompt.renamed(free.key()));
                free.insert((part.id, prompt.key.clone()));
            }
        }
    }

    fn add_resources(&mut self, part: &Part, items: &mut Vec<Vec<u8>>) {
        for resource in part.lists.get(ListKind::Resources) {
            let (key, item) = located(part, resource, "uri");
            if self.resources.contains_key(&key) {
                self.clashes.insert((part.spec.name.to_string(), key));
                continue;
            }
            self.resources.insert(key, part.id);
            items.push(item);
        }
    }

    fn add_templates(&mut self, part: &Part, items: &mut Vec<Vec<u8>>) {
        for template in part.lists.get(ListKind::Templates) {
            let (key, item) = located(part, template, "uriTemplate");
            if self.template(&key).is_none() {
                self.templates.push((key, part.id));
                items.push(item);
            }
        }
    }
}

/// The joined URI of a resource or template, and the item with it at `key`.
fn located(part: &Part, item: &Listed, key: &str) -> (String, Vec<u8>) {
    let (prefix, raw) = (part.spec.joined_prefix(), item.raw.get().as_bytes());
    match (ui_uris::joined_uri(prefix, &item.key), ui_uris::with_joined(raw, key, prefix)) {
        (Some(uri), Some(item)) => (uri, item.to_vec()),
        _ => (item.key.clone(), raw.to_vec()),
    }
}

fn scheme(uri: &str) -> &str {
    uri.split(':').next().unwrap_or_default()
}

/// Whether a URI can have come from a template: what stands between its expressions stands in
/// the URI, in that order.
fn fits(template: &str, uri: &str) -> bool {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        parts.push(literal);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    let (Some((first, middle)), last) = (parts.split_first(), rest) else {
        return template == uri;
    };
    let Some(mut left) = uri.strip_prefix(first).and_then(|left| left.strip_suffix(last)) else {
        return false;
    };
    for literal in middle {
        match left.find(literal) {
            Some(at) => left = &left[at + literal.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::lists::List;
    use super::*;
    use cofer_model::parse_registration;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use uuid::Uuid;

    fn part(name: &str, more: Value, lists: &[(ListKind, &[Value])]) -> Part {
        let mut body = json!({"name": name, "command": "x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut all = Lists::default();
        for (kind, items) in lists {
            let raw = |item: &Value| RawValue::from_string(item.to_string()).unwrap();
            all.set(*kind, List::read(*kind, items.iter().map(raw).collect(), None));
        }
        let spec = Arc::new(parse_registration(body).unwrap());
        Part { id: ServerId(Uuid::new_v4()), spec, lists: all }
    }

    fn names(joined: &Joined, kind: ListKind) -> Vec<String> {
        let result: Value = serde_json::from_slice(joined.result(kind)).unwrap();
        let items = result[kind.key()].as_array().unwrap().clone();
        let name = |item: &Value| {
            item.get("name").or(item.get("uri")).unwrap().as_str().unwrap().to_owned()
        };
        items.iter().map(name).collect()
    }

    #[test]
    fn tools_and_prompts_of_all_servers_have_names_of_their_own() {
        // covers: GTW-1
        let tools: &[Value] = &[json!({"name": "read", "n": 1.5}), json!({"name": "write"})];
        let a = part("a", json!({}), &[(ListKind::Tools, tools), (ListKind::Prompts, tools)]);
        let b = part("b", json!({"tools_deny": ["wr*"]}), &[(ListKind::Tools, tools)]);
        let (a_id, b_id) = (a.id, b.id);
        let joined = Joined::build(&[a, b]);
        assert_eq!(names(&joined, ListKind::Tools), ["a__read", "a__write", "b__read"]);
        assert_eq!(names(&joined, ListKind::Prompts), ["a__read", "a__write"]);
        let route = joined.tool("b__read").unwrap();
        assert_eq!((route.server, &route.tool), (b_id, &RoutedTool::Own("read".to_owned())));
        assert_eq!(joined.prompt("a__write"), Some(&(a_id, "write".to_owned())));
        assert_eq!(joined.tool("b__write"), None);
        assert!(
            joined.result(ListKind::Tools).starts_with(br#"{"tools":[{"name":"a__read","n":1.5},"#)
        );
    }

    #[test]
    fn resources_are_found_by_who_listed_them_and_the_first_server_wins() {
        let notes: &[Value] = &[json!({"uri": "note://1"}), json!({"uri": "note://2"})];
        let files: &[Value] = &[json!({"uri": "note://2"}), json!({"uri": "file:///x"})];
        let template: &[Value] =
            &[json!({"uriTemplate": "db://{table}/rows/{id}", "name": "rows"})];
        let a = part("a", json!({}), &[(ListKind::Resources, notes)]);
        let b =
            part("b", json!({}), &[(ListKind::Resources, files), (ListKind::Templates, template)]);
        let (a_id, b_id) = (a.id, b.id);
        let joined = Joined::build(&[a, b]);
        assert_eq!(names(&joined, ListKind::Resources), ["note://1", "note://2", "file:///x"]);
        assert_eq!(joined.resource_owners("note://2"), [a_id]);
        assert_eq!(joined.resource_owners("db://people/rows/7"), [b_id]);
        assert_eq!(joined.resource_owners("file:///y"), [b_id]);
        assert_eq!(joined.resource_owners("note://9"), [a_id]);
        assert!(joined.resource_owners("http://elsewhere").is_empty());
    }

    #[test]
    fn equal_ui_resources_of_two_servers_do_not_collide() {
        let app: &[Value] = &[json!({"uri": "ui://app.html", "name": "app"})];
        let tool: &[Value] =
            &[json!({"name": "show", "_meta": {"ui": {"resourceUri": "ui://app.html"}}})];
        let lists: &[(ListKind, &[Value])] = &[(ListKind::Tools, tool), (ListKind::Resources, app)];
        let (a, b) = (part("a", json!({}), lists), part("b c", json!({"prefix": "b"}), lists));
        let (a_id, b_id) = (a.id, b.id);
        let joined = Joined::build(&[a, b]);
        let uris = [("ui://a/app.html", a_id), ("ui://b/app.html", b_id)];
        let listed: Value = serde_json::from_slice(joined.result(ListKind::Resources)).unwrap();
        let tools: Value = serde_json::from_slice(joined.result(ListKind::Tools)).unwrap();
        for (at, (uri, owner)) in uris.into_iter().enumerate() {
            assert_eq!(listed["resources"][at]["uri"], uri);
            assert_eq!(tools["tools"][at]["_meta"]["ui"]["resourceUri"], uri);
            assert_eq!(joined.resource_owners(uri), [owner]);
            assert_eq!(joined.own_uri(uri), "ui://app.html");
        }
        // A tool may refer to a resource that is in no list.
        assert_eq!(joined.resource_owners("ui://b/other"), [b_id]);
        assert!(joined.clashes.is_empty());
        assert_eq!(joined.own_uri("file:///x"), "file:///x");
    }

    #[test]
    fn resources_are_tools_where_the_registration_says_so() {
        // covers: GTW-4, MGR-52
        let resources: &[Value] = &[json!({"uri": "note://1", "name": "todo"})];
        let with =
            part("n", json!({"include_resources": true}), &[(ListKind::Resources, resources)]);
        let joined = Joined::build(&[with]);
        assert_eq!(names(&joined, ListKind::Tools), ["n__resource_todo"]);
        let RoutedTool::Resource(tool) = &joined.tool("n__resource_todo").unwrap().tool else {
            panic!("no resource");
        };
        assert_eq!(tool.uri.as_deref(), Some("note://1"));
        let without = part("n", json!({}), &[(ListKind::Resources, resources)]);
        let plain = Joined::build(&[without]);
        assert!(names(&plain, ListKind::Tools).is_empty());
        assert_eq!(plain.differs(&joined), [ListKind::Tools]);
    }

    #[test]
    fn a_template_fits_what_can_have_come_from_it() {
        for (template, uri, expected) in [
            ("a://{x}", "a://1", true),
            ("a://{x}/b", "a://1/b", true),
            ("a://{x}/b", "a://1/c", false),
            ("a://{x}/{y}", "a://1", false),
            ("a://x", "a://x", true),
            ("a://x", "a://y", false),
            ("{+path}", "anything", true),
            ("a{", "a", true),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }
}
