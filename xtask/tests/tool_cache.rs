//! The cache of test tools (`scripts/lib.sh`): two checkouts install a tool once, a failed
//! installation starts over, and folders that no checkout uses any more are removed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, SystemTime};

/// Stands in for npm, python3, pip and cargo: logs its arguments and creates the file that it would install.
/// It fails as long as there is a file `broken`.
const INSTALLER: &str = r#"#!/bin/bash
set -eu
world=${0%/*/*}
name=${0##*/}
run() {
  echo "$*" >>"$world/log"
  sleep 0.2
}
case "$name $1" in
'npm ci')
  run "npm ci"
  mkdir -p "$3/node_modules"
  [ ! -e "$world/broken" ] || exit 1
  cp "$3/package-lock.json" "$3/node_modules/installed"
  ;;
'python3 -VV') echo 'Python 3.99' ;;
'python3 -c') ;;
'python3 -m')
  run "venv"
  mkdir -p "$3/bin"
  cp "$0" "$3/bin/pip"
  echo "$3" >"$3/home"
  ;;
'pip install') ;;
'cargo install')
  run "cargo $*"
  while [ "$1" != --root ]; do shift; done
  mkdir -p "$2/bin"
  printf '#!/bin/sh\necho made\n' >"$2/bin/cargo-fake"
  chmod +x "$2/bin/cargo-fake"
  ;;
*) exit 99 ;;
esac
"#;

/// A machine with its fake installers, a cache and checkouts.
struct World(PathBuf);

impl World {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tool-cache-{name}"));
        drop(fs::remove_dir_all(&root));
        let world = Self(root);
        for program in ["npm", "python3", "cargo"] {
            let path = world.0.join("bin").join(program);
            write(&path, INSTALLER);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .expect("it becomes a program");
        }
        world
    }

    /// A checkout with one tool of each kind.
    fn checkout(&self, name: &str) -> PathBuf {
        let checkout = self.0.join(name);
        write(&checkout.join("npm/package.json"), "{}");
        write(&checkout.join("npm/package-lock.json"), "one");
        write(&checkout.join("requirements.txt"), "mcp==1");
        checkout
    }

    fn spawn(&self, checkout: &Path, script: &str) -> Child {
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/lib.sh");
        let path = std::env::var("PATH").expect("there is a PATH");
        #[expect(clippy::disallowed_methods, reason = "a test of the scripts: it runs them")]
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c"])
            .arg(format!(". '{}'\n{script}", library.display()))
            .current_dir(checkout)
            .env("PATH", format!("{}:{path}", self.0.join("bin").display()))
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("bash can be run")
    }

    fn try_run(&self, checkout: &Path, script: &str) -> Output {
        self.spawn(checkout, script).wait_with_output().expect("its output is read")
    }

    fn run(&self, checkout: &Path, script: &str) -> String {
        let output = self.try_run(checkout, script);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The installations so far.
    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.0.join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// The folders of the cache.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join("cache/cofer-test")).expect("there is a cache");
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.expect("it is read").path()).collect();
        folders.retain(|path| !path.ends_with(".locks"));
        folders.sort();
        folders
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder is made");
    fs::write(path, text).expect("a file is written");
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const NPM: &str = "npm_folder \"$tools/npm\" npm";
const PYTHON: &str = "python_folder \"$tools/venv\" requirements.txt";
const CARGO: &str = "cargo_tool cargo-fake 1.2.3 --debug";

#[test]
fn a_second_checkout_installs_nothing_again() {
    let world = World::new("second");
    for name in ["a", "b"] {
        let checkout = world.checkout(name);
        let said = world.run(&checkout, &format!("{NPM}\n{PYTHON}\n{CARGO}\ncargo-fake"));
        assert_eq!(said, "made\n", "the tool is in PATH");
        assert_eq!(read(checkout.join(".cofer-test/npm/node_modules/installed")), "one");
        // A virtual environment was made at the path at which it is used.
        let home = read(checkout.join(".cofer-test/venv/home"));
        assert_eq!(
            Path::new(home.trim()),
            fs::canonicalize(checkout.join(".cofer-test/venv")).unwrap()
        );
        assert!(checkout.join(".cofer-test/venv/bin/pip").is_file());
    }
    let log = world.log();
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(log[2].ends_with("--debug cargo-fake@1.2.3"), "{log:?}");
    assert!(!world.0.join("a/.cofer-test/tools/cargo-fake/build").exists());
}

