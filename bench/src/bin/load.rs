//! One measurement by hand: `load direct|in-place|cofer|gateway|supergateway|mcp-proxy-npm|mcp-proxy-pypi BYTES CALLERS SECONDS [PEERS]`.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofer_bench::target::Target;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let (target, numbers, peers) = match args.as_slice() {
        [target, numbers @ ..] if numbers.len() == 3 => (target, numbers, ".cofer-test/bench"),
        [target, numbers @ .., peers] if numbers.len() == 3 => (target, numbers, peers.as_str()),
        _ => return Err(io::Error::other("usage: load TARGET BYTES CALLERS SECONDS [PEERS]")),
    };
    let number = |at: usize| numbers[at].parse::<usize>().map_err(io::Error::other);
    let mut target = start(target, Path::new(peers)).await?;
    let time = Duration::try_from_secs_f64(numbers[2].parse().map_err(io::Error::other)?);
    let sample = target.load(number(0)?, number(1)?, time.map_err(io::Error::other)?).await?;
    target.stop().await?;
    writeln!(io::stdout(), "{:?}", sample.figures())
}

async fn start(target: &str, peers: &Path) -> io::Result<Target> {
    let bin: PathBuf = env::current_exe()?.parent().unwrap_or(Path::new(".")).to_owned();
    match target {
        "direct" => Target::direct(&bin).await,
        "in-place" => Target::in_place(&bin).await,
        "cofer" => Target::cofer(&bin).await,
        "gateway" => Target::gateway(&bin).await,
        "supergateway" => Target::supergateway(peers, &bin).await,
        "mcp-proxy-npm" => Target::mcp_proxy_npm(peers, &bin).await,
        "mcp-proxy-pypi" => Target::mcp_proxy_pypi(peers, &bin).await,
        _ => Err(io::Error::other(format!("no such target: {target}"))),
    }
}
