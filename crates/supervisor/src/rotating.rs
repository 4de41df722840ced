//! A log file that is cut off at a size and keeps a few predecessors, and that loses lines
//! rather than fail: a full disk must not stop whoever logs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lines are gathered up to this size before they are written, unless somebody flushes.
const BUFFER: usize = 64 * 1024;

/// How large a log file grows and how many are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// A file is not written past this, but for a single line that is longer.
    pub max_bytes: u64,
    /// How many full files are kept beside the one that is written.
    pub keep: u32,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { max_bytes: 10 * 1024 * 1024, keep: 5 }
    }
}

/// Writes whole lines to `path`; `path.1` is the newest full file, `path.2` the one before.
/// Nothing is opened before the first line, and no write ever fails.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    open: Option<OpenFile>,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    lost: Arc<AtomicU64>,
    /// Lines lost since the last one that was written, and why; said in the file when it works again.
    gap: Option<(u64, io::Error)>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    bytes: u64,
}

impl RotatingFile {
    /// Will write to `path`.
    pub fn new(path: impl Into<PathBuf>, rotation: Rotation) -> Self {
        Self {
            path: path.into(),
            rotation,
            open: None,
            pending: Vec::new(),
            lost: Arc::default(),
            gap: None,
        }
    }

    /// Counts the lines that could not be written; can be read while another thread writes.
    pub fn lost_lines(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lost)
    }

    /// Puts what is pending in the file, or counts it as lost.
    fn write_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.pending);
        match self.write_out(&lines) {
            Ok(()) => self.gap = None,
            Err(error) => self.count_lost(&lines, error),
        }
        // The buffer is kept: it is needed again with the next line.
        self.pending = lines;
        self.pending.clear();
    }

    fn write_out(&mut self, lines: &[u8]) -> io::Result<()> {
        let gap = self.gap.as_ref().map(|(lost, why)| format!("({lost} lines lost: {why})\n"));
        let note = gap.as_deref().unwrap_or_default().as_bytes();
        let length = (note.len() + lines.len()) as u64;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => open_file(&self.path)?,
        };
        if open.bytes > 0 && open.bytes + length > self.rotation.max_bytes {
            drop(open);
            rotate(&self.path, self.rotation.keep)?;
            open = open_file(&self.path)?;
        }
        if let Err(error) = open.file.write_all(note).and_then(|()| open.file.write_all(lines)) {
            // Half a line would run into the next one. Where cutting it off fails too, the
            // file is opened anew next time, with its true length.
            if open.file.set_len(open.bytes).is_ok() {
                self.open = Some(open);
            }
            return Err(error);
        }
        open.bytes += length;
        self.open = Some(open);
        Ok(())
    }

    fn count_lost(&mut self, lines: &[u8], why: io::Error) {
        let lost = lines.iter().filter(|byte| **byte == b'\n').count().max(1) as u64;
        self.lost.fetch_add(lost, Ordering::Relaxed);
        let before = self.gap.take().map_or(0, |(lost, _)| lost);
        self.gap = Some((before + lost, why));
    }
}

impl Write for RotatingFile {
    /// Takes whole lines, one or more.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let room =
            self.rotation.max_bytes.saturating_sub(self.open.as_ref().map_or(0, |o| o.bytes));
        let full = self.pending.len() + lines.len();
        if full > BUFFER || full as u64 > room {
            self.write_pending();
        }
        self.pending.extend_from_slice(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_pending();
        Ok(())
    }
}

impl Drop for RotatingFile {
    fn drop(&mut self) {
        self.write_pending();
    }
}

fn open_file(path: &Path) -> io::Result<OpenFile> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let metadata = file.metadata()?;
    if metadata.permissions().mode() & 0o7777 != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(OpenFile { bytes: metadata.len(), file })
}

/// Moves each file one number up; what has the last number is overwritten.
fn rotate(path: &Path, keep: u32) -> io::Result<()> {
    if keep == 0 {
        return fs::remove_file(path);
    }
    for number in (1..keep).rev() {
        match fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, numbered(path, 1))
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: usize) -> String {
        format!("line {number:04}\n")
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn lines_are_kept_in_order_over_rotations_and_the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        // Three lines of ten bytes fit in one file.
        let mut file = RotatingFile::new(&path, Rotation { max_bytes: 30, keep: 2 });
        for number in 0..11 {
            file.write_all(line(number).as_bytes()).unwrap();
            if number % 2 == 0 {
                file.flush().unwrap();
            }
        }
        drop(file);
        let kept = read(&numbered(&path, 2)) + &read(&numbered(&path, 1)) + &read(&path);
        let numbers = 3..11;
        assert_eq!(kept, numbers.map(line).collect::<String>());
        assert!(!numbered(&path, 3).exists());
        for path in [&path, &numbered(&path, 1), &numbered(&path, 2)] {
            assert!(fs::metadata(path).unwrap().len() <= 30);
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_line_is_in_the_file_once_it_is_flushed_and_a_new_writer_appends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut file = RotatingFile::new(&path, Rotation::default());
        file.write_all(b"one\n").unwrap();
        assert!(!path.exists());
        file.flush().unwrap();
        assert_eq!(read(&path), "one\n");
        let mut again = RotatingFile::new(&path, Rotation::default());
        again.write_all(b"two\n").unwrap();
        drop(again);
        assert_eq!(read(&path), "one\ntwo\n");
    }

    #[test]
    fn a_line_longer_than_the_file_is_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut file = RotatingFile::new(&path, Rotation { max_bytes: 4, keep: 1 });
        file.write_all(b"long enough\n").unwrap();
        file.write_all(b"b\n").unwrap();
        drop(file);
        assert_eq!(
            (read(&numbered(&path, 1)), read(&path)),
            ("long enough\n".into(), "b\n".into())
        );
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_the_gap_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("missing/a.log");
        let mut file = RotatingFile::new(&path, Rotation::default());
        file.write_all(b"lost\nlost too\n").unwrap();
        file.flush().unwrap();
        file.write_all(b"and this\n").unwrap();
        file.flush().unwrap();
        assert_eq!(file.lost_lines().load(Ordering::Relaxed), 3);

        fs::create_dir(dir.path().join("missing")).unwrap();
        file.write_all(b"kept\n").unwrap();
        file.flush().unwrap();
        file.write_all(b"more\n").unwrap();
        drop(file);
        let text = read(&path);
        assert!(text.starts_with("(3 lines lost: No such file or directory"), "{text}");
        assert!(text.ends_with("\nkept\nmore\n"), "{text}");
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut file = RotatingFile::new(&path, Rotation::default());
        // Every write to this device fails with "no space left".
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        file.open = Some(OpenFile { file: full, bytes: 0 });
        file.write_all(b"one\n").unwrap();
        file.flush().unwrap();
        assert_eq!(file.lost_lines().load(Ordering::Relaxed), 1);
        file.write_all(b"two\n").unwrap();
        drop(file);
        assert_eq!(read(&path), "(1 lines lost: No space left on device (os error 28))\ntwo\n");
    }

    #[test]
    fn what_waits_to_be_written_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = RotatingFile::new(dir.path().join("a.log"), Rotation::default());
        for number in 0..100_000 {
            file.write_all(line(number).as_bytes()).unwrap();
            assert!(file.pending.len() <= BUFFER);
        }
    }
}
