//! Whether `copilot.chat` would work: the CLI is installed, and somebody is logged in.

use std::time::Duration;

use cofer_copilot::{Examination, Failure, Kind, Login};

use super::{Check, Level};
use crate::commands::mcp::copilot_config;

/// A fresh installation unpacks itself first.
const PATIENCE: Duration = Duration::from_secs(15);

const NAME: &str = "copilot";

pub(super) async fn check() -> Check {
    judge(cofer_copilot::examine(&copilot_config(), PATIENCE).await)
}

fn judge(examined: Result<Examination, Failure>) -> Check {
    match examined {
        Ok(Examination { program, version, login }) => {
            let version = version.unwrap_or_else(|| "of an unknown version".to_owned());
            let place = program.display();
            match login {
                Login::LoggedIn => {
                    Check::new(NAME, Level::Ok, format!("{version}, logged in ({place})"))
                }
                Login::LoggedOut => {
                    Check::new(NAME, Level::Warning, format!("{version}, not logged in ({place})"))
                        .hint("run `copilot` in a terminal and type `/login`.")
                }
                Login::Unknown => {
                    let message = format!(
                        "{version} ({place}); whether somebody is logged in, only a request tells"
                    );
                    Check::new(NAME, Level::Ok, message)
                }
            }
        }
        Err(failure) if failure.kind == Kind::NotInstalled => {
            let message = format!("{}; it answers `copilot.chat`", failure.message);
            Check::new(NAME, Level::Missing, message)
        }
        Err(failure) => Check::new(NAME, Level::Warning, failure.message).hint(failure.hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_that_is_missing_is_a_warning_with_what_to_do() {
        // covers: COP-008
        let examined = |login| {
            let version = Some("1.0.102".to_owned());
            judge(Ok(Examination { program: "/bin/copilot".into(), version, login }))
        };
        let check = examined(Login::LoggedOut);
        assert_eq!(check.level, Level::Warning);
        assert!(check.message.contains("1.0.102, not logged in"), "{}", check.message);
        assert!(check.hint.is_some_and(|hint| hint.contains("/login")));
        assert_eq!(examined(Login::LoggedIn).level, Level::Ok);
    }
}
