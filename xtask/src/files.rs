//! The files of the project: what git tracks, and what it would if it were added now.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Paths relative to `root`, sorted; files that are deleted but not yet committed are left out.
pub(crate) fn of_project(root: &Path) -> io::Result<Vec<PathBuf>> {
    #[expect(clippy::disallowed_methods, reason = "a chore, not the product: it asks git")]
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut paths: Vec<PathBuf> = names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root.join(path).is_file())
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The text of a file, or nothing where it is not text.
pub(crate) fn text(root: &Path, path: &Path) -> io::Result<Option<String>> {
    Ok(String::from_utf8(fs::read(root.join(path))?).ok())
}
