//! Embeds the console: writes a table of its files for `src/console.rs` to include.
//!
//! The files are what `scripts/build-console` left in `console/embedded`, each beside its
//! compressed copies. Where it was not run, a page that says so is embedded instead, so that
//! building the daemon needs no Node.js.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let built = package.join("../../console/embedded");
    let substitute = package.join("src/console/page");
    watch(&built);
    watch(&substitute);
    let folder = if built.join("index.html").is_file() { built } else { substitute };
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let target = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(target.join("console_files.rs"), table(&folder, &files)?)
}

fn watch(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
}

/// Every file below `folder`, but for hidden ones and compressed copies.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name.ends_with(".br") || name.ends_with(".gz") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The table as Rust: one `File` for each file.
fn table(folder: &Path, files: &[PathBuf]) -> io::Result<String> {
    let mut text = String::from("&[\n");
    for file in files {
        let path = format!("/{}", file.strip_prefix(folder).unwrap_or(file).display());
        let version = version(&fs::read(file)?);
        let plain = include(file);
        let brotli = include_copy(file, "br");
        let gzip = include_copy(file, "gz");
        // Writing to a string cannot fail.
        writeln!(
            text,
            "File {{ path: {path:?}, version: \"{version:016x}\", plain: {plain}, brotli: {brotli}, gzip: {gzip} }},"
        )
        .unwrap_or_default();
    }
    text.push_str("]\n");
    Ok(text)
}

fn include(file: &Path) -> String {
    format!("include_bytes!({:?})", file.display().to_string())
}

fn include_copy(file: &Path, suffix: &str) -> String {
    let copy = PathBuf::from(format!("{}.{suffix}", file.display()));
    if copy.is_file() { format!("Some({})", include(&copy)) } else { "None".to_owned() }
}

/// Tells one content of a file from another.
fn version(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}
