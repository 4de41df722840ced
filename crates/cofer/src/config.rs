//! Where things are: the data directory, the daemon's address and its token. The one place that
//! reads them from flags, environment and files.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where the daemon listens unless it was told otherwise.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:8787";

/// The data directory: as given, else where the XDG rules put it.
pub(crate) fn data_dir(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let var = |name| env::var_os(name).map(PathBuf::from);
    resolve_data_dir(given, var("XDG_DATA_HOME"), var("HOME")).ok_or_else(|| {
        Failure::new("there is no place for the data directory")
            .caused_by("neither XDG_DATA_HOME nor HOME is set")
            .hint("give one with `--data-dir DIR` or COFER_DATA_DIR.")
    })
}

/// Podman's program.
pub(crate) fn podman() -> PathBuf {
    let given = env::var_os("COFER_PODMAN").filter(|program| !program.is_empty());
    given.map_or_else(|| PathBuf::from("podman"), PathBuf::from)
}

/// The XDG rules: a path that is not absolute counts as not set.
fn resolve_data_dir(
    given: Option<&Path>,
    xdg_data_home: Option<PathBuf>,
    home: Option<PathBuf>,
) -> Option<PathBuf> {
    if let Some(given) = given.filter(|path| !path.as_os_str().is_empty()) {
        return std::path::absolute(given).ok();
    }
    xdg_data_home
        .filter(|path| path.is_absolute())
        .or_else(|| home.filter(|path| path.is_absolute()).map(|home| home.join(".local/share")))
        .map(|base| base.join("cofer"))
}

/// How to reach the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Such as `http://127.0.0.1:8787`.
    pub(crate) url: String,
    /// The daemon's `--public-url`, for links.
    pub(crate) public_url: Option<String>,
    /// None where nobody has made one yet.
    pub(crate) token: Option<String>,
    /// Where the token is kept, for messages.
    pub(crate) token_file: PathBuf,
    /// Why the daemon of the data directory was not found; none where it was, or where its
    /// address was given. Nothing is sent then: another program may listen at `url`.
    pub(crate) absent: Option<String>,
}

impl Target {
    /// By flags and environment, else by the daemon of the data directory itself.
    pub(crate) fn find(data_dir: &Path, url: Option<&str>) -> Result<Self, Failure> {
        let token = env::var("COFER_TOKEN").ok();
        Self::resolve(data_dir, url, token)
    }

    fn resolve(data_dir: &Path, url: Option<&str>, token: Option<String>) -> Result<Self, Failure> {
        let given = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let (url, public_url, absent) = match url.map(str::to_owned).and_then(given) {
            Some(url) => (url, None, None),
            None => match cofer_daemon::find_daemon(data_dir) {
                Ok(daemon) => (daemon.url, daemon.public_url, None),
                Err(error) => (format!("http://{DEFAULT_LISTEN}"), None, Some(error.to_string())),
            },
        };
        let token_file = data_dir.join("token");
        let token = match token.and_then(given) {
            Some(token) => Some(token),
            None => read(&token_file, "the daemon's token")?.and_then(given),
        };
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, public_url, token, token_file, absent })
    }

    /// The link that opens the console, signed in.
    pub(crate) fn console_link(&self) -> Option<String> {
        let url = self.public_url.as_ref().unwrap_or(&self.url);
        self.token.as_ref().map(|token| format!("{url}/#token={token}"))
    }
}

/// The file's text, or none where there is no such file.
fn read(path: &Path, what: &str) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Failure::new(format!("could not read {what} from `{}`", path.display()))
                .caused_by(error)
                .hint("run the command as the user that runs the daemon, or name its data directory with `--data-dir`."))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_data_directory_follows_the_xdg_rules() {
        let path = |text: &str| Some(PathBuf::from(text));
        let home = path("/home/me");
        for (given, xdg, expected) in [
            (Some("/srv/cofer"), path("/x"), path("/srv/cofer")),
            (Some(""), path("/x"), path("/x/cofer")),
            (None, path("relative"), path("/home/me/.local/share/cofer")),
            (None, None, path("/home/me/.local/share/cofer")),
        ] {
            assert_eq!(resolve_data_dir(given.map(Path::new), xdg, home.clone()), expected);
        }
        assert_eq!(resolve_data_dir(None, None, None), None);
    }

    #[test]
    fn a_relative_data_directory_is_made_absolute() {
        let found = resolve_data_dir(Some(Path::new("here")), None, None).unwrap();
        assert_eq!(found, env::current_dir().unwrap().join("here"));
    }

    #[test]
    fn the_address_is_the_flags_or_the_running_daemons_and_never_that_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let target = |given| Target::resolve(dir.path(), given, None).unwrap();
        fs::write(dir.path().join("address"), "http://127.0.0.1:4321\n").unwrap();
        assert!(target(None).absent.is_some());
        assert_eq!(target(None).url, "http://127.0.0.1:8787");
        assert_eq!(target(Some("http://localhost:1/")).url, "http://localhost:1");
        assert_eq!(target(Some("http://localhost:1/")).absent, None);

        let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2 {
                    let (mut stream, _) = listener.accept().unwrap();
                    stream.write_all(br#"{"url": "http://127.0.0.1:77"}"#).unwrap();
                }
            });
            for given in [None, Some("")] {
                let found = target(given);
                assert_eq!((found.url.as_str(), found.absent), ("http://127.0.0.1:77", None));
            }
        });
    }

    #[test]
    fn the_token_is_the_environments_then_the_files() {
        let dir = tempfile::tempdir().unwrap();
        let target = |token: Option<&str>| {
            Target::resolve(dir.path(), None, token.map(str::to_owned)).unwrap()
        };
        assert_eq!(target(None).token, None);
        assert_eq!(target(None).console_link(), None);
        fs::write(dir.path().join("token"), "from-file\n").unwrap();
        assert_eq!(target(None).token.as_deref(), Some("from-file"));
        assert_eq!(target(Some("given")).token.as_deref(), Some("given"));
        let link = target(None).console_link().unwrap();
        assert_eq!(link, "http://127.0.0.1:8787/#token=from-file");
    }

    #[test]
    fn a_token_that_cannot_be_read_is_said_by_its_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("token")).unwrap();
        let failure = Target::resolve(dir.path(), None, None).unwrap_err();
        assert!(failure.render().contains("could not read the daemon's token from"));
    }
}
