//! What a server wants of the person while one of its tools runs: values for a form, a page to be
//! opened, or an answer of the model. Pure, but for `sample`, which asks the model.

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::model::{ChatModel, Entry, ModelEvent, ModelRequest};
use crate::{ModelFailure, ModelFailureKind};

/// A larger question is refused: it would have to be shown.
const MAX_QUESTION: usize = 64 << 10;
/// The longest answer of the model to a server.
const MAX_SAMPLE: usize = 1 << 20;

/// A question that is open.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Question {
    /// The question.
    pub id: Uuid,
    /// The call during which it is asked.
    pub call_id: Uuid,
    /// Who asks.
    pub server: String,
    /// What is wanted.
    #[serde(flatten)]
    pub wish: Wish,
}

/// What a server wants.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Wish {
    /// Values of the person's.
    Form {
        /// What for.
        message: String,
        /// Which, as a JSON schema.
        #[schema(value_type = Object)]
        schema: Value,
    },
    /// That the person opens a page.
    Url {
        /// What for.
        message: String,
        /// The page.
        url: String,
    },
    /// That the model answers something.
    Sampling {
        /// What the model is to know before.
        system: Option<String>,
        /// What it is asked.
        messages: Vec<Spoken>,
        /// How long its answer may be.
        max_tokens: Option<u32>,
    },
}

/// A text of somebody's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Spoken {
    /// Whose.
    pub role: Speaker,
    /// The words.
    pub text: String,
}

/// Who says something to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// Who asks.
    User,
    /// The model.
    Assistant,
}

/// What the person answers.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionReply {
    /// Whether they do.
    pub action: ReplyAction,
    /// The values, for a form that is accepted.
    #[schema(value_type = Option<Object>)]
    pub content: Option<Map<String, Value>>,
}

/// Whether the person does what a server wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyAction {
    /// They do.
    Accept,
    /// They do not want to.
    Decline,
    /// They say neither.
    Cancel,
}

/// Why a server's request is not brought to the person: a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionRefused {
    /// Its code.
    pub code: i64,
    /// Its words.
    pub message: String,
}

fn refused<T>(code: i64, message: impl Into<String>) -> Result<T, QuestionRefused> {
    Err(QuestionRefused { code, message: message.into() })
}

impl Wish {
    /// Reads a request of a server's.
    pub fn read(method: &str, params: &Value) -> Result<Self, QuestionRefused> {
        if params.to_string().len() > MAX_QUESTION {
            return refused(-32602, format!("a question has at most {MAX_QUESTION} bytes here"));
        }
        match method {
            "elicitation/create" => Self::read_elicitation(params),
            "sampling/createMessage" => Self::read_sampling(params),
            _ => refused(-32601, format!("Method not found: {method}")),
        }
    }

    fn read_elicitation(params: &Value) -> Result<Self, QuestionRefused> {
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        let message = text("message").unwrap_or_default();
        match (params.get("mode").and_then(Value::as_str), params.get("requestedSchema")) {
            (Some("url"), _) => match text("url").filter(|url| is_page(url)) {
                Some(url) => Ok(Self::Url { message, url }),
                None => refused(-32602, "`url` is not an http or https address"),
            },
            (None | Some("form"), Some(schema)) if schema.is_object() => {
                Ok(Self::Form { message, schema: schema.clone() })
            }
            (None | Some("form"), _) => refused(-32602, "`requestedSchema` is not an object"),
            (Some(mode), _) => refused(-32602, format!("there is no elicitation mode `{mode}`")),
        }
    }

    fn read_sampling(params: &Value) -> Result<Self, QuestionRefused> {
        if params.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) {
            return refused(-32602, "the model of a chat uses no tools of a sampling request");
        }
        let messages = params.get("messages").and_then(Value::as_array);
        let messages = messages.into_iter().flatten().map(spoken).collect::<Option<Vec<_>>>();
        let Some(messages) = messages.filter(|messages| !messages.is_empty()) else {
            return refused(-32602, "`messages` is empty, or has others than of text");
        };
        let system = params.get("systemPrompt").and_then(Value::as_str).map(str::to_owned);
        let max_tokens = params.get("maxTokens").and_then(Value::as_u64);
        let max_tokens = max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        Ok(Self::Sampling { system, messages, max_tokens })
    }

    /// Whether this can be an answer, and if not, why.
    pub fn check(&self, reply: &QuestionReply) -> Result<(), &'static str> {
        let accepts = reply.action == ReplyAction::Accept;
        match (self, &reply.content) {
            (Self::Form { .. }, None) if accepts => Err("is needed to accept a form"),
            (Self::Form { .. }, Some(_)) if accepts => Ok(()),
            (_, Some(_)) => Err("is only for a form that is accepted"),
            (_, None) => Ok(()),
        }
    }
}

