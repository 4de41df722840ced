//! The models that may be asked for, from `config/models.json`. Read for every request, so that
//! a change counts at once; a file that is wrong is told with its line, and nothing is run.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::json;

use crate::failure::{Failure, Kind};

/// Where the file is looked for when none is named.
const USUAL_PLACE: &str = "config/models.json";

/// What holds where there is no file.
const BUILT_IN: &str = include_str!("../../../config/models.json");

/// A list of names is far shorter.
const LONGEST_FILE: u64 = 1024 * 1024;

const MOST_MODELS: usize = 1000;
const LONGEST_NAME: usize = 64;

/// The models that may be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Models {
    #[serde(rename = "$schema", default)]
    _schema: Option<String>,
    #[serde(deserialize_with = "names")]
    models: Vec<String>,
    /// Asked for where a request names none.
    #[serde(default)]
    default: Option<Name>,
}

impl Models {
    /// The file that was named, else the usual one, else the built-in list.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, Failure> {
        let path = named.unwrap_or(Path::new(USUAL_PLACE));
        let (text, place) = match read(path) {
            Ok(text) => (text, path.display().to_string()),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                (BUILT_IN.to_owned(), "the built-in list of models".to_owned())
            }
            Err(error) => return Err(wrong(&path.display().to_string(), None, &error.to_string())),
        };
        Self::parse(&text).map_err(|mistake| wrong(&place, mistake.line, &mistake.reason))
    }

    /// All names, in the file's order.
    pub(crate) fn names(&self) -> &[String] {
        &self.models
    }

    pub(crate) fn default(&self) -> Option<&str> {
        self.default.as_ref().map(|name| name.0.as_str())
    }

    pub(crate) fn allows(&self, model: &str) -> bool {
        self.models.iter().any(|known| known == model)
    }

    fn parse(text: &str) -> Result<Self, Mistake> {
        let models: Self = serde_json::from_str(text)?;
        match models.default() {
            Some(default) if !models.allows(default) => {
                let line = text.lines().position(|line| line.contains("\"default\""));
                let reason = format!("the default `{default}` is not one of the models");
                Err(Mistake { line: line.map(|at| at + 1), reason })
            }
            _ => Ok(models),
        }
    }
}

/// What is wrong with the text, and where.
#[derive(Debug)]
struct Mistake {
    line: Option<usize>,
    reason: String,
}

impl From<serde_json::Error> for Mistake {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // The line is told by itself.
        let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
        Self { line: Some(error.line()), reason: reason.to_owned() }
    }
}

fn wrong(place: &str, line: Option<usize>, reason: &str) -> Failure {
    let message = match line {
        Some(line) => format!("{place}, line {line}: {reason}"),
        None => format!("{place}: {reason}"),
    };
    let hint = "write it like `{\"models\": [\"gpt-5.4\"], \"default\": \"gpt-5.4\"}`; it is read again for the next request.";
    Failure::new(Kind::InvalidConfig, message, hint)
        .with_details(json!({"file": place, "line": line, "reason": reason}))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 1 MiB"));
    }
    Ok(text)
}

/// A name that can stand in an argument and on a terminal and be nothing but a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NewName(&BTreeSet::new()).deserialize(deserializer)
    }
}

/// Reads a name that is not among these. The checks are made while the name is being read, so
/// that a mistake is found at its line.
struct NewName<'a>(&'a BTreeSet<String>);

impl<'de> DeserializeSeed<'de> for NewName<'_> {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NewName<'_> {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Name, E> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/+-".contains(c);
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins_well || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
            return Err(E::custom(format!(
                "{name:?} cannot be a model's name: at most {LONGEST_NAME} letters, digits and ._:/+- that begin with a letter or digit"
            )));
        }
        if self.0.contains(name) {
            return Err(E::custom(format!("`{name}` is there twice")));
        }
        Ok(Name(name.to_owned()))
    }
}

/// A list of names, not empty and without doubles.
fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct List;
    impl<'de> Visitor<'de> for List {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of models' names")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<String>, A::Error> {
            let mut known = BTreeSet::new();
            let mut names = Vec::new();
            while let Some(Name(name)) = seq.next_element_seed(NewName(&known))? {
                if names.len() == MOST_MODELS {
                    return Err(A::Error::custom(format!("more than {MOST_MODELS} models")));
                }
                known.insert(name.clone());
                names.push(name);
            }
            if names.is_empty() {
                return Err(A::Error::custom("no model is allowed: the list is empty"));
            }
            Ok(names)
        }
    }
    deserializer.deserialize_seq(List)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_list_is_well_formed() {
        // covers: COP-005
        let models = Models::parse(BUILT_IN).unwrap();
        assert!(models.allows("gpt-5.4"));
        assert!(!models.allows("GPT-5.4"));
        assert_eq!(models.default(), None);
    }

    fn check(text: &str, line: usize, reason: &str) {
        let mistake = Models::parse(text).unwrap_err();
        assert_eq!(mistake.line, Some(line), "{text}: {mistake:?}");
        assert!(mistake.reason.contains(reason), "{text}: {mistake:?}");
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        // covers: COP-010
        check("{\n\"models\": [\"a\"\n", 3, "EOF while parsing a list");
        check("[]", 1, "expected struct Models");
        check("{}", 1, "missing field `models`");
        check("{\"models\": []}", 1, "the list is empty");
        check("{\"models\": [\n\"a\",\n\"b\",\n\"a\"\n]}", 4, "`a` is there twice");
        check("{\"models\": [\n\"a\",\n5]}", 3, "invalid type: integer `5`");
        check("{\"models\": [\"a\"],\n\"others\": []}", 2, "unknown field `others`");
        check("{\"models\": [\"a\"],\n\"default\": \"b\"}", 2, "`b` is not one of the models");
        for name in ["--yolo", "", "a b", "a\\nb", "\u{e9}"] {
            check(&format!("{{\"models\": [\n\"{name}\"]}}"), 2, "cannot be a model's name");
        }
    }

    #[test]
    fn the_default_is_one_of_the_models() {
        let text = r#"{"default": "b", "models": ["a", "b"]}"#;
        let models = Models::parse(text).unwrap();
        assert_eq!(models.default(), Some("b"));
        assert_eq!(models.names(), ["a", "b"]);
    }
}
