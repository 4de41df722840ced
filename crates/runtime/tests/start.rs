//! What a server is born with: environment, directory, descriptors, signals; what is told of
//! it; and what is said when it cannot start.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;

use cofer_model::Exit;
use cofer_runtime::{Launch, MARKER, StartError, usage_of_all};
use rustix::process::Signal;
use support::{owner, program, runner, sh, start};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

// covers: HST-1.3
#[tokio::test]
async fn a_server_has_the_configured_environment_and_no_more_of_the_daemons_than_it_needs() {
    let base =
        [("PATH", "/usr/bin:/bin"), ("HOME", "/"), ("SECRET", "x"), ("COFER_DATA_DIR", "/d")];
    let base = base.into_iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    let mut launch = program(&owner("environment"), "env", &[]);
    launch.environment = BTreeMap::from([("API_KEY".to_owned(), "a b=c".to_owned())]);

    let runner = runner().with_environment(base.collect());
    let (_workload, mut streams) = runner.start(&launch).await.unwrap();
    let mut output = String::new();
    streams.stdout.read_to_string(&mut output).await.unwrap();

    let (marker, rest): (Vec<&str>, Vec<&str>) =
        output.lines().partition(|line| line.starts_with(MARKER));
    assert!(marker[0].starts_with(&format!("{MARKER}={}/", launch.marker)), "{marker:?}");
    let rest: BTreeSet<&str> = rest.into_iter().collect();
    assert_eq!(rest, BTreeSet::from(["PATH=/usr/bin:/bin", "HOME=/", "API_KEY=a b=c"]));
}

#[tokio::test]
async fn a_server_runs_where_it_was_asked_to_and_else_at_home() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let base = BTreeMap::from([(OsString::from("HOME"), OsString::from(&place))]);
    let at_home = sh(&owner("cwd"), "pwd -P");
    let elsewhere = Launch { cwd: Some("/usr".to_owned()), ..at_home.clone() };
    for (launch, expected) in [(at_home, place.as_str()), (elsewhere, "/usr")] {
        let runner = runner().with_environment(base.clone());
        let (_workload, mut streams) = runner.start(&launch).await.unwrap();
        let mut output = String::new();
        streams.stdout.read_to_string(&mut output).await.unwrap();
        assert_eq!(output.trim_end(), expected);
    }
}

#[tokio::test]
async fn arguments_arrive_as_they_were_given() {
    let script = r#"for arg in "$@"; do echo "[$arg]"; done"#;
    let args = ["-c", script, "sh", "a b", "", "$HOME;ls", "--", "ü"];
    let mut running = start(&program(&owner("args"), "/bin/sh", &args)).await;
    for expected in ["[a b]", "[]", "[$HOME;ls]", "[--]", "[ü]"] {
        assert_eq!(running.line().await, expected);
    }
}

#[tokio::test]
async fn a_server_has_three_descriptors_even_if_the_daemon_was_given_more() {
    let stray = File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).unwrap();
    let mut running = start(&sh(&owner("fds"), "echo up; exec cat")).await;
    running.line().await;
    let pid = running.workload.pid();
    let descriptors = |pid: u32| {
        let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    // `cat` has more for a moment, while it is loaded.
    let three = BTreeSet::from(["0", "1", "2"].map(str::to_owned));
    support::until("the server has three descriptors", || descriptors(pid) == three).await;

    // The shim has its control socket, and neither the stray nor the pipes.
    let shim = running.shim();
    for descriptor in descriptors(shim).iter().filter(|number| number.as_str() > "2") {
        let target = fs::read_link(format!("/proc/{shim}/fd/{descriptor}")).unwrap();
        assert!(target.to_str().unwrap().starts_with("socket:"), "{target:?}");
    }
    for descriptor in ["0", "1", "2"] {
        let target = fs::read_link(format!("/proc/{shim}/fd/{descriptor}")).unwrap();
        assert_eq!(target.to_str(), Some("/dev/null"));
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        let nonblocking = i64::from_str_radix(flags, 8).unwrap() & 0o4000;
        assert_eq!(nonblocking, 0, "the server's descriptor {descriptor} does not block");
    }
}

