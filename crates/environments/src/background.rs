//! Commands that go on: started with ports that really answer, and remembered with the end of
//! their output, for as long as the environment is there.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::executor::{Conversation, Executor};
use crate::failure::{Attempt as _, Failure, Kind};
use crate::forward;
use crate::output::Tail;
use crate::run::{End, Limit, Program, cancelled, gone, refusal};
use crate::secrets;
use crate::wire::{Answer, Request, Ring};

/// How long a port may take to answer.
const ANSWERING: Duration = Duration::from_secs(30);

/// How long a command without ports is watched for an early end.
const SETTLING: Duration = Duration::from_millis(150);

const INTERVAL: Duration = Duration::from_millis(20);

/// How much of a command's output is told beside other things.
const TOLD: usize = 4 * 1024;

/// How many of an environment's commands are looked at, from the newest.
const MOST_LOOKED_AT: usize = 200;

/// Port → where it answers.
pub(crate) type Endpoints = BTreeMap<String, Value>;

/// Where a background command is started.
pub(crate) struct Background<'a> {
    pub(crate) executor: &'a Executor,
    /// Where its logs are.
    pub(crate) folder: &'a Path,
    pub(crate) forwarder: &'a Path,
    pub(crate) limit: &'a Limit,
}

impl Background<'_> {
    /// Starts `program` and waits until all `ports` answer.
    pub(crate) async fn start(
        &self,
        program: &Program,
        command: &str,
        ports: &[u16],
    ) -> Result<Endpoints, Failure> {
        for port in ports {
            if self.answers(*port).await? {
                let message = format!(
                    "port {port} of the environment is taken: another command answers on it"
                );
                let recovery =
                    "use another port, or end that command first (for example with `pkill`).";
                return Err(Failure::new(Kind::Conflict, "endpoints", message, recovery));
            }
        }
        let record = Record::create(self.folder, command)
            .attempting("command", "could not make the files for its output")?;
        let (log, status) =
            record.open().attempting("command", "could not make the files for its output")?;
        let asked = self.executor.ask(&program.request(true), vec![log, status]).await;
        let mut conversation = asked.map_err(|error| gone(&error))?;
        let started = match conversation.answer().await.map_err(|error| gone(&error))? {
            (Answer::Started { .. }, _) => {
                self.settle(&mut conversation, ports, &record, program).await
            }
            (other, _) => Err(refusal(other, program)),
        };
        if let Err(failure) = started {
            record.remove();
            return Err(failure);
        }
        self.publish(ports, &record)
    }

    /// Until all ports answer, or for a moment where there are none.
    async fn settle(
        &self,
        conversation: &mut Conversation,
        ports: &[u16],
        record: &Record,
        program: &Program,
    ) -> Result<(), Failure> {
        let longest = if ports.is_empty() { SETTLING } else { ANSWERING };
        let answering = async {
            for port in ports {
                while !self.answers(*port).await? {
                    sleep(INTERVAL).await;
                }
            }
            if ports.is_empty() {
                sleep(SETTLING).await;
            }
            Ok(())
        };
        let deadline = Instant::now() + longest + Duration::from_millis(50);
        tokio::select! {
            answered = answering => answered,
            ended = conversation.answer() => match ended {
                // With ports, even a command that did well has left nobody to answer on them.
                Ok((Answer::Exited { code: 0 }, _)) if ports.is_empty() => Ok(()),
                Ok((Answer::Exited { code }, _)) => Err(ended_early(End::Code(code), record, program)),
                Ok((Answer::Signalled { signal }, _)) => Err(ended_early(End::Signal(signal), record, program)),
                Ok((other, _)) => Err(refusal(other, program)),
                Err(error) => Err(gone(&error)),
            },
            () = tokio::time::sleep_until(deadline) => {
                let message = format!("the command runs, and its ports did not answer within {} s", longest.as_secs());
                let recovery = "it goes on running: look at its output and which port it listens on, then end it or name the right port.";
                let failure = Failure::new(Kind::Timeout, "endpoints", message, recovery);
                Err(failure.beside(json!({"stdout": record.output(&program.secrets), "stderr": "", "exit_code": null})))
            }
            () = self.limit.cancelled.cancelled() => Err(cancelled()),
        }
    }

    async fn answers(&self, port: u16) -> Result<bool, Failure> {
        let (answer, _) = self
            .executor
            .ask_once(&Request::Connect { port, relay: self.executor.is_sandboxed() })
            .await
            .map_err(|error| gone(&error))?;
        Ok(answer == Answer::Connected)
    }

    fn publish(&self, ports: &[u16], record: &Record) -> Result<Endpoints, Failure> {
        let mut endpoints = Endpoints::new();
        let mut forwarded = Vec::new();
        for port in ports {
            let here = forward::start(self.forwarder, self.executor, *port);
            let here = here.attempting("endpoints", "could not forward a port")?;
            let endpoint = json!({
                "environment_internal": format!("tcp://127.0.0.1:{port}"),
                "host_external": format!("tcp://127.0.0.1:{here}"),
            });
            endpoints.insert(port.to_string(), endpoint);
            forwarded.push((*port, here));
        }
        if let Err(error) = record.note_ports(&forwarded) {
            tracing::warn!(%error, "the ports of a command are not remembered");
        }
        Ok(endpoints)
    }
}

fn ended_early(end: End, record: &Record, program: &Program) -> Failure {
    let output = record.output(&program.secrets);
    let message = format!("the background command ended at once with exit code {}", end.code());
    let recovery = "its output is beside this error: correct the command and start it again.";
    let failure = Failure::new(Kind::PreconditionFailed, "command", message, recovery);
    failure.beside(json!({"exit_code": end.code(), "stdout": output, "stderr": ""}))
}

