//! A whole conversation as a file: JSON for programs, Markdown for people.

use cofer_chat::{CallStatus, Message, NoticeKind, ToolCard, result_text};
use serde::Deserialize;
use time::format_description::well_known::Rfc3339;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Chat, ConversationView};
use crate::api::error::ApiError;

/// What a file is to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExportFormat {
    /// As the API gives it, results whole.
    #[default]
    Json,
    /// For reading.
    Markdown,
}

/// A file.
pub(crate) struct Export {
    pub(crate) name: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

impl Chat {
    /// A conversation as a file.
    pub(crate) async fn export(&self, id: Uuid, format: ExportFormat) -> Result<Export, ApiError> {
        let view = self.whole(id).await?;
        let title = self.record(id).await?.title;
        let (ending, content_type, body) = match format {
            ExportFormat::Json => {
                let body = serde_json::to_string_pretty(&view)
                    .map_err(|error| ApiError::internal(error.to_string()))?;
                ("json", "application/json", body)
            }
            ExportFormat::Markdown => {
                ("md", "text/markdown; charset=utf-8", markdown(&title, &view))
            }
        };
        Ok(Export { name: format!("{}.{ending}", file_name(&title)), content_type, body })
    }
}

fn markdown(title: &str, view: &ConversationView) -> String {
    let mut out = format!("# {title}\n");
    for message in &view.messages {
        let at = message.at().format(&Rfc3339).unwrap_or_default();
        match message {
            Message::User(message) => {
                out.push_str(&format!("\n## Person · {at}\n\n{}\n", message.text));
            }
            Message::Assistant(message) => {
                out.push_str(&format!("\n## {} · {at}\n", message.model));
                if !message.text.is_empty() {
                    out.push_str(&format!("\n{}\n", message.text));
                }
                for card in &message.tool_calls {
                    write_card(&mut out, card);
                }
            }
            Message::Notice(notice) => out.push_str(&format!("\n> {}\n", words(&notice.notice))),
        }
    }
    out
}

fn write_card(out: &mut String, card: &ToolCard) {
    let state = match card.status {
        CallStatus::Running => "running",
        CallStatus::Done => "done",
        CallStatus::Error => "error",
        CallStatus::Cancelled => "cancelled",
    };
    let took = card.duration_ms.map(|ms| format!(", {ms:.0} ms")).unwrap_or_default();
    out.push_str(&format!(
        "\n### Tool call {}: {} · {} ({state}{took})\n",
        card.n, card.server, card.tool
    ));
    let arguments = serde_json::to_string_pretty(&card.arguments).unwrap_or_default();
    block(out, "json", &arguments);
    if let Some(problem) = &card.error {
        block(out, "", problem.stack.as_deref().unwrap_or(&problem.message));
    } else if let Some(result) = &card.result {
        block(out, "", &result_text(result));
    }
}

/// A code block whose fence is longer than any run of backticks in it.
fn block(out: &mut String, language: &str, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    out.push_str(&format!("\n{fence}{language}\n{text}\n{fence}\n"));
}

fn words(notice: &NoticeKind) -> String {
    match notice {
        NoticeKind::Limit { steps, limit } => {
            format!("Tool call limit reached ({steps} of {limit} steps)")
        }
        NoticeKind::Error { error } => format!("Error: {}", error.message.replace('\n', " ")),
        NoticeKind::Stopped => "Stopped".to_owned(),
    }
}

/// A name that every file system takes and no header misreads.
fn file_name(title: &str) -> String {
    let plain: String = title
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let parts: Vec<&str> = plain.split('-').filter(|part| !part.is_empty()).collect();
    let name: String = parts.join("-").chars().take(60).collect();
    if name.is_empty() { "chat".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain() {
        assert_eq!(file_name("List my files!"), "list-my-files");
        assert_eq!(file_name("../../etc/passwd\r\nX: y"), "etc-passwd-x-y");
        assert_eq!(file_name("日本語"), "chat");
        assert!(file_name(&"x".repeat(500)).len() <= 60);
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let mut out = String::new();
        block(&mut out, "", "a ```` b");
        assert_eq!(out, "\n`````\na ```` b\n`````\n");
    }
}
