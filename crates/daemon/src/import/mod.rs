//! From another client's configuration to registrations: saves nothing, and reads nothing but
//! variables and the `envFile` that a server names.
//!
//! Read are `{"mcpServers": {…}}` (Claude, Cursor, Cline and most others), `{"servers": {…}}`
//! and `{"mcp": {"servers": {…}}}` (VS Code), a bare map of names to servers, and one server.

mod env_file;
mod fields;
mod variables;

use std::collections::BTreeMap;

use cofer_model::{NameError, ServerName};
use serde_json::{Map, Value};

use crate::jsonc;
use crate::own_endpoint::OwnEndpoint;
use variables::Variables;

/// Keys whose value goes into the registration as it is.
const TAKEN_OVER: [&str; 22] = [
    "command",
    "image",
    "headers",
    "auth",
    "audience",
    "args",
    "cwd",
    "description",
    "prefix",
    "environment",
    "enabled",
    "restart_policy",
    "resource_limits",
    "include_resources",
    "tools_allow",
    "tools_deny",
    "call_timeout_ms",
    "start_timeout_ms",
    "max_in_flight",
    "heartbeat",
    "sharing",
    "provider",
];
/// Keys by which clients name the address of a remote server.
const ADDRESSES: [&str; 3] = ["url", "serverUrl", "httpUrl"];

/// One server of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImportEntry {
    /// Its name there, made fit for use here.
    pub name: String,
    /// What becomes of it.
    pub outcome: ImportOutcome,
    /// What a person should look at.
    pub warnings: Vec<String>,
}

/// What becomes of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ImportOutcome {
    /// The body of its registration, which may still be refused.
    Register(Value),
    /// Why it is left out.
    Skip(String),
}

/// Why nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// Not even with comments and trailing commas allowed.
    #[error("could not read the configuration as JSON")]
    Malformed(#[from] serde_json::Error),
    /// JSON, but of something else.
    #[error(
        "found no servers: expected {{\"mcpServers\": {{…}}}}, {{\"servers\": {{…}}}}, a map of \
         names to servers, or one server with a `command`"
    )]
    NoServers,
}

/// Reads a client's configuration, by itself or in a request with the variables for it:
/// `{"configuration": …, "variables": {…}, "workspace": "/…"}`.
pub(crate) fn parse_import(text: &str, own: &OwnEndpoint) -> Result<Vec<ImportEntry>, ImportError> {
    let Value::Object(root) = serde_json::from_str(&jsonc::to_json(text))? else {
        return Err(ImportError::NoServers);
    };
    let (root, variables) = unwrap_request(root)?;
    let context = Context { own, variables };
    if is_server(&root) {
        return Ok(vec![single(root, &context)]);
    }
    let servers = find_servers(root).ok_or(ImportError::NoServers)?;
    Ok(servers.into_iter().map(|(name, server)| entry(&name, server, &context)).collect())
}

struct Context<'a> {
    own: &'a OwnEndpoint,
    variables: Variables,
}

/// The configuration of a request and its variables. A server that is named `configuration` makes
/// no request of a bare map.
fn unwrap_request(
    mut root: Map<String, Value>,
) -> Result<(Map<String, Value>, Variables), ImportError> {
    let configuration = match root.get("configuration") {
        Some(Value::String(text)) => serde_json::from_str(&jsonc::to_json(text))?,
        Some(Value::Object(inner)) if !is_server(inner) => Value::Object(inner.clone()),
        _ => return Ok((root, Variables::default())),
    };
    let environment = match root.remove("variables") {
        None => None,
        Some(sent) => Some(serde_json::from_value::<BTreeMap<String, String>>(sent)?),
    };
    let workspace = root.get("workspace").and_then(Value::as_str).map(str::to_owned);
    let configuration = into_object(configuration).ok_or(ImportError::NoServers)?;
    Ok((configuration, Variables { environment, workspace }))
}

