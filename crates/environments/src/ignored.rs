//! Which paths a repository ignores, asked of git in one process for all of them.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};

use crate::changes::Below;
use crate::git::{Coprocess, Git, GitError};
use crate::git_view::GitView;

/// How many bytes of paths are asked at once: fewer than a pipe holds, so that neither side ever
/// waits for the other to read.
const BATCH: usize = 16 * 1024;

/// Longer than a rule of a `.gitignore` has to be.
const LONGEST: u64 = 1024 * 1024;

/// A running `git check-ignore`.
pub(crate) struct Ignored {
    git: Coprocess,
    questions: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Ignored {
    /// For the files in `worktree`, by its own rules and those in the file `excludes`.
    pub(crate) fn start(
        store: &GitView,
        worktree: &Path,
        excludes: &Path,
    ) -> Result<Self, GitError> {
        let mut setting = std::ffi::OsString::from("core.excludesFile=");
        setting.push(excludes);
        let mut git = Git::within(store)
            .in_work_tree(worktree)
            .variable("GIT_INDEX_FILE", "/dev/null")
            .setting("core.bare=false")
            .setting(setting)
            .call(["check-ignore", "-z", "--stdin", "--verbose", "--non-matching", "--no-index"])
            .start()?;
        let gone = || GitError::Spawn(std::io::ErrorKind::BrokenPipe.into());
        let questions = BufWriter::new(git.child.stdin.take().ok_or_else(gone)?);
        let answers = BufReader::new(git.child.stdout.take().ok_or_else(gone)?);
        Ok(Self { git, questions, answers })
    }

    /// Those of `paths` that are ignored.
    pub(crate) fn among<'a>(
        &mut self,
        paths: impl IntoIterator<Item = &'a Below>,
    ) -> std::io::Result<HashSet<Below>> {
        let mut ignored = HashSet::new();
        let (mut asked, mut bytes) = (0, 0);
        for path in paths {
            if bytes > 0 && bytes + path.len() > BATCH {
                self.hear(asked, &mut ignored)?;
                (asked, bytes) = (0, 0);
            }
            // A path that begins with `./` is never read as anything else.
            self.questions.write_all(b"./")?;
            self.questions.write_all(path)?;
            self.questions.write_all(b"\0")?;
            (asked, bytes) = (asked + 1, bytes + path.len() + 1);
        }
        self.hear(asked, &mut ignored)?;
        Ok(ignored)
    }

    fn hear(&mut self, asked: usize, ignored: &mut HashSet<Below>) -> std::io::Result<()> {
        self.questions.flush()?;
        for _ in 0..asked {
            let [source, _line, pattern, path] =
                [self.field()?, self.field()?, self.field()?, self.field()?];
            if !source.is_empty() && !pattern.starts_with(b"!") {
                ignored.insert(path.strip_prefix(b"./").unwrap_or(&path).into());
            }
        }
        Ok(())
    }

    fn field(&mut self) -> std::io::Result<Vec<u8>> {
        let mut field = Vec::new();
        self.answers.by_ref().take(LONGEST).read_until(0, &mut field)?;
        if field.pop() != Some(0) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(field)
    }

    pub(crate) fn finish(self) -> Result<(), GitError> {
        let Self { git, questions, answers } = self;
        drop((questions, answers));
        match git.finish() {
            // Nothing was ignored.
            Err(GitError::Failed { status: Some(1), .. }) => Ok(()),
            other => other,
        }
    }
}
