//! What is recorded of a worktree, and what a worktree cannot do to the machine.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use rustix::fs::FileType;

use super::*;
use crate::layout::Home;
use crate::repository::Repository;
use crate::testing::{Source, git, make_executable, write as put};
use crate::worktree::{Making, Mode, remove};

/// An environment's files, without a container.
struct Files {
    source: Source,
    repository: Repository,
    home: Home,
    worktree: std::path::PathBuf,
    mode: Mode,
    memory: Memory,
    author: Author,
    submodules: Vec<String>,
}

impl Files {
    async fn of(source: Source, mode: Mode) -> Self {
        let repository = source.prepared().await;
        let layout = repository.layout();
        let commit = repository.commit("HEAD").await.unwrap();
        let home = layout.environment("x");
        fs::create_dir_all(&home.folder).unwrap();
        fs::write(home.folder.join("excludes"), "node_modules/\n").unwrap();
        let name = branch("x");
        let made =
            Git::within(&layout.store()).call(["update-ref", name.as_str(), commit.id.as_str()]);
        made.bytes().await.unwrap();
        let worktree = layout.worktrees().join("x");
        let making = Making {
            repository: &repository,
            home: &home,
            id: "x",
            commit: &commit,
            mode,
            worktree: &worktree,
        };
        making.make().await.unwrap();
        let author = Author { name: "A <B>".to_owned(), email: "a@b".to_owned() };
        let mut files = Self {
            source,
            repository,
            home,
            worktree,
            mode,
            memory: Memory::default(),
            author,
            submodules: Vec::new(),
        };
        if mode != Mode::Overlay {
            files.memory = files.with_place(|place| Memory::take(place).unwrap());
        }
        files
    }

