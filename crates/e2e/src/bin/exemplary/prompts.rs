//! The prompts.

use serde_json::{Value, json};

use crate::offer::PICTURE;
use crate::questions::{Asked, Context, form};
use crate::server::Fault;

pub(crate) async fn get(context: &Context<'_>) -> Result<Value, Fault> {
    let arguments = context.arguments();
    let text = |text: String| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match context.params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
        "test_prompt_with_arguments" => {
            let (one, two) = (&arguments["arg1"], &arguments["arg2"]);
            let (one, two) = (one.as_str().unwrap_or_default(), two.as_str().unwrap_or_default());
            vec![text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let resource = json!({"uri": arguments["resourceUri"], "mimeType": "text/plain",
                "text": "Embedded resource content for testing."});
            let content = json!({"type": "resource", "resource": resource});
            vec![
                json!({"role": "user", "content": content}),
                text("Please process the embedded resource above.".to_owned()),
            ]
        }
        "test_prompt_with_image" => {
            let content = json!({"type": "image", "data": PICTURE, "mimeType": "image/png"});
            vec![
                json!({"role": "user", "content": content}),
                text("Please analyze the image above.".to_owned()),
            ]
        }
        "test_input_required_result_prompt" => {
            let question = form("What context should the prompt use?", "context", "string");
            let question = ("user_context", "elicitation/create", question);
            match context.ask(&[question], None).await? {
                Asked::Wants(result) => return Ok(result),
                Asked::Answers(answers) => {
                    let said = answers[0]["content"]["context"].as_str().unwrap_or("nothing");
                    vec![text(format!("Prompt with context: {said}"))]
                }
            }
        }
        other => return Err(Fault::new(-32602, &format!("Unknown prompt: {other}"))),
    };
    Ok(json!({"messages": messages}))
}
