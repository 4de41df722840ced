//! What the tools are called, what they take and what they give: container-use's names, and what
//! Cofer adds to them.

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

pub(crate) const CREATE: &str = "environment_create";
pub(crate) const RUN: &str = "environment_run_cmd";
pub(crate) const DESTROY: &str = "environment_destroy";

/// What a client is told about the server.
pub(crate) const INSTRUCTIONS: &str = "Do your work in an environment: create one for a task with environment_create, run every command in it with environment_run_cmd, and tell the user the commands that come back for looking at the work. The worktree is live: files that you edit there are seen by commands at once, and what commands change is committed after each of them.";

/// The three tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![create(), run(), destroy()]
}

fn create() -> Tool {
    let description = "Creates an environment for one task: a git worktree and a container of its own, made of a commit of the repository. Uncommitted changes are not in it; the answer says so where there are some.";
    let properties = json!({
        "environment_source": source(),
        "title": text("A short description of the work, from which the environment gets its id."),
        "from_git_ref": {"type": "string", "default": "HEAD", "description": "The branch, tag, commit or environment to start from."},
        "image": text("The container image; else the one in the repository's .cofer/environment.json, else a default."),
        "environment_id": text("An id of your own: lower-case letters, digits and -."),
        "allow_replace": {"type": "boolean", "default": false, "description": "Replace an environment of the same id. The commits of its branch are kept."},
        "explanation": explanation(),
    });
    tool(
        CREATE,
        "Create an environment",
        description,
        properties,
        &["environment_source", "title"],
        created(),
    )
    .with_annotations(
        ToolAnnotations::new()
            .read_only(false)
            .destructive(false)
            .idempotent(false)
            .open_world(true),
    )
}

fn run() -> Tool {
    let description = "Runs a command in an environment's container and gives back its exit code and the end of its output. Changes of files are committed to the environment's branch. Use background for servers, with the ports they listen on.";
    let properties = json!({
        "environment_source": source(),
        "environment_id": id(),
        "command": text("The command line; empty for what the image runs by itself."),
        "shell": {"type": "string", "default": "sh", "description": "The shell that reads it: sh, bash, zsh or ash."},
        "background": {"type": "boolean", "default": false, "description": "Go on without waiting for its end. For servers and watchers."},
        "use_entrypoint": {"type": "boolean", "default": false, "description": "Start it through the image's entry point."},
        "ports": {"type": "array", "items": {"type": "number"}, "description": "Ports that it will listen on; with background only. The answer says where they can be reached."},
        "explanation": explanation(),
    });
    tool(
        RUN,
        "Run a command",
        description,
        properties,
        &["environment_source", "environment_id"],
        ran(),
    )
    .with_annotations(
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(true),
    )
}

fn destroy() -> Tool {
    let description = "Ends everything that runs in an environment and removes its container and worktree. The branch with its commits stays, unless force is true.";
    let properties = json!({
        "environment_source": source(),
        "environment_id": id(),
        "force": {"type": "boolean", "default": false, "description": "Remove the branch too, and go on where files cannot be removed in the usual way."},
        "explanation": explanation(),
    });
    tool(
        DESTROY,
        "Destroy an environment",
        description,
        properties,
        &["environment_source", "environment_id"],
        destroyed(),
    )
    .with_annotations(
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(false),
    )
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn source() -> Value {
    text("Absolute path of the git repository.")
}

fn id() -> Value {
    text("The id that environment_create gave.")
}

fn explanation() -> Value {
    text("One sentence on why; it becomes the message of the commit.")
}

fn tool(
    name: &'static str,
    title: &str,
    description: &'static str,
    properties: Value,
    required: &[&str],
    gives: Value,
) -> Tool {
    let input = json!({"type": "object", "properties": properties, "required": required});
    let (mut gives, error) = (gives, error());
    gives["error"] = error;
    let output = json!({"type": "object", "properties": gives});
    Tool::new(name, description, object(input))
        .with_title(title)
        .with_raw_output_schema(object(output).into())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn created() -> Value {
    let text = || json!({"type": "string"});
    let mut gives = json!({
        "config": {"type": "object"},
        "container_id": {"type": "string"},
        "isolation": {"type": ["object", "null"], "description": "The isolation in force, read from the kernel."},
        "warnings": {"type": "array", "items": {"type": "string"}},
    });
    for name in [
        "id",
        "title",
        "remote_ref",
        "worktree",
        "checkout_command",
        "log_command",
        "diff_command",
        "checkout_command_to_share_with_user",
        "log_command_to_share_with_user",
        "diff_command_to_share_with_user",
    ] {
        gives[name] = text();
    }
    gives
}

fn ran() -> Value {
    json!({
        "exit_code": {"type": ["integer", "null"]},
        "signal": {"type": "integer"},
        "stdout": {"type": "string", "description": "The last 512 lines, at most 64 KiB."},
        "stderr": {"type": "string"},
        "stdout_truncated": {"type": "boolean"},
        "stderr_truncated": {"type": "boolean"},
        "duration_ms": {"type": "integer"},
        "commit": {"type": ["string", "null"], "description": "The commit with what the command changed."},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "background": {"type": "boolean"},
        "endpoints": {"type": "object"},
        "background_commands": {"type": "array", "items": {"type": "object"}},
    })
}

fn destroyed() -> Value {
    json!({
        "environment_id": {"type": "string"},
        "removed_paths": {"type": "array", "items": {"type": "string"}},
        "stopped_containers": {"type": "array", "items": {"type": "string"}},
        "termination": {"type": "string", "enum": ["graceful", "forced", "already_stopped"]},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "branch_kept": {"type": "boolean"},
    })
}

fn error() -> Value {
    json!({
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["conflict", "precondition_failed", "not_found", "limit_exceeded", "timeout", "invalid_request", "internal"]},
            "message": {"type": "string"},
            "step": {"type": "string"},
            "recovery": {"type": "string", "description": "What to do next."},
            "trace_id": {"type": "string"},
            "retryable": {"type": "boolean"},
        },
        "required": ["kind", "message", "step", "recovery", "trace_id", "retryable"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_three_tools_with_container_uses_arguments() {
        // covers: ENV-4.1
        let tools = serde_json::to_value(tools()).unwrap();
        let names: Vec<&str> =
            tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["environment_create", "environment_run_cmd", "environment_destroy"]);
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["environment_source", "title"]));
        assert_eq!(
            tools[1]["inputSchema"]["required"],
            json!(["environment_source", "environment_id"])
        );
        for name in ["command", "shell", "background", "use_entrypoint", "ports", "explanation"] {
            assert!(tools[1]["inputSchema"]["properties"][name].is_object(), "{name}");
        }
    }
}
