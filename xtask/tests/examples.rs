//! The documented configurations are ones that Cofer takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cofer_model::{ServerSpec, parse_registration};
use serde_json::{Map, Value};

// covers: MGR-62
#[test]
fn every_documented_configuration_can_be_registered() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples.md");
    let page = fs::read_to_string(page).expect("docs/examples.md is there");
    let specs: BTreeMap<String, ServerSpec> =
        json_blocks(&page).flat_map(|block| servers(&block)).collect();
    for name in ["filesystem", "github", "fetch", "memory", "git", "time", "everything"] {
        let spec = specs.get(name).unwrap_or_else(|| panic!("no example for {name}"));
        assert!(spec.command.is_some(), "{name} has no command");
        assert!(page.contains(&format!("cofer server add {name} ")), "{name} has no command line");
    }
}

fn json_blocks(page: &str) -> impl Iterator<Item = Value> {
    page.split("```json\n").skip(1).map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        serde_json::from_str(block).unwrap_or_else(|error| panic!("{error} in {block}"))
    })
}

/// A client's `mcpServers`, as registrations: `env` is Cofer's `environment`.
fn servers(block: &Value) -> Vec<(String, ServerSpec)> {
    let servers = block["mcpServers"].as_object().expect("an example is an mcpServers file");
    let register = |(name, server): (&String, &Value)| {
        let mut body: Map<String, Value> =
            server.as_object().expect("a server is an object").clone();
        if let Some(variables) = body.remove("env") {
            body.insert("environment".to_owned(), variables);
        }
        body.insert("name".to_owned(), name.as_str().into());
        let spec = parse_registration(body.into());
        (name.clone(), spec.unwrap_or_else(|wrong| panic!("{name}: {wrong:?}")))
    };
    servers.iter().map(register).collect()
}
