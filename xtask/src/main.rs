//! Chores of the project: `cargo run -p xtask -- requirements | tidy`.

mod files;
mod ids;
mod requirements;
mod tidy;

use std::env;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: xtask requirements [--list] | tidy\n";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let report = match words.as_slice() {
        ["requirements"] => requirements::report(root),
        ["requirements", "--list"] => requirements::list(root),
        ["tidy"] => tidy::report(root),
        _ => Ok(Report { text: USAGE.to_owned(), code: 2 }),
    };
    let report = report.unwrap_or_else(|error| Report { text: format!("{error}\n"), code: 1 });
    match io::stdout().write_all(report.text.as_bytes()) {
        Ok(()) => ExitCode::from(report.code),
        Err(_) => ExitCode::FAILURE,
    }
}

/// What a chore says, and how it ends.
struct Report {
    text: String,
    code: u8,
}
