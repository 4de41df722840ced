//! How many requests a server is given at once.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The most requests that a server can be given at once.
const MAX_IN_FLIGHT: u32 = 4096;
/// The requests that a server is given at once by `auto`, once it is known to answer several.
const RAISED: u32 = 8;

/// A number, or `auto`: 1, and 8 once the server has answered a request while another was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxInFlight {
    /// So many.
    Fixed(u32),
    /// As many as the server proves to work on.
    Auto,
}

impl Default for MaxInFlight {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

impl MaxInFlight {
    /// The number at the start of a server.
    pub fn initial(self) -> usize {
        match self {
            Self::Fixed(number) => number as usize,
            Self::Auto => 1,
        }
    }

    /// The number to which that is raised, where it is.
    pub fn raise_to(self) -> Option<usize> {
        match self {
            Self::Fixed(_) => None,
            Self::Auto => Some(RAISED as usize),
        }
    }

    fn fixed(number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        (1..=MAX_IN_FLIGHT).contains(&number).then_some(Self::Fixed(number))
    }
}

impl PartialSchema for MaxInFlight {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        let auto = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["auto"]));
        OneOfBuilder::new()
            .item(number.minimum(Some(1)).maximum(Some(MAX_IN_FLIGHT)))
            .item(auto)
            .description(Some("A number, or `auto`: 1, and 8 once the server has answered a request while another was open."))
            .into()
    }
}

impl ToSchema for MaxInFlight {}

/// Neither a number in range nor `auto`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is {0}; expected a number from 1 to {MAX_IN_FLIGHT}, or \"auto\"")]
pub struct BadMaxInFlight(String);

impl std::str::FromStr for MaxInFlight {
    type Err = BadMaxInFlight;

    fn from_str(text: &str) -> Result<Self, BadMaxInFlight> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let number = text.parse().ok().and_then(Self::fixed);
        number.ok_or_else(|| BadMaxInFlight(format!("{text:?}")))
    }
}

impl std::fmt::Display for MaxInFlight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fixed(number) => number.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

impl Serialize for MaxInFlight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(number) => serializer.serialize_u32(*number),
            Self::Auto => serializer.serialize_str("auto"),
        }
    }
}

impl<'de> Deserialize<'de> for MaxInFlight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let read = match &value {
            serde_json::Value::String(text) if text == "auto" => Some(Self::Auto),
            value => value.as_u64().and_then(Self::fixed),
        };
        read.ok_or_else(|| serde::de::Error::custom(BadMaxInFlight(value.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn a_number_and_auto_are_read_and_written() {
        for (value, expected) in
            [(json!(1), MaxInFlight::Fixed(1)), (json!("auto"), MaxInFlight::Auto)]
        {
            assert_eq!(from_value::<MaxInFlight>(value.clone()).unwrap(), expected);
            assert_eq!(json!(expected), value);
            assert_eq!(expected.to_string().parse(), Ok(expected));
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_is_expected() {
        for value in
            [json!(0), json!(4097), json!(-1), json!(1.5), json!("8"), json!("Auto"), json!([])]
        {
            let error = from_value::<MaxInFlight>(value.clone()).unwrap_err().to_string();
            let expected = "expected a number from 1 to 4096, or \"auto\"";
            assert!(error.contains(expected) && error.contains(&value.to_string()), "{error}");
        }
        assert!("0".parse::<MaxInFlight>().is_err() && "".parse::<MaxInFlight>().is_err());
    }
}
