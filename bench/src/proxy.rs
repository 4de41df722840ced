//! What the proxy costs: a stdio client forwarded to a Streamable HTTP server on this machine,
//! by `cofer proxy`, by the smallest pump there can be, and by the peers.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::direct::{Direct, Ids};
use crate::process::{self, Running, command};
use crate::report::{Column, Finding, Goal, Table, Wanted};
use crate::sample::{Figures, median};

const COFER: &str = "cofer proxy";
const THIN: &str = "thin proxy";
const REMOTE: &str = "mcp-remote";
const MIB: usize = 1 << 20;
const COLUMNS: [Column; 5] = [
    Column { size: 100, callers: 1 },
    Column { size: 100, callers: 8 },
    Column { size: 100, callers: 64 },
    Column { size: MIB, callers: 1 },
    Column { size: 10 * MIB, callers: 1 },
];
/// How long a proxy may take for its last answers.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often each is started for the time of its first answer.
const STARTS: usize = 5;

/// A server to forward to.
#[derive(Debug)]
struct Endpoint {
    port: u16,
    _running: Running,
}

impl Endpoint {
    async fn start(bin: &Path) -> io::Result<Self> {
        let mut running = Running::start(command(bin.join("mcp-endpoint")).stdout(Stdio::piped()))?;
        let stdout = running.child().stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        Ok(Self { port: line.trim().parse().map_err(io::Error::other)?, _running: running })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Every proxy that is measured, as it is started.
    fn proxies(&self, bin: &Path, peers: Option<&Path>) -> Vec<(&'static str, Command)> {
        let url = self.url();
        let mut cofer = command(bin.join("cofer"));
        cofer.args(["proxy", "--no-auth", "--url", &url]);
        let mut thin = command(bin.join("thin-proxy"));
        thin.arg(self.port.to_string());
        let mut all = vec![(COFER, cofer), (THIN, thin)];
        let Some(peers) = peers else {
            return all;
        };
        let npm = |name: &str| command(peers.join("npm/node_modules/.bin").join(name));
        let mut remote = npm("mcp-remote");
        remote.args([&url, "--allow-http", "--transport", "http-only"]);
        let mut gateway = npm("supergateway");
        gateway.args(["--streamableHttp", &url, "--logLevel", "none"]);
        let mut pypi = command(peers.join("venv/bin/mcp-proxy"));
        pypi.args(["--transport", "streamablehttp", "--log-level", "ERROR", &url]);
        all.extend([(REMOTE, remote), ("supergateway", gateway), ("mcp-proxy (PyPI)", pypi)]);
        all
    }
}

/// What was measured of proxies: the calls, and what is wanted of them.
#[derive(Debug)]
pub struct Findings {
    /// All proxies in all columns.
    pub table: Table,
    /// What is wanted of ours.
    pub goals: Vec<Goal>,
}

/// Measures all proxies that are there.
pub async fn measure(
    bin: &Path,
    peers: Option<&Path>,
    rounds: usize,
    time: Duration,
) -> io::Result<Findings> {
    let endpoint = Endpoint::start(bin).await?;
    let mut table = Table { columns: COLUMNS.to_vec(), rows: Vec::new() };
    let (mut first, mut memory, mut spent) = (Vec::new(), None, Vec::new());
    for (name, mut start) in endpoint.proxies(bin, peers) {
        let columns = if [COFER, THIN].contains(&name) { &COLUMNS[..] } else { &COLUMNS[..3] };
        let measured = one(&mut start, columns, rounds, time).await;
        let One { findings, first_answer, peak, cpu } = match measured {
            Ok(one) => one,
            Err(error) => One {
                findings: COLUMNS.map(|_| Finding::Failed(error.to_string())).to_vec(),
                first_answer: None,
                peak: 0,
                cpu: None,
            },
        };
        table.rows.push((name.to_owned(), findings));
        first.push((name, first_answer));
        spent.push((name, cpu));
        if name == COFER {
            memory = Some(peak as f64 / MIB as f64);
        }
    }
    let goals = goals(&table, &first, &spent, memory);
    Ok(Findings { table, goals })
}

/// What was measured of one proxy.
struct One {
    findings: Vec<Finding>,
    /// Milliseconds from its start to its answer to `initialize`.
    first_answer: Option<f64>,
    /// The most that it had resident while it carried small calls.
    peak: u64,
    /// Microseconds of processor time for a call, with 64 callers.
    cpu: Option<f64>,
}

async fn one(
    start: &mut Command,
    columns: &[Column],
    rounds: usize,
    time: Duration,
) -> io::Result<One> {
    let mut opened = Vec::new();
    for _ in 0..STARTS {
        let proxy = Direct::open(start, Ids::Own).await?;
        opened.push(proxy.opened.as_secs_f64() * 1e3);
        proxy.stop().await?;
    }
    let mut proxy = Direct::open(start, Ids::Own).await?;
    let (mut findings, mut peak, mut cpu) = (Vec::new(), 0, None);
    for column in COLUMNS {
        if !columns.contains(&column) {
            findings.push(Finding::Left);
            continue;
        }
        let mut samples = Vec::new();
        let mut failed = None;
        for _ in 0..rounds {
            let before = process::cpu_time(proxy.pid())?;
            let load = proxy.load(column.size, column.callers, time);
            let loaded = timeout(time + PATIENCE, load).await;
            match loaded.unwrap_or_else(|late| Err(late.into())) {
                Ok(sample) => {
                    if column.callers == 64 {
                        let spent = process::cpu_time(proxy.pid())? - before;
                        let calls = sample.latencies.len().max(1) as f64;
                        cpu = Some(spent.as_secs_f64() * 1e6 / calls);
                    }
                    samples.push(sample.figures());
                }
                Err(error) => failed = Some(error.to_string()),
            }
            if failed.is_some() {
                break;
            }
        }
        findings.push(match (failed, Figures::median(&samples)) {
            (Some(why), _) => Finding::Failed(why),
            (None, Some(figures)) => Finding::Measured(figures),
            (None, None) => Finding::Left,
        });
        if column.size == 100 {
            peak = peak.max(process::memory(proxy.pid(), "status", "VmHWM")?);
        }
    }
    proxy.stop().await?;
    Ok(One { findings, first_answer: median(opened), peak, cpu })
}

fn goals(
    table: &Table,
    first: &[(&str, Option<f64>)],
    spent: &[(&str, Option<f64>)],
    memory: Option<f64>,
) -> Vec<Goal> {
    let [one, _, many, mib, large] = COLUMNS;
    let rate = |row: &str, column| table.figures(row, column).map(|figures| figures.per_second);
    let p50 = |row: &str| table.figures(row, one).map(|figures| figures.p50.as_secs_f64());
    let of = |list: &[(&str, Option<f64>)], name: &str| {
        list.iter().find(|(each, _)| *each == name).and_then(|(_, value)| *value)
    };
    let ratio = |over: Option<f64>, under: Option<f64>| Some(over? / under?);
    let peers = table.rows.iter().filter(|(name, _)| ![COFER, THIN].contains(&name.as_str()));
    let best = peers.filter_map(|(name, _)| rate(name, many)).max_by(f64::total_cmp);
    let goal = |what: &str, is, wanted, unit| Goal { what: what.to_owned(), is, wanted, unit };
    vec![
        goal(
            "proxy: start to the answer of `initialize`",
            of(first, COFER),
            Wanted::Nothing,
            " ms",
        ),
        goal(
            "the same, over mcp-remote's",
            ratio(of(first, COFER), of(first, REMOTE)),
            Wanted::AtMost(0.05),
            " times",
        ),
        goal(
            "proxy, p50 at 1 caller, 100 B: over mcp-remote's",
            ratio(p50(COFER), p50(REMOTE)),
            Wanted::AtMost(1.0 / 3.0),
            " times",
        ),
        goal(
            "proxy, p50 at 1 caller, 100 B: over the thin proxy's",
            ratio(p50(COFER), p50(THIN)),
            Wanted::AtMost(1.3),
            " times",
        ),
        goal(
            "proxy, calls at 64 callers, 100 B: over the best peer",
            ratio(rate(COFER, many), best),
            Wanted::AtLeast(15.0),
            " times",
        ),
        goal(
            "proxy, calls at 64 callers, 100 B: over the thin proxy",
            ratio(rate(COFER, many), rate(THIN, many)),
            Wanted::Nothing,
            " times",
        ),
        goal(
            "proxy, processor time of a call at 64 callers: over the thin proxy's",
            ratio(of(spent, COFER), of(spent, THIN)),
            Wanted::Nothing,
            " times",
        ),
        goal("proxy, resident memory with small calls", memory, Wanted::AtMost(15.0), " MiB"),
        goal(
            "proxy, time of a call of 10 MiB: over one of 1 MiB",
            ratio(rate(COFER, mib), rate(COFER, large)),
            Wanted::AtMost(13.0),
            " times",
        ),
    ]
}
