//! MCP's official conformance suites for clients, with `cofer proxy` between the official
//! TypeScript SDK and the suite's server: every scenario but those of OAuth, which the proxy
//! never does, and of extensions.

use std::path::Path;

use cofer_e2e::{cofer, run, tests_folder};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/through-proxy.cjs");

/// Runs these scenarios of a suite in one revision.
async fn check(suite: &str, revision: Option<&str>, scenarios: &[&str]) {
    let modules = tests_folder("COFER_TEST_NPM").join("node_modules");
    let node = modules.join(".bin/node");
    let program = modules.join(format!("mcp-conformance-{suite}/dist/index.js"));
    let client = format!("{} {CLIENT} {} {}", node.display(), modules.display(), cofer().display());
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let home = [("HOME", folder.path().to_str().expect("paths are text"))];
    for scenario in scenarios {
        let program = program.to_str().expect("paths are text");
        let mut args = vec![program, "client", "--command", &client, "--scenario", scenario];
        args.extend(revision.iter().flat_map(|revision| ["--spec-version", revision]));
        let ended = run(Path::new(&node), &args, &home, "").await;
        let said = format!("{}\n{}", ended.stdout, ended.stderr);
        let verdict = said.lines().find_map(|line| line.strip_prefix("Passed: "));
        let verdict = verdict.unwrap_or_else(|| panic!("{scenario} did not run:\n{said}"));
        assert!(verdict.contains(" 0 failed"), "{scenario}: {verdict}\n{said}");
        assert!(!verdict.starts_with("0/"), "{scenario}: nothing was checked\n{said}");
    }
}

#[tokio::test]
async fn the_stable_suite_passes_through_the_proxy() {
    // covers: PRX-1.1, PRX-1.4, PRX-3.1, PRX-3.2, PRX-3.3, PRX-4.1, PRX-4.2
    let all = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"];
    check("0.1", None, &all).await;
}

#[tokio::test]
async fn the_next_suite_passes_for_sessions() {
    // covers: PRX-3.1, PRX-3.2, PRX-3.3, PRX-4.1, PRX-4.2
    let all = [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ];
    check("0.2", Some("2025-11-25"), &all).await;
}

#[tokio::test]
async fn the_next_suite_passes_without_sessions() {
    // covers: PRX-3.1, PRX-3.2, PRX-3.3, PRX-4.1, PRX-4.2
    let all = [
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ];
    check("0.2", Some("2026-07-28"), &all).await;
}
