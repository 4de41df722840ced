//! What the kernel says of a container's first process: that it is the container's, which
//! runtime started it, and whether it is a sandbox. Neither Podman nor we can be wrong about
//! that unnoticed.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::proc::Process;

/// How gVisor's program is called.
const SANDBOX: &str = "runsc";

/// See the module.
#[derive(Debug)]
pub(crate) struct Witness {
    /// A handle on the process, where it is the container's and still runs.
    pub(crate) handle: Option<OwnedFd>,
    /// A handle on conmon, which is its parent.
    pub(crate) conmon: Option<OwnedFd>,
    /// The runtime that conmon works with, by its program's name.
    pub(crate) runtime: Option<String>,
    /// Where the runtime's configuration lies.
    pub(crate) bundle: Option<PathBuf>,
    /// Whether the process is a sandbox; unknown where it has just ended.
    pub(crate) is_sandbox: Option<bool>,
}

impl Witness {
    /// Looks at `pid`, which Podman says is the first process of container `id`.
    pub(crate) fn of(pid: u32, id: &str) -> Self {
        let nothing =
            Self { handle: None, conmon: None, runtime: None, bundle: None, is_sandbox: None };
        let Some(process) = Process::read(pid) else {
            return nothing;
        };
        // Opened first, so that what is read after is of the same process.
        let Ok(handle) = process.open() else {
            return nothing;
        };
        let parent = Process::read(process.parent);
        let args = arguments(process.parent);
        let is_conmon = args.iter().any(|arg| arg == id);
        let in_cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .is_ok_and(|cgroup| cgroup.contains(id));
        if !is_conmon && !in_cgroup {
            return nothing;
        }
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let program = program.as_deref().and_then(|path| path.file_name());
        Self {
            handle: Some(handle),
            conmon: parent.filter(|_| is_conmon).and_then(|parent| parent.open().ok()),
            runtime: after(&args, &["-r", "--runtime"]).filter(|_| is_conmon).map(file_name),
            bundle: after(&args, &["-b", "--bundle"]).filter(|_| is_conmon).map(PathBuf::from),
            is_sandbox: program.map(is_sandbox),
        }
    }
}

/// A program that was replaced while it runs has a word behind its name.
fn is_sandbox(program: &OsStr) -> bool {
    let name = program.as_bytes();
    name == SANDBOX.as_bytes() || name.starts_with(b"runsc ")
}

fn arguments(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
}

/// What follows one of `flags`.
fn after<'a>(args: &'a [String], flags: &[&str]) -> Option<&'a str> {
    let at = args.iter().position(|arg| flags.contains(&arg.as_str()))?;
    args.get(at + 1).map(String::as_str)
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conmons_arguments_name_the_runtime_and_its_configuration() {
        let args = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = args("/usr/bin/conmon --api-version 1 -c 0a -r /usr/bin/runc -b /bundle");
        assert_eq!(after(&line, &["-r"]).map(file_name).as_deref(), Some("runc"));
        assert_eq!(after(&line, &["-b"]), Some("/bundle"));
        assert_eq!(after(&args("conmon -r"), &["-r"]), None);
        assert_eq!(after(&args("sh -c x"), &["-r"]), None);
    }

    #[test]
    fn a_stranger_with_the_same_number_is_not_the_container() {
        let witness = Witness::of(std::process::id(), &"0".repeat(64));
        assert!(witness.handle.is_none() && witness.runtime.is_none());
        assert_eq!(witness.is_sandbox, None);
        assert!(Witness::of(u32::MAX, "x").handle.is_none());
    }

    #[test]
    fn a_sandbox_is_known_by_its_program_also_when_that_was_replaced() {
        for name in ["runsc", "runsc (deleted)"] {
            assert!(is_sandbox(OsStr::new(name)), "{name}");
        }
        for name in ["runsc-like", "cat", "runc"] {
            assert!(!is_sandbox(OsStr::new(name)), "{name}");
        }
    }
}
