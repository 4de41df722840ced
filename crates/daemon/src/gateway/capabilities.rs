//! What a client can be asked, as it said itself.

use cofer_mcp::member;
use serde_json::{Value, json};

use super::rpc::{Fault, METHOD_NOT_FOUND, MISSING_CAPABILITY};

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    sampling: bool,
    elicitation_form: bool,
    elicitation_url: bool,
    roots: bool,
    /// The extension of 2026-07-28.
    tasks: bool,
}

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What a question wants of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Sampling,
    Form,
    Url,
    Roots,
    Unknown,
}

impl Abilities {
    /// Reads a client's `capabilities`.
    pub(super) fn read(capabilities: &[u8]) -> Self {
        let is_object = |value: Option<&[u8]>| value.is_some_and(|value| value.starts_with(b"{"));
        let elicitation =
            member(capabilities, "elicitation").filter(|value| value.starts_with(b"{"));
        let mode = |mode| elicitation.is_some_and(|modes| member(modes, mode).is_some());
        Self {
            sampling: is_object(member(capabilities, "sampling")),
            // One that names no mode means the one that was there first.
            elicitation_form: mode("form") || elicitation.is_some() && !mode("url"),
            elicitation_url: mode("url"),
            roots: is_object(member(capabilities, "roots")),
            tasks: is_object(member(capabilities, "extensions").and_then(|all| member(all, TASKS))),
        }
    }

    /// Whether the client may get a task as a result.
    pub(super) fn has_tasks(self) -> bool {
        self.tasks
    }

    /// Refuses a request about a task to a client that did not declare the extension.
    pub(super) fn require_tasks(self, method: &str) -> Result<(), Fault> {
        if self.tasks {
            return Ok(());
        }
        let message = format!(
            "{method} needs the extension {TASKS}, which the client did not declare; declare it in `clientCapabilities.extensions`"
        );
        let data = json!({"requiredCapabilities": {"extensions": {TASKS: {}}}});
        Err(Fault::with(MISSING_CAPABILITY, message, Some(data)))
    }

    /// Why the client cannot be asked this, where it cannot, in a session of the older era.
    pub(super) fn lacks(self, method: &str, params: Option<&[u8]>) -> Option<Fault> {
        let message = match self.missing(method, params)? {
            Need::Unknown => format!("Method not found: {method}"),
            need => format!(
                "the client that this call is made for cannot be asked {method}: it did not declare {}",
                need.name()
            ),
        };
        Some(Fault::new(METHOD_NOT_FOUND, message))
    }

    /// The same, in the words of the newer era.
    pub(super) fn lacks_capability(self, method: &str, params: Option<&[u8]>) -> Option<Fault> {
        let need = self.missing(method, params)?;
        let Some(required) = need.capability() else {
            return Some(Fault::no_method(method));
        };
        let message =
            format!("the server asks {method}, and the client did not declare {}", need.name());
        let data = json!({"requiredCapabilities": required});
        Some(Fault::with(MISSING_CAPABILITY, message, Some(data)))
    }

    fn missing(self, method: &str, params: Option<&[u8]>) -> Option<Need> {
        let need = Need::of(method, params);
        let can = match need {
            Need::Sampling => self.sampling,
            Need::Form => self.elicitation_form,
            Need::Url => self.elicitation_url,
            Need::Roots => self.roots,
            Need::Unknown => false,
        };
        (!can).then_some(need)
    }
}

impl Need {
    fn of(method: &str, params: Option<&[u8]>) -> Self {
        match method {
            "sampling/createMessage" => Self::Sampling,
            "elicitation/create" => {
                let mode = params.and_then(|params| member(params, "mode"));
                if mode == Some(br#""url""#) { Self::Url } else { Self::Form }
            }
            "roots/list" => Self::Roots,
            _ => Self::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sampling => "`sampling`",
            Self::Form => "`elicitation`",
            Self::Url => "`elicitation.url`",
            Self::Roots => "`roots`",
            Self::Unknown => "it",
        }
    }

    fn capability(self) -> Option<Value> {
        match self {
            Self::Sampling => Some(json!({"sampling": {}})),
            Self::Form => Some(json!({"elicitation": {}})),
            Self::Url => Some(json!({"elicitation": {"url": {}}})),
            Self::Roots => Some(json!({"roots": {}})),
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_only_what_it_can_answer() {
        let can = |capabilities: &str, method: &str, params: &str| {
            Abilities::read(capabilities.as_bytes())
                .lacks(method, Some(params.as_bytes()))
                .is_none()
        };
        assert!(can(r#"{"sampling":{}}"#, "sampling/createMessage", "{}"));
        assert!(!can("{}", "sampling/createMessage", "{}"));
        assert!(can(r#"{"elicitation":{}}"#, "elicitation/create", "{}"));
        assert!(!can(r#"{"elicitation":{}}"#, "elicitation/create", r#"{"mode":"url"}"#));
        assert!(can(r#"{"elicitation":{"url":{}}}"#, "elicitation/create", r#"{"mode":"url"}"#));
        assert!(!can(r#"{"elicitation":{"url":{}}}"#, "elicitation/create", r#"{"mode":"form"}"#));
        assert!(can(r#"{"roots":{"listChanged":true}}"#, "roots/list", "{}"));
        assert!(!can(r#"{"roots":{}}"#, "else/where", "{}"));
    }

    #[test]
    fn requests_about_tasks_need_the_extension() {
        let can = br#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        assert!(Abilities::read(can).require_tasks("tasks/get").is_ok());
        let fault =
            Abilities::read(br#"{"extensions":{}}"#).require_tasks("tasks/get").unwrap_err();
        assert_eq!(fault.code(), MISSING_CAPABILITY);
        let error: Value = serde_json::from_slice(fault.json()).unwrap();
        let required = json!({"extensions": {TASKS: {}}});
        assert_eq!(error["data"]["requiredCapabilities"], required);
    }

    #[test]
    fn the_newer_era_says_which_capability_is_missing() {
        let fault = Abilities::default().lacks_capability("roots/list", None).unwrap();
        assert_eq!(fault.code(), MISSING_CAPABILITY);
        let error: Value = serde_json::from_slice(fault.json()).unwrap();
        assert_eq!(error["data"]["requiredCapabilities"], json!({"roots": {}}));
    }
}
