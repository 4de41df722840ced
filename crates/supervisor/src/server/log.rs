//! What a server said on stderr, what it said on stdout that was not MCP, and what the
//! daemon did with it: the end of that in memory, more of it in rotated files.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use cofer_model::{LogEntry, LogStream, LogTag, Redactor};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::broadcast;

use super::tool_lines::{ToolLine, ToolLines, ToolStep};
use crate::rotating::{RotatingFile, Rotation};

/// Lines kept in memory.
const MAX_LINES: usize = 2000;
/// Bytes kept in memory.
const MAX_BYTES: usize = 1 << 20;
/// What is kept of one line.
const MAX_LINE: usize = 8 * 1024;
/// How much of stderr stands in an error.
const TAIL_BYTES: usize = 32 * 1024;
/// How much of an earlier daemon's file is read back.
const PRELOAD_BYTES: u64 = 256 * 1024;
/// How far a follower may fall behind.
const FEED: usize = 1024;
const ROTATION: Rotation = Rotation { max_bytes: 4 << 20, keep: 3 };

/// See the module.
#[derive(Debug)]
pub struct ServerLog {
    state: Mutex<State>,
    /// The last line's number, to be read without the lock by every call.
    position: AtomicU64,
    feed: broadcast::Sender<Arc<LogEntry>>,
    redactor: ArcSwap<Redactor>,
    path: PathBuf,
}

/// A log's end and what follows.
#[derive(Debug)]
pub struct LogFeed {
    /// The last lines, oldest first.
    pub tail: Vec<Arc<LogEntry>>,
    /// All later ones.
    pub live: broadcast::Receiver<Arc<LogEntry>>,
}

#[derive(Debug)]
struct State {
    lines: VecDeque<Arc<LogEntry>>,
    bytes: usize,
    last_seq: u64,
    /// Apart from the other lines, so that many calls do not displace what the server wrote.
    tools: ToolLines,
    file: RotatingFile,
}

impl State {
    fn push(&mut self, at: OffsetDateTime, source: Source, line: String) -> Arc<LogEntry> {
        self.last_seq += 1;
        self.bytes += line.len();
        let Source { stream, tag } = source;
        let entry = Arc::new(LogEntry { seq: self.last_seq, at, stream, tag, line });
        self.lines.push_back(Arc::clone(&entry));
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.line.len();
        }
        entry
    }

    fn tail(&self, count: usize) -> Vec<Arc<LogEntry>> {
        let last = |length: usize| length.saturating_sub(count);
        let mut tail: Vec<_> = self.lines.range(last(self.lines.len())..).cloned().collect();
        tail.extend(self.tools.tail(count).map(|line| Arc::new(line.entry())));
        tail.sort_by_key(|entry| entry.seq);
        tail.split_off(last(tail.len()))
    }
}

/// Where a line comes from.
#[derive(Debug, Clone, Copy)]
struct Source {
    stream: LogStream,
    tag: Option<LogTag>,
}

impl From<LogStream> for Source {
    fn from(stream: LogStream) -> Self {
        Self { stream, tag: None }
    }
}

impl From<LogTag> for Source {
    fn from(tag: LogTag) -> Self {
        Self { stream: LogStream::Lifecycle, tag: Some(tag) }
    }
}

impl ServerLog {
    /// The log in `path`, with the end of what an earlier daemon wrote there.
    pub(crate) fn open(path: PathBuf, redactor: Redactor) -> Self {
        let file = RotatingFile::new(&path, ROTATION);
        let tools = ToolLines::default();
        let mut state = State { lines: VecDeque::new(), bytes: 0, last_seq: 0, tools, file };
        for (at, source, line) in read_back(&path) {
            state.push(at, source, line);
        }
        let feed = broadcast::Sender::new(FEED);
        Self {
            position: AtomicU64::new(state.last_seq),
            state: Mutex::new(state),
            feed,
            redactor: ArcSwap::from_pointee(redactor),
            path,
        }
    }

    /// The last `count` lines, oldest first.
    pub fn tail(&self, count: usize) -> Vec<Arc<LogEntry>> {
        self.lock().tail(count)
    }

    /// The last `count` lines and all later ones, without a gap between them.
    pub fn follow(&self, count: usize) -> LogFeed {
        let state = self.lock();
        LogFeed { tail: state.tail(count), live: self.feed.subscribe() }
    }

    /// Masks what `redactor` knows from now on.
    pub(crate) fn set_redactor(&self, redactor: Redactor) {
        self.redactor.store(Arc::new(redactor));
    }

