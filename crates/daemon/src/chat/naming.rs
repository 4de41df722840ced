//! Titles of conversations, and places in their list as text. Pure.

use cofer_store::{ConversationRecord, Cursor};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::api::error::ApiError;

/// The longest title, in characters.
const MAX_TITLE: usize = 200;
/// What of a message becomes a title.
const TITLE_FROM_MESSAGE: usize = 60;

/// The first line of what a person said, as far as it is a title.
pub(super) fn title_of(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let clean: String = line.chars().filter(|c| !c.is_control()).collect();
    match clean.char_indices().nth(TITLE_FROM_MESSAGE) {
        Some((end, _)) => format!("{}…", clean[..end].trim_end()),
        None if clean.is_empty() => "New chat".to_owned(),
        None => clean,
    }
}

pub(super) fn check_title(title: &str) -> Result<String, ApiError> {
    let title = title.trim();
    let count = title.chars().count();
    if count == 0 || count > MAX_TITLE || title.chars().any(char::is_control) {
        let message = format!("is not 1 to {MAX_TITLE} characters on one line");
        return Err(ApiError::invalid_part("title", message));
    }
    Ok(title.to_owned())
}

pub(super) fn cursor(record: &ConversationRecord) -> String {
    let at = record.updated_at.format(&Rfc3339).unwrap_or_default();
    format!("{at}_{}", record.id)
}

pub(super) fn read_cursor(text: &str) -> Result<Cursor, ApiError> {
    let read = || {
        let (at, id) = text.rsplit_once('_')?;
        Some(Cursor { updated_at: OffsetDateTime::parse(at, &Rfc3339).ok()?, id: id.parse().ok()? })
    };
    read().ok_or_else(|| ApiError::invalid_part("before", "is no `next` of this list"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use uuid::Uuid;

    #[test]
    fn a_title_is_the_first_line_that_says_something() {
        assert_eq!(title_of("\n  list my files \nplease"), "list my files");
        assert_eq!(title_of(" \u{7} "), "New chat");
        let long = title_of(&"日".repeat(100));
        assert_eq!(long.chars().count(), TITLE_FROM_MESSAGE + 1);
    }

    #[test]
    fn titles_are_checked() {
        assert_eq!(check_title(" x ").unwrap(), "x");
        for title in ["", "  ", "a\nb", &"x".repeat(MAX_TITLE + 1)] {
            assert!(check_title(title).is_err(), "{title}");
        }
    }

    #[test]
    fn a_cursor_comes_back_as_it_was_given() {
        let record = ConversationRecord {
            id: Uuid::now_v7(),
            title: String::new(),
            settings: Value::Null,
            created_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH + time::Duration::microseconds(7),
            message_count: 0,
        };
        let read = read_cursor(&cursor(&record)).unwrap();
        assert_eq!((read.updated_at, read.id), (record.updated_at, record.id));
        for text in ["", "x", "_", "2026_x"] {
            assert!(read_cursor(text).is_err(), "{text}");
        }
    }
}
