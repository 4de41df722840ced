//! The runner: starts everything on loopback, measures in interleaved rounds, prints tables.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use cofer_bench::containers;
use cofer_bench::daemon::Daemon;
use cofer_bench::environments;
use cofer_bench::gateway;
use cofer_bench::goals::{COLUMNS, MIB, OURS, SMALL, call_goals, gateway_goals};
use cofer_bench::process;
use cofer_bench::proxy;
use cofer_bench::report::{Column, Finding, Goal, Table, Wanted, goals_markdown};
use cofer_bench::sample::{Figures, median};
use cofer_bench::target::Target;
use tokio::time::sleep;

const USAGE: &str = "\
usage: bench [--rounds N] [--seconds S] [--peers DIR] [--without-cofer] [--image IMAGE] [--only WHAT]
  --rounds N        interleaved rounds of which the medians are shown (5)
  --seconds S       how long each measurement takes (1)
  --peers DIR       where scripts/setup-bench put the other bridges; without it they are left out
  --without-cofer   only the limits and the peers
  --image IMAGE     the image of echo-server; without it nothing is measured in containers
  --only WHAT       only calls, proxy, containers or environments
";

/// What can be measured alone.
const PARTS: [&str; 4] = ["calls", "proxy", "containers", "environments"];

const IDLE_SERVERS: usize = 100;
const STARTS: usize = 20;

