//! One server in Rust, the same server as text in a row, and the way between the two.
//!
//! Both databases give text only, in the same forms: so that there is one decoder, and a row
//! that is wrong in any column is one bad row and no more.

use cofer_model::{Failure, ServerId, ServerName, ServerSpec, Status};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::offset;
use uuid::Uuid;

use crate::{BadRow, StoreError};

/// One stored server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRecord {
    /// The UUID made at registration.
    pub id: ServerId,
    /// What is asked for.
    pub spec: ServerSpec,
    /// The last settled status.
    pub status: Status,
    /// Why it failed last, until it is ready or stopped again.
    pub last_error: Option<Failure>,
    /// When it was registered.
    pub created_at: OffsetDateTime,
    /// When its registration was last changed.
    pub updated_at: OffsetDateTime,
    /// The daemon that owns it. Written by the store: `Store::insert` ignores it.
    pub owner: Option<Uuid>,
    /// The epoch in which the owner claimed it. Written by the store, as `owner` is.
    pub epoch: u64,
}

/// id, name, config, status, enabled, last_error, created_at, updated_at, owner, epoch.
pub(crate) type Row =
    (String, String, String, String, bool, Option<String>, String, String, Option<String>, i64);

impl ServerRecord {
    /// The columns `name` and `enabled` win over those in the configuration.
    pub(crate) fn from_row(row: Row) -> Result<Self, BadRow> {
        let (id, name, config, status, enabled, last_error, created_at, updated_at, owner, epoch) =
            row;
        let read = || -> Result<Self, String> {
            let spec: ServerSpec = parse("config", &config)?;
            let name = ServerName::new(&name).map_err(|error| format!("column name: {error}"))?;
            Ok(Self {
                id: id.parse().map_err(|error| format!("column id: {error}"))?,
                spec: ServerSpec { name, enabled, ..spec },
                status: serde_json::from_value(Value::String(status))
                    .map_err(|error| format!("column status: {error}"))?,
                last_error: last_error.map(|text| parse("last_error", &text)).transpose()?,
                created_at: parse_time("created_at", &created_at)?,
                updated_at: parse_time("updated_at", &updated_at)?,
                owner: owner
                    .map(|id| id.parse().map_err(|error| format!("column owner: {error}")))
                    .transpose()?,
                epoch: epoch.try_into().map_err(|error| format!("column epoch: {error}"))?,
            })
        };
        read().map_err(|problem| BadRow { id: id.clone(), name: name.clone(), problem })
    }
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(column: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("column {column}: {error}"))
}

pub(crate) fn parse_time(column: &str, text: &str) -> Result<OffsetDateTime, String> {
    OffsetDateTime::parse(text, &Rfc3339).map_err(|error| format!("column {column}: {error}"))
}

/// RFC 3339 in UTC to the microsecond, always of the same length, so that text sorts as time.
pub(crate) fn time_text(at: OffsetDateTime) -> String {
    let at = at.to_offset(offset!(UTC));
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second, micro) = at.to_hms_micro();
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z")
}

/// JSON that both databases take. PostgreSQL has no NUL in text, and the end of a server's
/// stderr may have one: it becomes the replacement character.
pub(super) fn json_text(value: &impl serde::Serialize) -> Result<String, StoreError> {
    let text = serde_json::to_string(value)?;
    if !text.contains("\\u0000") {
        return Ok(text);
    }
    let mut value: Value = serde_json::from_str(&text)?;
    replace_nul(&mut value);
    Ok(value.to_string())
}

fn replace_nul(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace('\0', "\u{FFFD}"),
        Value::Array(items) => items.iter_mut().for_each(replace_nul),
        Value::Object(map) => map.values_mut().for_each(replace_nul),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use time::macros::datetime;

    #[test]
    fn a_time_is_written_in_utc_and_sorts_as_text() {
        let at = datetime!(2026-11-15 23:30:01.5 +2);
        assert_eq!(time_text(at), "2026-11-15T21:30:01.500000Z");
        assert_eq!(parse_time("t", &time_text(at)).unwrap(), at);
        assert!(time_text(at) < time_text(at + time::Duration::MICROSECOND));
    }

    #[test]
    fn a_nul_becomes_the_replacement_character_and_nothing_else_changes() {
        let text = json_text(&json!({"a": ["x\0y"], "b": "\\u0000", "n": 1})).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, json!({"a": ["x\u{FFFD}y"], "b": "\\u0000", "n": 1}));
    }
}
