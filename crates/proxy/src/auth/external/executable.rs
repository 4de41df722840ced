//! A program of the user's that prints the subject token. It runs only where the environment
//! allows programs, without a shell, and not for longer than the credentials say.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::subject::{Wanted, read};
use crate::auth::error::{FileError, SubjectError};
use crate::auth::secret::{Secret, shown};
use crate::auth::source::Context;

const ALLOWED: &str = "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES";

const USUAL_PATIENCE: u64 = 30_000;
const SHORTEST_PATIENCE: u64 = 5_000;
const LONGEST_PATIENCE: u64 = 120_000;

/// What a program may print.
const LARGEST_OUTPUT: u64 = 1024 * 1024;

/// What stands in `credential_source.executable`.
#[derive(Deserialize)]
pub(crate) struct ExecutableFile {
    command: String,
    #[serde(default)]
    timeout_millis: Option<u64>,
    #[serde(default)]
    output_file: Option<PathBuf>,
}

/// A program that prints the subject token.
pub(crate) struct Executable {
    program: String,
    arguments: Vec<String>,
    patience: Duration,
    /// Where it keeps its last answer.
    output_file: Option<PathBuf>,
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Its arguments may be anything.
        formatter.debug_struct("Executable").field("program", &self.program).finish_non_exhaustive()
    }
}

/// What it prints.
#[derive(Deserialize)]
struct Answer {
    version: u64,
    success: bool,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    id_token: Option<Secret>,
    #[serde(default)]
    saml_response: Option<Secret>,
    #[serde(default)]
    expiration_time: Option<u64>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl Executable {
    pub(crate) fn new(file: ExecutableFile) -> Result<Self, FileError> {
        let wrong =
            |reason: &str| FileError::Field(format!("`credential_source.executable`: {reason}"));
        let mut words = shlex::split(&file.command)
            .ok_or_else(|| wrong("its `command` has a quote that does not end"))?
            .into_iter();
        let program = words.next().ok_or_else(|| wrong("its `command` is empty"))?;
        let patience = file.timeout_millis.unwrap_or(USUAL_PATIENCE);
        if !(SHORTEST_PATIENCE..=LONGEST_PATIENCE).contains(&patience) {
            return Err(wrong("its `timeout_millis` is not between 5000 and 120000"));
        }
        Ok(Self {
            program,
            arguments: words.collect(),
            patience: Duration::from_millis(patience),
            output_file: file.output_file,
        })
    }

    pub(crate) async fn token(
        &self,
        context: &Context,
        wanted: &Wanted<'_>,
    ) -> Result<Secret, SubjectError> {
        if context.environment.text(ALLOWED) != Some("1") {
            return Err(SubjectError::NotAllowed);
        }
        let now = context.exchange.clock.seconds();
        if let Some(kept) = self.kept(now).await {
            return Ok(kept);
        }
        let output = self.run(context, wanted).await?;
        if !output.status.success() {
            return Err(self.failed(&output));
        }
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if printed.trim().is_empty()
            && let Some(path) = &self.output_file
        {
            let written = read(path).await;
            let written =
                written.map_err(|source| SubjectError::File { path: path.clone(), source })?;
            return self.read(&written, now);
        }
        self.read(&printed, now)
    }

    /// The last answer, where it is kept and still good. One without an end is never good.
    async fn kept(&self, now: u64) -> Option<Secret> {
        let content = read(self.output_file.as_deref()?).await.ok()?;
        let answer: Answer = serde_json::from_str(&content).ok()?;
        answer.expiration_time?;
        self.read(&content, now).ok()
    }

    fn read(&self, content: &str, now: u64) -> Result<Secret, SubjectError> {
        let wrong = |reason: &str| SubjectError::Format {
            place: format!("the answer of the program `{}`", self.program),
            reason: reason.to_owned(),
        };
        let answer: Answer = serde_json::from_str(content)
            .map_err(|_| wrong("it is not JSON with `version` and `success`"))?;
        if answer.version != 1 {
            return Err(wrong("its `version` is not 1"));
        }
        if !answer.success {
            return Err(SubjectError::Unsuccessful {
                program: self.program.clone(),
                code: shown(&answer.code.unwrap_or_default(), &[]),
                message: shown(&answer.message.unwrap_or_default(), &[]),
            });
        }
        if answer.expiration_time.is_some_and(|end| end <= now) {
            return Err(wrong("its token has expired"));
        }
        let token = match answer.token_type.as_deref() {
            Some(
                "urn:ietf:params:oauth:token-type:jwt"
                | "urn:ietf:params:oauth:token-type:id_token",
            ) => answer.id_token.ok_or_else(|| wrong("it has no `id_token`")),
            Some("urn:ietf:params:oauth:token-type:saml2") => {
                answer.saml_response.ok_or_else(|| wrong("it has no `saml_response`"))
            }
            _ => Err(wrong("its `token_type` is not known")),
        }?;
        if token.expose().trim().is_empty() {
            return Err(wrong("its token is empty"));
        }
        Ok(token)
    }

    async fn run(&self, context: &Context, wanted: &Wanted<'_>) -> Result<Output, SubjectError> {
        let start = |source| SubjectError::Start { program: self.program.clone(), source };
        let mut child = self.command(context, wanted).spawn().map_err(start)?;
        // Declared after the child, so that its group is ended before it is reaped.
        let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let whole = async {
            let (stdout, stderr) = tokio::join!(capped(stdout), capped(stderr));
            child.wait().await.map(|status| Output { status, stdout, stderr })
        };
        let ended = tokio::time::timeout(self.patience, whole).await.map_err(|_| {
            SubjectError::Slow { program: self.program.clone(), waited: self.patience }
        })?;
        group.0 = None;
        ended.map_err(start)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the proxy does not know `runtime`; this is the user's own program, in the \
                  user's environment, as the credentials' format demands"
    )]
    fn command(&self, context: &Context, wanted: &Wanted<'_>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(context.environment.all())
            .env("GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE", wanted.audience)
            .env("GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE", wanted.token_type)
            .env("GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE", "0")
            .env("GOOGLE_EXTERNAL_ACCOUNT_REVOKE", "0")
            // stdin is the protocol's, and so is stdout.
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(email) = wanted.impersonated {
            command.env("GOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL", email);
            command.env("GOOGLE_EXTERNAL_ACCOUNT_ID", email);
        }
        if let Some(path) = &self.output_file {
            command.env("GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE", path);
        }
        command
    }

