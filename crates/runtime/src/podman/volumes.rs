//! Named volumes: made and marked before the first start, kept until they are removed by name
//! of their server.

use std::path::PathBuf;

use cofer_model::ServerId;
use serde_json::Value;

use super::client::PATIENCE;
use super::error::PodmanError;
use super::info::Info;
use super::label;
use super::plan::{ContainerPlan, volume_name};
use super::{Podman, complaint, disk};

/// A volume of this daemon's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Podman's name for it.
    pub name: String,
    /// The server it was made for.
    pub server: Option<ServerId>,
    /// Where it is in the container.
    pub path: String,
    /// What it holds, where that can be read.
    pub bytes: Option<u64>,
}

impl Podman {
    /// All volumes that were made for this daemon's servers, also for those that are gone.
    pub async fn volumes(&self) -> Result<Vec<Volume>, PodmanError> {
        self.list_volumes(&format!("label={}={}", label::OWNER, self.inner.owner)).await
    }

    /// Removes the volumes of a server, with what is in them; returns their names. The
    /// server's container must be gone.
    pub async fn remove_volumes(&self, server: ServerId) -> Result<Vec<String>, PodmanError> {
        let place = self.place(server);
        let _nobody_uses_them = place.lock().await;
        let volumes = self.list_volumes(&format!("label={}={server}", label::SERVER)).await?;
        let names: Vec<String> = volumes.into_iter().map(|volume| volume.name).collect();
        if names.is_empty() {
            return Ok(names);
        }
        let mut args = vec!["volume".to_owned(), "rm".to_owned()];
        args.extend(names.iter().cloned());
        self.watched(self.inner.client.ask(&args).await)?;
        Ok(names)
    }

    /// Makes the volumes of a plan that are not there yet.
    pub(crate) async fn make_volumes(
        &self,
        plan: &ContainerPlan,
        info: &Info,
    ) -> Result<(), PodmanError> {
        for path in &plan.volumes {
            let name = volume_name(plan.server, path);
            if info.volume_root.join(&name).is_dir() {
                continue;
            }
            let mut args = vec!["volume".to_owned(), "create".to_owned()];
            for (key, value) in [
                (label::OWNER, self.inner.owner.as_str()),
                (label::SERVER, &plan.server.to_string()),
                (label::NAME, &plan.name),
                (label::PATH, path.trim_end_matches('/')),
            ] {
                args.push(format!("--label={key}={value}"));
            }
            args.push(name);
            let answer = self.watched(self.inner.client.run(&args, PATIENCE).await)?;
            if !answer.status.success() && !answer.stderr.contains("already exists") {
                return Err(complaint::general("volume create", &answer.stderr));
            }
        }
        Ok(())
    }

    async fn list_volumes(&self, filter: &str) -> Result<Vec<Volume>, PodmanError> {
        self.info().await?;
        let args = ["volume", "ls", "--format=json", "--filter", filter];
        let answer = self.watched(self.inner.client.ask(&args).await)?;
        let listed: Vec<Value> = match serde_json::from_slice(&answer) {
            Ok(listed) => listed,
            // Podman prints nothing where there are none.
            Err(_) if answer.trim_ascii().is_empty() => Vec::new(),
            Err(error) => {
                let message = format!("its answer cannot be read: {error}");
                return Err(PodmanError::Failed { action: "volume ls".to_owned(), message });
            }
        };
        let sizing =
            tokio::task::spawn_blocking(move || listed.iter().filter_map(volume).collect());
        sizing.await.map_err(|error| PodmanError::Internal {
            action: "measure the volumes",
            source: std::io::Error::other(error),
        })
    }
}

fn volume(listed: &Value) -> Option<Volume> {
    let labels = &listed["Labels"];
    let at = listed["Mountpoint"].as_str().map(PathBuf::from);
    Some(Volume {
        name: listed["Name"].as_str()?.to_owned(),
        server: labels[label::SERVER].as_str().and_then(|id| id.parse().ok()),
        path: labels[label::PATH].as_str().unwrap_or_default().to_owned(),
        bytes: at.filter(|at| at.read_dir().is_ok()).map(|at| disk::size(&at)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_volume_is_read_with_its_server_and_path() {
        let listed = json!({"Name": "cofer-1-data", "Mountpoint": "/no/such", "Labels": {
            "cofer.server": "018f0000-0000-7000-8000-0123456789ab", "cofer.path": "/data",
        }});
        let read = volume(&listed).unwrap();
        assert_eq!((read.path.as_str(), read.bytes), ("/data", None));
        assert!(read.server.is_some());
        assert_eq!(volume(&json!({"Name": "x"})).unwrap().server, None);
        assert_eq!(volume(&json!({})), None);
    }
}