struct Options {
    rounds: usize,
    time: Duration,
    peers: Option<PathBuf>,
    with_cofer: bool,
    /// The image of `echo-server`, where containers are to be measured.
    image: Option<String>,
    only: Option<String>,
    /// Where the binaries lie: beside this one.
    bin: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(options) = options() else {
        say(USAGE);
        return ExitCode::from(2);
    };
    match run(&options).await {
        Ok(report) => match io::stdout().write_all(report.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            say(&format!("bench: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn options() -> Option<Options> {
    let bin = env::current_exe().ok()?.parent()?.to_owned();
    let time = Duration::from_secs(1);
    let mut options =
        Options { rounds: 5, time, peers: None, with_cofer: true, image: None, only: None, bin };
    let mut args = env::args().skip(1);
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--rounds" => options.rounds = args.next()?.parse().ok().filter(|n| *n > 0)?,
            "--seconds" => {
                options.time = Duration::try_from_secs_f64(args.next()?.parse().ok()?).ok()?;
            }
            "--peers" => options.peers = Some(args.next()?.into()),
            "--without-cofer" => options.with_cofer = false,
            "--image" => options.image = Some(args.next()?),
            "--only" => options.only = args.next().filter(|what| PARTS.contains(&what.as_str())),
            _ => return None,
        }
    }
    Some(options)
}

async fn run(options: &Options) -> io::Result<String> {
    let wants = |part: &str| options.only.as_deref().is_none_or(|only| only == part);
    let mut report = if wants("calls") { calls(options).await? } else { machine() };
    if wants("proxy") && options.with_cofer {
        say("measuring proxies\n");
        let peers = options.peers.as_deref();
        let found = proxy::measure(&options.bin, peers, options.rounds, options.time).await?;
        report.push_str(&format!("\n{}\n{}", found.table.markdown(), goals_markdown(&found.goals)));
    }
    let image = options.image.as_deref().filter(|_| options.with_cofer);
    if let Some(image) = image.filter(|_| wants("containers")) {
        say("measuring containers\n");
        let goals = containers::goals(&options.bin, image, options.rounds, options.time).await?;
        report.push('\n');
        report.push_str(&goals_markdown(&goals));
    }
    if let Some(image) = image.filter(|_| wants("environments")) {
        say("measuring environments\n");
        report.push('\n');
        report.push_str(&goals_markdown(&environments::goals(&options.bin, image).await?));
    }
    Ok(report)
}

/// The calls of all targets, and the daemon's own figures.
async fn calls(options: &Options) -> io::Result<String> {
    let mut targets = targets(options).await?;
    let mut calls = Calls::new(targets.len());
    for round in 1..=options.rounds {
        say(&format!("round {round} of {}\n", options.rounds));
        calls.round(&mut targets, options.time).await?;
    }
    let table = calls.table(&targets);
    for target in targets {
        target.stop().await?;
    }
    let mut report = format!("{}\n{}", machine(), table.markdown());
    if options.with_cofer {
        let mut goals = call_goals(&table);
        goals.extend(gateway_goals(&table));
        goals.extend(gateway::goals(&options.bin).await?);
        goals.push(calls.memory_goal());
        let cofer = options.bin.join("cofer");
        goals.push(start_goal(&cofer).await?);
        goals.extend(idle_goals(&cofer, &options.bin.join("echo-server")).await?);
        report.push('\n');
        report.push_str(&goals_markdown(&goals));
    }
    Ok(report)
}

async fn targets(options: &Options) -> io::Result<Vec<Target>> {
    let bin = &options.bin;
    let mut targets = vec![Target::direct(bin).await?, Target::in_place(bin).await?];
    if options.with_cofer {
        targets.push(Target::cofer(bin).await?);
        targets.push(Target::gateway(bin).await?);
    }
    if let Some(peers) = &options.peers {
        say("starting the peers\n");
        targets.push(Target::supergateway(peers, bin).await?);
        targets.push(Target::mcp_proxy_npm(peers, bin).await?);
        targets.push(Target::mcp_proxy_pypi(peers, bin).await?);
    }
    Ok(targets)
}

/// All rounds of all targets in all columns.
struct Calls {
    rounds: Vec<Vec<Figures>>,
    failures: Vec<Option<String>>,
    /// The most that the daemon grew by while it carried the largest messages.
    peak_growth: Option<u64>,
}

impl Calls {
    fn new(targets: usize) -> Self {
        let cells = targets * COLUMNS.len();
        Self { rounds: vec![Vec::new(); cells], failures: vec![None; cells], peak_growth: None }
    }

    /// Every target in every column once. What failed is not tried again.
    async fn round(&mut self, targets: &mut [Target], time: Duration) -> io::Result<()> {
        let count = targets.len();
        for (at, column) in COLUMNS.into_iter().enumerate() {
            for (index, target) in targets.iter_mut().enumerate() {
                let cell = at * count + index;
                if self.failures[cell].is_some() || !is_asked(target.name, column) {
                    continue;
                }
                match self.measure(target, column, time).await {
                    Ok(figures) => self.rounds[cell].push(figures),
                    Err(error) => self.failures[cell] = Some(error.to_string()),
                }
            }
        }
        Ok(())
    }

    async fn measure(
        &mut self,
        target: &mut Target,
        column: Column,
        time: Duration,
    ) -> io::Result<Figures> {
        let Column { size, callers } = column;
        target.load(size.min(SMALL), callers, time / 5).await?;
        let watched = target.daemon_pid().filter(|_| size == 16 * MIB);
        let before = watched.map(memory_before).transpose()?;
        let sample = target.load(size, callers, time).await?;
        if let (Some(pid), Some(before)) = (watched, before) {
            let grown = process::memory(pid, "status", "VmHWM")?.saturating_sub(before);
            self.peak_growth = self.peak_growth.max(Some(grown));
        }
        Ok(sample.figures())
    }

    fn table(&self, targets: &[Target]) -> Table {
        let finding =
            |cell: usize| match (&self.failures[cell], Figures::median(&self.rounds[cell])) {
                (Some(why), _) => Finding::Failed(why.clone()),
                (None, Some(figures)) => Finding::Measured(figures),
                (None, None) => Finding::Left,
            };
        let row = |(index, target): (usize, &Target)| {
            let findings = (0..COLUMNS.len()).map(|at| finding(at * targets.len() + index));
            (target.name.to_owned(), findings.collect())
        };
        Table { columns: COLUMNS.to_vec(), rows: targets.iter().enumerate().map(row).collect() }
    }

    fn memory_goal(&self) -> Goal {
        Goal {
            what: "memory the daemon grows by for one call of 16 MiB there and back, in messages"
                .to_owned(),
            is: self.peak_growth.map(|grown| grown as f64 / (16 * MIB) as f64),
            wanted: Wanted::AtMost(8.0),
            unit: "",
        }
    }
}

fn memory_before(pid: u32) -> io::Result<u64> {
    process::reset_peak(pid)?;
    process::memory(pid, "status", "VmRSS")
}

/// The peers are not asked for what takes them minutes.
fn is_asked(name: &str, column: Column) -> bool {
    OURS.contains(&name) || column.size < MIB || column == COLUMNS[4]
}

async fn start_goal(cofer: &Path) -> io::Result<Goal> {
    say("starting an empty daemon, again and again\n");
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let daemon = Daemon::start(cofer).await?;
        starts.push(daemon.start.as_secs_f64() * 1e3);
        daemon.stop().await?;
    }
    Ok(Goal {
        what: format!("start to ready line, empty store (median of {STARTS})"),
        is: median(starts),
        wanted: Wanted::AtMost(50.0),
        unit: " ms",
    })
}

async fn idle_goals(cofer: &Path, server: &Path) -> io::Result<Vec<Goal>> {
    say(&format!("idling with {IDLE_SERVERS} servers\n"));
    let daemon = Daemon::start(cofer).await?;
    for number in 0..IDLE_SERVERS {
        daemon.register(&format!("idle-{number}"), server, 1).await?;
    }
    sleep(Duration::from_secs(5)).await;
    let pid = daemon.pid();
    let shims = process::shims(pid);
    let used =
        |pids: &[u32]| pids.iter().map(|pid| process::cpu_time(*pid)).sum::<io::Result<Duration>>();
    let (before, shims_before) = (used(&[pid])?, used(&shims)?);
    sleep(Duration::from_secs(10)).await;
    let percent = |spent: Duration| Some(spent.as_secs_f64() * 10.0);
    let (daemon_cpu, shims_cpu) =
        (percent(used(&[pid])? - before), percent(used(&shims)? - shims_before));
    let mib = |bytes: u64| Some(bytes as f64 / MIB as f64);
    let resident = mib(process::memory(pid, "status", "VmRSS")?);
    let proportional = mib(process::memory(pid, "smaps_rollup", "Pss")?);
    let shims_memory = shims
        .iter()
        .map(|pid| process::memory(*pid, "smaps_rollup", "Pss"))
        .sum::<io::Result<u64>>()?;
    daemon.stop().await?;
    let goal = |what: String, is, wanted, unit| Goal { what, is, wanted, unit };
    let (core, memory, count) = (Wanted::AtMost(1.0), Wanted::AtMost(60.0), shims.len());
    Ok(vec![
        goal(
            format!("idle with {IDLE_SERVERS} servers: processor of the daemon"),
            daemon_cpu,
            core,
            " %",
        ),
        goal(format!("the same: processor of its {count} shims together"), shims_cpu, core, " %"),
        goal("the same: resident memory of the daemon".to_owned(), resident, memory, " MiB"),
        goal("the same: its proportional share (PSS)".to_owned(), proportional, memory, " MiB"),
        goal(
            format!("the same: PSS of its {count} shims together"),
            mib(shims_memory),
            Wanted::Nothing,
            " MiB",
        ),
    ])
}

/// What the figures were measured on.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores, Linux {}, load at the end {load}\n", kernel.trim())
}

fn say(words: &str) {
    // Nobody to tell where stderr is gone.
    io::stderr().write_all(words.as_bytes()).unwrap_or_default();
}
