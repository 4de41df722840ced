//! The executor itself, run on this machine instead of in a container: it is the same program.

use std::fs::{self, File};

use cofer_runtime::tool;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::failure::Kind;
use crate::run::{End, Limit, Output, Program, Ran, foreground};
use crate::wire::{Ring, Step};

struct Running {
    folder: tempfile::TempDir,
    executor: Executor,
    _child: Child,
}

impl Running {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = program_in(folder.path()).unwrap();
        let child = tool(program).arg(folder.path().join(SOCKET)).spawn().unwrap();
        let executor = Executor::in_folder(folder.path().to_owned(), false);
        executor.listens(Duration::from_secs(20)).await.unwrap();
        Self { folder, executor, _child: child }
    }

    fn program(&self, argv: &[&str]) -> Program {
        Program {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            cwd: self.folder.path().to_str().unwrap().to_owned(),
            env: vec!["GREETING=hi $USER_NAME".to_owned()],
            secrets: [("KEY".to_owned(), "a$b${c}".to_owned())].into(),
        }
    }

    async fn run_within(&self, argv: &[&str], longest: Duration) -> Result<Ran, crate::Failure> {
        let limit = Limit { longest, cancelled: CancellationToken::new() };
        let program = self.program(argv);
        foreground(&self.executor, &program, &Output::default(), &limit, &TaskTracker::new()).await
    }

    async fn run(&self, argv: &[&str]) -> Result<Ran, crate::Failure> {
        self.run_within(argv, Duration::from_secs(60)).await
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

#[tokio::test]
async fn a_command_gets_its_pipes_its_folder_and_its_variables() {
    let running = Running::start().await;
    let script =
        "pwd; echo \"$GREETING\"; test \"$KEY\" = 'a$b${c}' && echo same; echo err >&2; exit 3";
    let ran = running.run(&["sh", "-c", script]).await.unwrap();
    let folder = fs::canonicalize(running.folder.path()).unwrap();
    assert_eq!(ran.stdout.text, format!("{}\nhi \nsame\n", folder.display()));
    assert_eq!((ran.stderr.text.as_str(), ran.end), ("err\n", End::Code(3)));
    let ran = running.run(&["sh", "-c", "kill -9 $$"]).await.unwrap();
    assert_eq!(ran.end, End::Signal(9));
    // As every program expects it: nothing to read, and an end by SIGPIPE.
    let script = "read line; grep SigIgn /proc/self/status";
    let ran = running.run(&["sh", "-c", script]).await.unwrap();
    let ignored = ran.stdout.text.trim().trim_start_matches("SigIgn:").trim();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & (1 << 12), 0, "{ran:?}");
}

#[tokio::test]
async fn what_cannot_be_run_is_said() {
    let running = Running::start().await;
    let refused = running.run(&["no-such-shell", "-c", "x"]).await.unwrap_err();
    assert_eq!(refused.kind, Kind::PreconditionFailed);
    assert!(refused.message.contains("no-such-shell"), "{refused}");
    assert_eq!(running.run(&[]).await.unwrap_err().kind, Kind::InvalidRequest);
    let mut program = running.program(&["true"]);
    program.cwd = "/no/such/folder".to_owned();
    let (answer, _) = ask_with_pipes(&running.executor, &program).await;
    assert!(matches!(answer, Answer::Failed { step: Step::Directory, .. }), "{answer:?}");
}

async fn ask_with_pipes(executor: &Executor, program: &Program) -> (Answer, Option<OwnedFd>) {
    let null = || OwnedFd::from(File::options().write(true).open("/dev/null").unwrap());
    let asked = executor.ask(&program.request(false), vec![null(), null()]).await;
    asked.unwrap().answer().await.unwrap()
}

