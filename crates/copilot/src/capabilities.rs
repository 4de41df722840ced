//! What an installed CLI can do, by its own `--help` and `--version`, and what follows from it
//! for how it is asked. Pure: takes texts, returns verdicts.

use std::collections::BTreeSet;

/// Switches that keep a chat a chat, each passed where the CLI has it: no tools for the model,
/// no servers, no questions to a person who is not there, no update in the middle of an answer,
/// and no report on stdout that the tools are off.
const SWITCHES: [(&str, &str); 6] = [
    ("--available-tools", "--available-tools=none"),
    ("--disable-builtin-mcps", "--disable-builtin-mcps"),
    ("--no-ask-user", "--no-ask-user"),
    ("--no-auto-update", "--no-auto-update"),
    ("--no-color", "--no-color"),
    ("--silent", "--silent"),
];

/// What tells a help from anything else that a program may say to `--help`.
const HELP_WORDS: [&str; 3] = ["usage", "options:", "commands:"];

/// What a CLI can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Such as `1.0.102`.
    pub(crate) version: Option<String>,
    /// The options its help names; none where what it printed is no help.
    options: Option<BTreeSet<String>>,
}

/// How the CLI is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// `--prompt=TEXT`: one argument, which is nothing but a prompt.
    Prompt,
    /// `-p TEXT`, where the help has no `--prompt`: only for a text that is no option itself.
    ShortPrompt,
    /// On a terminal, as a person would.
    Terminal,
}

impl Capabilities {
    pub(crate) fn read(version: &str, help: &str) -> Self {
        Self { version: version_in(version), options: options_in(help) }
    }

    /// A CLI whose help cannot be read is tried with its flags: it will say so if it has none.
    pub(crate) fn way(&self, wants_model: bool) -> Way {
        let Some(options) = &self.options else {
            return Way::Prompt;
        };
        if wants_model && !options.contains("--model") {
            Way::Terminal
        } else if options.contains("--prompt") {
            Way::Prompt
        } else if options.contains("-p") {
            Way::ShortPrompt
        } else {
            Way::Terminal
        }
    }

    /// The same CLI, which turned out not to know the flags it was tried with.
    pub(crate) fn without_flags(&self) -> Self {
        Self { version: self.version.clone(), options: Some(BTreeSet::new()) }
    }

    /// Whether the help names an option.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.as_ref().is_some_and(|options| options.contains(option))
    }

    /// The switches of a chat that this CLI has.
    pub(crate) fn switches(&self) -> impl Iterator<Item = String> {
        SWITCHES.iter().filter(|(option, _)| self.has(option)).map(|(_, arg)| (*arg).to_owned())
    }
}

/// The first thing in the first line that is numbers and dots.
fn version_in(text: &str) -> Option<String> {
    let words = text.lines().next()?.split_whitespace();
    let versions = words.map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    let is_version = |word: &&str| {
        word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()) && word.len() < 40
    };
    versions.clone().find(is_version).map(str::to_owned)
}

/// The options that a help lists: at the beginning of a line, before what is said about them.
fn options_in(help: &str) -> Option<BTreeSet<String>> {
    let entries = help.lines().map(str::trim).filter(|line| line.starts_with('-'));
    let listed = entries.map(|line| line.split_once("  ").map_or(line, |(options, _)| options));
    let words = listed.flat_map(|options| options.split([' ', ',', '=', '[']));
    let options: BTreeSet<String> = words
        .filter(|word| word.len() > 1 && word.starts_with('-') && *word != "--")
        .map(str::to_owned)
        .collect();
    let text = help.to_lowercase();
    let is_help = HELP_WORDS.iter().any(|word| text.contains(word)) || options.len() > 1;
    is_help.then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: &str = "Usage: copilot [options]\n\nOptions:\n  --available-tools[=tools...]  Only these tools\n  -h, --help                    Display help\n  --model <model>               The model; see --no-ask-user\n  -p, --prompt <text>           Execute a prompt; requires --allow-all-tools\n";

    #[test]
    fn the_options_are_those_listed_and_not_those_talked_about() {
        let modern = Capabilities::read("GitHub Copilot CLI 1.0.102.\nRun x", MODERN);
        assert_eq!(modern.version.as_deref(), Some("1.0.102"));
        assert_eq!(modern.way(true), Way::Prompt);
        assert_eq!(modern.switches().collect::<Vec<_>>(), ["--available-tools=none"]);
        assert!(modern.has("--model") && !modern.has("--allow-all-tools"));
    }

    #[test]
    fn a_cli_without_the_flags_is_asked_on_a_terminal() {
        // covers: COP-001
        let old = Capabilities::read("0.0.9", "Usage: copilot\n  -h, --help  Help\n");
        assert_eq!(old.way(false), Way::Terminal);
        let no_model = Capabilities::read("0.0.9", "Usage:\n -p, --prompt <t>  Ask\n");
        assert_eq!(no_model.way(false), Way::Prompt);
        assert_eq!(no_model.way(true), Way::Terminal);
        let short = Capabilities::read("0.0.9", "usage: copilot\n  -p TEXT  Ask\n");
        assert_eq!(short.way(false), Way::ShortPrompt);
    }

    #[test]
    fn a_cli_without_a_help_is_tried_with_its_flags() {
        for help in ["", "hello", "--help", "Error: No authentication information found."] {
            assert_eq!(Capabilities::read("", help).way(true), Way::Prompt, "{help}");
        }
    }

    #[test]
    fn versions_are_read_as_every_release_wrote_them() {
        for (text, version) in [
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update'", Some("1.0.102")),
            ("0.0.351\nCommit: 90770bc", Some("0.0.351")),
            ("copilot version: v1.34.1", Some("1.34.1")),
            ("hello there.", None),
            ("", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }
}
