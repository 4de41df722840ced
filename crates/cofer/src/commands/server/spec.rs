//! The flags that describe a server, shared by `add` and `set`, and the JSON they become.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use cofer_model::MaxInFlight;
use serde_json::{Map, Value, json};

use super::container::ContainerFlags;
use super::environment;
use super::remote::RemoteFlags;
use crate::cli::{max_in_flight, seconds};
use crate::failure::Failure;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct SpecFlags {
    /// A variable for the server; KEY alone takes the value from your environment, so that a
    /// secret stands in no command line
    #[arg(short, long, value_name = "KEY[=VALUE]")]
    env: Vec<String>,
    /// Variables from a file, one KEY=VALUE a line; `-` is stdin
    #[arg(long, value_name = "FILE")]
    env_file: Vec<PathBuf>,
    /// The directory the server runs in [default: the home of the user that runs the daemon]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What the server is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A short name that stands in place of the server's in the names of its tools at `/mcp`:
    /// PREFIX__TOOL; an empty one takes it away
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Offer the server's resources as tools
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    include_resources: Option<bool>,
    /// How long the server may be silent about a call [default: 30 for the API, 60 for the
    /// gateway, the chat and the console]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    call_timeout: Option<Duration>,
    /// How long the server may take to become ready [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) start_timeout: Option<Duration>,
    /// How many requests the server is given at once: a number, or `auto`: 1, and 8 once it has
    /// answered a request while another was open [default: the daemon's, which is 1]
    #[arg(long, value_name = "N|auto", value_parser = max_in_flight)]
    max_in_flight: Option<MaxInFlight>,
    /// What happens when the server ends by itself [default: always]
    #[arg(long, value_name = "POLICY", value_parser = PossibleValuesParser::new(["always", "on-failure", "never"]))]
    restart: Option<String>,
    /// Whether clients share one process or get one each [default: shared]
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["shared", "per-session"]))]
    sharing: Option<String>,
    /// Offer only these tools; `*` stands for anything. Repeatable; '' offers all again
    #[arg(long, value_name = "PATTERN")]
    tools_allow: Vec<String>,
    /// Hide these tools; `*` stands for anything. Repeatable; '' hides none
    #[arg(long, value_name = "PATTERN")]
    tools_deny: Vec<String>,
    #[command(flatten)]
    pub(super) container: ContainerFlags,
    #[command(flatten)]
    pub(super) remote: RemoteFlags,
}

impl SpecFlags {
    /// The fields that were given, and only those.
    pub(super) fn fields(&self) -> Result<Map<String, Value>, Failure> {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(key.to_owned(), value);
            }
        };
        put("description", self.description.clone().map(Value::from));
        put("prefix", self.prefix.clone().map(Value::from));
        put("cwd", self.directory()?.map(Value::from));
        put("include_resources", self.include_resources.map(Value::from));
        put("call_timeout_ms", self.call_timeout.map(milliseconds));
        put("start_timeout_ms", self.start_timeout.map(milliseconds));
        put("max_in_flight", self.max_in_flight.map(|number| json!(number)));
        put("restart_policy", self.restart.clone().map(Value::from));
        put("sharing", self.sharing.as_ref().map(|mode| mode.replace('-', "_").into()));
        put("tools_allow", patterns(&self.tools_allow));
        put("tools_deny", patterns(&self.tools_deny));
        let environment = environment::read(&self.env, &self.env_file)?;
        if !environment.is_empty() {
            put("environment", Some(environment.into_iter().collect()));
        }
        fields.extend(self.container.fields()?);
        fields.extend(self.remote.fields()?);
        Ok(fields)
    }

    /// The directory in a container is none of this machine's.
    fn directory(&self) -> Result<Option<String>, Failure> {
        match self.cwd.as_deref() {
            Some(cwd) if self.container.image.is_some() => Ok(Some(cwd.display().to_string())),
            cwd => cwd.map(absolute).transpose(),
        }
    }

    /// The words behind `--`: of a program of this machine, the program and its arguments; of an
    /// image, what its entry point is given.
    pub(super) fn words(&self, words: &[String]) -> Result<Map<String, Value>, Failure> {
        if self.container.image.is_none() {
            return command_fields(words);
        }
        let args = (!words.is_empty()).then(|| ("args".to_owned(), Value::from(words)));
        Ok(args.into_iter().collect())
    }
}

/// The program and its arguments. A path is meant from where the caller stands, which is not
/// where the daemon stands.
pub(super) fn command_fields(words: &[String]) -> Result<Map<String, Value>, Failure> {
    let Some((program, args)) = words.split_first() else {
        return Ok(Map::new());
    };
    let command =
        if program.contains('/') { absolute(Path::new(program))? } else { program.clone() };
    Ok(Map::from_iter([
        ("command".to_owned(), Value::from(command)),
        ("args".to_owned(), Value::from(args)),
    ]))
}

fn absolute(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path).map_err(|error| {
        Failure::mistyped(format!("`{}` cannot be made an absolute path", path.display()))
            .caused_by(error)
    })?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| Failure::mistyped(format!("`{}` is not UTF-8", path.display())))
}

/// The list as a whole; an empty pattern empties it.
fn patterns(given: &[String]) -> Option<Value> {
    let kept = given.iter().filter(|pattern| !pattern.is_empty()).cloned();
    (!given.is_empty()).then(|| kept.collect::<Vec<String>>().into())
}

fn milliseconds(span: Duration) -> Value {
    Value::from(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_is_sent() {
        assert_eq!(SpecFlags::default().fields().unwrap(), Map::new());
        let flags = SpecFlags {
            env: vec!["A=1".to_owned()],
            cwd: Some(PathBuf::from("/srv")),
            prefix: Some("gh".to_owned()),
            include_resources: Some(false),
            call_timeout: Some(Duration::from_millis(1500)),
            max_in_flight: Some(MaxInFlight::Fixed(4)),
            restart: Some("on-failure".to_owned()),
            sharing: Some("per-session".to_owned()),
            tools_allow: vec!["read*".to_owned(), "list".to_owned()],
            tools_deny: vec![String::new()],
            ..SpecFlags::default()
        };
        assert_eq!(
            Value::Object(flags.fields().unwrap()),
            json!({
                "prefix": "gh",
                "cwd": "/srv",
                "include_resources": false,
                "call_timeout_ms": 1500,
                "max_in_flight": 4,
                "restart_policy": "on-failure",
                "environment": {"A": "1"},
                "sharing": "per_session",
                "tools_allow": ["read*", "list"],
                "tools_deny": [],
            })
        );
    }

    #[test]
    fn a_program_on_path_stays_a_name_and_a_path_becomes_absolute() {
        let fields = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Value::Object(command_fields(&words).unwrap())
        };
        assert_eq!(fields(&["npx", "-y", "x"]), json!({"command": "npx", "args": ["-y", "x"]}));
        let here = std::env::current_dir().unwrap().join("run.sh");
        assert_eq!(fields(&["./run.sh"]), json!({"command": here.to_str().unwrap(), "args": []}));
        assert_eq!(fields(&[]), json!({}));
    }
}
