//! Whether the data directory can be used and nobody else can read it.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::Access;

use super::{Check, Level};

const DIRECTORY: &str = "data directory";
const TOKEN: &str = "token";

pub(super) fn check(path: &Path) -> Vec<Check> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(metadata) => {
            let directory = check_directory(path, &metadata);
            let token = (directory.level != Level::Broken).then(|| check_token(path));
            [Some(directory), token].into_iter().flatten().collect()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let message = format!("{shown} is not there yet; `cofer serve` makes it");
            vec![Check::new(DIRECTORY, Level::Missing, message)]
        }
        Err(error) => {
            vec![Check::new(DIRECTORY, Level::Broken, format!("{shown} cannot be read: {error}"))]
        }
    }
}

fn check_directory(path: &Path, metadata: &Metadata) -> Check {
    let shown = path.display();
    let user = rustix::process::geteuid().as_raw();
    let mode = metadata.permissions().mode() & 0o777;
    let broken = |message: String| {
        Check::new(DIRECTORY, Level::Broken, message)
            .hint("name another with `--data-dir` or COFER_DATA_DIR.")
    };
    if !metadata.is_dir() {
        broken(format!("{shown} is not a directory"))
    } else if metadata.uid() != user {
        broken(format!("{shown} belongs to user {}, and you are {user}", metadata.uid()))
    } else if rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
        .is_err()
    {
        broken(format!("{shown} cannot be written"))
    } else if mode & 0o077 != 0 {
        Check::new(DIRECTORY, Level::Warning, format!("{shown} has mode {mode:04o}: others see in"))
            .hint(format!("chmod 700 {shown}"))
    } else {
        Check::new(DIRECTORY, Level::Ok, shown.to_string())
    }
}

fn check_token(directory: &Path) -> Check {
    let path = directory.join("token");
    let shown = path.display();
    match fs::metadata(&path) {
        Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
            Check::new(TOKEN, Level::Warning, format!("{shown} can be read by others"))
                .hint(format!("rm {shown}; the daemon makes a new one when it is started again."))
        }
        Ok(_) => Check::new(TOKEN, Level::Ok, "private"),
        Err(_) => Check::new(TOKEN, Level::Missing, "none yet; `cofer serve` makes one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(path: &Path) -> Vec<Level> {
        check(path).iter().map(|check| check.level).collect()
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_private_directory_with_a_private_token_is_well() {
        let dir = tempfile::tempdir().unwrap();
        chmod(dir.path(), 0o700);
        assert_eq!(levels(dir.path()), [Level::Ok, Level::Missing]);
        let token = dir.path().join("token");
        fs::write(&token, "t").unwrap();
        chmod(&token, 0o600);
        assert_eq!(levels(dir.path()), [Level::Ok, Level::Ok]);
    }

    #[test]
    fn what_others_can_read_is_a_warning() {
        // covers: MGR-58
        let dir = tempfile::tempdir().unwrap();
        chmod(dir.path(), 0o755);
        let token = dir.path().join("token");
        fs::write(&token, "t").unwrap();
        chmod(&token, 0o644);
        assert_eq!(levels(dir.path()), [Level::Warning, Level::Warning]);
    }

    #[test]
    fn no_directory_is_no_fault_and_a_file_in_its_place_is() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(levels(&dir.path().join("none")), [Level::Missing]);
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(levels(&file), [Level::Broken]);
    }
}
