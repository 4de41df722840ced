//! MCP's official conformance suites against `/mcp/NAME`, with a server hosted over stdio: every
//! scenario that applies, in each revision, for servers of both eras.

use std::collections::BTreeSet;
use std::path::Path;

use cofer_e2e::{Daemon, OpenDoor, exemplary, run, tests_folder};

const NOT_APPLICABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/not-applicable.txt");

/// The scenarios that may fail in a run.
fn not_applicable(run: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(NOT_APPLICABLE).expect("the list is there");
    let listed = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let scenario = |line: &str| {
        let mut words = line.split_whitespace();
        let (of, scenario) = (words.next()?, words.next()?);
        assert!(words.next().is_some(), "a reason is missing: {line}");
        let same = of.split('/').zip(run.split('/')).all(|(a, b)| a == "*" || a == b);
        same.then(|| scenario.to_owned())
    };
    listed.filter_map(scenario).collect()
}

/// Runs a suite with these arguments and compares which scenarios fail.
async fn check(suite: &str, revision: &str, era: &str, args: &[&str]) {
    let daemon = Daemon::start().await;
    daemon.register(&exemplary("hosted", era)).await;
    let door = OpenDoor::to(&daemon).await;
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let node = modules.join(".bin/node");
    let program = modules.join(format!("mcp-conformance-{suite}/dist/index.js"));
    let url = format!("{}/mcp/hosted", door.base());
    let first = [program.to_str().expect("paths are text"), "server", "--url", &url];
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let home = [("HOME", folder.path().to_str().expect("paths are text"))];
    let ended = run(Path::new(&node), &[&first[..], args].concat(), &home, "").await;
    let (passed, failed) = verdicts(&ended.stdout);
    assert!(passed.len() >= 25, "the suite did not run:\n{}\n{}", ended.stdout, ended.stderr);
    let expected = not_applicable(&format!("{suite}/{revision}/{era}"));
    assert_eq!(failed, expected, "{}", tail(&ended.stdout));
}

/// The scenarios that passed and those that failed, by the summary.
fn verdicts(output: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let summary = output.split("=== SUMMARY ===").nth(1).unwrap_or_default();
    let names = |mark: &str| {
        let line = |line: &str| {
            let (name, counts) = line.strip_prefix(mark)?.trim().split_once(": ")?;
            counts.contains("passed").then(|| name.to_owned())
        };
        summary.lines().filter_map(line).collect()
    };
    (names("✓"), names("✗"))
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(80)..].join("\n")
}

#[tokio::test]
async fn the_stable_suite_passes_with_an_older_server() {
    // covers: GTW-2
    check("0.1", "2025-11-25", "legacy", &["--suite", "all"]).await;
}

#[tokio::test]
async fn the_stable_suite_passes_with_a_newer_server() {
    // covers: GTW-2
    check("0.1", "2025-11-25", "modern", &["--suite", "all"]).await;
}

#[tokio::test]
async fn the_next_suite_passes_for_clients_with_sessions_and_an_older_server() {
    // covers: GTW-1, GTW-2
    check("0.2", "2025-11-25", "legacy", &["--requirements", "2025-11-25"]).await;
}

#[tokio::test]
async fn the_next_suite_passes_for_clients_with_sessions_and_a_newer_server() {
    // covers: GTW-1, GTW-2
    check("0.2", "2025-11-25", "modern", &["--requirements", "2025-11-25"]).await;
}

#[tokio::test]
async fn the_next_suite_passes_for_clients_without_sessions_and_a_newer_server() {
    // covers: GTW-1, GTW-2
    check("0.2", "2026-07-28", "modern", &["--requirements", "2026-07-28"]).await;
}

#[tokio::test]
async fn the_next_suite_passes_for_clients_without_sessions_and_an_older_server() {
    // covers: GTW-1, GTW-2
    check("0.2", "2026-07-28", "legacy", &["--requirements", "2026-07-28"]).await;
}
