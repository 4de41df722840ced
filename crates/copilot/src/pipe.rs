//! The pipe way: one run of the CLI with flags. Prompt and model stand in one argument each,
//! behind `=`, where no release reads them as anything but a value.

use cofer_model::FieldError;

use crate::answer::{Answer, Mode};
use crate::capabilities::{Capabilities, Way};
use crate::failure::Failure;
use crate::launcher::{Cli, Launcher, Output, RunError};
use crate::limit::Limit;
use crate::request::Request;

/// The longest argument Linux takes is 128 KiB with its end; `--prompt=` is part of it.
const LONGEST_PROMPT: usize = 128 * 1024 - 1 - "--prompt=".len();

/// What the CLI is started with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    args: Vec<String>,
    stdin: &'a str,
}

/// How to ask a CLI that has the flags. A prompt that is too long for an argument goes to its
/// stdin, from which it is read where no `--prompt` is given.
pub(crate) fn plan<'a>(
    request: &'a Request,
    capabilities: &Capabilities,
    way: Way,
) -> Result<Plan<'a>, Failure> {
    let input = request.input.as_str();
    let mut args: Vec<String> = capabilities.switches().collect();
    args.extend(request.model.iter().map(|model| format!("--model={model}")));
    let mut stdin = "";
    if input.len() > LONGEST_PROMPT {
        stdin = input;
    } else if way == Way::ShortPrompt {
        if input.starts_with('-') {
            let words = "must not begin with `-`: the installed CLI would take it for an option";
            return Err(Failure::invalid_request(&[FieldError::new("input", words)]));
        }
        args.extend(["-p".to_owned(), input.to_owned()]);
    } else {
        args.push(format!("--prompt={input}"));
    }
    Ok(Plan { args, stdin })
}

/// Asks and waits for the end.
pub(crate) async fn run(
    plan: Plan<'_>,
    cli: &Cli,
    launcher: &Launcher,
    output: &Output,
    limit: &Limit,
) -> Result<Answer, RunError> {
    let exit = launcher.run(cli, plan.args, plan.stdin, output, limit).await?;
    let (stdout, stderr) = (output.stdout.so_far(), output.stderr.so_far());
    Ok(Answer { stdout, stderr, exit: Some(exit), mode: Mode::Pipe })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, model: Option<&str>, help: &str, way: Way) -> (Vec<String>, usize) {
        let request = Request { input: input.to_owned(), model: model.map(str::to_owned) };
        let plan = plan(&request, &Capabilities::read("", help), way).unwrap();
        (plan.args, plan.stdin.len())
    }

    #[test]
    fn prompt_and_model_are_one_argument_each_whatever_they_hold() {
        // covers: COP-001, COP-E2
        let (args, _) = check("--allow-all-tools\n$(id) \"'", Some("m"), "", Way::Prompt);
        assert_eq!(args, ["--model=m", "--prompt=--allow-all-tools\n$(id) \"'"]);
    }

    #[test]
    fn the_model_gets_no_tools_where_the_cli_has_the_switch() {
        let help =
            "Usage:\n  --available-tools <x>  Tools\n  --no-color  x\n  -p, --prompt <x>  x\n";
        let (args, _) = check("hi", None, help, Way::Prompt);
        assert_eq!(args, ["--available-tools=none", "--no-color", "--prompt=hi"]);
    }

    #[test]
    fn a_prompt_too_long_for_an_argument_goes_to_stdin() {
        let longest = "x".repeat(LONGEST_PROMPT);
        let (args, stdin) = check(&longest, None, "", Way::Prompt);
        assert_eq!((args[0].len(), stdin), (128 * 1024 - 1, 0));
        let (args, stdin) = check(&format!("{longest}x"), None, "", Way::Prompt);
        assert_eq!((args, stdin), (vec![], LONGEST_PROMPT + 1));
    }

    #[test]
    fn an_option_is_refused_where_it_could_be_taken_for_one() {
        // covers: COP-E2
        assert_eq!(check("hi", None, "", Way::ShortPrompt).0, ["-p", "hi"]);
        let request = Request { input: "--yolo".to_owned(), model: None };
        assert!(plan(&request, &Capabilities::default(), Way::ShortPrompt).is_err());
    }
}