#[tokio::test]
async fn a_server_starts_with_default_signals_in_its_own_group_and_session() {
    let mut running = start(&sh(&owner("signals"), "echo up; exec cat")).await;
    running.line().await;
    let pid = running.workload.pid();
    assert_eq!(support::status(pid, "SigBlk"), "0000000000000000");
    assert_eq!(support::ignored_signals(pid), 0);
    let group = |pid: u32| rustix::process::getpgid(rustix::process::Pid::from_raw(pid as i32));
    assert_eq!(group(pid).unwrap().as_raw_nonzero().get(), pid as i32);
    assert_ne!(support::session(pid), support::session(std::process::id()));
}

#[tokio::test]
async fn signals_meant_for_others_do_not_end_the_shim() {
    let mut running = start(&sh(&owner("shim-signals"), "exec cat")).await;
    for number in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        support::signal(running.shim(), number);
    }
    running.stdin.write_all(b"still here\n").await.unwrap();
    assert_eq!(running.line().await, "still here");
    drop(running.stdin);
    let exit = running.workload.exited().await;
    assert_eq!(exit, Exit { code: Some(0), signal: None });
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_to_everybody_who_asks() {
    for (script, expected) in [
        ("exit 0", Exit { code: Some(0), signal: None }),
        ("exit 7", Exit { code: Some(7), signal: None }),
        ("kill -SEGV $$", Exit { code: None, signal: Some(11) }),
    ] {
        let running = start(&sh(&owner("exit"), script)).await;
        let (one, other) = tokio::join!(running.exited(), running.exited());
        assert_eq!((one, other), (expected, expected), "{script}");
        assert_eq!(running.exited().await, expected, "{script}");
    }
}

#[tokio::test]
async fn large_messages_pass_in_both_directions_at_once() {
    let message: Vec<u8> = (0..16 * 1024 * 1024_u32).map(|n| (n % 251) as u8).collect();
    let running = start(&program(&owner("large"), "cat", &[])).await;
    let (mut stdin, mut stdout) = (running.stdin, running.stdout);
    let mut received = Vec::new();
    let write = async {
        stdin.write_all(&message).await.unwrap();
        drop(stdin);
    };
    tokio::join!(write, async { stdout.read_to_end(&mut received).await.unwrap() });
    assert!(received == message);
}

#[tokio::test]
async fn the_use_of_a_tree_is_measured_and_ends_with_it() {
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let mut running = start(&sh(&owner("usage"), &format!("sleep 1000 & {burn}; echo; cat"))).await;
    running.line().await;
    let mut idle = start(&program(&owner("idle"), "cat", &[])).await;
    idle.stdin.write_all(b"\n").await.unwrap();
    idle.line().await;

    let both = usage_of_all([&running.workload, &idle.workload]);
    let (busy_use, idle_use) = (both[0].unwrap(), both[1].unwrap());
    assert!(busy_use.cpu_percent > 1.0, "{busy_use:?}");
    assert!(busy_use.memory_bytes > idle_use.memory_bytes, "{busy_use:?} {idle_use:?}");
    assert!(busy_use.pids >= 2, "{busy_use:?}");
    assert_eq!(idle_use.pids, 1);
    assert!(idle_use.memory_bytes > 100_000, "{idle_use:?}");

    running.workload.kill();
    running.exited().await;
    assert_eq!(running.workload.usage(), None);
}

