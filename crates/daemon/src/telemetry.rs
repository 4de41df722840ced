//! What the daemon says about itself: one line per event, on stderr and in `logs/cofer.log`,
//! written by threads of their own so that no request waits for a disk or a terminal.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cofer_supervisor::{RotatingFile, Rotation};
use tracing_subscriber::filter::{Directive, EnvFilter, ParseError};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use crate::log_line::{EscapedFields, LogLine};
use crate::log_queue::{LogQueue, LogWriter};

/// What is told without being asked.
const DEFAULT_FILTER: &str = "info";
/// The log in the logs directory.
const FILE: &str = "cofer.log";

/// Keeps the writers going; what is still queued is written when it is dropped.
#[derive(Debug)]
pub(crate) struct Telemetry {
    lost_in_file: Arc<AtomicU64>,
    writers: [LogWriter; 2],
}

/// Why nothing can be told.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `COFER_LOG` or `RUST_LOG` cannot be understood.
    #[error("could not read the log filter `{filter}` in {variable}")]
    Filter {
        /// Which variable.
        variable: &'static str,
        /// What it says.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The log file cannot be written.
    #[error("could not open the log file in `{directory}`")]
    File {
        /// The logs directory.
        directory: String,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no thread to be had for the log.
    #[error("could not start a thread for the log")]
    Thread(#[source] io::Error),
    /// Somebody else has already set it up in this process.
    #[error("could not set up the log")]
    Taken(#[from] TryInitError),
}

impl Telemetry {
    /// Sends every event of this process to stderr and to `cofer.log` in `logs`.
    pub(crate) fn init(logs: &Path) -> Result<Self, TelemetryError> {
        let filter = without_secrets(filter_from(|variable| std::env::var(variable).ok())?);
        check_writable(logs)?;
        let file = RotatingFile::new(logs.join(FILE), Rotation::default());
        let (telemetry, both) = Self::start(file, io::stderr())?;
        tracing_subscriber::registry().with(filter).with(layer(both)).try_init()?;
        Ok(telemetry)
    }

    fn start(
        file: RotatingFile,
        stderr: impl Write + Send + 'static,
    ) -> Result<(Self, Both), TelemetryError> {
        let lost_in_file = file.lost_lines();
        let (to_file, file_writer) =
            LogQueue::start("log-file", file).map_err(TelemetryError::Thread)?;
        let (to_stderr, stderr_writer) =
            LogQueue::start("log-stderr", stderr).map_err(TelemetryError::Thread)?;
        let telemetry = Self { lost_in_file, writers: [file_writer, stderr_writer] };
        Ok((telemetry, Both { to_file, to_stderr }))
    }

    /// How many lines were lost, to a full queue or to a file that could not be written.
    pub(crate) fn lost_lines(&self) -> u64 {
        let queues: u64 = self.writers.iter().map(LogWriter::lost_lines).sum();
        self.lost_in_file.load(Ordering::Relaxed) + queues
    }
}

/// `COFER_LOG`, else `RUST_LOG`, else `info`.
fn filter_from(get: impl Fn(&str) -> Option<String>) -> Result<EnvFilter, TelemetryError> {
    for variable in ["COFER_LOG", "RUST_LOG"] {
        if let Some(filter) = get(variable).filter(|filter| !filter.trim().is_empty()) {
            return EnvFilter::builder().parse(&filter).map_err(|source| TelemetryError::Filter {
                variable,
                filter,
                source,
            });
        }
    }
    Ok(EnvFilter::new(DEFAULT_FILTER))
}

/// Below these targets stand other crates' words about requests to model providers, keys and
/// all; what is worth knowing of them, the chat says itself.
fn without_secrets(filter: EnvFilter) -> EnvFilter {
    let quiet = |target| Directive::from_str(target).expect("a constant");
    filter.add_directive(quiet("genai=off")).add_directive(quiet("h2=info"))
}

/// A log that cannot be written is told at the start, when somebody looks.
fn check_writable(logs: &Path) -> Result<(), TelemetryError> {
    let open =
        || fs::OpenOptions::new().create(true).append(true).mode(0o600).open(logs.join(FILE));
    open()
        .map(drop)
        .map_err(|source| TelemetryError::File { directory: logs.display().to_string(), source })
}

fn layer<S, W>(writer: W) -> tracing_subscriber::fmt::Layer<S, EscapedFields, LogLine, W>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    tracing_subscriber::fmt::layer()
        .fmt_fields(EscapedFields)
        .event_format(LogLine)
        .with_ansi(false)
        .with_writer(writer)
}

/// One formatted line, two queues. Each has its own thread behind it, so that a terminal that
/// has stopped reading does not stop the file.
#[derive(Debug, Clone)]
struct Both {
    to_file: LogQueue,
    to_stderr: LogQueue,
}

impl<'a> MakeWriter<'a> for Both {
    type Writer = BothWriter<'a>;

    fn make_writer(&'a self) -> BothWriter<'a> {
        BothWriter(self)
    }
}

struct BothWriter<'a>(&'a Both);

impl Write for BothWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.to_file.push(line);
        self.0.to_stderr.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_event_is_one_line_in_the_file_and_on_stderr() {
        // covers: MGR-63
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cofer.log");
        let stderr = Shared::default();
        let file = RotatingFile::new(&path, Rotation::default());
        let (telemetry, both) = Telemetry::start(file, stderr.clone()).unwrap();
        let subscriber = tracing_subscriber::registry().with(layer(both));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "MCP", server = "fs", "server is ready");
            tracing::warn!("two");
        });
        assert_eq!(telemetry.lost_lines(), 0);
        drop(telemetry);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("Z  INFO [MCP] server is ready server=fs\n"), "{text}");
        assert!(text.ends_with("Z  WARN two\n"), "{text}");
        assert_eq!(String::from_utf8(stderr.0.lock().unwrap().clone()).unwrap(), text);
    }

    #[test]
    fn the_filter_is_cofers_then_rusts_then_info() {
        let check = |cofer: &str, rust: &str| {
            let get = |variable: &str| match variable {
                "COFER_LOG" => Some(cofer.to_owned()),
                _ => Some(rust.to_owned()),
            };
            filter_from(get).map(|filter| filter.to_string())
        };
        assert_eq!(check("debug", "warn").unwrap(), "debug");
        assert_eq!(check("", "warn").unwrap(), "warn");
        assert_eq!(check("", " ").unwrap(), "info");
        assert_eq!(filter_from(|_| None).unwrap().to_string(), "info");
        let error = check("TOOLS=loud", "").unwrap_err();
        assert!(error.to_string().contains("COFER_LOG"), "{error}");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_an_error_at_the_start() {
        let error = check_writable(Path::new("/nonexistent/logs")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/logs"), "{error}");
    }
}
