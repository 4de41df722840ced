//! `environment.json`: what a repository asks of its environments. Ours, else container-use's.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use cofer_model::Provider;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind};

/// Where it is looked for, in this order.
const FILES: [&str; 2] = [".cofer/environment.json", ".container-use/environment.json"];

const LONGEST: u64 = 1024 * 1024;

pub(crate) const DEFAULT_WORKDIR: &str = "/workdir";

/// What a repository asks of its environments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct EnvironmentConfig {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) workdir: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) base_image: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) setup_commands: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) install_commands: Vec<String>,
    /// `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) env: Vec<String>,
    /// `NAME=env://…` or `NAME=file://…`: never a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) secrets: Vec<String>,
    /// The isolation provider: a repository can ask for a stronger one than the user's setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<Provider>,
    /// What we do not have; told, not run.
    #[serde(skip_serializing)]
    pub(crate) services: Vec<serde_json::Value>,
}

impl EnvironmentConfig {
    /// What the repository at `top` asks, with the defaults filled in.
    pub(crate) fn read(
        top: &Path,
        image: Option<&str>,
        default_image: &str,
    ) -> Result<Self, Failure> {
        let mut config = Self::default();
        for name in FILES {
            if let Some(found) = read_file(top, name)? {
                config = found;
                break;
            }
        }
        if let Some(image) = image {
            image.clone_into(&mut config.base_image);
        }
        if config.base_image.is_empty() {
            default_image.clone_into(&mut config.base_image);
        }
        if config.workdir.is_empty() {
            DEFAULT_WORKDIR.clone_into(&mut config.workdir);
        }
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Failure> {
        check_workdir(&self.workdir)?;
        let image = &self.base_image;
        if let Some(why) = cofer_model::wrong_image(image) {
            return Err(wrong(format!("the image {image:?} {why}")));
        }
        for pair in self.env.iter().chain(&self.secrets) {
            let name = pair.split_once('=').map(|(name, _)| name).unwrap_or_default();
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(fits) || pair.contains('\0') {
                return Err(wrong("an entry of `env` or `secrets` is not NAME=value".to_owned()));
            }
        }
        // References are shown to the user for approval.
        if self.secrets.iter().any(|pair| pair.chars().any(char::is_control)) {
            return Err(wrong("an entry of `secrets` has a control character".to_owned()));
        }
        if self
            .setup_commands
            .iter()
            .chain(&self.install_commands)
            .any(|command| command.contains('\0'))
        {
            return Err(wrong("a command holds a NUL byte".to_owned()));
        }
        Ok(())
    }
}

fn check_workdir(workdir: &str) -> Result<(), Failure> {
    let parts = || workdir.split('/').skip(1);
    let plain = workdir.starts_with('/')
        && parts().all(|part| !part.is_empty() && part != "." && part != "..");
    let first = parts().next().unwrap_or_default();
    let taken = ["proc", "sys", "dev", ".cofer"].contains(&first);
    if !plain || taken || workdir.chars().any(char::is_control) {
        return Err(wrong(format!(
            "the workdir {workdir:?} is not a folder of its own in the container"
        )));
    }
    Ok(())
}

fn wrong(message: String) -> Failure {
    let recovery = "ask the user to correct .cofer/environment.json (or the `image` argument); nothing was made.";
    Failure::new(Kind::InvalidRequest, "config", message, recovery)
}

fn read_file(top: &Path, name: &str) -> Result<Option<EnvironmentConfig>, Failure> {
    let failed = |why: &dyn std::fmt::Display| wrong(format!("could not read {name}: {why}"));
    let path = match fs::canonicalize(top.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| failed(&error))?,
    };
    // A link that the repository brought must not show parts of a foreign file in messages.
    let is_inside = fs::canonicalize(top).is_ok_and(|top| path.starts_with(top));
    if !is_inside || !path.is_file() {
        return Err(failed(&"it is not a file of the repository"));
    }
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text));
    read.map_err(|error| failed(&error))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("{name} is longer than {LONGEST} bytes")));
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)], image: Option<&str>) -> Result<EnvironmentConfig, Failure> {
        let top = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::create_dir_all(top.path().join(name).parent().unwrap()).unwrap();
            fs::write(top.path().join(name), text).unwrap();
        }
        EnvironmentConfig::read(top.path(), image, "default:1")
    }

    #[test]
    fn ours_counts_before_container_uses_and_an_argument_before_both() {
        let ours = (FILES[0], r#"{"base_image": "ours:1", "env": ["A=1"]}"#);
        let theirs = (FILES[1], r#"{"base_image": "theirs:1", "workdir": "/src"}"#);
        assert_eq!(read(&[], None).unwrap().base_image, "default:1");
        assert_eq!(read(&[], None).unwrap().workdir, DEFAULT_WORKDIR);
        assert_eq!(read(&[ours, theirs], None).unwrap().base_image, "ours:1");
        assert_eq!(read(&[theirs], None).unwrap().workdir, "/src");
        let asked = read(&[ours, theirs], Some("mine:2")).unwrap();
        assert_eq!((asked.base_image.as_str(), asked.env.len()), ("mine:2", 1));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "{",
            r#"{"workdir": "src"}"#,
            r#"{"workdir": "/"}"#,
            r#"{"workdir": "/a/../b"}"#,
            r#"{"workdir": "/proc/x"}"#,
            r#"{"base_image": "--privileged"}"#,
            r#"{"env": ["NOVALUE"]}"#,
            r#"{"env": ["A B=1"]}"#,
            r#"{"secrets": ["=env://X"]}"#,
            r#"{"secrets": ["A=file://a\nb"]}"#,
            r#"{"setup_commands": ["a\u0000b"]}"#,
            r#"{"provider": "kata"}"#,
        ] {
            assert!(read(&[(FILES[0], text)], None).is_err(), "{text}");
        }
        for image in ["-v", "oci-archive:/tmp/x.tar", "dir:layout", "docker-archive:x.tar", "a b"] {
            let failure = read(&[], Some(image)).unwrap_err();
            assert_eq!(failure.kind, Kind::InvalidRequest, "{image}");
        }
    }

    #[test]
    fn a_link_to_a_file_outside_of_the_repository_is_not_read() {
        let (top, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let foreign = outside.path().join("secret.json");
        fs::write(&foreign, r#"{"env": "s3cret"}"#).unwrap();
        fs::create_dir(top.path().join(".cofer")).unwrap();
        let link = top.path().join(FILES[0]);
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        let failure = EnvironmentConfig::read(top.path(), None, "default:1").unwrap_err();
        assert!(!failure.message.contains("s3cret"), "{failure}");
        fs::remove_file(&link).unwrap();
        fs::write(top.path().join("shared.json"), r#"{"base_image": "ours:1"}"#).unwrap();
        std::os::unix::fs::symlink("../shared.json", &link).unwrap();
        let config = EnvironmentConfig::read(top.path(), None, "default:1").unwrap();
        assert_eq!(config.base_image, "ours:1");
    }
}