fn is_server(map: &Map<String, Value>) -> bool {
    ["command", "image"].iter().any(|key| map.get(*key).is_some_and(Value::is_string))
        || ADDRESSES.iter().any(|key| map.get(*key).is_some_and(Value::is_string))
}

fn find_servers(mut root: Map<String, Value>) -> Option<Map<String, Value>> {
    for key in ["mcpServers", "servers"] {
        if root.get(key).is_some_and(Value::is_object) {
            return into_object(root.remove(key)?);
        }
    }
    if let Some(inner) = root.get_mut("mcp").and_then(|mcp| mcp.get_mut("servers"))
        && inner.is_object()
    {
        return into_object(inner.take());
    }
    // A bare map is one only where all of it can be servers: half a settings file is not.
    let bare =
        !root.is_empty() && root.values().all(|value| value.as_object().is_some_and(is_server));
    bare.then_some(root)
}

fn into_object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(map) = value { Some(map) } else { None }
}

/// One server by itself, with its name beside it or none at all.
fn single(mut server: Map<String, Value>, context: &Context<'_>) -> ImportEntry {
    if let Some(Value::String(name)) = server.remove("name") {
        return entry(&name, Value::Object(server), context);
    }
    let name = nameless(&server);
    let mut entry = entry(&name, Value::Object(server), context);
    entry.warnings.push(format!("it had no name and was named “{}”", entry.name));
    entry
}

/// A name for a server that has none: its program's, or its host's.
fn nameless(server: &Map<String, Value>) -> String {
    let address = ADDRESSES.iter().find_map(|key| server.get(*key)?.as_str());
    if let Some(url) = address.and_then(|text| cofer_model::parse_remote_url(text).ok()) {
        return url.host().unwrap_or("server").trim_matches(['[', ']']).to_owned();
    }
    let command = server.get("command").and_then(Value::as_str).unwrap_or("server");
    command.rsplit('/').next().unwrap_or(command).to_owned()
}

fn entry(name: &str, server: Value, context: &Context<'_>) -> ImportEntry {
    let mut warnings = Vec::new();
    let fit = fit_name(name);
    if fit != name.trim() {
        warnings.push(format!("“{}” is not a name here; it was named “{fit}”", name.trim()));
    }
    let outcome = match server {
        Value::Object(mut server) => {
            let missing = context.variables.expand(&mut server);
            match context.own.reason_to_skip(&server) {
                Some(reason) => ImportOutcome::Skip(reason),
                None => convert(&fit, server, missing, context, &mut warnings),
            }
        }
        _ => ImportOutcome::Skip("it is not an object".to_owned()),
    };
    ImportEntry { name: fit, outcome, warnings }
}

/// Cline names servers `github.com/owner/repository`, which cannot stand in a URL path.
fn fit_name(name: &str) -> String {
    match ServerName::new(name) {
        Err(NameError::BadCharacter) => {
            let fits = |c: char| ServerName::new(&format!("x{c}x")).is_ok();
            name.trim().chars().map(|c| if fits(c) { c } else { '-' }).collect()
        }
        _ => name.trim().to_owned(),
    }
}

