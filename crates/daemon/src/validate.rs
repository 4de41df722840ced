//! Whether a registration would work, before it is saved: every mistake at once, and what a
//! person should know about it. Looks at the file system, changes nothing.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use cofer_model::{
    FieldError, Kind, Limits, ServerName, ServerSpec, looks_secret_key, looks_secret_value,
    parse_registration,
};
use cofer_runtime::{ResolveError, resolve};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::own_endpoint::OwnEndpoint;
use crate::validate_container::{Machine, openings, shortages};
use crate::validate_remote::{remote_limits_warning, remote_warnings};

/// What becomes of a secret that is stored.
pub(crate) const PLAIN_TEXT: &str =
    "is stored in plain text in the data directory, protected by file permissions only";

/// What is wrong with a registration and what is worth knowing about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Validation {
    /// What is wrong.
    pub errors: Vec<ValidationError>,
    /// What is not wrong but worth knowing.
    pub warnings: Vec<FieldError>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ValidationError {
    /// The field, with a path into it where it has parts.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// Whether it cannot be saved like this. What can be saved fails when it is started, and
    /// then shows why.
    pub blocking: bool,
}

/// The part of the daemon's surroundings that decides which program a command names.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The daemon's `PATH`.
    pub path: Option<OsString>,
    /// Where a server runs that names no directory.
    pub home: PathBuf,
    /// What the machine has to give.
    pub machine: Machine,
    /// Where the daemon itself is reached.
    pub own: OwnEndpoint,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn of_this_process(own: OwnEndpoint) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute() && home.is_dir());
        let home = home.unwrap_or_else(|| "/".into());
        Self { path: std::env::var_os("PATH"), home, machine: Machine::this(), own }
    }
}

/// Checks the body of a registration; `taken` tells whether a name is in use, `clash` whether a
/// prefix is.
pub(crate) fn validate(
    body: Value,
    taken: impl Fn(&ServerName) -> bool,
    clash: impl Fn(&ServerSpec) -> Option<FieldError>,
    surroundings: &Surroundings,
) -> Validation {
    // What can be read is checked even where other fields are wrong.
    let mut errors: Vec<ValidationError> = Vec::new();
    errors.extend(check_name(&body, taken).map(blocking));
    errors.extend(check_program(&body, surroundings).map(|error| ValidationError {
        field: error.field,
        message: error.message,
        blocking: false,
    }));
    let mut warnings = warnings_of_body(&body);
    let mut shape: Vec<ValidationError> = match parse_registration(body) {
        Ok(spec) => {
            if spec.kind() == Kind::Container {
                warnings.extend(openings(&spec));
                warnings.extend(shortages(&spec, surroundings.machine));
            }
            let found = [surroundings.own.find_in(&spec), clash(&spec)];
            found.into_iter().flatten().map(blocking).collect()
        }
        Err(errors) => errors.into_iter().map(blocking).collect(),
    };
    shape.append(&mut errors);
    Validation { errors: shape, warnings }
}

/// What a person should know about a registration that is saved, one sentence each.
pub(crate) fn warnings_of(spec: &ServerSpec) -> Vec<String> {
    let environment = spec.environment.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let args: Vec<&str> = spec.args.iter().map(String::as_str).collect();
    let mut warnings = environment_warnings(environment);
    warnings.extend(argument_warnings(&args));
    match spec.kind() {
        Kind::Process => warnings.extend(limits_warning(&spec.resource_limits)),
        Kind::Container => warnings.extend(openings(spec)),
        Kind::Remote => {
            let headers = spec.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            warnings.extend(remote_warnings(spec.url.as_deref(), headers));
            warnings.extend(remote_limits_warning(&spec.resource_limits));
        }
    }
    warnings.into_iter().map(|warning| warning.message).collect()
}

fn blocking(error: FieldError) -> ValidationError {
    ValidationError { field: error.field, message: error.message, blocking: true }
}

fn check_name(body: &Value, taken: impl Fn(&ServerName) -> bool) -> Option<FieldError> {
    let name = ServerName::new(body.get("name")?.as_str()?).ok()?;
    taken(&name).then(|| name_taken(&name))
}

