//! Builds the executor, which runs in containers, into this crate: static, so that it runs in any
//! image, and by the compiler alone, as it needs no crate.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    let source = Path::new("../executor/src");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed=build.rs");
    let var = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let out = Path::new(&var("OUT_DIR")).join("executor");
    #[expect(clippy::disallowed_methods, reason = "a build script calls the compiler")]
    let mut rustc = Command::new(var("RUSTC"));
    rustc.arg(source.join("main.rs")).arg("-o").arg(&out).arg("--target").arg(var("TARGET"));
    rustc.args(["--edition=2024", "--crate-name=executor", "--cap-lints=allow"]);
    for setting in [
        "opt-level=s",
        "panic=abort",
        "lto=fat",
        "strip=symbols",
        "codegen-units=1",
        "target-feature=+crt-static",
    ] {
        rustc.args(["-C", setting]);
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut setting = std::ffi::OsString::from("linker=");
        setting.push(linker);
        rustc.arg("-C").arg(setting);
    }
    let status = rustc.status().expect("the compiler can be run");
    assert!(status.success(), "the executor could not be built");
    let size = fs::metadata(&out).expect("the executor was written").len();
    assert!(size > 0, "the executor is empty");
}
