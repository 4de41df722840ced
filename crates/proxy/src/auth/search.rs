//! Where Application Default Credentials are looked for, in the order of AIP-4110: the file that
//! the environment names, the file that gcloud writes, the metadata server.

use std::fmt;
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::FileError;
use super::exchange::Exchange;
use super::file;
use super::hints;
use super::metadata::Metadata;
use super::source::Source;

const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
const FILE_NAME: &str = "application_default_credentials.json";

/// There are no credentials that can be used: everything that was looked for, and what to do.
#[derive(Debug, Clone)]
pub struct NotFound {
    /// What was looked for, in order, and what was found.
    pub looked: Vec<Looked>,
    /// What to do next.
    pub hint: String,
}

/// One place where credentials could be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// The place.
    pub place: String,
    /// What was there.
    pub outcome: String,
}

impl fmt::Display for NotFound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no Google credentials that can be used were found")?;
        for Looked { place, outcome } in &self.looked {
            write!(formatter, "\n  {place}: {outcome}")?;
        }
        Ok(())
    }
}

impl std::error::Error for NotFound {}

/// Where credentials are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// The file that `GOOGLE_APPLICATION_CREDENTIALS` names.
    Named(PathBuf),
    /// The file that gcloud writes.
    WellKnown(PathBuf),
    Metadata(Metadata),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(path) => write!(formatter, "{VARIABLE}={}", path.display()),
            Self::WellKnown(path) => write!(formatter, "{}", path.display()),
            Self::Metadata(metadata) => write!(formatter, "metadata server at {}", metadata.host),
        }
    }
}

impl Place {
    /// What is there now; a file may have changed since the last time.
    pub(crate) fn open(&self) -> Result<Source, FileError> {
        match self {
            Self::Named(path) | Self::WellKnown(path) => file::read(path),
            Self::Metadata(metadata) => Ok(Source::Metadata(metadata.clone())),
        }
    }
}

/// The files, in order. The first that is there decides, and one that is named must be there.
pub(crate) fn files(environment: &Environment) -> Result<Place, Vec<Looked>> {
    let mut looked = Vec::new();
    match environment.path(VARIABLE) {
        Some(path) => return Ok(Place::Named(path)),
        None => looked.push(Looked { place: VARIABLE.to_owned(), outcome: "not set".to_owned() }),
    }
    let Some(path) = well_known(environment) else {
        let outcome = "neither HOME nor CLOUDSDK_CONFIG is set".to_owned();
        looked.push(Looked { place: format!("gcloud's {FILE_NAME}"), outcome });
        return Err(looked);
    };
    // Anything but its absence is told when it is read.
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let place = path.display().to_string();
            looked.push(Looked { place, outcome: "no such file".to_owned() });
            Err(looked)
        }
        _ => Ok(Place::WellKnown(path)),
    }
}

fn well_known(environment: &Environment) -> Option<PathBuf> {
    let folder = environment
        .path("CLOUDSDK_CONFIG")
        .or_else(|| Some(environment.path("HOME")?.join(".config").join("gcloud")));
    Some(folder?.join(FILE_NAME))
}

/// All places, in order.
pub(crate) async fn find(
    environment: &Environment,
    exchange: &Exchange,
) -> Result<Place, NotFound> {
    let mut looked = match files(environment) {
        Ok(place) => return Ok(place),
        Err(looked) => looked,
    };
    let outcome = match Metadata::at(environment) {
        Ok(metadata) => match metadata.is_there(exchange).await {
            Ok(()) => return Ok(Place::Metadata(metadata)),
            Err(outcome) => {
                let place = Place::Metadata(metadata).to_string();
                Looked { place, outcome }
            }
        },
        Err(reason) => Looked { place: "metadata server".to_owned(), outcome: reason.to_owned() },
    };
    looked.push(outcome);
    Err(NotFound { looked, hint: hints::not_found() })
}

/// Credentials that are there and cannot be used.
pub(crate) fn unusable(place: &Place, error: &FileError) -> NotFound {
    let mut hint = hints::file(error);
    if let Place::Named(path) = place
        && path.starts_with(Path::new("~"))
    {
        hint = format!("write the path of {VARIABLE} in full: nobody has replaced its `~`.");
    }
    let looked = vec![Looked { place: place.to_string(), outcome: error.to_string() }];
    NotFound { looked, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<String, Vec<String>> {
        let environment = Environment::of(variables.iter().copied());
        files(&environment).map(|place| place.to_string()).map_err(|looked| {
            looked.into_iter().map(|l| format!("{}: {}", l.place, l.outcome)).collect()
        })
    }

    #[test]
    fn files_are_looked_for_in_order() {
        // covers: PRX-2.1, PRX-6.4
        let home = tempfile::tempdir().unwrap();
        let home_text = home.path().to_str().unwrap();
        let folder = home.path().join(".config/gcloud");
        std::fs::create_dir_all(&folder).unwrap();
        let (here, other) = (folder.join(FILE_NAME), home.path().join(FILE_NAME));
        for path in [&here, &other] {
            std::fs::write(path, "{}").unwrap();
        }
        let (here, other) = (here.display().to_string(), other.display().to_string());
        assert_eq!(found(&[("HOME", home_text)]), Ok(here.clone()));
        assert_eq!(found(&[("HOME", home_text), (VARIABLE, "")]), Ok(here.clone()));
        assert_eq!(found(&[("HOME", home_text), ("CLOUDSDK_CONFIG", home_text)]), Ok(other));
        assert_eq!(found(&[("HOME", home_text), ("CLOUDSDK_CONFIG", "")]), Ok(here));
        assert_eq!(
            found(&[("HOME", home_text), (VARIABLE, "/not/there")]),
            Ok(format!("{VARIABLE}=/not/there"))
        );
    }

    #[test]
    fn what_was_looked_for_is_told() {
        // covers: PRX-2.3
        assert_eq!(
            found(&[("HOME", "/not/there")]),
            Err(vec![
                format!("{VARIABLE}: not set"),
                format!("/not/there/.config/gcloud/{FILE_NAME}: no such file"),
            ])
        );
        assert_eq!(found(&[]).unwrap_err().len(), 2);
    }
}