    fn failed(&self, output: &Output) -> SubjectError {
        let said = shown(&String::from_utf8_lossy(&output.stderr), &[]);
        SubjectError::Failed {
            program: self.program.clone(),
            status: output.status.to_string(),
            said: if said.is_empty() { said } else { format!(": {said}") },
        }
    }
}

/// A program with everything that it started; ended together where nobody waits for it any more.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It has perhaps just ended by itself.
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
    }
}

/// What a program writes, up to the cap; the rest is read and forgotten, so that it can end.
async fn capped(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        // A stream that breaks has said what it had to say.
        drop((&mut stream).take(LARGEST_OUTPUT).read_to_end(&mut kept).await);
        drop(tokio::io::copy(&mut stream, &mut tokio::io::sink()).await);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(command: &str) -> Executable {
        let file =
            ExecutableFile { command: command.to_owned(), timeout_millis: None, output_file: None };
        Executable::new(file).unwrap()
    }

    #[test]
    fn a_command_is_words_and_no_shell_reads_it() {
        let read = executable("/bin/get-token --for 'a b' $HOME;x");
        assert_eq!(read.program, "/bin/get-token");
        assert_eq!(read.arguments, ["--for", "a b", "$HOME;x"]);
        for (command, timeout, reason) in [
            ("", None, "empty"),
            ("a 'b", None, "quote"),
            ("a", Some(4_999), "timeout_millis"),
            ("a", Some(120_001), "timeout_millis"),
        ] {
            let command = command.to_owned();
            let file = ExecutableFile { command, timeout_millis: timeout, output_file: None };
            let refused = Executable::new(file).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn an_answer_is_checked_before_it_is_used() {
        let program = executable("p");
        let good = r#"{"version":1,"success":true,"expiration_time":11,
            "token_type":"urn:ietf:params:oauth:token-type:jwt","id_token":"t"}"#;
        assert_eq!(program.read(good, 10).unwrap().expose(), "t");
        let saml = good.replace("jwt", "saml2").replace("id_token", "saml_response");
        assert_eq!(program.read(&saml, 10).unwrap().expose(), "t");
        for (answer, reason) in [
            ("", "not JSON"),
            (r#"{"success":true}"#, "not JSON"),
            (&good.replace(":1,", ":2,"), "version"),
            (&good.replace(":11", ":10"), "expired"),
            (&good.replace("jwt", "other"), "token_type"),
            (&good.replace("id_token", "other"), "no `id_token`"),
            (&good.replace("\"t\"", "\"\""), "empty"),
            (
                r#"{"version":1,"success":false,"code":"401","message":"log in first"}"#,
                "said no: 401: log in first",
            ),
        ] {
            let refused = program.read(answer, 10).unwrap_err().to_string();
            assert!(refused.contains(reason), "{answer}: {refused}");
        }
    }
}
