//! Which paths are accepted as a source, and which never are.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

struct Place {
    folder: tempfile::TempDir,
    registry: Registry,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::new(folder.path().join("state/cofer/repositories.json"));
        Self { folder, registry }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn repository(&self, name: &str) -> PathBuf {
        let top = self.path(name);
        for folder in ["cofer", "objects", "refs"] {
            fs::create_dir_all(top.join(".git").join(folder)).unwrap();
        }
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        top
    }

    fn record(&self, name: &str) -> PathBuf {
        let top = self.repository(name);
        let found = discovery::discover(&top).unwrap();
        self.registry.record(&found, OffsetDateTime::UNIX_EPOCH).unwrap();
        top
    }

    fn refused(&self, path: &Path) -> Failure {
        let failure = self.registry.find(path).unwrap_err();
        assert_eq!(failure.kind, Kind::PreconditionFailed, "{}", path.display());
        failure
    }
}

#[test]
fn a_repository_is_accepted_once_it_is_recorded_and_with_it_the_folders_inside() {
    // covers: ENV-1.4
    let place = Place::new();
    let top = place.repository("a");
    let failure = place.refused(&top);
    assert!(failure.recovery.contains("cofer init"), "{failure}");
    place.record("a");
    fs::create_dir_all(top.join("src/deep")).unwrap();
    symlink(&top, place.path("link")).unwrap();
    for path in [top.clone(), top.join("src/deep"), top.join("src/../src"), place.path("link/src")]
    {
        assert_eq!(place.registry.find(&path).unwrap().path, top, "{}", path.display());
    }
    for path in [place.path(""), place.path("ab"), top.join("nothing")] {
        place.refused(&path);
    }
}

#[test]
fn a_path_in_the_worktree_of_an_environment_is_refused_however_it_is_written() {
    let place = Place::new();
    let top = place.record("a");
    let planted = place.repository("a/.cofer/worktrees/x/planted");
    symlink(&planted, top.join("innocent")).unwrap();
    symlink(planted.parent().unwrap(), place.path("outside")).unwrap();
    for path in [
        planted.clone(),
        planted.join(".git"),
        top.join("innocent"),
        top.join("innocent/.git/objects"),
        place.path("outside/planted"),
        top.join(".cofer/worktrees/x"),
        top.join(".cofer/worktrees/../worktrees/x"),
        top.join(".cofer/worktrees/x/../../.."),
    ] {
        let failure = place.refused(&path);
        assert!(failure.message.contains("worktree of an environment"), "{failure}");
        assert!(discovery::discover(&path).is_err(), "{}", path.display());
    }
    // Not even if it was recorded: by an earlier version, or by hand.
    let found =
        Found { top: planted.clone(), git_dir: planted.join(".git"), common: planted.join(".git") };
    place.registry.record(&found, OffsetDateTime::UNIX_EPOCH).unwrap();
    place.refused(&planted);
}

#[test]
fn a_git_file_that_leads_into_a_worktree_is_not_recorded() {
    let place = Place::new();
    place.record("a");
    let planted = place.repository("a/.cofer/worktrees/x/planted");
    let outside = place.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join(".git"), format!("gitdir: {}/.git\n", planted.display())).unwrap();
    let failure = discovery::discover(&outside).unwrap_err();
    assert!(failure.message.contains("belongs to an environment"), "{failure}");
}

#[test]
fn a_repository_inside_a_recorded_one_is_another_one() {
    let place = Place::new();
    let top = place.record("a");
    let inner = place.repository("a/vendor/inner");
    fs::create_dir(inner.join("src")).unwrap();
    place.refused(&inner);
    place.refused(&inner.join("src"));
    place.record("a/vendor/inner");
    assert_eq!(place.registry.find(&inner.join("src")).unwrap().path, inner);
    assert_eq!(place.registry.find(&top).unwrap().path, top);
}

#[test]
fn another_repository_under_a_recorded_path_is_refused_until_it_is_recorded() {
    let place = Place::new();
    let top = place.record("a");
    for replaced in ["a", "a/.git"] {
        let aside = place.path("aside");
        fs::rename(place.path(replaced), &aside).unwrap();
        place.repository("a");
        let failure = place.refused(&top);
        assert!(failure.message.contains("replaced") && failure.recovery.contains("cofer init"));
        // Using it is not recording it.
        place.registry.touch(&top, OffsetDateTime::now_utc()).unwrap();
        place.refused(&top);
        place.record("a");
        assert_eq!(place.registry.find(&top).unwrap().path, top);
        fs::remove_dir_all(aside).unwrap();
    }
}