fn is_page(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// A message of a sampling request, where it is nothing but text.
fn spoken(message: &Value) -> Option<Spoken> {
    let role = serde_json::from_value(message.get("role")?.clone()).ok()?;
    let content = message.get("content")?;
    let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    let text = |block: &Value| match block.get("type")?.as_str()? {
        "text" => block.get("text")?.as_str().map(str::to_owned),
        _ => None,
    };
    let texts = blocks.iter().map(text).collect::<Option<Vec<_>>>()?;
    Some(Spoken { role, text: texts.join("\n") })
}

/// What a server is told of an elicitation.
pub fn elicited(reply: &QuestionReply) -> Value {
    match &reply.content {
        Some(content) => json!({"action": reply.action, "content": content}),
        None => json!({"action": reply.action}),
    }
}

/// Asks the model what a server wants to be asked: the result of its request.
pub async fn sample(
    model: &dyn ChatModel,
    system: Option<&str>,
    messages: &[Spoken],
    max_tokens: Option<u32>,
) -> Result<Value, ModelFailure> {
    let entry = |spoken: &Spoken| match spoken.role {
        Speaker::User => Entry::User(spoken.text.clone()),
        Speaker::Assistant => {
            Entry::Assistant { text: spoken.text.clone(), calls: Vec::new(), continuation: None }
        }
    };
    let mut stream = model.ask(ModelRequest {
        system: system.unwrap_or_default().to_owned(),
        history: messages.iter().map(entry).collect(),
        max_tokens,
        ..ModelRequest::default()
    });
    let mut text = String::new();
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::Text(more) => text.push_str(&more),
            ModelEvent::Reasoning(_) => {}
            ModelEvent::End(_) => {
                let content = json!({"type": "text", "text": text});
                return Ok(json!({"role": "assistant", "content": content, "model": model.name()}));
            }
        }
        if text.len() > MAX_SAMPLE {
            let message = format!("the model's answer is longer than {MAX_SAMPLE} bytes");
            return Err(ModelFailure::new(ModelFailureKind::ProviderError, message));
        }
    }
    Err(ModelFailure::new(ModelFailureKind::StreamCut, "the model's answer broke off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(method: &str, params: &Value) -> i64 {
        Wish::read(method, params).unwrap_err().code
    }

    #[test]
    fn a_form_is_read_and_what_cannot_be_shown_is_refused() {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"message": "Who?", "requestedSchema": schema});
        let form = Wish::read("elicitation/create", &params).unwrap();
        assert_eq!(form, Wish::Form { message: "Who?".to_owned(), schema });
        let large = json!({"message": "x".repeat(MAX_QUESTION), "requestedSchema": {}});
        for params in [json!({"message": "?"}), json!({"mode": "telepathy"}), large] {
            assert_eq!(code("elicitation/create", &params), -32602, "{params}");
        }
        assert_eq!(code("tasks/list", &json!({})), -32601);
    }

    #[test]
    fn only_pages_of_the_web_are_opened() {
        let read = |url: &str| {
            let params = json!({"mode": "url", "message": "m", "url": url});
            Wish::read("elicitation/create", &params).is_ok()
        };
        assert!(read("https://example.com/login"));
        assert!(!read("javascript:alert(1)") && !read("file:///etc/passwd") && !read(""));
    }

    #[test]
    fn the_model_is_asked_for_text_only() {
        let read = |content: Value| {
            let params =
                json!({"messages": [{"role": "user", "content": content}], "maxTokens": 9});
            Wish::read("sampling/createMessage", &params)
        };
        let wish = read(json!({"type": "text", "text": "hi"})).unwrap();
        let messages = vec![Spoken { role: Speaker::User, text: "hi".to_owned() }];
        assert_eq!(wish, Wish::Sampling { system: None, messages, max_tokens: Some(9) });
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        assert!(matches!(read(parts).unwrap(),
            Wish::Sampling { messages, .. } if messages[0].text == "a\nb"));
        assert!(read(json!({"type": "image", "data": "", "mimeType": "image/png"})).is_err());
        assert_eq!(code("sampling/createMessage", &json!({"messages": []})), -32602);
    }

    #[test]
    fn an_accepted_form_has_values_and_nothing_else_has() {
        let form = Wish::Form { message: String::new(), schema: json!({}) };
        let page = Wish::Url { message: String::new(), url: String::new() };
        let reply =
            |action, content: bool| QuestionReply { action, content: content.then(Map::new) };
        assert!(form.check(&reply(ReplyAction::Accept, true)).is_ok());
        assert!(form.check(&reply(ReplyAction::Accept, false)).is_err());
        assert!(form.check(&reply(ReplyAction::Decline, false)).is_ok());
        assert!(form.check(&reply(ReplyAction::Cancel, true)).is_err());
        assert!(page.check(&reply(ReplyAction::Accept, false)).is_ok());
        assert!(page.check(&reply(ReplyAction::Accept, true)).is_err());
    }
}
