//! A running `git fast-import`, which is told one commit: its files as bytes, read below the
//! worktree and never through a link.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{ChildStdin, ChildStdout};

use rustix::fs::{FileType, OFlags, fstat, readlinkat};
use time::OffsetDateTime;

use crate::changes;
use crate::git::{Coprocess, Git, GitError};
use crate::history::{LARGEST_NEW_FILE, Place};
use crate::state::branch;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Done,
    TooLarge,
}

/// A running `git fast-import`, which is told one commit.
pub(crate) struct Import {
    git: Coprocess,
    orders: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    parent: String,
    branch: String,
}

impl Import {
    pub(crate) fn start(place: &Place<'_>) -> Result<Self, GitError> {
        let mut git = Git::within(place.store)
            .variable("GIT_OBJECT_DIRECTORY", place.objects)
            .call(["fast-import", "--quiet", "--done"])
            .start()?;
        let gone = || GitError::Spawn(io::ErrorKind::BrokenPipe.into());
        let orders = BufWriter::new(git.child.stdin.take().ok_or_else(gone)?);
        let answers = BufReader::new(git.child.stdout.take().ok_or_else(gone)?);
        Ok(Self { git, orders, answers, parent: String::new(), branch: branch(place.id) })
    }

    /// The mode and id of what is at a path; nothing where nothing is.
    fn list(&mut self, from: &str, path: &[u8]) -> io::Result<Option<String>> {
        self.orders.write_all(b"ls ")?;
        if !from.is_empty() {
            write!(self.orders, "{from} ")?;
        }
        self.orders.write_all(&quoted(path))?;
        self.orders.write_all(b"\n")?;
        let line = self.answer()?;
        Ok((!line.starts_with("missing ")).then_some(line))
    }

    fn answer(&mut self) -> io::Result<String> {
        self.orders.flush()?;
        let mut line = Vec::new();
        self.answers.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
    }

    pub(crate) fn knows(&mut self, commit: &str, path: &[u8]) -> io::Result<bool> {
        Ok(self.list(commit, path)?.is_some())
    }

    pub(crate) fn tree_of(&mut self, commit: &str) -> io::Result<Option<String>> {
        self.list(commit, b"")
    }

    /// The tree of the commit that is being told.
    pub(crate) fn tree(&mut self) -> io::Result<Option<String>> {
        self.list("", b"")
    }

    pub(crate) fn begin(
        &mut self,
        place: &Place<'_>,
        parent: &str,
        message: &str,
    ) -> io::Result<()> {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let plain = |text: &str| text.replace(['<', '>', '\n', '\0'], " ");
        let who =
            format!("{} <{}> {now} +0000", plain(&place.author.name), plain(&place.author.email));
        writeln!(self.orders, "commit {}\nmark :1\nauthor {who}\ncommitter {who}", self.branch)?;
        writeln!(self.orders, "data {}\n{message}\nfrom {parent}", message.len())?;
        parent.clone_into(&mut self.parent);
        Ok(())
    }

    pub(crate) fn delete(&mut self, path: &[u8]) -> io::Result<()> {
        self.order(b"D ", path)
    }

    fn order(&mut self, what: &[u8], path: &[u8]) -> io::Result<()> {
        self.orders.write_all(what)?;
        self.orders.write_all(&quoted(path))?;
        self.orders.write_all(b"\n")
    }

    /// The file or link at `path` as it is now; one that is gone meanwhile is deleted.
    pub(crate) fn put(&mut self, root: &OwnedFd, path: &[u8], known: bool) -> io::Result<Put> {
        if let Ok(file) = changes::open_below(root, path, OFlags::RDONLY) {
            return self.put_file(file, path, known);
        }
        match read_link_below(root, path) {
            Ok(target) => {
                self.order(b"M 120000 inline ", path)?;
                self.data(&target)?;
            }
            Err(_) => self.delete(path)?,
        }
        Ok(Put::Done)
    }

    fn put_file(&mut self, file: OwnedFd, path: &[u8], known: bool) -> io::Result<Put> {
        let found = fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(Put::Done);
        }
        let size = found.st_size.cast_unsigned();
        let parent = self.parent.clone();
        if size > LARGEST_NEW_FILE && !known && !self.knows(&parent, path)? {
            return Ok(Put::TooLarge);
        }
        let mode: &[u8] =
            if found.st_mode & 0o111 == 0 { b"M 100644 inline " } else { b"M 100755 inline " };
        self.order(mode, path)?;
        writeln!(self.orders, "data {size}")?;
        let copied = io::copy(&mut File::from(file).take(size), &mut self.orders)?;
        // A file that shrank while it was read has changed again, and is read again next time.
        io::copy(&mut io::repeat(0).take(size - copied), &mut self.orders)?;
        self.orders.write_all(b"\n")?;
        Ok(Put::Done)
    }

    fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        writeln!(self.orders, "data {}", bytes.len())?;
        self.orders.write_all(bytes)?;
        self.orders.write_all(b"\n")
    }

    /// The branch stays where it was.
    pub(crate) fn undo(&mut self, parent: &str) -> io::Result<()> {
        writeln!(self.orders, "\nreset {}\nfrom {parent}\n", self.branch)
    }

    pub(crate) fn commit_id(&mut self) -> io::Result<String> {
        self.orders.write_all(b"\nget-mark :1\n")?;
        self.answer()
    }

    pub(crate) fn finish(mut self) -> Result<(), GitError> {
        let told = self.orders.write_all(b"done\n").and_then(|()| self.orders.flush());
        let Self { git, orders, answers, .. } = self;
        drop((orders, answers));
        // What git says about it says more than a closed pipe.
        git.finish()?;
        told.map_err(GitError::Spawn)
    }
}

fn read_link_below(root: &OwnedFd, path: &[u8]) -> io::Result<Vec<u8>> {
    let link = changes::open_below(root, path, OFlags::PATH)?;
    Ok(readlinkat(&link, "", Vec::new())?.into_bytes())
}

/// A path as fast-import reads any bytes.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}
