//! What the tools say: text as container-use's clients read it, and the same facts as JSON.

use serde_json::{Value, json};

use crate::background::Endpoints;
use crate::create::Created;
use crate::destroy::Destroyed;
use crate::environment::{Environment, Kept};
use crate::run::Ran;
use crate::tool::Told;

/// A new environment. The text begins with the JSON object.
pub(crate) fn created(created: &Created) -> Told {
    let state = &created.environment.state;
    let id = &state.id;
    let mut config = json!(state.config);
    config["worktree_mode"] = json!(state.mode);
    let mut warnings = created.warnings.clone();
    let dirty = uncommitted(&created.environment, &created.uncommitted);
    warnings.extend(dirty.clone());
    let command = |name: &str| format!("cofer env {name} {id}");
    let facts = json!({
        "id": id,
        "title": state.title,
        "config": config,
        "remote_ref": state.remote_ref(),
        "checkout_command": command("checkout"),
        "log_command": command("log"),
        "diff_command": command("diff"),
        "checkout_command_to_share_with_user": command("checkout"),
        "log_command_to_share_with_user": command("log"),
        "diff_command_to_share_with_user": command("diff"),
        "worktree": state.worktree,
        "container_id": state.container_id,
        "isolation": created.isolation,
        "warnings": warnings,
    });
    let mut text = facts.to_string();
    if let Some(dirty) = dirty {
        text.push_str(&format!("\n\nCRITICAL: You MUST inform the user: {dirty}"));
    }
    Told { text, facts }
}

/// Where nobody can say what is not committed.
pub(crate) const UNKNOWN_CHANGES: &str = "git could not say whether the source has uncommitted changes; if it has any, they are NOT included in this environment";

/// What of its source is not in an environment, where there is any.
pub(crate) fn uncommitted(environment: &Environment, files: &[String]) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let source = environment.state.source.display();
    let list = files.join("\n");
    Some(format!(
        "the repository {source} has uncommitted changes that are NOT included in this environment; to have them in it, commit them first and create another one.\n\nUncommitted changes detected:\n{list}"
    ))
}

/// A command that has ended.
pub(crate) fn ran(
    environment: &Environment,
    ran: &Ran,
    kept: &Kept,
    background: Vec<Value>,
) -> Told {
    let mut facts = ran.json();
    facts["commit"] = json!(kept.commit);
    facts["warnings"] = json!(kept.warnings);
    let mut text = streams(&facts).trim_start_matches('\n').to_owned();
    let code = ran.end.code();
    if code != 0 {
        text.push_str(&format!("\n\nThe command ended with exit code {code}."));
    }
    for ended in background.iter().filter(|command| command["running"] == false) {
        text.push_str(&format!(
            "\n\nThe background command {} has ended with exit code {}. The end of its output:\n{}",
            ended["command"],
            ended["exit_code"],
            ended["output"].as_str().unwrap_or_default()
        ));
    }
    if !background.is_empty() {
        facts["background_commands"] = json!(background);
    }
    for warning in &kept.warnings {
        text.push_str(&format!("\n\nWarning: {warning}"));
    }
    let (workdir, remote_ref) = (&environment.state.config.workdir, environment.state.remote_ref());
    text.push_str(&format!("\n\nAny changes to the container workdir ({workdir}) have been committed and pushed to {remote_ref} remote ref"));
    Told { text, facts }
}

/// stdout, and stderr with its name before it.
pub(crate) fn streams(facts: &Value) -> String {
    let text = |name: &str| facts[name].as_str().unwrap_or_default();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    let mut out = String::new();
    if !stdout.is_empty() {
        out.push('\n');
        out.push_str(stdout);
    }
    if !stderr.is_empty() {
        out.push_str("\nstderr: ");
        out.push_str(stderr);
    }
    out
}

/// A command that goes on.
pub(crate) fn started(environment: &Environment, endpoints: &Endpoints) -> Told {
    let facts = json!({"background": true, "endpoints": endpoints});
    let remote_ref = environment.state.remote_ref();
    let text = format!(
        "Command started in the background. Endpoints are {}\n\nUse host_external from the user's machine, and environment_internal from other commands of this environment. \
         It sees changes of files at once; what it changes itself is committed to {remote_ref} after the next command. Its end and its output are told by later commands.",
        json!(endpoints)
    );
    Told { text, facts }
}

/// An environment that is gone.
pub(crate) fn destroyed(destroyed: &Destroyed) -> Told {
    let facts = destroyed.json();
    let id = &destroyed.id;
    let branch = if destroyed.branch_kept {
        format!(
            "Its work stays on the branch cofer/{id}: `cofer env log {id}`, `cofer env merge {id}`."
        )
    } else {
        format!("The branch cofer/{id} was removed with it.")
    };
    let mut text = format!("{facts}\n\nEnvironment {id} was destroyed. {branch}");
    for warning in &destroyed.warnings {
        text.push_str(&format!("\n\nWarning: {warning}"));
    }
    Told { text, facts }
}
