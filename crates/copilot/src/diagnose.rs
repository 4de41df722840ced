//! From what the CLI really said, and how it really ended, to a kind of failure and what to do.
//! Pure. Only stderr counts, and only of a run that failed: what a model wrote to stdout may
//! quote any of these words.

use std::error::Error as _;

use cofer_runtime::StartError;

use crate::answer::Answer;
use crate::failure::{Failure, Kind};

const INSTALL: &str =
    "install it with `npm install -g @github/copilot`, or name it with COFER_COPILOT.";
const LOG_IN: &str = "log in once: run `copilot` in a terminal and type `/login`, or set COPILOT_GITHUB_TOKEN to a fine-grained token with the permission \"Copilot Requests\".";
const NODE: &str =
    "the CLI of npm is a Node.js program: put `node` on the PATH that Cofer is started with.";
const REINSTALL: &str = "install it anew: `npm install -g @github/copilot`.";
const MODEL: &str = "ask for another model; which ones there are is up to your account and plan.";

/// Words by which a failure is known. All of `words` stand in one line, whatever the case.
struct Sign {
    words: &'static [&'static str],
    kind: Kind,
    message: &'static str,
    hint: &'static str,
}

const fn sign(
    words: &'static [&'static str],
    kind: Kind,
    message: &'static str,
    hint: &'static str,
) -> Sign {
    Sign { words, kind, message, hint }
}

const NOBODY: &str = "nobody is logged in to GitHub Copilot";
const REFUSED: &str = "GitHub refused the login that Copilot has";

