//! Bounds on what a provider may send as one answer, looked at before genai makes anything of it.
//! genai shows each frame to a sink that has no way to refuse it: a refusal unwinds, and is caught
//! where the stream is read. So is a panic of genai's, which then costs this answer only.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt as _, StreamExt as _};
use genai::chat::{ChatOptions, ChatStream, ChatStreamEvent};
use serde_json::Value;

/// All frames of an answer together: many times the longest answer there is.
const MAX_ANSWER: usize = 256 << 20;
/// The arguments of one call.
const MAX_ARGUMENTS: usize = 4 << 20;
/// Calls of one answer: genai makes room up to the index that a provider names.
const MAX_CALLS: u64 = 1024;

/// Has every frame looked at.
pub(super) fn watched(options: ChatOptions) -> ChatOptions {
    let read = AtomicUsize::new(0);
    options.with_raw_frame_fn(move |_, frame| {
        let size = frame.data.len();
        let so_far = read.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if let Err(why) = check(so_far, frame.data) {
            resume_unwind(Box::new(why));
        }
    })
}

/// The next event, or why the stream is read no further.
pub(super) async fn next(
    events: &mut ChatStream,
) -> Result<Option<genai::Result<ChatStreamEvent>>, String> {
    let next = AssertUnwindSafe(events.next()).catch_unwind().await;
    let next = next.map_err(|cause| words(&*cause))?;
    if let Some(Ok(ChatStreamEvent::ToolCallChunk(chunk))) = &next
        && chunk.tool_call.fn_arguments.as_str().is_some_and(|text| text.len() > MAX_ARGUMENTS)
    {
        return Err(format!("the arguments of a call are longer than {MAX_ARGUMENTS} bytes"));
    }
    Ok(next)
}

fn check(so_far: usize, frame: &str) -> Result<(), String> {
    if so_far > MAX_ANSWER {
        return Err(format!("the answer is longer than {MAX_ANSWER} bytes"));
    }
    // What is no JSON, genai refuses itself.
    let frame: Value = serde_json::from_str(frame).unwrap_or_default();
    let calls = frame.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array);
    let index = |call: &Value| call.get("index").and_then(Value::as_u64).unwrap_or(0);
    match calls.into_iter().flatten().map(index).max() {
        Some(index) if index >= MAX_CALLS => {
            Err(format!("the answer has more than {MAX_CALLS} calls"))
        }
        _ => Ok(()),
    }
}

fn words(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().cloned();
    text.or_else(|| cause.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "it could not be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_has_a_largest_size_and_number_of_calls() {
        let call = |index: u64| {
            let calls = json!([{"index": 0}, {"index": index}]);
            json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string()
        };
        assert_eq!(check(MAX_ANSWER, "[DONE]"), Ok(()));
        assert!(check(MAX_ANSWER + 1, "{}").is_err());
        assert_eq!(check(0, &call(MAX_CALLS - 1)), Ok(()));
        assert!(check(0, &call(4_000_000_000)).is_err());
    }

    #[test]
    fn a_panic_is_told_in_its_words() {
        assert_eq!(words(&"a slice"), "a slice");
        assert_eq!(words(&"a text".to_owned()), "a text");
        assert_eq!(words(&7), "it could not be read");
    }
}