/// The name is another server's.
pub(crate) fn name_taken(name: &ServerName) -> FieldError {
    FieldError::new("name", format!("A server named “{name}” already exists"))
}

/// The first thing that keeps the program from being run: its directory, then itself.
fn check_program(body: &Value, surroundings: &Surroundings) -> Option<FieldError> {
    let text = |key| body.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    // What a container runs, and where, is in its image.
    if text("image").is_some() {
        return None;
    }
    let cwd = text("cwd").map(Path::new);
    if let Some(reason) = cwd.and_then(wrong_directory) {
        return Some(FieldError::new("cwd", reason));
    }
    let command = text("command")?;
    let path = body.get("environment").and_then(|environment| environment.get("PATH")?.as_str());
    let path = path.map(OsStr::new).or(surroundings.path.as_deref());
    let error = resolve(command, path, cwd.unwrap_or(&surroundings.home)).err()?;
    Some(FieldError::new("command", why_not_run(command, &error)))
}

fn wrong_directory(cwd: &Path) -> Option<String> {
    let shown = cwd.display();
    if !cwd.is_absolute() {
        return Some(format!("Working directory “{shown}” is not an absolute path"));
    }
    match cwd.metadata() {
        Ok(metadata) if metadata.is_dir() => None,
        Ok(_) => Some(format!("Working directory “{shown}” is not a directory")),
        Err(_) => Some(format!("Working directory “{shown}” was not found")),
    }
}

fn why_not_run(command: &str, error: &ResolveError) -> String {
    match error {
        ResolveError::NotFound { searched, .. } if searched.is_empty() => {
            format!("Command “{command}” was not found")
        }
        ResolveError::NotFound { .. } => format!("Command “{command}” was not found on PATH"),
        ResolveError::NotExecutable { path } => {
            format!("Command “{command}” cannot be run: {} is not executable", path.display())
        }
        ResolveError::IsDirectory { path } => {
            format!("Command “{command}” cannot be run: {} is a directory", path.display())
        }
    }
}

/// Warnings about what can be read of a body, whatever else is wrong with it.
fn warnings_of_body(body: &Value) -> Vec<FieldError> {
    let environment = body.get("environment").and_then(Value::as_object).into_iter().flatten();
    let environment = environment.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let args = body.get("args").and_then(Value::as_array).into_iter().flatten();
    // An argument of another type keeps its place in the numbering.
    let args: Vec<&str> = args.map(|arg| arg.as_str().unwrap_or_default()).collect();
    let limits = body.get("resource_limits").cloned();
    let limits = limits.and_then(|limits| serde_json::from_value::<Limits>(limits).ok());
    let mut warnings = environment_warnings(environment);
    warnings.extend(argument_warnings(&args));
    let has = |key: &str| body.get(key).is_some_and(|value| !value.is_null());
    let headers = body.get("headers").and_then(Value::as_object).into_iter().flatten();
    let headers = headers.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    warnings.extend(remote_warnings(body.get("url").and_then(Value::as_str), headers));
    match (has("image"), has("url")) {
        (true, _) => {}
        (false, true) => warnings.extend(limits.as_ref().and_then(remote_limits_warning)),
        (false, false) => warnings.extend(limits.as_ref().and_then(limits_warning)),
    }
    warnings
}

fn environment_warnings<'a>(
    environment: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<FieldError> {
    environment
        .filter(|(key, value)| is_secret(key, value))
        .map(|(key, _)| {
            let message = format!("`{key}` looks like a secret: it {PLAIN_TEXT}");
            FieldError::new(format!("environment.{key}"), message)
        })
        .collect()
}

/// Arguments are worse than variables: every user of the machine can list them.
fn argument_warnings(args: &[&str]) -> Vec<FieldError> {
    let secret = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        looks_secret_argument(before.copied(), args[*at])
    };
    (0..args.len())
        .filter(secret)
        .map(|at| {
            let message = format!(
                "argument {} looks like a secret: it {PLAIN_TEXT}, and every user of this \
                 machine can see it in the process list; `environment` is the better place",
                at + 1
            );
            FieldError::new(format!("args[{at}]"), message)
        })
        .collect()
}

