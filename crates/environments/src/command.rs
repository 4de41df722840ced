//! `environment_run_cmd`: from its arguments to its answer.

use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::answer;
use crate::arguments::Order;
use crate::background::{self, Background};
use crate::environment::Environment;
use crate::environments::Environments;
use crate::failure::{Failure, Kind};
use crate::journal;
use crate::run::{self, Limit, Output, Program};
use crate::secrets;
use crate::tool::Told;

impl Environments {
    pub(crate) async fn run(
        &self,
        order: &Order,
        output: &Output,
        cancelled: &CancellationToken,
    ) -> Result<Told, Failure> {
        let environment = self.environment(&order.source, &order.id).await?;
        self.note(&environment.repository).await;
        let config = &environment.state.config;
        let program = Program {
            argv: self.argv(&environment, order).await?,
            cwd: config.workdir.clone(),
            env: config.env.clone(),
            secrets: self.resolve_secrets(&environment.repository, &config.secrets)?,
        };
        let limit = Limit { longest: self.settings.run_limit, cancelled: cancelled.clone() };
        let executor = environment.awake(&self.podman).await?;
        self.watch_disk(&environment);
        if order.background {
            let folder = environment.home.background();
            let background = Background {
                executor,
                folder: &folder,
                forwarder: &self.settings.forwarder,
                limit: &limit,
            };
            let endpoints = background.start(&program, &order.command, &order.ports).await?;
            return Ok(answer::started(&environment, &endpoints));
        }
        let ran = run::foreground(executor, &program, output, &limit, &self.readers).await;
        let told = secrets::without(order.command.clone(), &program.secrets);
        let ended = journal::Entry::new(OffsetDateTime::now_utc(), &told, &ran);
        if let Err(error) = journal::note(&environment.home.journal(), &ended) {
            tracing::debug!(%error, "a command is not in the journal");
        }
        // Also what a command did before it failed or was ended is recorded.
        let code = ran
            .as_ref()
            .map_or_else(|failure| format!("{:?}", failure.kind), |ran| ran.end.code().to_string());
        let mut kept = environment.keep(message(order, &code)).await;
        let ran = match ran {
            // The container may have gone because of its disk limit.
            Err(failure) if failure.kind == Kind::PreconditionFailed => {
                return Err(environment.disk_failure().await.unwrap_or(failure));
            }
            ran => ran?,
        };
        kept.warnings.extend(self.seen_since(&environment));
        let background = background::all(&environment.home.background(), &program.secrets);
        Ok(answer::ran(&environment, &ran, &kept, background))
    }

    async fn argv(&self, environment: &Environment, order: &Order) -> Result<Vec<String>, Failure> {
        let shell = [order.shell.as_str(), "-c", order.command.as_str()].map(str::to_owned);
        if !order.use_entrypoint && !order.command.is_empty() {
            return Ok(shell.into());
        }
        let image = &environment.state.config.base_image;
        let own =
            self.podman.image_command(image).await.map_err(|error| error.into_failure(image))?;
        let (entrypoint, command) = own;
        let rest = if order.command.is_empty() { command } else { shell.into() };
        let argv: Vec<String> = if order.use_entrypoint || order.command.is_empty() {
            entrypoint.into_iter().chain(rest).collect()
        } else {
            rest
        };
        if argv.is_empty() {
            let message =
                format!("`command` is empty, and the image {image} runs nothing by itself");
            return Err(Failure::new(
                Kind::InvalidRequest,
                "arguments",
                message,
                "give a command; nothing was run.",
            ));
        }
        Ok(argv)
    }
}

/// The message of the commit: why, what, and how it ended.
fn message(order: &Order, code: &str) -> String {
    let command: String = order.command.chars().take(2000).collect();
    let first_line = command.lines().next().unwrap_or_default();
    let subject =
        match order.explanation.as_deref().map(str::trim).filter(|words| !words.is_empty()) {
            Some(explanation) => explanation.chars().take(2000).collect(),
            None => format!("Run {}", first_line.chars().take(60).collect::<String>()),
        };
    format!("{subject}\n\n$ {command}\nexit {code}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_tells_why_what_and_how_it_ended() {
        let order = Order {
            source: "/r".into(),
            id: "x".into(),
            command: "make\nmake test".into(),
            shell: "sh".into(),
            background: false,
            use_entrypoint: false,
            ports: Vec::new(),
            explanation: Some("Build it".into()),
        };
        assert_eq!(message(&order, "0"), "Build it\n\n$ make\nmake test\nexit 0\n");
        let order = Order { explanation: None, ..order };
        assert!(message(&order, "2").starts_with("Run make\n\n$ make\nmake test\nexit 2"));
    }
}
