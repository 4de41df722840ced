//! Images: whether one is here, and bringing it here, as a step of its own that tells how far
//! it is and can be given up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use super::Podman;
use super::client::{CLIENT_OF, MAX_COMPLAINT, PATIENCE};
use super::complaint;
use super::error::PodmanError;

/// What is added to a pulling client's mark, so that the guard need not wait for it.
pub(crate) const PULLING: &str = "/pull";

/// The longest line of progress that is told.
const MAX_LINE: usize = 400;

/// An image on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// The digest of its manifest, where it has one.
    pub digest: Option<String>,
}

impl Podman {
    /// The image, where it is on this machine.
    pub async fn image(&self, reference: &str) -> Result<Option<Image>, PodmanError> {
        check(reference)?;
        self.info().await?;
        let args = ["image", "inspect", "--format={{.Id}} {{.Digest}}", reference];
        let answer = self.watched(self.inner.client.run(&args, PATIENCE).await)?;
        if answer.status.success() {
            return Ok(Some(Image::parse(&String::from_utf8_lossy(&answer.stdout))));
        }
        let error = complaint::of_run("", reference, &answer.stderr);
        if matches!(error, PodmanError::ImageMissing { .. }) {
            return Ok(None);
        }
        Err(complaint::general("image inspect", &answer.stderr))
    }

    /// Brings an image here, or up to date, and tells each step in a line. Dropping the future
    /// gives it up.
    pub async fn pull(
        &self,
        reference: &str,
        mut progress: impl FnMut(&str) + Send,
    ) -> Result<Image, PodmanError> {
        check(reference)?;
        self.info().await?;
        let mut environment: BTreeMap<OsString, OsString> =
            (*self.inner.client.environment).clone();
        environment.insert(CLIENT_OF.into(), format!("{}{PULLING}", self.inner.daemon).into());
        self.guard().await?;
        let args = ["--log-level=error", "pull", reference];
        let client = &self.inner.client;
        let mut running = client.spawn(&args, &environment, Stdio::null(), None)?;
        let stdout = running.child.stdout.take();
        let mut said = String::new();
        if let Some(stderr) = running.child.stderr.take() {
            let mut lines = BufReader::new(stderr.take(MAX_COMPLAINT)).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let line = line.trim();
                if !line.is_empty() {
                    progress(&line.chars().take(MAX_LINE).collect::<String>());
                }
                said.push_str(line);
                said.push('\n');
            }
        }
        let (_, status) =
            tokio::join!(super::client::read_some(stdout, MAX_COMPLAINT), running.child.wait());
        if !status.is_ok_and(|status| status.success()) {
            return Err(complaint::of_pull(reference, &said));
        }
        let image = self.image(reference).await?;
        image.ok_or_else(|| PodmanError::ImageMissing { image: reference.to_owned() })
    }
}

impl Image {
    fn parse(text: &str) -> Self {
        let mut words = text.split_ascii_whitespace();
        let id = words.next().unwrap_or_default();
        let id = id.strip_prefix("sha256:").unwrap_or(id).to_owned();
        let digest = words.next().filter(|digest| digest.contains(':')).map(str::to_owned);
        Self { id, digest }
    }
}

/// A reference that could be taken for an option is none.
fn check(reference: &str) -> Result<(), PodmanError> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if reference.is_empty() || reference.starts_with('-') || reference.contains(is_odd) {
        let what = format!("the image {reference:?}");
        return Err(PodmanError::BadPlan { what, why: "it is not the name of one" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_read_with_and_without_a_digest() {
        let image = Image::parse("sha256:abc sha256:def\n");
        assert_eq!((image.id.as_str(), image.digest.as_deref()), ("abc", Some("sha256:def")));
        assert_eq!(Image::parse("abc <none>\n").digest, None);
    }
}