/// `--token=x`, `TOKEN=x`, `X-Api-Key: x`, `--token x`, or a credential by its shape.
fn looks_secret_argument(before: Option<&str>, arg: &str) -> bool {
    let named = [("=", ""), (": ", "Authorization")].into_iter().any(|(separator, known)| {
        arg.split_once(separator).is_some_and(|(key, value)| {
            is_secret(key, value) || (key.eq_ignore_ascii_case(known) && !value.is_empty())
        })
    });
    let after_flag = before.is_some_and(|flag| {
        flag.starts_with('-')
            && !flag.contains('=')
            && !arg.starts_with('-')
            && is_secret(flag, arg)
    });
    named || after_flag || looks_secret_value(arg)
}

/// A reference such as `${API_KEY}` is not the secret itself.
fn is_secret(key: &str, value: &str) -> bool {
    !value.trim().is_empty()
        && !value.starts_with('$')
        && (looks_secret_key(key) || looks_secret_value(value))
}

fn limits_warning(limits: &Limits) -> Option<FieldError> {
    (*limits != Limits::default()).then(|| {
        let message = "`resource_limits` are not enforced for servers that run as processes";
        FieldError::new("resource_limits", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    fn check(body: Value) -> Validation {
        let surroundings = Surroundings {
            path: Some("/usr/bin:/bin".into()),
            home: "/".into(),
            machine: Machine { memory: Some(1 << 30), cores: Some(2) },
            own: OwnEndpoint::new("127.0.0.1:8787".parse().unwrap()),
        };
        let clash = |spec: &ServerSpec| {
            (spec.joined_prefix() == "used").then(|| FieldError::new("prefix", "in use"))
        };
        validate(body, |name| name.as_str() == "taken", clash, &surroundings)
    }

    /// Each error as (field, message, blocking).
    fn errors(body: Value) -> Vec<(String, String, bool)> {
        let errors = check(body).errors.into_iter();
        errors.map(|error| (error.field, error.message, error.blocking)).collect()
    }

    fn warned(body: Value) -> Vec<String> {
        check(body).warnings.into_iter().map(|warning| warning.field).collect()
    }

    fn error(field: &str, message: &str, blocking: bool) -> (String, String, bool) {
        (field.to_owned(), message.to_owned(), blocking)
    }

    #[test]
    fn a_registration_that_works_has_no_errors() {
        assert_eq!(check(json!({"name": "fs", "command": "sh"})), Validation::default());
        assert_eq!(check(json!({"name": "fs", "command": "/bin/sh"})), Validation::default());
    }

    #[test]
    fn every_mistake_is_found_at_once() {
        // covers: MGR-5, MGR-6, MGR-7
        let body = json!({"name": "taken", "command": "no-such-program", "args": 3, "colour": 1});
        let found = errors(body);
        let fields: Vec<_> = found.iter().map(|(field, ..)| field.as_str()).collect();
        assert_eq!(fields, ["args", "colour", "name", "command"]);
        assert_eq!(found[2], error("name", "A server named “taken” already exists", true));
        let missing = "Command “no-such-program” was not found on PATH";
        assert_eq!(found[3], error("command", missing, false));
        assert_eq!(errors(json!({})).len(), 2);
    }

    #[test]
    fn a_prefix_that_is_in_use_cannot_be_saved() {
        let found = errors(json!({"name": "x", "command": "sh", "prefix": "used"}));
        assert_eq!(found, [error("prefix", "in use", true)]);
    }

    #[test]
    fn a_command_must_be_a_program_that_can_be_run() {
        // covers: MGR-7
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        fs::write(&plain, "").unwrap();
        let plain = plain.to_str().unwrap();
        let message = format!("Command “{plain}” cannot be run: {plain} is not executable");
        let found = errors(json!({"name": "x", "command": plain}));
        assert_eq!(found, [error("command", &message, false)]);
        let found = errors(json!({"name": "x", "command": "/bin"}));
        let message = "Command “/bin” cannot be run: /bin is a directory";
        assert_eq!(found, [error("command", message, false)]);
        let found = errors(json!({"name": "x", "command": "/absent"}));
        assert_eq!(found, [error("command", "Command “/absent” was not found", false)]);
    }

    #[test]
    fn a_command_is_looked_for_where_the_server_would_find_it() {
        let body =
            |path: &str| json!({"name": "x", "command": "sh", "environment": {"PATH": path}});
        assert_eq!(errors(body("/bin")), []);
        let missing = "Command “sh” was not found on PATH";
        assert_eq!(errors(body("/nowhere")), [error("command", missing, false)]);
        assert_eq!(errors(json!({"name": "x", "command": "./sh", "cwd": "/bin"})), []);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        for (cwd, message) in [
            ("/nowhere", "Working directory “/nowhere” was not found"),
            ("/etc/passwd", "Working directory “/etc/passwd” is not a directory"),
            ("tmp", "Working directory “tmp” is not an absolute path"),
        ] {
            let found = errors(json!({"name": "x", "command": "sh", "cwd": cwd}));
            assert_eq!(found, [error("cwd", message, false)]);
        }
    }

    #[test]
    fn secrets_are_warned_about_by_name_and_by_value() {
        // covers: MGR-8
        let body = json!({"name": "x", "command": "sh", "environment": {
            "API_KEY": "abc", "PLAIN": "ghp_abcdefghijklmnopqrstuvwxyz", "LOG": "debug",
            "EMPTY_TOKEN": "", "OTHER_TOKEN": "${env:TOKEN}",
        }});
        assert_eq!(warned(body.clone()), ["environment.API_KEY", "environment.PLAIN"]);
        let message = &check(body).warnings[0].message;
        assert!(message.contains("plain text"), "{message}");
        assert!(!message.contains("abc"), "{message}");
    }

    #[test]
    fn secrets_among_the_arguments_are_warned_about() {
        // covers: MGR-8
        let args = json!([
            "--api-key=abc",
            "--token",
            "abc",
            "--verbose",
            "-y",
            "TOKEN=abc",
            "Authorization: Bearer abc",
            "postgres://me:pw@db/x",
            "--token",
            "--other",
            "--key=",
        ]);
        let fields = warned(json!({"name": "x", "command": "sh", "args": args}));
        assert_eq!(fields, ["args[0]", "args[2]", "args[5]", "args[6]", "args[7]"]);
    }

    #[test]
    fn limits_that_are_not_enforced_are_said_to_be_so() {
        let with = |limits: Value| json!({"name": "x", "command": "sh", "resource_limits": limits});
        assert_eq!(warned(with(json!({"memory": "1G"}))), ["resource_limits"]);
        assert_eq!(warned(with(json!({}))), [""; 0]);
    }

    #[test]
    fn a_saved_server_tells_the_same() {
        let body = json!({
            "name": "x", "command": "sh", "args": ["--token=abc"],
            "environment": {"API_KEY": "abc"}, "resource_limits": {"cpu": "1"},
        });
        let before: Vec<_> = check(body.clone()).warnings.into_iter().map(|w| w.message).collect();
        assert_eq!(warnings_of(&parse_registration(body).unwrap()), before);
        assert_eq!(before.len(), 3);
        let body = json!({
            "name": "x", "url": "http://example.com/mcp", "headers": {"Authorization": "Bearer abc"},
            "resource_limits": {"cpu": "1"},
        });
        let before: Vec<_> = check(body.clone()).warnings.into_iter().map(|w| w.message).collect();
        assert_eq!(warnings_of(&parse_registration(body).unwrap()), before);
        assert_eq!(before.len(), 3);
    }

    #[test]
    fn a_container_is_checked_as_one() {
        // covers: HST-1.1, HST-5.2
        let body = json!({"name": "x", "image": "localhost/x", "cwd": "/nowhere"});
        assert_eq!(check(body), Validation::default());
        let body = json!({
            "name": "x", "image": "localhost/x", "network": "host",
            "resource_limits": {"memory": "2G"},
        });
        assert_eq!(warned(body.clone()), ["network", "resource_limits.memory"]);
        assert_eq!(warnings_of(&parse_registration(body).unwrap()).len(), 1);
        let found = errors(json!({"name": "x", "image": "--privileged"}));
        assert_eq!((found[0].0.as_str(), found[0].2), ("image", true));
    }
}
