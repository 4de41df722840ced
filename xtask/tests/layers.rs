//! Keeps the directions of ARCHITECTURE.md: which crate may know which, and who alone may use
//! what from outside. An edge that is not in the table fails, by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crate → what it may know. A crate that stands in no line may know nothing of ours.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("mcp", &["model"]),
    ("runtime", &["model"]),
    ("store", &["model"]),
    ("supervisor", &["model", "mcp", "runtime"]),
    ("chat", &["model"]),
    ("daemon", &["model", "mcp", "runtime", "store", "supervisor", "chat"]),
    ("environments", &["model", "runtime"]),
    ("proxy", &["model", "mcp"]),
    ("copilot", &["model", "runtime"]),
    // runtime: a server's shim is this same binary, started again.
    ("cofer", &["model", "runtime", "daemon", "environments", "proxy", "copilot"]),
];

/// Never shipped, so that they may know anything.
const FREE: &[&str] = &["e2e", "fake-google", "xtask", "bench"];

/// What from outside belongs to one crate alone.
const BELONGS_TO: &[(&str, &str)] =
    &[("axum", "daemon"), ("sqlx", "store"), ("clap", "cofer"), ("clap_complete", "cofer")];

/// The files that start programs.
const STARTS_PROGRAMS: &[&str] = &[
    "runtime/src/command.rs",
    "runtime/src/podman/probe.rs",
    // Asks the programs of a person's own PATH for their versions, in that person's environment.
    "cofer/src/programs.rs",
    // Runs the program that a credentials file names, where the user's environment allows it.
    "proxy/src/auth/external/executable.rs",
];

/// What a crate must never learn.
const NEVER: &[(&str, &str)] = &[("model", "tokio"), ("mcp", "rustix"), ("chat", "rustix")];

#[test]
fn no_crate_knows_more_than_its_layer_allows() {
    let graph = graph(&cargo_metadata());
    assert!(graph.len() > 5, "cargo metadata names hardly any crate: {graph:?}");
    let wrong = edges_not_allowed(&graph);
    assert!(wrong.is_empty(), "not in the table of ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn an_edge_that_is_not_in_the_table_is_named() {
    let edges = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let graph = BTreeMap::from([
        ("mcp".to_owned(), edges(&["cofer-model", "cofer-runtime", "axum"])),
        ("model".to_owned(), edges(&["serde", "tokio"])),
        ("newcomer".to_owned(), edges(&["cofer-model"])),
        ("e2e".to_owned(), edges(&["cofer-store", "sqlx"])),
    ]);
    assert_eq!(
        edges_not_allowed(&graph),
        [
            "mcp → runtime",
            "mcp → axum (only daemon may)",
            "model → tokio (never)",
            "newcomer → model"
        ]
    );
}

#[test]
fn programs_are_started_in_few_places() {
    let crates = root().join("crates");
    let mut sources = Vec::new();
    for folder in fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.file_name().is_some_and(|name| name != "e2e") {
            rust_files(&folder.join("src"), &mut sources);
        }
    }
    assert!(sources.len() > 10, "found only {sources:?}");
    let needle = ["Command", "::new("].concat();
    let strays: Vec<_> = sources
        .iter()
        .filter(|path| !STARTS_PROGRAMS.iter().any(|known| crates.join(known) == **path))
        .filter(|path| {
            fs::read_to_string(path).unwrap().lines().any(|line| {
                line.contains(&needle)
                    && !line.trim_start().starts_with("//")
                    && !line.contains("clap")
            })
        })
        .collect();
    assert!(
        strays.is_empty(),
        "programs are started by crates/runtime/src/command.rs, not by {strays:?}"
    );
}

/// Crate (without `cofer-`) → the packages that it needs to be built; dev-dependencies are free.
fn graph(metadata: &Value) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let needs = |package: &Value| -> Vec<String> {
        let all = package["dependencies"].as_array().into_iter().flatten();
        all.filter(|dependency| dependency["kind"] != "dev").map(|d| text(&d["name"])).collect()
    };
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.map(|package| (short(&text(&package["name"])).to_owned(), needs(package))).collect()
}

fn edges_not_allowed(graph: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, needs) in graph.iter().filter(|(from, _)| !FREE.contains(&from.as_str())) {
        let may_know = MAY_KNOW.iter().find(|(name, _)| name == from).map_or(&[][..], |row| row.1);
        for to in needs {
            if let Some(ours) = ours(to) {
                if !may_know.contains(&ours) {
                    wrong.push(format!("{from} → {ours}"));
                }
            } else if let Some((_, owner)) = BELONGS_TO.iter().find(|(name, _)| name == to) {
                if from != owner {
                    wrong.push(format!("{from} → {to} (only {owner} may)"));
                }
            } else if NEVER.contains(&(from.as_str(), to.as_str())) {
                wrong.push(format!("{from} → {to} (never)"));
            }
        }
    }
    wrong
}

fn ours(package: &str) -> Option<&str> {
    package.strip_prefix("cofer-").or((package == "cofer" || package == "xtask").then_some(package))
}

fn short(package: &str) -> &str {
    package.strip_prefix("cofer-").unwrap_or(package)
}

fn cargo_metadata() -> Value {
    #[expect(clippy::disallowed_methods, reason = "a test of the project: it asks cargo")]
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project").to_owned()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a source folder can be read");
    for path in entries.map(|entry| entry.expect("its entries can be read").path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