/// `missing` describes what could not be expanded: the server is switched off then.
fn convert(
    name: &str,
    server: Map<String, Value>,
    mut missing: Vec<String>,
    context: &Context<'_>,
    warnings: &mut Vec<String>,
) -> ImportOutcome {
    if let Some(reason) = why_not(&server) {
        return ImportOutcome::Skip(reason);
    }
    let is_remote = is_remote(&server);
    let mut body = Map::new();
    body.insert("name".to_owned(), name.into());
    let mut from_file = Vec::new();
    for (key, value) in server {
        match key.as_str() {
            "env" if is_remote && is_empty(&value) => {}
            "env" => insert_environment(&mut body, value, warnings),
            "envFile" => match read_env_file(&value, context) {
                Ok(variables) => from_file = variables,
                Err(problem) => missing.push(problem),
            },
            // Some clients keep beside a URL what belongs to a process.
            "args" | "cwd" if is_remote && is_empty(&value) => {}
            address if ADDRESSES.contains(&address) => {
                body.insert("url".to_owned(), value);
            }
            "disabled" => {
                body.insert("enabled".to_owned(), Value::Bool(value != Value::Bool(true)));
            }
            // Said by what is there, or by where it stands.
            "type" | "transport" | "transportType" | "name" => {}
            known if TAKEN_OVER.contains(&known) => {
                body.insert(key, value);
            }
            other => match (fields::tool_list(other), fields::timeout(other, &value)) {
                (Some(field), _) => fields::insert_tools(&mut body, field, value),
                (None, Some((field, ms))) => drop(body.insert(field.to_owned(), ms)),
                (None, None) => {
                    warnings.push(format!("`{other}` has no meaning here and was left out"));
                }
            },
        }
    }
    add_from_file(&mut body, from_file);
    if !missing.is_empty() {
        body.insert("enabled".to_owned(), Value::Bool(false));
        warnings.extend(missing.into_iter().map(|what| {
            format!(
                "{what}: the server is switched off; set it and import again, or edit the server"
            )
        }));
    }
    ImportOutcome::Register(Value::Object(body))
}

fn read_env_file(value: &Value, context: &Context<'_>) -> Result<Vec<(String, String)>, String> {
    match value.as_str() {
        // Its placeholder is named already.
        Some(path) if path.contains("${") => Ok(Vec::new()),
        Some(path) => env_file::read(path, context.variables.workspace.as_deref()),
        None => Err("`envFile` is not a path".to_owned()),
    }
}

/// `env` goes before the file, as in the clients.
fn add_from_file(body: &mut Map<String, Value>, variables: Vec<(String, String)>) {
    if variables.is_empty() {
        return;
    }
    let environment =
        body.entry("environment").or_insert_with(|| Value::Object(Map::new())).as_object_mut();
    if let Some(environment) = environment {
        for (key, value) in variables {
            environment.entry(key).or_insert(Value::String(value));
        }
    }
}

