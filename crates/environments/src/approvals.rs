//! Approval of secrets. A repository names variables and files of this machine in its
//! `environment.json`, which whoever can commit to it can write. So each reference is resolved only
//! after the user has approved it, once per repository and reference, in the record of `cofer init`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofer_model::{SecretState, SecretView};
use serde::{Deserialize, Serialize};

use crate::config::EnvironmentConfig;
use crate::environments::Environments;
use crate::failure::{Attempt as _, Failure, Kind};
use crate::registry::{self, Recorded};
use crate::repository::Repository;
use crate::secrets::{self, Place};

/// How many approvals one repository may have.
pub(crate) const MOST: usize = 256;

/// One approved reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    name: String,
    /// `env://…` or `file://…`, as the repository writes it.
    reference: String,
    /// The file that the reference led to when it was approved, canonical: a link in the repository
    /// must not turn the approval into one of another file.
    file: Option<PathBuf>,
}

/// One reference that a repository asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) reference: String,
    pub(crate) state: SecretState,
    /// The file it leads to now.
    pub(crate) file: Option<PathBuf>,
}

impl Request {
    /// What the reference reads, in words.
    pub(crate) fn source(&self) -> String {
        match (&self.file, self.reference.strip_prefix("env://")) {
            (Some(file), _) => format!("the file {}", file.display()),
            (None, Some(variable)) => format!("the variable {variable}"),
            (None, None) => format!("{} (not available)", self.reference),
        }
    }
}

/// The state of each of `references` (`NAME=REFERENCE`), for a repository with these approvals.
fn requests(references: &[String], top: &Path, approvals: &[Approval]) -> Vec<Request> {
    let pairs = references.iter().filter_map(|reference| reference.split_once('='));
    let request = |(name, reference): (&str, &str)| {
        let file = match secrets::place(reference, top) {
            Ok(Place::File(file)) => Some(file),
            _ => None,
        };
        let mut of_name = approvals.iter().filter(|approval| approval.name == name).peekable();
        let is_new = of_name.peek().is_none();
        let approved =
            of_name.any(|approval| approval.reference == reference && approval.file == file);
        let state = match (approved, is_new) {
            (true, _) => SecretState::Allowed,
            (false, true) => SecretState::Pending,
            (false, false) => SecretState::Changed,
        };
        Request { name: name.to_owned(), reference: reference.to_owned(), state, file }
    };
    pairs.map(request).collect()
}

impl Environments {
    /// The requests of `references`, each with its state.
    pub(crate) fn requests(
        &self,
        repository: &Repository,
        references: &[String],
    ) -> Result<Vec<Request>, Failure> {
        let recorded = self.recorded(repository)?;
        Ok(requests(references, &repository.top, &recorded.approvals))
    }

    fn recorded(&self, repository: &Repository) -> Result<Recorded, Failure> {
        registry::required(self.settings.registry())?.find(&repository.top)
    }

    /// Name and value of all `references`, if all of them are approved.
    pub(crate) fn resolve_secrets(
        &self,
        repository: &Repository,
        references: &[String],
    ) -> Result<BTreeMap<String, String>, Failure> {
        if references.is_empty() {
            return Ok(BTreeMap::new());
        }
        let requests = self.requests(repository, references)?;
        let refused: Vec<&Request> =
            requests.iter().filter(|request| request.state != SecretState::Allowed).collect();
        if !refused.is_empty() {
            return Err(not_allowed(&repository.top, &refused));
        }
        let value = |request: Request| {
            let value = secrets::read(&request.name, &request.reference, &repository.top)?;
            Ok((request.name, value))
        };
        requests.into_iter().map(value).collect()
    }

    /// The references that a call on `source` needs and the user has not approved: those of the
    /// environment `id`, or those of a new one.
    pub(crate) async fn pending_secrets(
        &self,
        source: &Path,
        id: Option<&str>,
    ) -> Result<(Repository, Vec<Request>), Failure> {
        let repository = self.repository(source).await?;
        let mut requests = match id {
            Some(id) => {
                let environment = self.environment(source, id).await?;
                self.requests(&repository, &environment.state.config.secrets)?
            }
            None => self.requested(&repository)?,
        };
        requests.retain(|request| request.state != SecretState::Allowed);
        Ok((repository, requests))
    }

    /// The references that the repository's `environment.json` asks for now.
    fn requested(&self, repository: &Repository) -> Result<Vec<Request>, Failure> {
        let config = EnvironmentConfig::read(&repository.top, None, &self.settings.default_image)?;
        self.requests(repository, &config.secrets)
    }

