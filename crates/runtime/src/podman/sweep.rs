//! Removes containers that no driver of this daemon started: left by a daemon that was killed
//! together with its guard, or by one whose registration is gone.

use std::collections::BTreeSet;

use cofer_model::ServerId;
use serde_json::Value;

use super::error::PodmanError;
use super::label;
use super::volumes::Volume;
use super::{Podman, files};

/// What a sweep found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Containers that were removed, by name.
    pub containers: Vec<String>,
    /// Volumes of servers that are not registered. They are kept.
    pub volumes: Vec<Volume>,
}

impl Podman {
    /// Removes every container of this owner that another daemon than this one started, which
    /// cannot rightly run, and tells of the volumes of servers that are not `known`. For the
    /// start of a daemon.
    pub async fn sweep(&self, known: &BTreeSet<ServerId>) -> Result<Swept, PodmanError> {
        files::clear(&self.inner.state_dir);
        self.info().await?;
        let left = self.left_containers().await?;
        let containers = left.iter().map(|(_, name)| name.clone()).collect();
        self.remove(left.iter().map(|(id, _)| id.as_str())).await?;
        let mut volumes = self.volumes().await?;
        volumes.retain(|volume| volume.server.is_none_or(|server| !known.contains(&server)));
        Ok(Swept { containers, volumes })
    }

    /// Id and name of this owner's containers that are not of this daemon.
    async fn left_containers(&self) -> Result<Vec<(String, String)>, PodmanError> {
        let filter = format!("label={}={}", label::OWNER, self.inner.owner);
        let args = ["ps", "--all", "--no-trunc", "--format=json", "--filter", &filter];
        let answer = self.watched(self.inner.client.ask(&args).await)?;
        let listed: Vec<Value> = serde_json::from_slice(&answer).unwrap_or_default();
        let others = listed.iter().filter(|container| {
            container["Labels"][label::DAEMON].as_str() != Some(self.inner.daemon.as_str())
        });
        let id_and_name = |container: &Value| {
            let id = container["Id"].as_str()?.to_owned();
            let name = container["Names"][0].as_str().unwrap_or(&id).to_owned();
            Some((id, name))
        };
        Ok(others.filter_map(id_and_name).collect())
    }

    /// Removes containers, running or not, with the volumes that have no name.
    pub(crate) async fn remove<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Result<(), PodmanError> {
        let ids: Vec<&str> = ids.collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut args = vec!["rm", "--force", "--time=0", "--volumes", "--ignore"];
        args.extend(ids);
        self.watched(self.inner.client.ask(&args).await).map(drop)
    }

    /// Removes what a start that failed, or was given up, may have made.
    pub(crate) async fn remove_run(&self, run: &str) {
        let filter = format!("label={}={run}", label::RUN);
        let args = ["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter];
        let result = match self.inner.client.ask_text(&args).await {
            Ok(ids) => self.remove(ids.split_ascii_whitespace()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            tracing::warn!(run, %error, "a container that did not start could not be removed");
        }
    }
}