/// Whether it is given by its address.
fn is_remote(server: &Map<String, Value>) -> bool {
    ADDRESSES.iter().any(|key| server.contains_key(*key))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        Value::Object(parts) => parts.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn why_not(server: &Map<String, Value>) -> Option<String> {
    let transport = ["type", "transport", "transportType"].iter().find_map(|key| server.get(*key));
    let transport = transport.and_then(Value::as_str);
    match (is_remote(server), transport) {
        (
            true,
            None
            | Some(
                "http" | "sse" | "streamable-http" | "streamableHttp" | "streamable_http"
                | "remote",
            ),
        ) => None,
        (false, None | Some("stdio" | "local")) => {
            let is_local = server.contains_key("command") || server.contains_key("image");
            (!is_local).then(|| "it has no `command` and no `url`".to_owned())
        }
        (_, Some(other)) => {
            Some(format!("servers of type `{other}` are not supported in this version"))
        }
    }
}

/// Numbers and switches become text, as a client would pass them.
fn insert_environment(body: &mut Map<String, Value>, env: Value, warnings: &mut Vec<String>) {
    let env = match env {
        Value::Object(env) => Value::Object(
            env.into_iter()
                .filter_map(|(key, value)| match value {
                    Value::Null => {
                        warnings.push(format!("`env.{key}` is null and was left out"));
                        None
                    }
                    Value::Bool(_) | Value::Number(_) => {
                        Some((key, Value::String(value.to_string())))
                    }
                    Value::String(_) | Value::Array(_) | Value::Object(_) => Some((key, value)),
                })
                .collect(),
        ),
        other => other,
    };
    body.insert("environment".to_owned(), env);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn own() -> OwnEndpoint {
        OwnEndpoint::new("127.0.0.1:8787".parse().unwrap())
    }

    fn parse(text: &str) -> Vec<ImportEntry> {
        parse_import(text, &own()).unwrap()
    }

    fn registered(entry: &ImportEntry) -> &Value {
        match &entry.outcome {
            ImportOutcome::Register(body) => body,
            ImportOutcome::Skip(reason) => panic!("skipped: {reason}"),
        }
    }

    fn skipped(entry: &ImportEntry) -> &str {
        match &entry.outcome {
            ImportOutcome::Register(body) => panic!("registered: {body}"),
            ImportOutcome::Skip(reason) => reason,
        }
    }

    #[test]
    fn every_clients_shape_is_read() {
        let server = r#"{"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}"#;
        let expected =
            json!({"name": "fs", "command": "npx", "args": ["-y", "x"], "environment": {"A": "b"}});
        for text in [
            format!(r#"{{"mcpServers": {{"fs": {server}}}, "theme": "dark"}}"#),
            format!(r#"{{"inputs": [], "servers": {{"fs": {server}}}}}"#),
            format!(r#"{{"mcp": {{"servers": {{"fs": {server}}}}}, "editor.fontSize": 12}}"#),
            format!(r#"{{"fs": {server}}}"#),
            r#"{"name": "fs", "command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}"#
                .to_owned(),
        ] {
            let entries = parse(&text);
            assert_eq!(entries.len(), 1, "{text}");
            assert_eq!(registered(&entries[0]), &expected, "{text}");
            assert_eq!((entries[0].name.as_str(), entries[0].warnings.len()), ("fs", 0), "{text}");
        }
    }

    #[test]
    fn what_is_imported_can_be_registered() {
        let text = r#"{"mcpServers": {"a": {"type": "stdio", "command": "x", "disabled": true,
            "env": {"N": 1, "B": true, "Z": null}}, "b": {"command": "y", "disabled": false}}}"#;
        let entries = parse(text);
        let specs: Vec<_> = entries
            .iter()
            .map(|entry| cofer_model::parse_registration(registered(entry).clone()).unwrap())
            .collect();
        assert!(!specs[0].enabled && specs[1].enabled);
        let environment: Vec<_> = specs[0].environment.iter().collect();
        assert_eq!(
            environment,
            [(&"B".to_owned(), &"true".to_owned()), (&"N".to_owned(), &"1".to_owned())]
        );
        assert_eq!(entries[0].warnings, ["`env.Z` is null and was left out"]);
    }

    #[test]
    fn what_this_version_cannot_run_is_skipped_with_the_reason() {
        let entries = parse(
            r#"{"mcpServers": {"b": {"type": "sse", "command": "x"},
                "c": {"args": []}, "d": "npx", "e": {"type": "ws", "url": "http://x"}}}"#,
        );
        let reasons: Vec<_> = entries.iter().map(skipped).collect();
        assert_eq!(
            reasons,
            [
                "servers of type `sse` are not supported in this version",
                "it has no `command` and no `url`",
                "it is not an object",
                "servers of type `ws` are not supported in this version",
            ]
        );
    }

    #[test]
    fn every_clients_remote_servers_are_read() {
        let headers = r#""headers": {"Authorization": "Bearer ${NO_TOKEN}"}"#;
        let expected = json!({
            "name": "r", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${NO_TOKEN}"},
            "enabled": false,
        });
        for server in [
            format!(r#"{{"url": "https://x/mcp", {headers}}}"#),
            format!(r#"{{"type": "http", "url": "https://x/mcp", {headers}}}"#),
            format!(r#"{{"type": "sse", "url": "https://x/mcp", {headers}}}"#),
            format!(
                r#"{{"type": "streamableHttp", "url": "https://x/mcp", "env": {{}}, "args": [], {headers}}}"#
            ),
            format!(r#"{{"serverUrl": "https://x/mcp", {headers}}}"#),
            format!(r#"{{"httpUrl": "https://x/mcp", {headers}}}"#),
        ] {
            let entries = parse(&format!(r#"{{"mcpServers": {{"r": {server}}}}}"#));
            assert_eq!(registered(&entries[0]), &expected, "{server}");
            assert_eq!(entries[0].warnings.len(), 1, "{:?}", entries[0].warnings);
            cofer_model::parse_registration(registered(&entries[0]).clone()).unwrap();
        }
        let entries = parse(r#"{"url": "https://mcp.example.com/mcp"}"#);
        assert_eq!(entries[0].name, "mcp.example.com");
    }

    #[test]
    fn what_gets_lost_is_told() {
        let entries = parse(
            r#"{"mcpServers": {"a": {"command": "x", "autoApprove": ["t"], "args": ["${workspaceFolder}/b"],
                "env": {"T": "Bearer ${input:token}"}}}}"#,
        );
        assert_eq!(
            entries[0].warnings,
            [
                "`autoApprove` has no meaning here and was left out",
                "`${workspaceFolder}` in `args[0]` has no value: the server is switched off; set it and import again, or edit the server",
                "`${input:token}` in `env.T` has no value: the server is switched off; set it and import again, or edit the server",
            ]
        );
        assert_eq!(registered(&entries[0])["enabled"], false);
    }

    #[test]
    fn a_request_brings_its_variables_and_its_workspace() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".env"), "A=file\nB=file\n").unwrap();
        let server = r#"{ /* mine */ "command": "${RUN}", "args": ["${workspaceFolder}", "${PATH:-none}"],
            "env": {"A": "env"}, "envFile": "${workspaceFolder}/.env", "timeout": 120,
            "includeTools": ["read*"], "excludeTools": ["rm"], "disabledTools": ["mv"], "tools": ["*"] }"#;
        let request = json!({
            "configuration": format!(r#"{{"mcpServers": {{"a": {server}}}}}"#),
            "variables": {"RUN": "node"}, "workspace": folder.path(),
        });
        let entries = parse(&request.to_string());
        let expected = json!({
            "name": "a", "command": "node", "args": [folder.path(), "none"],
            "environment": {"A": "env", "B": "file"}, "call_timeout_ms": 120_000,
            "tools_allow": ["read*"], "tools_deny": ["rm", "mv"],
        });
        assert_eq!(registered(&entries[0]), &expected);
        assert_eq!(entries[0].warnings, Vec::<String>::new());
        cofer_model::parse_registration(expected).unwrap();
        let bare = parse(r#"{"configuration": {"command": "x"}}"#);
        assert_eq!(bare[0].name, "configuration");
    }

    #[test]
    fn names_are_made_fit() {
        let entries = parse(r#"{"mcpServers": {"github.com/a b/c": {"command": "x"}}}"#);
        assert_eq!(entries[0].name, "github.com-a b-c");
        assert_eq!(registered(&entries[0])["name"], "github.com-a b-c");
        assert_eq!(entries[0].warnings.len(), 1);
        let entries = parse(r#"{"command": "/usr/bin/my-server"}"#);
        assert_eq!(entries[0].name, "my-server");
        assert_eq!(entries[0].warnings, ["it had no name and was named “my-server”"]);
    }

    #[test]
    fn comments_and_trailing_commas_are_tolerated() {
        let text = "{ // mine\n \"mcpServers\": { \"a\": { \"command\": \"x\", /* none */ \"args\": [\"//y\",], }, }, }";
        assert_eq!(registered(&parse(text)[0])["args"], json!(["//y"]));
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        for text in [
            "[]",
            "3",
            "{}",
            r#"{"a": 1}"#,
            r#"{"a": {"command": "x"}, "b": 1}"#,
            r#"{"mcpServers": []}"#,
        ] {
            assert!(matches!(parse_import(text, &own()), Err(ImportError::NoServers)), "{text}");
        }
        for text in ["", "{", "{\"a\": }", "npx -y x"] {
            assert!(matches!(parse_import(text, &own()), Err(ImportError::Malformed(_))), "{text}");
        }
        assert_eq!(parse(r#"{"mcpServers": {}}"#), []);
    }
}