/// What is kept of one background command: files with one stem.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    stem: PathBuf,
}

impl Record {
    fn create(folder: &Path, command: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        // In the order of their start.
        let record = Self { stem: folder.join(uuid::Uuid::now_v7().simple().to_string()) };
        let command: String = command.chars().take(500).collect();
        fs::write(record.stem.with_extension("command"), command)?;
        Ok(record)
    }

    fn open(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let open = |extension| -> io::Result<OwnedFd> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true).mode(0o600);
            Ok(options.open(self.stem.with_extension(extension))?.into())
        };
        Ok((open("log")?, open("status")?))
    }

    fn remove(&self) {
        for extension in ["command", "log", "status", "ports"] {
            drop(fs::remove_file(self.stem.with_extension(extension)));
        }
    }

    /// Where its ports answer, for as long as it runs.
    fn note_ports(&self, ports: &[(u16, u16)]) -> io::Result<()> {
        if ports.is_empty() {
            return Ok(());
        }
        fs::write(self.stem.with_extension("ports"), serde_json::to_vec(ports)?)
    }

    fn text(&self, extension: &str) -> io::Result<String> {
        let bytes = read_some(&self.stem.with_extension(extension), 4096)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }

    /// Whether it ran when that was last written down, and else how it ended.
    fn end(&self) -> io::Result<(bool, Option<i32>)> {
        let status = self.text("status")?;
        let (word, number) = status.trim().split_once(' ').unwrap_or(("starting", "0"));
        let number: i32 = number.trim().parse().unwrap_or_default();
        Ok(match word {
            "exited" => (false, Some(number)),
            "killed" => (false, Some(End::Signal(number).code())),
            _ => (matches!(word, "running" | "starting"), None),
        })
    }

    /// When it was given its name.
    fn named_at(&self) -> Option<SystemTime> {
        let name = uuid::Uuid::parse_str(self.stem.file_name()?.to_str()?).ok()?;
        let (seconds, nanos) = name.get_timestamp()?.to_unix();
        Some(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos))
    }

    /// What a list shows of it, where its container is awake since `awake_since`.
    fn started(&self, awake_since: Option<SystemTime>) -> io::Result<Started> {
        let written = self.stem.with_extension("command").metadata()?.modified()?;
        let (ran, exit_code) = self.end()?;
        let ports = self.text("ports").unwrap_or_default();
        Ok(Started {
            command: self.text("command")?,
            at: self.named_at().unwrap_or(written),
            // Both are times of the file system, whose clock is coarser than ours.
            running: ran && awake_since.is_some_and(|awake| written >= awake),
            exit_code,
            ports: serde_json::from_str(&ports).unwrap_or_default(),
        })
    }

    /// The end of its output.
    fn output(&self, secrets: &BTreeMap<String, String>) -> String {
        let bytes = read_some(&self.stem.with_extension("log"), Ring::SIZE + 8).unwrap_or_default();
        let (bytes, total) = Ring::read(&bytes);
        let mut tail = Tail::default();
        if total > Ring::SIZE {
            // Says that something came before.
            tail.push(b"\n");
        }
        tail.push(&bytes);
        secrets::without(tail.text(TOLD).text, secrets)
    }

    fn json(&self, secrets: &BTreeMap<String, String>) -> io::Result<Value> {
        let (running, exit_code) = self.end()?;
        let mut content = json!({"command": self.text("command")?, "running": running});
        if let Some(code) = exit_code {
            content["exit_code"] = json!(code);
        }
        content["output"] = json!(self.output(secrets));
        Ok(content)
    }
}

/// A background command, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) command: String,
    pub(crate) at: SystemTime,
    pub(crate) running: bool,
    pub(crate) exit_code: Option<i32>,
    /// Ports in the container, and where they answer here.
    pub(crate) ports: Vec<(u16, u16)>,
}

fn read_some(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All background commands of an environment, in the order of their start.
pub(crate) fn all(folder: &Path, secrets: &BTreeMap<String, String>) -> Vec<Value> {
    records(folder).filter_map(|record| record.json(secrets).ok()).collect()
}

/// The newest background commands of an environment whose container is awake since
/// `awake_since`: what was started before that has ended with the container.
pub(crate) fn started(folder: &Path, awake_since: Option<SystemTime>) -> Vec<Started> {
    let newest = records(folder).rev().take(MOST_LOOKED_AT);
    newest.filter_map(|record| record.started(awake_since).ok()).collect()
}

fn records(folder: &Path) -> impl DoubleEndedIterator<Item = Record> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut stems: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "status"))
        .collect();
    stems.sort();
    stems.into_iter().map(|stem| Record { stem: stem.with_extension("") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_an_earlier_container_does_not_run_and_has_no_ports_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record::create(folder.path(), "serve").unwrap();
        fs::write(record.stem.with_extension("status"), "running 7\n").unwrap();
        record.note_ports(&[(8080, 40001)]).unwrap();
        let at = record.stem.with_extension("command").metadata().unwrap().modified().unwrap();
        assert!(record.named_at().is_some(), "{record:?}");
        let runs = |awake| started(folder.path(), awake)[0].running;
        assert!(runs(Some(at)), "started in this life of the container");
        assert!(!runs(Some(at + Duration::from_secs(1))), "started in an earlier one");
        assert!(!runs(None), "the container does not run");
        assert_eq!(started(folder.path(), Some(at))[0].ports, [(8080, 40001)]);
        fs::write(record.stem.with_extension("status"), "killed 9\n").unwrap();
        let ended = &started(folder.path(), Some(at))[0];
        assert_eq!((ended.running, ended.exit_code), (false, Some(137)));
        record.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
