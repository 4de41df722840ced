//! The trial of an OCI runtime: a container without an image that reports its kernel and exits.
//! Some runtimes are installed and cannot work, which only a container that ran can tell.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use cofer_model::Network;
use rustix::process::Signal;

use super::arguments::ID_FILE;
use super::choice::RuntimeChoice;
use super::complaint;
use super::label;
use super::probe;
use super::{Podman, files::RunFiles};
use crate::proc::Snapshot;

/// The limit of a trial; one takes a second.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

impl Podman {
    /// Runs a container that has nothing but a program of two hundred bytes, and returns the
    /// release of the kernel it ran on.
    pub(crate) async fn try_runtime(&self, choice: &RuntimeChoice) -> Result<String, String> {
        let run = self.next_run();
        let files =
            RunFiles::make(&self.inner.state_dir, &run).map_err(|error| error.to_string())?;
        let root = files.path().join("root");
        write_program(&root).map_err(|error| format!("could not write the trial: {error}"))?;
        let mut args = choice.global_flags(Network::Egress);
        args.extend(["run", "--rm", "--pull=never", "--network=private"].map(str::to_owned));
        args.extend(["--cap-drop=all", "--security-opt=no-new-privileges"].map(str::to_owned));
        args.extend(["--read-only", "--read-only-tmpfs=false"].map(str::to_owned));
        for (key, value) in [
            (label::OWNER, &self.inner.owner),
            (label::DAEMON, &self.inner.daemon),
            (label::RUN, &run),
        ] {
            args.push(format!("--label={key}={value}"));
        }
        args.push(format!("--cidfile={}", files.path().join(ID_FILE).display()));
        // `--rootfs`: the argument in the place of an image is a directory.
        args.extend(["--rootfs".to_owned(), root.display().to_string(), "/trial".to_owned()]);
        match self.inner.client.run(&args, PROBE_LIMIT).await {
            Ok(answer) if answer.status.code() == Some(probe::EXIT_CODE) => {
                Ok(probe::kernel_release(&answer.stdout))
            }
            Ok(answer) => {
                self.remove_run(&run).await;
                Err(complaint::message(&answer.stderr))
            }
            Err(error) => {
                self.remove_run(&run).await;
                end_sandbox(&files);
                Err(error.to_string())
            }
        }
    }
}

fn write_program(root: &Path) -> std::io::Result<()> {
    fs::create_dir(root)?;
    let path = root.join("trial");
    fs::write(&path, probe::program())?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Ends what a runtime that hung left running without its container.
fn end_sandbox(files: &RunFiles) {
    let Some(id) = files.read(ID_FILE).filter(|id| id.len() >= 32) else {
        return;
    };
    for process in Snapshot::take().all() {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        if line.split(|byte| *byte == 0).any(|arg| arg == id.as_bytes()) {
            process.signal(Signal::KILL);
        }
    }
}