#[test]
fn a_device_number_may_change_with_a_boot_and_not_within_one() {
    let place = Place::new();
    let top = place.record("a");
    let text = fs::read_to_string(&place.registry.file).unwrap();
    let device = format!("\"device\": {}", fs::metadata(&top).unwrap().dev());
    let moved = text.replace(&device, "\"device\": 987654");
    assert_ne!(moved, text);
    fs::write(&place.registry.file, &moved).unwrap();
    place.refused(&top);
    fs::write(&place.registry.file, moved.replace(&boot(), "an earlier one")).unwrap();
    assert_eq!(place.registry.find(&top).unwrap().path, top);
    place.registry.touch(&top, OffsetDateTime::now_utc()).unwrap();
    let text = fs::read_to_string(&place.registry.file).unwrap();
    assert!(text.contains(&device) && text.contains(&boot()), "{text}");
}

#[test]
fn the_record_is_the_users_alone_and_has_each_repository_once() {
    let place = Place::new();
    assert_eq!(place.registry.tops(), Vec::<PathBuf>::new());
    let (b, a) = (place.record("b"), place.record("a"));
    place.record("b");
    assert_eq!(place.registry.tops(), [a.clone(), b.clone()]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.registry.file), 0o600);
    assert_eq!(mode(place.registry.folder()), 0o700);
    place.registry.forget(&b).unwrap();
    assert_eq!(place.registry.tops(), [a]);
    place.refused(&b);
}

#[test]
fn a_repository_that_is_gone_or_was_undone_is_removed() {
    let place = Place::new();
    let [gone, undone, there] = ["gone", "undone", "there"].map(|name| place.record(name));
    fs::remove_dir_all(gone).unwrap();
    fs::remove_dir_all(undone.join(".git/cofer")).unwrap();
    assert_eq!(place.registry.tops(), std::slice::from_ref(&there));
    place.registry.touch(&there, OffsetDateTime::now_utc()).unwrap();
    let text = fs::read_to_string(&place.registry.file).unwrap();
    assert!(!text.contains("gone") && !text.contains("undone"), "{text}");
}

#[test]
fn the_record_is_bounded() {
    let place = Place::new();
    let first = place.record("first");
    let many = (1..MOST).map(|number| place.repository(&format!("r{number}")));
    let many: Vec<Recorded> = many
        .map(|top| {
            let found = discovery::discover(&top).unwrap();
            Recorded::of(&found, OffsetDateTime::UNIX_EPOCH).unwrap()
        })
        .collect();
    place.registry.change(|all| all.splice(0..0, many).for_each(drop)).unwrap();
    assert_eq!(place.registry.find(&first).unwrap().path, first);
    place.record("one-more");
    assert_eq!(place.registry.tops().len(), MOST);
    place.refused(&first);
}

#[test]
fn an_unreadable_record_and_entries_of_earlier_versions_accept_nothing() {
    let place = Place::new();
    let top = place.record("a");
    let old = serde_json::json!({"repositories": [
        {"path": top, "home": top.join(".git/cofer"), "used_at": "2026-01-01T00:00:00Z"},
    ]});
    for text in ["not json", "{}", &old.to_string()] {
        fs::write(&place.registry.file, text).unwrap();
        place.refused(&top);
        assert_eq!(place.registry.tops(), Vec::<PathBuf>::new());
    }
    place.record("a");
    assert_eq!(place.registry.find(&top).unwrap().path, top);
}

#[test]
fn a_linked_worktree_of_the_users_own_is_found() {
    let place = Place::new();
    let top = place.repository("a");
    let own = top.join(".git/worktrees/linked");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("HEAD"), "ref: refs/heads/linked\n").unwrap();
    fs::write(own.join("commondir"), "../..\n").unwrap();
    let linked = place.path("linked");
    fs::create_dir(&linked).unwrap();
    fs::write(linked.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
    let found = discovery::discover(&linked).unwrap();
    assert_eq!((found.top, found.git_dir, found.common), (linked, own, top.join(".git")));
}