/// What releases from 0.0.351 to 1.0.102 say; the first that fits counts.
const SIGNS: &[Sign] = &[
    // 0.0.351 and later.
    sign(&["no authentication information found"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["error: authentication failed"], Kind::NotLoggedIn, REFUSED, LOG_IN),
    sign(&["classic personal access tokens (ghp_)"], Kind::NotLoggedIn, REFUSED, LOG_IN),
    // The same words with a network failure or a 5xx are no matter of login.
    sign(&["could not be validated", "(401)"], Kind::NotLoggedIn, REFUSED, LOG_IN),
    sign(&["could not be validated", "(403)"], Kind::NotLoggedIn, REFUSED, LOG_IN),
    sign(&["could not be validated", "(404)"], Kind::NotLoggedIn, REFUSED, LOG_IN),
    // What the CLI says on a terminal, and older ones on pipes too.
    sign(&["you must be logged in"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["you must be signed in"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["please use /login"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["please run /login"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["not logged in"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["not authenticated"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["authentication required"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    sign(&["please log in"], Kind::NotLoggedIn, NOBODY, LOG_IN),
    // VS Code's stand-in, which exits with 0.
    sign(
        &["cannot find github copilot cli"],
        Kind::NotInstalled,
        "the `copilot` on PATH is VS Code's stand-in for a CLI that is not installed",
        INSTALL,
    ),
    sign(
        &["no platform package found"],
        Kind::NotInstalled,
        "the installed Copilot CLI lacks the package for this platform",
        REINSTALL,
    ),
    sign(&["env:", "node", "no such file"], Kind::SpawnFailed, "`node` was not found", NODE),
    // From 0.0.414 on by the account's list; before, by the CLI's own.
    sign(
        &["error: model", "from --model flag is not available"],
        Kind::InvalidRequest,
        "this account has no such model",
        MODEL,
    ),
    sign(
        &["option '--model", "is invalid. allowed choices are"],
        Kind::InvalidRequest,
        "the installed CLI knows no such model",
        MODEL,
    ),
    sign(
        &["byok providers require an explicit model"],
        Kind::InvalidConfig,
        "a provider of your own needs a model by name",
        "set `default` in the models file, or ask for a model.",
    ),
];

/// How a parser says that it does not know an option: commander, clap, cobra, argparse, getopt.
const UNKNOWN: [&str; 6] = [
    "unknown option",
    "unexpected argument",
    "unrecognized option",
    "unrecognized argument",
    "unknown flag",
    "unknown argument",
];

/// What to make of a run that came to its end.
pub(crate) enum Verdict {
    /// It is an answer, be it with an exit code that says failure.
    Said,
    /// The CLI does not know the flags it was asked with, and did nothing.
    NoSuchFlag,
    /// A failure we know.
    Failed(Failure),
}

pub(crate) fn verdict(answer: &Answer) -> Verdict {
    let stderr = String::from_utf8_lossy(&answer.stderr.bytes);
    let succeeded = answer.exit.is_some_and(|exit| exit.code == Some(0));
    let is_stand_in = stderr.starts_with("Cannot find GitHub Copilot CLI");
    if succeeded && !is_stand_in {
        return Verdict::Said;
    }
    if answer.stdout.bytes.is_empty() && lacks_flag(&stderr) {
        return Verdict::NoSuchFlag;
    }
    known(&stderr).map_or(Verdict::Said, Verdict::Failed)
}

/// The failure that a text tells of, where it is one we know.
pub(crate) fn known(text: &str) -> Option<Failure> {
    let lines: Vec<String> = text.lines().map(str::to_lowercase).collect();
    let fits =
        |sign: &&Sign| lines.iter().any(|line| sign.words.iter().all(|word| line.contains(word)));
    let sign = SIGNS.iter().find(fits)?;
    Some(Failure::new(sign.kind, sign.message, sign.hint))
}

/// AWS has a CLI of the same name.
pub(crate) fn of_version(stdout: &str, stderr: &str) -> Option<Failure> {
    if stdout.starts_with("copilot version: v") {
        let message = "the `copilot` that was found is AWS Copilot, not GitHub's";
        return Some(Failure::new(Kind::NotInstalled, message, INSTALL));
    }
    known(stderr).filter(|failure| matches!(failure.kind, Kind::NotInstalled | Kind::SpawnFailed))
}

/// Whether a line of it says that one of our flags is unknown.
fn lacks_flag(stderr: &str) -> bool {
    let is_ours = |option: &str| {
        let name = option.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next();
        ["--prompt", "-p", "--model"].contains(&name.unwrap_or_default())
    };
    stderr.lines().map(str::to_lowercase).any(|line| {
        let told = UNKNOWN.iter().find_map(|words| line.split_once(words));
        // Behind `s:` where several are named; the beginning of the line names the program.
        told.is_some_and(|(before, option)| {
            before.len() < 40 && is_ours(option.trim_start_matches(['s', ':', ' ', '\'', '"', '`']))
        })
    })
}

/// Why the CLI could not be started.
pub(crate) fn of_start(error: &StartError, program: &str) -> Failure {
    let mut message = error.to_string();
    if let Some(cause) = error.source() {
        message = format!("{message}: {cause}");
    }
    match error {
        StartError::CommandNotFound(_) => Failure::new(Kind::NotInstalled, message, INSTALL),
        StartError::NoTerminal { .. } => Failure::new(
            Kind::TtyUnavailable,
            message,
            "the installed CLI can only be used on a terminal; install a newer one with `npm install -g @github/copilot`, or give this system pseudo-terminals (/dev/ptmx).",
        ),
        StartError::NoInterpreter { .. } => Failure::new(Kind::SpawnFailed, message, NODE),
        StartError::BadDirectory { .. } => Failure::new(
            Kind::InvalidConfig,
            message,
            "name another directory with `--cwd` or COFER_COPILOT_CWD, or none.",
        ),
        _ => {
            let hint = format!("run `{program} --version` in a terminal to see more.");
            Failure::new(Kind::SpawnFailed, message, hint)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Mode;
    use crate::capture::Captured;
    use cofer_model::Exit;

    fn captured(text: &str) -> Captured {
        Captured { bytes: text.as_bytes().to_vec(), dropped: 0 }
    }

    fn judge(code: i32, stdout: &str, stderr: &str) -> Verdict {
        let exit = Some(Exit { code: Some(code), signal: None });
        let (stdout, stderr) = (captured(stdout), captured(stderr));
        verdict(&Answer { stdout, stderr, exit, mode: Mode::Pipe })
    }

    fn kind(code: i32, stderr: &str) -> Option<Kind> {
        match judge(code, "", stderr) {
            Verdict::Failed(failure) => Some(failure.kind),
            Verdict::Said => None,
            Verdict::NoSuchFlag => panic!("{stderr} is no word on flags"),
        }
    }

    #[test]
    fn the_words_of_the_cli_are_understood() {
        // covers: COP-008, COP-E1
        for (stderr, expected) in [
            ("Error: No authentication information found.\n\nCopilot can be", Kind::NotLoggedIn),
            ("Error: Authentication failed (Request ID: 1)\n", Kind::NotLoggedIn),
            ("Error: Classic Personal Access Tokens (ghp_) are not", Kind::NotLoggedIn),
            ("Error: the token could not be validated (401)", Kind::NotLoggedIn),
            ("GitHub Copilot CLI: no platform package found. Reinstall", Kind::NotInstalled),
            ("/usr/bin/env: \u{2018}node\u{2019}: No such file or directory\n", Kind::SpawnFailed),
            ("Error: Model \"x\" from --model flag is not available.", Kind::InvalidRequest),
            ("error: BYOK providers require an explicit model", Kind::InvalidConfig),
        ] {
            assert_eq!(kind(1, stderr), Some(expected), "{stderr}");
        }
    }

    #[test]
    fn what_is_no_matter_of_login_is_given_back_as_it_is() {
        for stderr in [
            "Error: the token could not be validated: network fetch failed",
            "Error: the token could not be validated (503)",
            "Error: Access denied by policy settings",
            "error: Invalid command format.",
            "",
        ] {
            assert_eq!(kind(1, stderr), None, "{stderr}");
        }
    }

    #[test]
    fn success_is_success_whatever_stands_in_it() {
        // covers: COP-003
        let words = "Error: No authentication information found.";
        assert_eq!(kind(0, words), None);
        assert!(matches!(judge(1, words, "Error: 500"), Verdict::Said));
        let stand_in = "Cannot find GitHub Copilot CLI (https://docs.github.com)";
        assert_eq!(kind(0, stand_in), Some(Kind::NotInstalled));
    }

    #[test]
    fn a_cli_without_our_flags_is_told_from_one_that_takes_offence_at_others() {
        // covers: COP-001
        let lacks = |stderr: &str| matches!(judge(2, "", stderr), Verdict::NoSuchFlag);
        for stderr in [
            "error: unknown option '--prompt=hello'",
            "error: unexpected argument '--model' found",
            "copilot: unrecognized option '--prompt=hi'",
            "copilot: error: unrecognized arguments: --prompt=hi",
            "unknown flag: --model",
            "error: unknown option '-p'",
        ] {
            assert!(lacks(stderr), "{stderr}");
        }
        for stderr in ["error: unknown option '--no-color'", "--prompt is an unknown option here"] {
            assert!(!lacks(stderr), "{stderr}");
        }
        assert!(matches!(
            judge(2, "an answer", "error: unknown option '--prompt=x'"),
            Verdict::Said
        ));
    }

    #[test]
    fn another_program_of_the_same_name_is_not_it() {
        let aws = of_version("copilot version: v1.34.1\n", "").unwrap();
        assert_eq!(aws.kind, Kind::NotInstalled);
        assert!(aws.message.contains("AWS"));
        assert!(of_version("GitHub Copilot CLI 1.0.102.", "").is_none());
        assert!(of_version("", "Error: No authentication information found.").is_none());
    }
}
