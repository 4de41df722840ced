//! A program on a terminal of its own: what it sees, what is heard of it, and that its tree
//! ends as every other does.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use cofer_model::Exit;
use cofer_runtime::{Launch, Terminal, TerminalSize, Workload};
use support::{FAMILY, FAMILY_SIZE, PATIENCE, exists, owner, parent, runner, sh, until};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

const SIZE: TerminalSize = TerminalSize { rows: 33, columns: 77 };

async fn start(launch: &Launch) -> (Workload, Terminal) {
    runner().start_on_terminal(launch, SIZE).await.unwrap()
}

/// All that is shown until the program and everything it started have ended.
async fn shown(terminal: &mut Terminal) -> String {
    let mut text = String::new();
    timeout(PATIENCE, terminal.output.read_to_string(&mut text)).await.unwrap().unwrap();
    text
}

#[tokio::test]
async fn a_program_leads_a_session_on_a_terminal_of_the_asked_size() {
    let script =
        "test -t 0 -a -t 1 -a -t 2 && stty size && ps -o sid=,tpgid= -p $$ && echo $$; exit 3";
    let (workload, mut terminal) = start(&sh(&owner("session"), script)).await;
    let text = shown(&mut terminal).await;
    let mut words = text.split_whitespace();
    assert_eq!((words.next(), words.next()), (Some("33"), Some("77")), "{text}");
    let pid = workload.pid().to_string();
    // Its session, the group in the foreground of its terminal, itself.
    assert_eq!(words.collect::<Vec<_>>(), [&pid; 3], "{text}");
    assert_eq!(workload.exited().await, Exit { code: Some(3), signal: None });
}

#[tokio::test]
async fn what_is_typed_arrives_and_who_collects_lines_is_known() {
    let script = "read line; stty raw; echo \"got $line\"; head -c 3";
    let (_workload, mut terminal) = start(&sh(&owner("typed"), script)).await;
    assert!(terminal.reads_lines());
    terminal.input.write_all(b"hello\r").await.unwrap();
    until("the program reads keys", || !terminal.reads_lines()).await;
    terminal.input.write_all(b"abc").await.unwrap();
    let text = shown(&mut terminal).await;
    assert!(text.contains("got hello") && text.ends_with("abc"), "{text:?}");
}

#[tokio::test]
async fn a_tree_on_a_terminal_ends_with_it() {
    let (workload, terminal) =
        start(&sh(&owner("tree"), &format!("{FAMILY}\nexec sleep 1000"))).await;
    let mut lines = BufReader::new(terminal.output).lines();
    let mut pids = vec![workload.pid(), parent(workload.pid())];
    for _ in 0..FAMILY_SIZE {
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        pids.push(line.trim().parse().unwrap());
    }
    assert!(pids.iter().all(|pid| exists(*pid)));
    drop(workload);
    until("the whole tree is gone", || pids.iter().all(|pid| !exists(*pid))).await;
}
