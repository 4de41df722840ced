//! What `POST /chat` asks for, checked: every mistake is found at once.

use cofer_chat::Action;
use cofer_model::FieldError;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::error::ApiError;

/// The longest message of a person.
const MAX_MESSAGE: usize = 256 * 1024;
/// The longest name of a model.
pub(super) const MAX_MODEL: usize = 200;
/// The longest list of servers or tools.
const MAX_NAMES: usize = 1000;
const FIELDS: [&str; 8] = [
    "conversation_id",
    "message",
    "action",
    "provider",
    "model",
    "servers",
    "tools_off",
    "attended",
];

/// One turn.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
pub(crate) struct TurnRequest {
    /// The conversation; a new one where it is missing.
    pub(crate) conversation_id: Option<Uuid>,
    /// What the person says.
    pub(crate) message: Option<String>,
    /// `continue` or `answer_now`, instead of a message.
    pub(crate) action: Option<Action>,
    /// The provider; kept for the conversation.
    pub(crate) provider: Option<String>,
    /// The model; kept for the conversation.
    pub(crate) model: Option<String>,
    /// The servers whose tools are offered; null for all. Kept for the conversation.
    #[serde(default, deserialize_with = "given")]
    pub(crate) servers: Option<Option<Vec<String>>>,
    /// Tools that are not offered, as `server/tool`. Kept for the conversation.
    pub(crate) tools_off: Option<Vec<String>>,
    /// Whether somebody looks on who can answer what servers ask; else they are told that nobody
    /// can.
    pub(crate) attended: Option<bool>,
}

/// Tells null, which means all, from nothing, which means as before.
fn given<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<Vec<String>>>, D::Error> {
    Option::<Vec<String>>::deserialize(deserializer).map(Some)
}

impl TurnRequest {
    /// Reads and checks a body.
    pub(crate) fn read(body: Value) -> Result<Self, ApiError> {
        let Value::Object(map) = &body else {
            return Err(ApiError::invalid_part("", "the body is not a JSON object"));
        };
        let mut fields = unknown(map);
        fields.extend(mistyped(map));
        if !fields.is_empty() {
            return Err(ApiError::invalid(fields));
        }
        let request: Self = serde_json::from_value(body)
            .map_err(|error| ApiError::invalid_part("", error.to_string()))?;
        let fields = request.mistakes();
        if fields.is_empty() { Ok(request) } else { Err(ApiError::invalid(fields)) }
    }

    /// What the turn begins with.
    pub(crate) fn action(&self) -> Action {
        self.action.unwrap_or(Action::Message)
    }

    fn mistakes(&self) -> Vec<FieldError> {
        let mut fields = Vec::new();
        let mut wrong = |field: &str, message: String| fields.push(FieldError::new(field, message));
        match (&self.message, self.action) {
            (Some(_), Some(_)) => wrong("action", "cannot stand beside `message`".to_owned()),
            (None, None) => wrong("message", "is missing".to_owned()),
            (Some(text), None) if text.trim().is_empty() => wrong("message", "is empty".to_owned()),
            (Some(text), None) if text.len() > MAX_MESSAGE => {
                wrong("message", format!("is longer than {MAX_MESSAGE} bytes"));
            }
            (None, Some(_)) if self.conversation_id.is_none() => {
                wrong("conversation_id", "is needed to go on".to_owned());
            }
            _ => {}
        }
        if self.model.as_ref().is_some_and(|model| !is_model(model)) {
            wrong(
                "model",
                format!("is empty, longer than {MAX_MODEL} bytes or has control characters"),
            );
        }
        let servers = self.servers.as_ref().and_then(Option::as_ref).map_or(0, Vec::len);
        for (field, count) in
            [("servers", servers), ("tools_off", self.tools_off.as_ref().map_or(0, Vec::len))]
        {
            if count > MAX_NAMES {
                wrong(field, format!("has more than {MAX_NAMES} entries"));
            }
        }
        fields
    }
}

/// Whether a text can be the name of a model.
pub(super) fn is_model(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_MODEL && !text.chars().any(char::is_control)
}

fn unknown(map: &Map<String, Value>) -> Vec<FieldError> {
    let unknown = map.keys().filter(|key| !FIELDS.contains(&key.as_str()));
    unknown.map(|key| FieldError::new(key, format!("unknown field `{key}`"))).collect()
}

fn mistyped(map: &Map<String, Value>) -> Vec<FieldError> {
    let mut fields = Vec::new();
    for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        let problem = match key.as_str() {
            "conversation_id" if value.as_str().is_none_or(|id| id.parse::<Uuid>().is_err()) => {
                "is no UUID"
            }
            "message" | "provider" | "model" if !value.is_string() => "is not a text",
            "action" if !matches!(value.as_str(), Some("continue" | "answer_now")) => {
                "is neither `continue` nor `answer_now`"
            }
            "attended" if !value.is_boolean() => "is neither true nor false",
            "servers" | "tools_off" if !is_texts(value) => "is not a list of texts",
            _ => continue,
        };
        fields.push(FieldError::new(key, problem));
    }
    fields
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_turn_is_a_message_or_an_action() {
        let id = Uuid::now_v7();
        for (body, action) in [
            (json!({"message": "hi"}), Action::Message),
            (json!({"action": "continue", "conversation_id": id}), Action::Continue),
            (
                json!({"action": "answer_now", "conversation_id": id, "message": null}),
                Action::AnswerNow,
            ),
        ] {
            assert_eq!(TurnRequest::read(body).unwrap().action(), action);
        }
    }

    #[test]
    fn every_mistake_is_named() {
        for (body, field) in [
            (json!({}), "message"),
            (json!({"message": "  \n"}), "message"),
            (json!({"message": "x".repeat(MAX_MESSAGE + 1)}), "message"),
            (json!({"message": 1}), "message"),
            (json!({"message": "x", "action": "continue"}), "action"),
            (json!({"action": "stop", "conversation_id": Uuid::nil()}), "action"),
            (json!({"action": "message", "conversation_id": Uuid::nil()}), "action"),
            (json!({"action": "continue"}), "conversation_id"),
            (json!({"message": "x", "conversation_id": "7"}), "conversation_id"),
            (json!({"message": "x", "servers": [1]}), "servers"),
            (json!({"message": "x", "attended": "yes"}), "attended"),
            (json!({"message": "x", "model": ""}), "model"),
            (json!({"message": "x", "colour": 1}), "colour"),
            (json!([]), "body"),
        ] {
            let error = TurnRequest::read(body.clone()).unwrap_err();
            let expected = if field == "body" { "the body" } else { field };
            assert!(error.message().contains(expected), "{body}: {}", error.message());
        }
    }

    #[test]
    fn no_servers_named_is_not_the_same_as_all() {
        let read = |body| TurnRequest::read(body).unwrap().servers;
        assert_eq!(read(json!({"message": "x"})), None, "as before");
        assert_eq!(read(json!({"message": "x", "servers": null})), Some(None), "all");
        assert_eq!(read(json!({"message": "x", "servers": []})), Some(Some(vec![])), "none");
    }
}