    /// `text` without the secrets this server was given.
    pub(crate) fn redact<'a>(&self, text: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
        self.redactor.load().redact(text)
    }

    /// A change of the server's state.
    pub(crate) fn lifecycle(&self, text: impl Into<String>) {
        self.write(LogTag::Mcp.into(), [text.into()]);
    }

    /// A step of the server's start.
    pub(crate) fn start_step(&self, text: impl Into<String>) {
        self.write(LogTag::Start.into(), [text.into()]);
    }

    /// A step of a tool call: kept in memory as it is and formatted when it is read. `position`
    /// stays, so that the flight recorder does not look for stderr because of it.
    pub(crate) fn tool_step(&self, tool: &Arc<str>, step: ToolStep) {
        let at = OffsetDateTime::now_utc();
        let mut state = self.lock();
        state.last_seq += 1;
        let line = ToolLine { seq: state.last_seq, at, tool: Arc::clone(tool), step };
        if self.feed.receiver_count() > 0 {
            self.feed.send(Arc::new(line.entry())).ok();
        }
        state.tools.push(line);
    }

    /// Where the log stands now; for `stderr_since`.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// The first `limit` lines after `position`. Costs next to nothing where there are none.
    pub(crate) fn since(&self, position: u64, limit: usize) -> Vec<Arc<LogEntry>> {
        if self.position() <= position || limit == 0 {
            return Vec::new();
        }
        let state = self.lock();
        let start = state.lines.partition_point(|entry| entry.seq <= position);
        state.lines.range(start..).take(limit).cloned().collect()
    }

    /// The end of what the server wrote to stderr after `position`.
    pub(crate) fn stderr_since(&self, position: u64) -> Option<String> {
        let state = self.lock();
        let mut room = TAIL_BYTES;
        let mut lines: Vec<&str> = Vec::new();
        for entry in state.lines.iter().rev().take_while(|entry| entry.seq > position) {
            if entry.stream != LogStream::Stderr {
                continue;
            }
            let Some(left) = room.checked_sub(entry.line.len() + 1) else { break };
            room = left;
            lines.push(&entry.line);
        }
        lines.reverse();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    pub(crate) fn append(&self, stream: LogStream, lines: impl IntoIterator<Item = String>) {
        self.write(stream.into(), lines);
    }

    fn write(&self, source: Source, lines: impl IntoIterator<Item = String>) {
        let at = OffsetDateTime::now_utc();
        let stamp = at.format(&Rfc3339).unwrap_or_default();
        let redactor = self.redactor.load();
        let mut state = self.lock();
        for line in lines {
            let line = redactor.redact(line).into_owned();
            // A log that cannot be written is no reason to stop a server; the file counts what it lost.
            writeln!(state.file, "{stamp} {}{line}", label(source)).ok();
            let entry = state.push(at, source, line);
            // Sent under the lock, so that followers see the log's order. Nobody may follow.
            self.feed.send(entry).ok();
        }
        self.position.store(state.last_seq, Ordering::Release);
        state.file.flush().ok();
    }

    /// Takes the log's files away, when its server is removed.
    pub(crate) fn remove_files(&self) {
        let mut paths = vec![self.path.clone()];
        paths.extend((1..=ROTATION.keep).map(|number| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        }));
        for path in paths {
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(%error, path = %path.display(), "could not remove a server's log file");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stands before a line in the file.
fn label(source: Source) -> &'static str {
    match (source.stream, source.tag) {
        (LogStream::Stderr, _) => "stderr ",
        (LogStream::Stdout, _) => "stdout ",
        (LogStream::Lifecycle, Some(LogTag::Start)) => "lifecycle [START] ",
        (LogStream::Lifecycle, Some(LogTag::Mcp)) => "lifecycle [MCP] ",
        (LogStream::Lifecycle, Some(LogTag::Tools)) => "lifecycle [TOOLS] ",
        (LogStream::Lifecycle, None) => "lifecycle ",
    }
}

fn read_back(path: &Path) -> Vec<(OffsetDateTime, Source, String)> {
    let Ok(text) = read_end(path) else {
        return Vec::new();
    };
    text.lines().filter_map(parse_line).collect()
}

fn read_end(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(PRELOAD_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(PRELOAD_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_line(line: &str) -> Option<(OffsetDateTime, Source, String)> {
    let (stamp, rest) = line.split_once(' ')?;
    let (stream, text) = rest.split_once(' ')?;
    let at = OffsetDateTime::parse(stamp, &Rfc3339).ok()?;
    let (source, text) = match stream {
        "stderr" => (LogStream::Stderr.into(), text),
        "stdout" => (LogStream::Stdout.into(), text),
        "lifecycle" => {
            let (tag, text) = LogTag::split(text);
            (Source { stream: LogStream::Lifecycle, tag }, text)
        }
        _ => return None,
    };
    Some((at, source, text.to_owned()))
}

/// Puts the lines of a server's stderr in its log until the stream ends; so too those of its
/// stdout, where nobody expects MCP there. A line that is too long is kept up to its cap, so
/// that no server fills our memory with one.
pub(super) async fn pump_log<R: AsyncRead + Unpin>(
    mut source: R,
    log: Arc<ServerLog>,
    stream: LogStream,
) {
    let mut chunk = vec![0; 16 * 1024];
    let mut open_line: Vec<u8> = Vec::new();
    while let Ok(count @ 1..) = source.read(&mut chunk).await {
        let mut lines = Vec::new();
        for piece in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE.saturating_sub(open_line.len());
            open_line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                lines.push(text_of(&open_line));
                open_line.clear();
            }
        }
        log.append(stream, lines);
    }
    if !open_line.is_empty() {
        log.append(stream, [text_of(&open_line)]);
    }
}

/// A line as text; what is left of it where it was cut is said.
pub(super) fn text_of(line: &[u8]) -> String {
    let cut = line.len() >= MAX_LINE;
    let mut text = String::from_utf8_lossy(&line[..line.len().min(MAX_LINE)]).trim_end().to_owned();
    if cut {
        text.push_str(" … (cut)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn log(dir: &Path) -> Arc<ServerLog> {
        Arc::new(ServerLog::open(dir.join("x.log"), Redactor::default()))
    }

    fn texts(entries: &[Arc<LogEntry>]) -> Vec<&str> {
        entries.iter().map(|entry| entry.line.as_str()).collect()
    }

    #[tokio::test]
    async fn stderr_comes_in_lines_and_a_long_one_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let start = log.position();
        let input = format!("one\ntwo\r\n{}\nlast", "x".repeat(100_000));
        pump_log(input.as_bytes(), Arc::clone(&log), LogStream::Stderr).await;
        let tail = log.tail(10);
        assert_eq!(texts(&tail)[..2], ["one", "two"]);
        assert!(tail[2].line.ends_with("… (cut)") && tail[2].line.len() < MAX_LINE + 20);
        assert_eq!(tail[3].line, "last");
        assert!(log.stderr_since(start).unwrap().starts_with("one\ntwo\n"));
        assert_eq!(log.stderr_since(log.position()), None);
    }

    #[test]
    fn memory_is_bounded_by_lines_and_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        log.append(LogStream::Stderr, (0..MAX_LINES * 2).map(|number| number.to_string()));
        assert_eq!(log.tail(usize::MAX).len(), MAX_LINES);
        log.append(LogStream::Stderr, (0..1000).map(|_| "y".repeat(4096)));
        let bytes: usize = log.tail(usize::MAX).iter().map(|entry| entry.line.len()).sum();
        assert!(bytes <= MAX_BYTES);
    }

    #[test]
    fn an_earlier_daemons_lines_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        log(dir.path()).append(LogStream::Stderr, ["before  the crash".to_owned()]);
        log(dir.path()).start_step("starting");
        log(dir.path()).lifecycle("back");
        let tail = log(dir.path()).tail(5);
        assert_eq!(texts(&tail), ["before  the crash", "starting", "back"]);
        let sources: Vec<_> = tail.iter().map(|entry| (entry.stream, entry.tag)).collect();
        assert_eq!(
            sources,
            [
                (LogStream::Stderr, None),
                (LogStream::Lifecycle, Some(LogTag::Start)),
                (LogStream::Lifecycle, Some(LogTag::Mcp)),
            ]
        );
    }

    #[test]
    fn tool_calls_stand_between_the_other_lines_and_displace_none_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        log.start_step("starting");
        let tool: Arc<str> = "echo".into();
        let position = log.position();
        log.tool_step(&tool, ToolStep::Started);
        assert!(log.since(position, 10).is_empty() && log.position() == position);
        log.append(LogStream::Stderr, ["meanwhile".to_owned()]);
        let end = ToolStep::Finished { outcome: cofer_model::Outcome::Ok, duration_ms: 12.34 };
        log.tool_step(&tool, end);
        let tail = log.tail(10);
        assert_eq!(
            texts(&tail),
            ["starting", "echo: call started", "meanwhile", "echo: ok after 12.3 ms"]
        );
        assert!(tail.windows(2).all(|two| two[0].seq < two[1].seq));
        assert_eq!(tail[1].tag, Some(LogTag::Tools));
        assert_eq!(texts(&log.tail(2)), ["meanwhile", "echo: ok after 12.3 ms"]);
        for _ in 0..MAX_LINES * 2 {
            log.tool_step(&tool, ToolStep::Started);
        }
        assert!(log.tail(usize::MAX).len() < MAX_LINES);
        assert_eq!(
            log.tail(usize::MAX)[..2]
                .iter()
                .filter(|entry| entry.tag != Some(LogTag::Tools))
                .count(),
            2
        );
        let file = std::fs::read_to_string(dir.path().join("x.log")).unwrap();
        assert!(file.contains("lifecycle [START] starting") && !file.contains("echo"), "{file}");
    }

    #[test]
    fn secrets_are_masked_in_memory_and_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let environment = BTreeMap::from([("API_KEY".to_owned(), "canary-0123456789".to_owned())]);
        log.set_redactor(Redactor::new(&environment));
        log.append(LogStream::Stderr, ["key is canary-0123456789".to_owned()]);
        assert!(!log.tail(1)[0].line.contains("canary"));
        assert!(!std::fs::read_to_string(dir.path().join("x.log")).unwrap().contains("canary"));
    }

    #[tokio::test]
    async fn a_follower_misses_nothing_between_tail_and_live() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        log.lifecycle("a");
        let mut feed = log.follow(10);
        log.lifecycle("b");
        assert_eq!(texts(&feed.tail), ["a"]);
        assert_eq!(feed.live.recv().await.unwrap().line, "b");
    }
}