#[test]
fn other_contents_have_a_folder_of_their_own_and_both_are_kept() {
    let world = World::new("contents");
    let (a, b) = (world.checkout("a"), world.checkout("b"));
    write(&b.join("npm/package-lock.json"), "two");
    world.run(&a, NPM);
    world.run(&b, NPM);
    assert_eq!(read(a.join(".cofer-test/npm/node_modules/installed")), "one");
    assert_eq!(read(b.join(".cofer-test/npm/node_modules/installed")), "two");
    // The lock file changes in a checkout: its link follows, nothing is installed again.
    write(&a.join("npm/package-lock.json"), "two");
    world.run(&a, NPM);
    assert_eq!(read(a.join(".cofer-test/npm/node_modules/installed")), "two");
    assert_eq!((world.log().len(), world.folders().len()), (2, 2));
    // Another version of a cargo tool replaces the one in PATH.
    world.run(&a, CARGO);
    world.run(&a, "cargo_tool cargo-fake 2.0.0");
    assert!(world.log()[3].ends_with("cargo-fake@2.0.0"), "{:?}", world.log());
}

#[test]
fn a_failed_installation_is_started_over() {
    let world = World::new("failed");
    let checkout = world.checkout("a");
    write(&world.0.join("broken"), "");
    assert!(!world.try_run(&checkout, NPM).status.success());
    assert!(!checkout.join(".cofer-test/npm").exists(), "an incomplete folder is not linked");
    fs::remove_file(world.0.join("broken")).unwrap();
    write(&world.folders()[0].join("rest"), "of the failed one");
    world.run(&checkout, NPM);
    assert_eq!(read(checkout.join(".cofer-test/npm/node_modules/installed")), "one");
    assert!(!checkout.join(".cofer-test/npm/rest").exists());
}

#[test]
fn checkouts_that_install_at_once_install_once() {
    let world = World::new("at-once");
    let checkouts = ["a", "b", "c", "d"].map(|name| world.checkout(name));
    let running = checkouts.each_ref().map(|checkout| world.spawn(checkout, NPM));
    for child in running {
        let output = child.wait_with_output().expect("its output is read");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for checkout in checkouts {
        assert_eq!(read(checkout.join(".cofer-test/npm/node_modules/installed")), "one");
    }
    assert_eq!(world.log().len(), 1);
}

#[test]
fn folders_unused_for_thirty_days_are_removed_at_the_next_installation() {
    let world = World::new("unused");
    let checkout = world.checkout("a");
    world.run(&checkout, NPM);
    let unused = world.folders()[0].clone();
    let age = |days: u64| {
        let time = SystemTime::now() - Duration::from_secs(days * 86_400);
        let mark = fs::File::options().write(true).open(unused.join(".complete")).unwrap();
        mark.set_modified(time).unwrap();
    };
    // A use counts, however old the installation is.
    age(40);
    world.run(&checkout, NPM);
    world.run(&checkout, PYTHON);
    assert!(unused.is_dir());
    age(40);
    write(&checkout.join("npm/package-lock.json"), "two");
    world.run(&checkout, NPM);
    assert!(!unused.exists());
    assert_eq!(world.folders().len(), 2);
}

#[test]
fn a_folder_of_the_checkout_from_before_the_cache_becomes_a_link() {
    let world = World::new("before");
    let checkout = world.checkout("a");
    write(&checkout.join(".cofer-test/npm/node_modules/installed"), "old");
    world.run(&checkout, NPM);
    assert_eq!(read(checkout.join(".cofer-test/npm/node_modules/installed")), "one");
    assert!(fs::symlink_metadata(checkout.join(".cofer-test/npm")).unwrap().is_symlink());
}