    /// The secrets that a repository asks for, and those that were approved and are not asked for.
    pub fn secrets(&self, repository: &Repository) -> Result<Vec<SecretView>, Failure> {
        let requested = self.requested(repository)?;
        let mut views: Vec<SecretView> = requested.iter().map(view).collect();
        for approval in self.recorded(repository)?.approvals {
            let is_listed = |view: &SecretView| {
                (&view.name, &view.reference) == (&approval.name, &approval.reference)
            };
            if !views.iter().any(is_listed) {
                views.push(SecretView {
                    name: approval.name,
                    reference: approval.reference,
                    file: approval.file.map(|file| file.to_string_lossy().into_owned()),
                    state: SecretState::Unused,
                });
            }
        }
        Ok(views)
    }

    /// Approves the requested references for which `is_meant` holds. Gives them.
    pub fn allow_secrets(
        &self,
        repository: &Repository,
        is_meant: impl Fn(&str, &str) -> bool,
    ) -> Result<Vec<SecretView>, Failure> {
        let mut requested = self.requested(repository)?;
        requested.retain(|request| is_meant(&request.name, &request.reference));
        self.approve(repository, &requested)?;
        let allowed =
            |request: &Request| SecretView { state: SecretState::Allowed, ..view(request) };
        Ok(requested.iter().map(allowed).collect())
    }

    pub(crate) fn approve(
        &self,
        repository: &Repository,
        requests: &[Request],
    ) -> Result<(), Failure> {
        let mut approvals = Vec::new();
        for Request { name, reference, file, .. } in requests {
            // Only what can be resolved now is approved: a file that appears later may be any.
            let place = secrets::place(reference, &repository.top);
            place.map_err(|why| secrets::not_there(name, reference, &why))?;
            let (name, reference) = (name.clone(), reference.clone());
            approvals.push(Approval { name, reference, file: file.clone() });
        }
        self.change_approvals(repository, |all| {
            all.retain(|old| {
                let is_same =
                    |new: &Approval| (&new.name, &new.reference) == (&old.name, &old.reference);
                !approvals.iter().any(is_same)
            });
            all.extend(approvals);
        })
    }

    /// Removes the approvals for which `is_meant` holds. Gives their names and references.
    pub fn revoke_secrets(
        &self,
        repository: &Repository,
        is_meant: impl Fn(&str, &str) -> bool,
    ) -> Result<Vec<(String, String)>, Failure> {
        let mut revoked = Vec::new();
        self.change_approvals(repository, |all| {
            all.retain(|approval| {
                let stays = !is_meant(&approval.name, &approval.reference);
                if !stays {
                    revoked.push((approval.name.clone(), approval.reference.clone()));
                }
                stays
            });
        })?;
        Ok(revoked)
    }

    fn change_approvals(
        &self,
        repository: &Repository,
        change: impl FnOnce(&mut Vec<Approval>),
    ) -> Result<(), Failure> {
        let registry = registry::required(self.settings.registry())?;
        let changed = registry.change_approvals(&repository.top, change);
        if changed.attempting("secrets", "could not write the record of repositories")? {
            return Ok(());
        }
        let message = format!("{} has more than {MOST} approved secrets", repository.top.display());
        let recovery = "revoke some of them: `cofer env allow --revoke NAME`.";
        Err(Failure::new(Kind::LimitExceeded, "secrets", message, recovery))
    }
}

fn view(request: &Request) -> SecretView {
    SecretView {
        name: request.name.clone(),
        reference: request.reference.clone(),
        file: request.file.as_ref().map(|file| file.to_string_lossy().into_owned()),
        state: request.state,
    }
}

fn not_allowed(top: &Path, refused: &[&Request]) -> Failure {
    let list = refused.iter().map(|request| {
        let changed = if request.state == SecretState::Changed {
            ", changed since another was allowed"
        } else {
            ""
        };
        format!("{} ({}{changed})", request.name, request.reference)
    });
    let list = list.collect::<Vec<_>>().join(", ");
    let message =
        format!("{} asks for secrets that the user has not allowed: {list}", top.display());
    let names = refused.iter().map(|request| request.name.as_str()).collect::<Vec<_>>().join(" ");
    let recovery = format!(
        "ask the user to run `cofer env allow -C {} {names}`, or to allow them on the console's page Environments, then try again.",
        quoted(top)
    );
    Failure::new(Kind::PreconditionFailed, "secrets", message, recovery)
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
mod tests;
