//! `cofer doctor`: looks at this machine as the daemon will find it, and says what is wrong or
//! missing and why that matters. Changes nothing.

mod containers;
mod containment;
mod copilot;
mod daemon;
mod directory;
mod open_files;
mod programs;

use serde::Serialize;

use super::Context;
use crate::failure::Failure;
use crate::output::{BAD, BUSY, DIM, GOOD, HINT, styled, text};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    /// As it should be.
    Ok,
    /// Not there, and not needed by everybody.
    Missing,
    /// Somebody should look.
    Warning,
    /// The daemon or its servers cannot work like this.
    Broken,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    name: String,
    level: Level,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Check {
    fn new(name: &str, level: Level, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), level, message: message.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    version: &'a str,
    checks: &'a [Check],
}

pub(super) async fn run(context: &mut Context) -> Result<(), Failure> {
    let mut checks = vec![Check::new("cofer", Level::Ok, env!("CARGO_PKG_VERSION"))];
    checks.extend(directory::check(&context.data_dir));
    let (daemon, servers) = daemon::check(&context.client).await;
    checks.extend(daemon);
    checks.push(check_proc());
    checks.push(open_files::check(&context.data_dir, servers));
    checks.push(containment::check(&context.client).await);
    let (programs, containers, copilot) =
        tokio::join!(programs::check(), containers::check(), copilot::check());
    checks.extend(programs);
    checks.extend(containers);
    checks.push(copilot);
    let broken = checks.iter().filter(|check| check.level == Level::Broken).count();
    if context.out.wants_json() {
        let version = env!("CARGO_PKG_VERSION");
        let report = Report { ok: broken == 0, version, checks: &checks };
        context.out.print_json(&serde_json::to_string(&report).unwrap_or_default())?;
    } else {
        context.out.print(&render(&checks))?;
    }
    match broken {
        0 => Ok(()),
        _ => Err(Failure::new(format!("{} will not work", text::count(broken, "thing")))),
    }
}

/// Servers are started and measured through /proc.
fn check_proc() -> Check {
    match std::fs::read_link("/proc/self/exe") {
        Ok(_) => Check::new("/proc", Level::Ok, "mounted"),
        Err(error) => Check::new("/proc", Level::Broken, format!("cannot be read: {error}"))
            .hint("mount it: servers are started and measured through it."),
    }
}

fn render(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for Check { name, level, message, hint } in checks {
        let (word, style) = match level {
            Level::Ok => ("ok     ", GOOD),
            Level::Missing => ("missing", DIM),
            Level::Warning => ("warning", BUSY),
            Level::Broken => ("broken ", BAD),
        };
        lines.push(format!("{}  {name:width$}  {}", styled(style, word), text::line(message)));
        if let Some(hint) = hint {
            let space = " ".repeat(width + 11);
            lines.push(format!("{space}{} {}", styled(HINT, "Hint:"), text::line(hint)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_stand_in_columns_with_their_hints_below() {
        let checks = [
            Check::new("directory", Level::Ok, "/srv/cofer"),
            Check::new("uvx", Level::Missing, "not on PATH").hint("install uv."),
            Check::new("token", Level::Warning, "bad\u{1b}[2J"),
            Check::new("/proc", Level::Broken, "cannot be read"),
        ];
        let plain = anstream::adapter::strip_str(&render(&checks)).to_string();
        insta::assert_snapshot!(plain, @r"
        ok       directory  /srv/cofer
        missing  uvx        not on PATH
                            Hint: install uv.
        warning  token      bad\u{1b}[2J
        broken   /proc      cannot be read
        ");
    }
}
