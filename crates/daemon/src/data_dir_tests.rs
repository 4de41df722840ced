//! What holds for a data directory, on a real file system.

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("deep/data");
    (root, path)
}

#[test]
fn everything_in_it_is_private() {
    // covers: MGR-58
    let (_root, path) = fresh();
    let dir = DataDir::open(&path).unwrap();
    dir.write_address("http://127.0.0.1:8787").unwrap();
    dir.first_generation(OffsetDateTime::UNIX_EPOCH).unwrap();
    for name in ["", "logs"] {
        assert_eq!(mode(&path.join(name)), 0o700, "{name:?}");
    }
    for name in ["lock", "token", "instance", "address", "generation"] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    assert!(fs::read_dir(&path).unwrap().all(|entry| {
        let name = entry.unwrap().file_name();
        !name.to_string_lossy().ends_with(".tmp")
    }));
}

#[test]
fn permissions_that_are_too_wide_are_narrowed() {
    // covers: MGR-58
    let (_root, path) = fresh();
    drop(DataDir::open(&path).unwrap());
    for name in ["", "logs", "token", "lock"] {
        fs::set_permissions(path.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    let _dir = DataDir::open(&path).unwrap();
    assert_eq!((mode(&path), mode(&path.join("logs"))), (0o700, 0o700));
    assert_eq!((mode(&path.join("token")), mode(&path.join("lock"))), (0o600, 0o600));
}

#[test]
fn a_second_daemon_is_told_which_directory_and_which_process() {
    let (_root, path) = fresh();
    let first = DataDir::open(&path).unwrap();
    let error = DataDir::open(&path).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(first.path().to_str().unwrap()), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    assert!(error.hint().contains("--data-dir"), "{}", error.hint());
    drop(first);
    DataDir::open(&path).unwrap();
}

#[test]
fn token_and_id_stay_the_same_over_restarts() {
    let (_root, path) = fresh();
    let facts = |dir: &DataDir| (dir.token().reveal().to_owned(), dir.owner_id());
    let before = facts(&DataDir::open(&path).unwrap());
    let after = facts(&DataDir::open(&path).unwrap());
    assert_eq!(before, after);
    assert_eq!(fs::read_to_string(path.join("token")).unwrap().trim(), before.0);
}

#[test]
fn a_moved_directory_keeps_its_id_and_a_copied_one_gets_another() {
    let (root, path) = fresh();
    let id = DataDir::open(&path).unwrap().owner_id();
    let (moved, copy) = (root.path().join("moved"), root.path().join("copy"));
    fs::rename(&path, &moved).unwrap();
    fs::create_dir(&copy).unwrap();
    for name in ["token", "instance"] {
        fs::copy(moved.join(name), copy.join(name)).unwrap();
    }
    assert_eq!(DataDir::open(&moved).unwrap().owner_id(), id);
    let copied = DataDir::open(&copy).unwrap().owner_id();
    assert_ne!(copied, id);
    assert_eq!(DataDir::open(&copy).unwrap().owner_id(), copied);
}

#[test]
fn generations_begin_above_every_earlier_run_whatever_the_clock_says() {
    let (_root, path) = fresh();
    let begin = |seconds| {
        let now = OffsetDateTime::from_unix_timestamp(seconds).unwrap();
        DataDir::open(&path).unwrap().first_generation(now).unwrap()
    };
    let (now, day) = (1_800_000_000, 86_400);
    assert_eq!(begin(now), 1_800_000_000_000_000, "the clock's microseconds");
    assert_eq!(begin(now + day), 1_800_086_400_000_000, "a clock that went on is followed");
    let mut last = begin(now + day);
    for clock in [now + day, now - 2 * day, 0, -day] {
        let first = begin(clock);
        assert!(first >= last + GENERATIONS, "{clock}: {first} after {last}");
        last = first;
    }
    assert_eq!(begin(now + 2 * day), 1_800_172_800_000_000, "also after it was wrong");
}

#[test]
fn a_clock_that_was_far_ahead_leaves_generations_that_javascript_can_count() {
    let (_root, path) = fresh();
    let dir = DataDir::open(&path).unwrap();
    let ahead = OffsetDateTime::from_unix_timestamp(250_000_000_000).unwrap();
    let first = dir.first_generation(ahead).unwrap();
    let after = dir.first_generation(OffsetDateTime::UNIX_EPOCH).unwrap();
    assert!(first < after && after + 400_000 * GENERATIONS < LAST_GENERATION, "{first} {after}");
}

#[test]
fn a_damaged_generation_file_is_written_anew() {
    for text in ["", "nonsense", "-1", "9007199254740992", "99999999999999999999999"] {
        let (_root, path) = fresh();
        let dir = DataDir::open(&path).unwrap();
        fs::write(path.join("generation"), text).unwrap();
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        assert_eq!(dir.first_generation(now).unwrap(), 1_800_000_000_000_000, "{text:?}");
        let stored = fs::read_to_string(path.join("generation")).unwrap();
        assert_eq!(stored, "1800000000000000\n");
    }
}

#[test]
fn a_token_file_that_cannot_serve_is_refused_not_replaced() {
    for text in ["", "\n", "short", "not a token, but a sentence that is quite long enough\n"] {
        let (_root, path) = fresh();
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("token"), text).unwrap();
        let error = DataDir::open(&path).unwrap_err();
        assert!(matches!(error, DataDirError::BadToken { .. }), "{text:?}: {error}");
        assert_eq!(fs::read_to_string(path.join("token")).unwrap(), text);
    }
}

#[test]
fn a_token_file_that_somebody_else_could_have_put_there_is_refused() {
    use std::os::unix::fs::symlink;
    let other = tempfile::tempdir().unwrap();
    let foreign = other.path().join("token");
    type Plant<'a> = &'a dyn Fn(&Path);
    let plant: [(&str, Plant<'_>); 4] = [
        ("a symbolic link", &|path| symlink(&foreign, path).unwrap()),
        ("a symbolic link", &|path| symlink("/nowhere", path).unwrap()),
        ("2 hard links", &|path| fs::hard_link(&foreign, path).unwrap()),
        ("not a regular file", &|path| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR,
                0,
            )
            .unwrap();
        }),
    ];
    for (problem, plant) in plant {
        for name in ["token", "instance"] {
            let (_root, path) = fresh();
            fs::create_dir_all(&path).unwrap();
            fs::write(&foreign, "0123456789abcdef0123456789abcdef").unwrap();
            let before = fs::metadata(&foreign).unwrap().mode();
            plant(&path.join(name));
            let error = DataDir::open(&path).unwrap_err();
            assert!(error.to_string().contains(problem), "{name}: {error}");
            assert!(error.hint().contains(name), "{}", error.hint());
            assert_eq!(fs::metadata(&foreign).unwrap().mode(), before, "it was not touched");
        }
    }
}

