//! A damaged cache of a package manager, found in the stderr of a server that did not start, and the
//! command that repairs it.

/// The command that repairs a damaged package cache, if stderr names one.
pub(super) fn repair_hint(stderr: &str) -> Option<String> {
    npm_hint(stderr).or_else(|| uv_hint(stderr))
}

/// npm reports a lock that was left behind, or half a package, by these codes.
fn npm_hint(stderr: &str) -> Option<String> {
    let codes = ["ENOTEMPTY", "ECOMPROMISED", "EINTEGRITY"];
    let code = codes.into_iter().find(|code| stderr.contains(code))?;
    if !stderr.contains("npm") {
        return None;
    }
    // A damaged installation below _npx is not part of what `npm cache clean` removes.
    let repair = match npx_folder(stderr).filter(|_| code != "EINTEGRITY") {
        Some(folder) => format!("remove the folder with `rm -rf '{folder}'`"),
        None => "run `npm cache clean --force`".to_owned(),
    };
    Some(format!("npm's package cache is damaged ({code}): {repair}, then enable the server again"))
}

/// `…/_npx/HASH`, the folder of one `npx` package.
fn npx_folder(stderr: &str) -> Option<&str> {
    let is_path = |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"' | '`' | ',' | '(' | ')');
    stderr.split(|c| !is_path(c)).find_map(|word| {
        let word = &word[word.find('/')?..];
        let (before, after) = word.split_once("/_npx/")?;
        let hash = after.split('/').next()?;
        let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| &word[..before.len() + "/_npx/".len() + hash.len()])
    })
}

fn uv_hint(stderr: &str) -> Option<String> {
    let text = stderr.to_ascii_lowercase();
    let signs = [
        "distribution cache",
        "failed to deserialize cache",
        "failed to initialize cache",
        "failed to read metadata from",
        "failed to unzip wheel",
        "invalid zip archive",
        "crc mismatch",
    ];
    if !text.contains("uv") || !signs.into_iter().any(|sign| text.contains(sign)) {
        return None;
    }
    let hint = "uv's package cache is damaged: run `uv cache clean`, then enable the server again";
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_cache_is_named_with_the_command_that_repairs_it() {
        let npx = "npm error code ENOTEMPTY\nnpm error syscall rename\nnpm error path \
            /home/a/.npm/_npx/15c61037b1978c83/node_modules/zod\nnpm error dest \
            /home/a/.npm/_npx/15c61037b1978c83/node_modules/.zod-X\n";
        let hint = repair_hint(npx).unwrap();
        assert!(hint.contains("`rm -rf '/home/a/.npm/_npx/15c61037b1978c83'`"), "{hint}");
        for (stderr, repair) in [
            (
                "npm error code ECOMPROMISED\nnpm error Lock compromised",
                "`npm cache clean --force`",
            ),
            ("npm ERR! code EINTEGRITY\nnpm ERR! sha512-x", "`npm cache clean --force`"),
            (
                "error: Failed to install: x.whl\n  Caused by: Failed to read from the distribution cache\n  \
                 Caused by: /home/a/.cache/uv/archive-v0",
                "`uv cache clean`",
            ),
        ] {
            let hint = repair_hint(stderr).unwrap_or_else(|| panic!("{stderr}"));
            assert!(hint.contains(repair) && hint.contains("damaged"), "{hint}");
        }
        assert_eq!(repair_hint("Error: ENOTEMPTY: rmdir /data"), None, "the server's own words");
        assert_eq!(repair_hint("TypeError: x is not a function"), None);
    }
}
