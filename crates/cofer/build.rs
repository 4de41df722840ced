//! Has the linker pack the addresses that the program is loaded with, where the C library can
//! unpack them (glibc from 2.36 on): a megabyte less is read, and stays in memory, in each process.

use std::env;
use std::process::Command;

/// The first glibc that reads them.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let var = |name: &str| env::var(name).unwrap_or_default();
    let is_glibc = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ENV") == "gnu";
    // For another machine nobody here can say what its library reads.
    let is_for_here = var("HOST") == var("TARGET");
    if is_glibc && is_for_here && glibc().is_some_and(|version| version >= SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc, as `getconf` tells it: `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    #[expect(clippy::disallowed_methods, reason = "a build script asks the system")]
    let told = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    let (major, rest) = told.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