#[tokio::test]
async fn past_the_limit_everything_is_gone_also_what_ran_away() {
    // covers: ENV-2.3
    let running = Running::start().await;
    let runaway = "setsid sh -c 'echo $$ >> pids; trap \"\" TERM; while :; do sleep 1000; done' &";
    let script = format!("({runaway}) ; ({runaway}) ; echo $$ >> pids; sleep 1000");
    let limit = Duration::from_millis(700);
    let failure = running.run_within(&["sh", "-c", &script], limit).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Timeout);
    let pids = running.file("pids");
    assert!(pids.lines().count() >= 1, "{pids:?}");
    for pid in pids.lines() {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }
}

#[tokio::test]
async fn a_background_command_goes_on_and_leaves_its_words() {
    let running = Running::start().await;
    let file = |name: &str| {
        let path = running.folder.path().join(name);
        OwnedFd::from(File::options().read(true).write(true).create_new(true).open(path).unwrap())
    };
    let script = "echo begun; while [ ! -e stop ]; do sleep 0.05; done; echo err >&2; exit 4";
    let program = running.program(&["sh", "-c", script]);
    let asked =
        running.executor.ask(&program.request(true), vec![file("log"), file("status")]).await;
    let mut conversation = asked.unwrap();
    assert!(matches!(conversation.answer().await.unwrap().0, Answer::Started { .. }));
    drop(conversation);
    wait_until(|| running.file("status").starts_with("running ")).await;
    fs::write(running.folder.path().join("stop"), "").unwrap();
    wait_until(|| running.file("status").starts_with("exited 4 ")).await;
    let (words, total) = Ring::read(&fs::read(running.folder.path().join("log")).unwrap());
    assert_eq!((words.as_slice(), total), (b"begun\nerr\n".as_slice(), 10));
}

async fn wait_until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(45), waiting).await.expect("it comes to pass");
}

#[tokio::test]
async fn a_connection_is_handed_over() {
    let running = Running::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (answer, descriptor) =
        running.executor.ask_once(&Request::Connect { port, relay: false }).await.unwrap();
    assert_eq!(answer, Answer::Connected);
    let mut ours = std::net::TcpStream::from(descriptor.unwrap());
    let (theirs, _) = listener.accept().await.unwrap();
    ours.write_all(b"x").unwrap();
    theirs.readable().await.unwrap();
    assert_eq!(theirs.try_read(&mut [0; 4]).unwrap(), 1);
    drop(listener);
    let (answer, descriptor) =
        running.executor.ask_once(&Request::Connect { port, relay: false }).await.unwrap();
    assert!(matches!(answer, Answer::Failed { .. }) && descriptor.is_none(), "{answer:?}");
}

#[tokio::test]
async fn outside_a_container_it_does_not_end_the_machine() {
    let running = Running::start().await;
    let asked = running.executor.ask_once(&Request::Terminate { grace_ms: 1 }).await;
    assert!(matches!(asked.unwrap().0, Answer::Failed { step: Step::Request, .. }));
}

#[tokio::test]
async fn a_link_in_its_place_is_not_followed() {
    let running = Running::start().await;
    let other = Running::start().await;
    fs::remove_file(running.folder.path().join(SOCKET)).unwrap();
    std::os::unix::fs::symlink(
        other.folder.path().join(SOCKET),
        running.folder.path().join(SOCKET),
    )
    .unwrap();
    assert!(running.executor.listens(Duration::ZERO).await.is_err());
    assert!(other.executor.listens(Duration::ZERO).await.is_ok());
}

#[tokio::test]
async fn a_port_is_relayed_in_both_directions_until_each_is_closed() {
    let running = Running::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = Request::Connect { port, relay: true };
    let mut asked = running.executor.ask(&request, Vec::new()).await.unwrap();
    let (answer, descriptor) = asked.answer().await.unwrap();
    assert!(answer == Answer::Connected && descriptor.is_none(), "{answer:?}");
    let mut ours = asked.into_stream();
    let (mut theirs, _) = listener.accept().await.unwrap();
    let mut heard = Vec::new();
    ours.write_all(b"question").await.unwrap();
    ours.shutdown().await.unwrap();
    theirs.read_to_end(&mut heard).await.unwrap();
    theirs.write_all(b"answer").await.unwrap();
    drop(theirs);
    ours.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"questionanswer");
}