#[test]
fn a_link_in_the_place_of_a_temporary_file_is_not_followed() {
    let (root, path) = fresh();
    fs::create_dir_all(&path).unwrap();
    let victim = root.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, path.join("token.tmp")).unwrap();
    DataDir::open(&path).unwrap();
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    assert!(fs::symlink_metadata(path.join("token")).unwrap().is_file());
}

#[test]
fn the_lock_of_an_older_version_is_respected() {
    let (_root, path) = fresh();
    drop(DataDir::open(&path).unwrap());
    fs::write(path.join("lock"), "4711\n").unwrap();
    // An older version holds `flock` and no record lock.
    let held = File::open(path.join("lock")).unwrap();
    held.lock().unwrap();
    let error = DataDir::open(&path).unwrap_err();
    assert!(matches!(error, DataDirError::InUse { pid: Some(4711), .. }), "{error}");
    drop(held);
    DataDir::open(&path).unwrap();
}

#[test]
fn a_descriptor_of_a_dead_daemon_does_not_keep_the_next_one_out() {
    let (_root, path) = fresh();
    drop(DataDir::open(&path).unwrap());
    // As a child has it that was forked by a daemon that was killed.
    let inherited = File::open(path.join("lock")).unwrap();
    inherited.lock().unwrap();
    DataDir::open(&path).unwrap();
}

#[test]
fn the_address_is_there_while_the_daemon_is() {
    let (_root, path) = fresh();
    let address = path.join("address");
    let dir = DataDir::open(&path).unwrap();
    dir.write_address("http://127.0.0.1:1").unwrap();
    assert_eq!(fs::read_to_string(&address).unwrap(), "http://127.0.0.1:1\n");
    drop(dir);
    assert!(!address.exists());

    // As a daemon that was killed leaves it.
    fs::write(&address, "http://127.0.0.1:2").unwrap();
    let _dir = DataDir::open(&path).unwrap();
    assert!(!address.exists());
}

#[test]
fn somebody_elses_directory_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (_root, path) = fresh();
    fs::create_dir_all(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
    let error = DataDir::open(&path).unwrap_err();
    assert!(matches!(error, DataDirError::NotOwned { owner: 12345, .. }), "{error}");
}

#[test]
fn a_file_in_the_place_of_the_directory_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    fs::write(&path, "").unwrap();
    let text = DataDir::open(&path).unwrap_err().to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
}
