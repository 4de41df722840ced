//! The shim alone, for the tests of this crate: the real one is in the `cofer` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    cofer_runtime::shim::run()
}