    fn with_place<T>(&self, use_it: impl FnOnce(&Place<'_>) -> T) -> T {
        let layout = self.repository.layout();
        let upper = self.home.upper();
        use_it(&Place {
            store: &layout.store(),
            objects: &layout.objects(),
            worktree: &self.worktree,
            upper: (self.mode == Mode::Overlay).then_some(upper.as_path()),
            excludes: &self.home.folder.join("excludes"),
            id: "x",
            author: &self.author,
            submodules: &self.submodules,
        })
    }

    fn record(&mut self, message: &str) -> Recorded {
        let mut memory = std::mem::take(&mut self.memory);
        let recorded = self.with_place(|place| record(place, &mut memory, message).unwrap());
        self.memory = memory;
        recorded
    }

    async fn git(&self, args: &[&str]) -> String {
        git(&self.repository.layout().remote(), args).await
    }

    /// What the last commit changed, as git tells it.
    async fn last(&self) -> Vec<String> {
        let said = self
            .git(&[
                "-c",
                "core.quotePath=false",
                "diff-tree",
                "-r",
                "-z",
                "--name-status",
                "--no-commit-id",
                "cofer/x",
            ])
            .await;
        let parts: Vec<&str> = said.split('\0').filter(|part| !part.is_empty()).collect();
        parts.chunks(2).map(|pair| pair.join(" ")).collect()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.worktree.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        drop(remove(&self.repository.layout(), &self.home, &self.worktree));
    }
}

const FILES: &[(&str, &str)] = &[
    ("a.txt", "one\n"),
    ("build/kept", "tracked\n"),
    ("d/b", "b\n"),
    ("d/c/e", "e\n"),
    (".gitignore", "build/\n*.log\n"),
];

/// Both ways of finding changes: by the overlay's record, and by looking at everything.
async fn both(check: impl AsyncFn(Files)) {
    for mode in [Mode::Overlay, Mode::Checkout] {
        check(Files::of(Source::with(FILES).await, mode).await).await;
    }
}

#[tokio::test]
async fn what_changed_is_recorded_and_nothing_else() {
    both(async |mut files| {
        assert_eq!(files.record("nothing").commit, None);
        put(&files.path("a.txt"), "two\n");
        put(&files.path("new dir/näme\nx \"q\" \\"), "n");
        put(&files.path("build/kept"), "changed\n");
        put(&files.path("build/made"), "ignored");
        put(&files.path("x.log"), "ignored");
        put(&files.path("node_modules/m/i.js"), "ignored");
        fs::remove_file(files.path("d/b")).unwrap();
        symlink("/etc/passwd", files.path("link")).unwrap();
        fs::write(files.path("run"), "#!/bin/sh\n").unwrap();
        make_executable(&files.path("run"));
        let recorded = files.record("subject\n\nbody");
        let commit = recorded.commit.expect("something changed");
        assert_eq!(files.git(&["rev-parse", "cofer/x"]).await, commit);
        let expected =
            ["M a.txt", "M build/kept", "D d/b", "A link", "A new dir/näme\nx \"q\" \\", "A run"];
        assert_eq!(files.last().await, expected);
        assert_eq!(
            files.git(&["log", "-1", "--format=%s|%b|%an|%ae", "cofer/x"]).await.replace('\n', ""),
            "subject|body|A  B|a@b"
        );
        assert_eq!(files.git(&["show", "cofer/x:link"]).await, "/etc/passwd");
        assert!(files.git(&["ls-tree", "cofer/x", "run"]).await.starts_with("100755"));
        // The source has the objects too.
        assert_eq!(files.source.git(&["cat-file", "-t", &commit]).await, "commit");
        assert_eq!(files.record("again").commit, None);
    })
    .await;
}

#[tokio::test]
async fn folders_are_removed_replaced_and_renamed() {
    both(async |mut files| {
        fs::rename(files.path("d"), files.path("moved")).unwrap();
        assert!(files.record("rename").commit.is_some());
        let tree = files.git(&["ls-tree", "-r", "--name-only", "cofer/x"]).await;
        assert_eq!(tree, ".gitignore\na.txt\nbuild/kept\nmoved/b\nmoved/c/e");
        fs::remove_dir_all(files.path("moved")).unwrap();
        put(&files.path("moved/only"), "1");
        files.record("replace");
        assert_eq!(files.last().await, ["D moved/b", "D moved/c/e", "A moved/only"]);
        fs::remove_file(files.path("a.txt")).unwrap();
        put(&files.path("a.txt/inside"), "1");
        fs::remove_dir_all(files.path("moved")).unwrap();
        put(&files.path("moved"), "a file now");
        files.record("swap");
        assert_eq!(files.last().await, ["D a.txt", "A a.txt/inside", "A moved", "D moved/only"]);
    })
    .await;
}

#[tokio::test]
async fn another_process_goes_on_where_the_first_left() {
    both(async |mut files| {
        put(&files.path("a.txt"), "two\n");
        assert!(files.record("one").commit.is_some());
        files.memory = Memory::default();
        assert_eq!(files.record("nothing new").commit, None);
        files.memory = Memory::default();
        fs::remove_file(files.path("d/b")).unwrap();
        assert!(files.record("two").commit.is_some());
        assert_eq!(files.last().await, ["D d/b"]);
    })
    .await;
}

#[tokio::test]
async fn nothing_that_a_container_plants_runs_on_the_machine() {
    both(async |mut files| {
        let proof = files.source.join("proof");
        let script = format!("#!/bin/sh\necho ran >> {}\n", proof.display());
        let evil = files.source.join("evil");
        put(&evil, &script);
        make_executable(&evil);
        // A forged repository in the place of ours, and one inside.
        let config = format!(
            "[core]\n\tfsmonitor = {0}\n\thooksPath = {1}\n\tworktree = /\n[filter \"x\"]\n\tclean = {0}\n\tprocess = {0}\n",
            evil.display(),
            files.source.path().display()
        );
        fs::remove_file(files.path(".git")).unwrap();
        for folder in ["", "nested/"] {
            put(&files.path(&format!("{folder}.git/config")), &config);
            put(&files.path(&format!("{folder}.git/HEAD")), "ref: refs/heads/x\n");
            put(&files.path(&format!("{folder}.git/hooks/post-index-change")), &script);
            put(&files.path(&format!("{folder}.git/objects/x")), "");
            put(&files.path(&format!("{folder}.git/refs/x")), "");
        }
        put(&files.path(".gitattributes"), "* filter=x\n");
        put(&files.path("nested/file"), "1");
        put(&files.path("a.txt"), "two\n");
        assert!(files.record("planted").commit.is_some());
        assert_eq!(files.last().await, ["A .gitattributes", "M a.txt", "A nested/file"]);
        assert!(!proof.exists());
    })
    .await;
}

#[tokio::test]
async fn a_link_out_of_the_worktree_is_a_link_and_not_what_it_points_at() {
    both(async |mut files| {
        let secret = files.source.join("secret");
        fs::create_dir(&secret).unwrap();
        put(&secret.join("b"), "secret");
        fs::remove_dir_all(files.path("d")).unwrap();
        symlink(&secret, files.path("d")).unwrap();
        files.record("link");
        assert_eq!(files.last().await, ["A d", "D d/b", "D d/c/e"]);
        assert_eq!(files.git(&["show", "cofer/x:d"]).await, secret.to_str().unwrap());
    })
    .await;
}

#[tokio::test]
async fn pipes_sockets_and_files_that_are_too_large_are_left_out() {
    both(async |mut files| {
        rustix::fs::mknodat(rustix::fs::CWD, files.path("pipe"), FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let large = fs::File::create(files.path("large")).unwrap();
        large.set_len(LARGEST_NEW_FILE + 1).unwrap();
        put(&files.path("small"), "1");
        let recorded = files.record("odd");
        assert_eq!(recorded.too_large, ["large"]);
        assert_eq!(files.last().await, ["A small"]);
    })
    .await;
}

#[tokio::test]
async fn rules_that_change_are_followed() {
    both(async |mut files| {
        put(&files.path("build/made"), "1");
        put(&files.path("odd"), "1");
        files.record("ignored");
        assert_eq!(files.last().await, ["A odd"]);
        put(&files.path(".gitignore"), "*.log\n");
        files.record("not ignored any more");
        assert_eq!(files.last().await, ["M .gitignore", "A build/made"]);
    })
    .await;
}

#[tokio::test]
async fn names_that_are_no_text_are_recorded() {
    both(async |mut files| {
        let name = std::ffi::OsStr::from_bytes(b"\xff\xfe:(top)\t");
        fs::write(files.worktree.join(name), "1").unwrap();
        files.record("bytes");
        let listed = files.git(&["ls-tree", "-r", "--name-only", "cofer/x"]).await;
        assert!(listed.contains(r#""\377\376:(top)\t""#), "{listed}");
    })
    .await;
}

#[tokio::test]
async fn many_files_are_recorded_by_few_processes() {
    both(async |mut files| {
        for number in 0..3000 {
            put(&files.path(&format!("many/{}/f{number}", number % 50)), "1");
        }
        let commit = files.record("many").commit.unwrap();
        let count = files
            .git(&["diff-tree", "-r", "--name-only", "--no-commit-id", &commit])
            .await
            .lines()
            .count();
        assert_eq!(count, 3000);
    })
    .await;
}

#[tokio::test]
async fn what_is_in_a_submodule_is_not_recorded() {
    both(async |mut files| {
        files.submodules = vec!["d".to_owned()];
        put(&files.path("d/b"), "changed");
        put(&files.path("d/new"), "1");
        assert_eq!(files.record("sub").commit, None);
    })
    .await;
}
