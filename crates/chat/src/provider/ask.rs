//! One model of one provider, asked over genai: our request in its types, its stream in ours.

use futures_util::stream::{self, StreamExt as _};
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, ContentPart, MessageContent,
    ReasoningEffort, StreamEnd, Tool, ToolCall, ToolChoice, ToolResponse,
};
use genai::resolver::Endpoint;
use genai::{ModelIden, ServiceTarget};
use serde_json::{Value, json};

use super::client::{SILENCE, adapter, auth, meaning};
use super::settings::{ProviderKind, ProviderSettings};
use super::{bound, classify};
use crate::model::{
    Answer, ChatModel, Entry, ModelCall, ModelEvent, ModelRequest, ModelStream, TokenUsage,
};
use crate::{ModelFailure, OfferedTool};

/// See the module.
#[derive(Debug, Clone)]
pub struct ProviderModel {
    client: genai::Client,
    settings: ProviderSettings,
    model: String,
}

impl ProviderModel {
    pub(super) fn new(client: genai::Client, settings: ProviderSettings, model: String) -> Self {
        Self { client, settings, model }
    }

    fn target(&self) -> ServiceTarget {
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.settings.base_url.as_str()),
            auth: auth(&self.settings),
            model: ModelIden::new(adapter(self.settings.kind), self.model.as_str()),
        }
    }

    fn options(&self, request: &ModelRequest) -> ChatOptions {
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_reasoning_content(true)
            .with_capture_tool_calls(true)
            .with_stream_header_timeout(SILENCE)
            .with_stream_read_timeout(SILENCE);
        if let Some(tokens) = request.max_tokens {
            options = options.with_max_tokens(tokens);
        }
        if !request.may_call
            && !request.tools.is_empty()
            && self.settings.kind != ProviderKind::Ollama
        {
            options = options.with_tool_choice(ToolChoice::None);
        }
        // genai reads `-high` at the end of a model's name as a wish and takes it off; but names
        // such as `mistral-medium` end so. A budget, which this protocol has not, stops that.
        let (read_as_wish, _) = ReasoningEffort::from_model_name(&self.model);
        if read_as_wish.is_some() && self.settings.kind == ProviderKind::Openai {
            options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
        }
        options
    }
}

impl ChatModel for ProviderModel {
    fn provider(&self) -> &str {
        &self.settings.id
    }

    fn name(&self) -> &str {
        &self.model
    }

    fn ask(&self, request: ModelRequest) -> ModelStream {
        let this = self.clone();
        let options = bound::watched(self.options(&request));
        let request = chat_request(request, this.settings.kind);
        stream::once(async move {
            let asked = this.client.exec_chat_stream(this.target(), request, Some(&options)).await;
            match asked {
                Ok(response) => translate(this, response.stream),
                Err(error) => {
                    let failure = meaning(&this.settings, &this.model, &error);
                    stream::iter([Err(failure)]).boxed()
                }
            }
        })
        .flatten()
        .boxed()
    }
}

/// The provider's events as ours; ends after the first failure.
fn translate(model: ProviderModel, events: genai::chat::ChatStream) -> ModelStream {
    let state = (model, events, false);
    stream::unfold(state, |(model, mut events, over)| async move {
        if over {
            return None;
        }
        loop {
            let next = match bound::next(&mut events).await {
                Ok(next) => next?,
                Err(why) => {
                    let failure = classify::unbounded(&model.settings, &why);
                    return Some((Err(failure), (model, events, true)));
                }
            };
            let (item, over) = match next {
                Ok(ChatStreamEvent::Chunk(chunk)) => (Ok(ModelEvent::Text(chunk.content)), false),
                Ok(ChatStreamEvent::ReasoningChunk(chunk)) => {
                    (Ok(ModelEvent::Reasoning(chunk.content)), false)
                }
                Ok(ChatStreamEvent::End(end)) => (whole(&model, end).map(ModelEvent::End), true),
                // Calls are taken whole from the end; a start says nothing yet.
                Ok(
                    ChatStreamEvent::Start
                    | ChatStreamEvent::ToolCallChunk(_)
                    | ChatStreamEvent::ThoughtSignatureChunk(_)
                    | ChatStreamEvent::Heartbeat,
                ) => continue,
                Err(error) => (Err(meaning(&model.settings, &model.model, &error)), true),
            };
            return Some((item, (model, events, over)));
        }
    })
    .boxed()
}