#[tokio::test]
async fn isolation_is_read_back_from_the_running_process() {
    let running = start(&sh(&owner("isolation"), "exec cat")).await;
    let isolation = running.workload.isolation();
    assert_eq!(isolation["runtime"], "process");
    assert_eq!(isolation["user"], rustix::process::geteuid().as_raw());
    assert_eq!(isolation["network"], "host");
    let containment = if cofer_runtime::containment().is_ok() { "cgroup" } else { "subreaper" };
    assert_eq!(isolation["containment"], containment);
    running.workload.kill();
    running.gone().await;
    assert!(running.workload.isolation().is_null());
}

async fn refusal(launch: &Launch) -> StartError {
    let error = runner().start(launch).await.map(|(workload, _)| workload).unwrap_err();
    // Whatever can be checked without starting is checked the same way.
    let by_the_system = matches!(
        error,
        StartError::NoInterpreter { .. }
            | StartError::UnknownFormat { .. }
            | StartError::Spawn { .. }
    );
    if !by_the_system {
        assert_eq!(runner().check(launch).unwrap_err().to_string(), error.to_string());
    }
    error
}

#[tokio::test]
async fn a_program_that_cannot_run_is_refused_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let owner = owner("refused");
    let error = refusal(&program(&owner, "no-such-program", &[])).await;
    assert!(matches!(error, StartError::CommandNotFound(_)), "{error:?}");
    assert!(error.to_string().starts_with("`no-such-program` was not found on PATH ("), "{error}");

    let error = refusal(&program(&owner, &file("plain", "", 0o644), &[])).await;
    assert!(matches!(error, StartError::NotExecutable(_)), "{error:?}");

    let error = refusal(&program(&owner, "/usr", &[])).await;
    assert_eq!(error.to_string(), "`/usr` is a directory, not a program");

    let error = refusal(&program(&owner, &file("script", "#!/no/such\n", 0o755), &[])).await;
    assert!(matches!(error, StartError::NoInterpreter { .. }), "{error:?}");

    let ran = place.path().join("ran");
    let no_format = format!("touch {}\n", ran.display());
    let error = refusal(&program(&owner, &file("format", &no_format, 0o755), &[])).await;
    assert!(matches!(error, StartError::UnknownFormat { .. }), "{error:?}");
    assert!(!ran.exists(), "a file without a format was run by a shell");

    let error = refusal(&program(&owner, &file("denied", "#!/etc/passwd\n", 0o755), &[])).await;
    assert!(matches!(error, StartError::Spawn { .. }), "{error:?}");

    let error = refusal(&program(&owner, "true", &["x".repeat(1 << 20).as_str()])).await;
    assert!(matches!(error, StartError::Spawn { .. }), "{error:?}");
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_refused_with_the_reason() {
    for (cwd, reason) in [
        ("/no/such/directory", "No such file or directory"),
        ("/etc/passwd", "Not a directory"),
        ("here", "it is not an absolute path"),
    ] {
        let launch = Launch { cwd: Some(cwd.to_owned()), ..sh(&owner("cwd"), "exit 0") };
        let error = refusal(&launch).await;
        assert_eq!(error.to_string(), format!("could not use `{cwd}` as the working directory"));
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.starts_with(reason), "{source}");
    }
}

#[tokio::test]
async fn what_cannot_be_an_argument_or_a_variable_is_refused_without_its_value() {
    let good = sh(&owner("arguments"), "exit 0");
    let nul = Launch { args: vec!["a\0secret".to_owned()], ..good.clone() };
    assert!(matches!(refusal(&nul).await, StartError::BadArgument { .. }));
    for (key, value) in [("A=B", "secret"), ("", "secret"), ("KEY", "secret\0")] {
        let environment = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let error = refusal(&Launch { environment, ..good.clone() }).await;
        assert!(matches!(error, StartError::BadArgument { .. }), "{error:?}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_shim_that_is_not_there_is_our_failure_and_not_the_programs() {
    let runner = cofer_runtime::Runner::new("/no/such/shim".into());
    let error = runner.start(&sh(&owner("no-shim"), "exit 0")).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StartError::Shim { .. }), "{error:?}");
}
