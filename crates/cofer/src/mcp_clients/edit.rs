//! The new text of a configuration, in either language.

use serde_json::Value;

use super::{Language, McpClient, json, toml};

/// Why a configuration cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    #[error("it is not the JSON that is expected there")]
    Json(#[from] json::JsonError),
    #[error("it is not the TOML that is expected there")]
    Toml(#[from] toml::TomlFault),
}

/// The entry of this name, where it is there.
pub(crate) fn get(client: &McpClient, text: &str, name: &str) -> Result<Option<Value>, EditError> {
    Ok(match client.language {
        Language::Json => json::get(text, client.key, name)?,
        Language::Toml => toml::get(text, client.key, name)?,
    })
}

/// The names of all entries.
pub(crate) fn names(client: &McpClient, text: &str) -> Result<Vec<String>, EditError> {
    Ok(match client.language {
        Language::Json => json::names(text, client.key)?,
        Language::Toml => toml::names(text, client.key)?,
    })
}

/// The text with this entry; the same where it has it already.
pub(crate) fn set(
    client: &McpClient,
    text: &str,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    if get(client, text, name)?.as_ref() == Some(entry) {
        return Ok(text.to_owned());
    }
    Ok(match client.language {
        Language::Json => json::set(text, client.key, name, entry)?,
        Language::Toml => toml::set(text, client.key, name, entry)?,
    })
}

/// The text without this entry; none where it has none.
pub(crate) fn remove(
    client: &McpClient,
    text: &str,
    name: &str,
) -> Result<Option<String>, EditError> {
    Ok(match client.language {
        Language::Json => json::remove(text, client.key, name)?,
        Language::Toml => toml::remove(text, client.key, name)?,
    })
}