/// The end of an answer; two of genai's adapters make one up where the connection just ended.
fn whole(model: &ProviderModel, end: StreamEnd) -> Result<Answer, ModelFailure> {
    let made_up = match model.settings.kind {
        ProviderKind::Gemini => end.captured_stop_reason.is_none(),
        ProviderKind::Ollama => end.captured_stop_reason.is_none() && end.captured_usage.is_none(),
        ProviderKind::Openai | ProviderKind::Anthropic => false,
    };
    if made_up {
        return Err(classify::cut(&model.settings, "the connection ended before the answer did"));
    }
    let usage = end.captured_usage.as_ref();
    let tokens = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok());
    let usage = TokenUsage {
        input_tokens: tokens(usage.and_then(|usage| usage.prompt_tokens)),
        output_tokens: tokens(usage.and_then(|usage| usage.completion_tokens)),
    };
    let content = end.captured_content.unwrap_or_default();
    let calls = content.tool_calls().into_iter().map(|call| ModelCall {
        id: call.call_id.clone(),
        name: call.fn_name.clone(),
        arguments: call.fn_arguments.clone(),
    });
    let calls = calls.collect();
    Ok(Answer { calls, usage, continuation: continuation(model.settings.kind, &content) })
}

/// What must be shown to the provider again: signed thoughts, and parts of its own kind. An
/// answer without them is made again from its text and calls.
fn continuation(kind: ProviderKind, content: &MessageContent) -> Option<Value> {
    let signed = content.tool_calls().iter().any(|call| call.thought_signatures.is_some());
    let special = content.contains_thought_signature() || content.contains_custom();
    if !signed && !special {
        return None;
    }
    let parts = serde_json::to_value(content).ok()?;
    Some(json!({"kind": kind, "content": parts}))
}

fn chat_request(request: ModelRequest, kind: ProviderKind) -> ChatRequest {
    let messages = request.history.into_iter().map(|entry| message(entry, kind)).collect();
    // Anthropic refuses a conversation with calls in it that comes without tools; Ollama knows
    // no other way to switch them off.
    let offer = request.may_call || kind != ProviderKind::Ollama;
    let mut chat = ChatRequest::from_messages(messages).with_system(request.system);
    if offer && !request.tools.is_empty() {
        chat = chat.with_tools(request.tools.into_iter().map(tool));
    }
    chat
}

fn tool(offered: OfferedTool) -> Tool {
    let tool = Tool::new(offered.name).with_schema(offered.schema);
    match offered.description {
        Some(description) => tool.with_description(description),
        None => tool,
    }
}

fn message(entry: Entry, kind: ProviderKind) -> ChatMessage {
    match entry {
        Entry::User(text) => ChatMessage::user(text),
        Entry::Assistant { text, calls, continuation } => {
            let kept = continuation.and_then(|kept| same_kind(kept, kind));
            ChatMessage::assistant(kept.unwrap_or_else(|| plain(text, calls)))
        }
        Entry::Tools(answers) => {
            let answers: Vec<ToolResponse> = answers
                .into_iter()
                .map(|answer| ToolResponse::new(answer.id, answer.text).with_fn_name(answer.name))
                .collect();
            ChatMessage::from(answers)
        }
    }
}

/// What one protocol signed, another cannot read.
fn same_kind(mut kept: Value, kind: ProviderKind) -> Option<MessageContent> {
    if kept.get("kind")? != &json!(kind) {
        return None;
    }
    serde_json::from_value(kept.get_mut("content")?.take()).ok()
}

fn plain(text: String, calls: Vec<ModelCall>) -> MessageContent {
    let words = (!text.is_empty()).then_some(ContentPart::Text(text));
    let calls = calls.into_iter().map(|call| {
        ContentPart::ToolCall(ToolCall {
            call_id: call.id,
            fn_name: call.name,
            fn_arguments: object(call.arguments),
            thought_signatures: None,
        })
    });
    MessageContent::from_parts(words.into_iter().chain(calls).collect::<Vec<_>>())
}

/// Providers refuse arguments that are no object, also those that their own model wrote.
fn object(arguments: Value) -> Value {
    if arguments.is_object() { arguments } else { json!({}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_thoughts_go_back_to_the_kind_of_provider_that_signed_them() {
        let content = MessageContent::from_parts(vec![
            ContentPart::ThoughtSignature("signed".to_owned()),
            ContentPart::Text("hi".to_owned()),
        ]);
        let kept = continuation(ProviderKind::Gemini, &content).unwrap();
        let again = same_kind(kept.clone(), ProviderKind::Gemini).unwrap();
        assert_eq!(again.first_thought_signature(), Some("signed"));
        assert!(same_kind(kept, ProviderKind::Openai).is_none());
        assert!(continuation(ProviderKind::Gemini, &MessageContent::from_text("hi")).is_none());
    }

    #[test]
    fn arguments_that_were_no_object_are_sent_back_as_one() {
        let call = ModelCall { id: "1".to_owned(), name: "t".to_owned(), arguments: json!("{bad") };
        let content = plain(String::new(), vec![call]);
        assert_eq!(content.tool_calls()[0].fn_arguments, json!({}));
        assert_eq!(content.parts().len(), 1, "no empty text");
    }
}
