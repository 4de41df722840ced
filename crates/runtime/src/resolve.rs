//! Finds the program a command names, the way a shell would, before anything is started:
//! so that a wrong command is told with its reason and not as "os error 2".

use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Searched where no `PATH` is set at all.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why a command names no program that can be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Nothing of that name.
    #[error("`{program}` was not found{}", place(searched))]
    NotFound {
        /// The command as it was given.
        program: String,
        /// The directories of `PATH` that were searched; empty where the command is a path.
        searched: Vec<PathBuf>,
    },
    /// A file that may not be executed.
    #[error("`{}` is not executable", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// A directory, or something else that is not a file.
    #[error("`{}` is a directory, not a program", path.display())]
    IsDirectory {
        /// The directory.
        path: PathBuf,
    },
}

fn place(searched: &[PathBuf]) -> String {
    if searched.is_empty() {
        return String::new();
    }
    let searched: Vec<_> = searched.iter().map(|path| path.display().to_string()).collect();
    format!(" on PATH ({})", searched.join(":"))
}

/// The program's path: `program` itself where it has a slash (relative to `cwd`, where the
/// server will run), else the first executable file of that name on `path_var`.
pub fn resolve(
    program: &str,
    path_var: Option<&std::ffi::OsStr>,
    cwd: &Path,
) -> Result<PathBuf, ResolveError> {
    if program.contains('/') {
        return executable(cwd.join(program), program);
    }
    let path_var = path_var.unwrap_or(DEFAULT_PATH.as_ref());
    // An empty entry means the current directory, as in a shell.
    let searched: Vec<PathBuf> =
        std::env::split_paths(path_var).map(|directory| cwd.join(directory)).collect();
    let mut refusal = None;
    if !program.is_empty() {
        for directory in &searched {
            match executable(directory.join(program), program) {
                Ok(path) => return Ok(path),
                Err(ResolveError::NotFound { .. }) => {}
                Err(other) => refusal = refusal.or(Some(other)),
            }
        }
    }
    Err(refusal.unwrap_or(ResolveError::NotFound { program: program.to_owned(), searched }))
}

/// `path`, where it is a file that this user may execute.
fn executable(path: PathBuf, program: &str) -> Result<PathBuf, ResolveError> {
    let Ok(metadata) = path.metadata() else {
        return Err(ResolveError::NotFound { program: program.to_owned(), searched: Vec::new() });
    };
    if metadata.is_dir() {
        return Err(ResolveError::IsDirectory { path });
    }
    if !metadata.is_file() || rustix::fs::access(&path, Access::EXEC_OK).is_err() {
        return Err(ResolveError::NotExecutable { path });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A directory with the program `run`, the plain file `data`, and the directory `folder`.
    fn place_with_files() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(place.path().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.path().join("data"), "").unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        place
    }

    #[test]
    fn a_bare_name_is_searched_on_the_given_path_only() {
        let place = place_with_files();
        let path = std::env::join_paths([Path::new("/nowhere"), place.path()]).unwrap();
        let found = resolve("run", Some(&path), Path::new("/"));
        assert_eq!(found, Ok(place.path().join("run")));

        let missing = resolve("sh", Some(&path), Path::new("/")).unwrap_err();
        let text = missing.to_string();
        assert!(text.starts_with("`sh` was not found on PATH (/nowhere:"), "{text}");
    }

    #[test]
    fn a_path_is_taken_as_it_is_or_relative_to_the_directory_of_the_server() {
        let place = place_with_files();
        let run = place.path().join("run");
        assert_eq!(resolve(run.to_str().unwrap(), None, Path::new("/")), Ok(run.clone()));
        assert_eq!(resolve("./run", None, place.path()).map(|path| path.is_file()), Ok(true));
        assert!(matches!(
            resolve("./absent", None, place.path()),
            Err(ResolveError::NotFound { program, searched })
                if program == "./absent" && searched.is_empty()
        ));
    }

    #[test]
    fn what_is_there_but_cannot_run_is_named_with_the_reason() {
        let place = place_with_files();
        let path = Some(place.path().as_os_str());
        for (program, expected) in [
            ("data", ResolveError::NotExecutable { path: place.path().join("data") }),
            ("folder", ResolveError::IsDirectory { path: place.path().join("folder") }),
        ] {
            assert_eq!(resolve(program, path, Path::new("/")), Err(expected));
        }
    }

    #[test]
    fn no_name_is_no_program() {
        assert!(matches!(resolve("", None, Path::new("/")), Err(ResolveError::NotFound { .. })));
    }
}
