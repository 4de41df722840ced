//! The commands by which a repository prepares its environments.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::environment::Environment;
use crate::environments::Environments;
use crate::failure::{Failure, Kind};
use crate::run::{self, Limit, Output, Program};

impl Environments {
    /// Setup commands run before anything of the repository matters, install commands in it.
    pub(crate) async fn set_up(&self, environment: &Environment) -> Result<(), Failure> {
        let config = &environment.state.config;
        let setup = config.setup_commands.iter().map(|command| ("setup", "/", command));
        let install = config
            .install_commands
            .iter()
            .map(|command| ("install", config.workdir.as_str(), command));
        let commands: Vec<_> = setup.chain(install).collect();
        if commands.is_empty() {
            return Ok(());
        }
        let secrets = self.resolve_secrets(&environment.repository, &config.secrets)?;
        let limit = Limit { longest: self.settings.run_limit, cancelled: CancellationToken::new() };
        for (step, cwd, command) in commands {
            let program = Program {
                argv: ["sh", "-c", command].map(str::to_owned).into(),
                cwd: cwd.to_owned(),
                env: config.env.clone(),
                secrets: secrets.clone(),
            };
            let ran = run::foreground(
                &environment.executor,
                &program,
                &Output::default(),
                &limit,
                &TaskTracker::new(),
            )
            .await?;
            if ran.end.code() != 0 {
                let message = format!(
                    "{step} command failed: exit code {}.\nstdout: {}\nstderr: {}",
                    ran.end.code(),
                    ran.stdout.text,
                    ran.stderr.text
                );
                let recovery = format!(
                    "correct `{step}_commands` in environment.json: setup commands run in / before the repository is looked at, install commands in the workdir. Nothing was left behind."
                );
                return Err(Failure::new(Kind::PreconditionFailed, step, message, recovery));
            }
        }
        Ok(())
    }
}
