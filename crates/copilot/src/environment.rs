//! What of our environment the CLI gets: all of it, as it would from the user's shell, less
//! what grants tools without asking and what is Cofer's own.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Set for the CLI, so that a Cofer that the CLI starts as its MCP server knows where it is.
pub(crate) const DEPTH: &str = "COFER_COPILOT_DEPTH";

/// `COPILOT_ALLOW_ALL` lets the model run anything unasked; whatever is added to the family
/// will grant something too. Cofer's own variables hold its token and its database.
const WITHHELD_FAMILIES: [&str; 2] = ["COPILOT_ALLOW", "COFER_"];

/// The CLI's environment, made of `ours`. Only text: what is not UTF-8 is left out.
pub(crate) fn for_the_cli(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    let text = ours
        .into_iter()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    let is_given = |key: &str| {
        !key.is_empty() && !WITHHELD_FAMILIES.iter().any(|family| key.starts_with(family))
    };
    let mut environment: BTreeMap<String, String> = text.filter(|(key, _)| is_given(key)).collect();
    environment.insert(DEPTH.to_owned(), "1".to_owned());
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cli_gets_our_environment_less_what_grants_tools_and_what_is_ours() {
        let ours = [
            ("PATH", "/bin"),
            ("GH_TOKEN", "t"),
            ("COPILOT_MODEL", "m"),
            ("COPILOT_ALLOW_ALL", "1"),
            ("COPILOT_ALLOW_ALL_TOOLS", "true"),
            ("COFER_TOKEN", "secret"),
            ("COFER_DATABASE_URL", "postgres://x"),
        ];
        let given = for_the_cli(ours.map(|(key, value)| (key.into(), value.into())));
        let expected = [
            ("COFER_COPILOT_DEPTH", "1"),
            ("COPILOT_MODEL", "m"),
            ("GH_TOKEN", "t"),
            ("PATH", "/bin"),
        ];
        let given: Vec<(&str, &str)> =
            given.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(given, expected);
    }
}
