//! What a server's environment is: little of the daemon's, and all that was configured.
//! Pure: takes variables, returns variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use cofer_model::looks_secret_key;

/// The variable by which a workload's processes are known on the whole machine.
pub const MARKER: &str = "COFER_WORKLOAD";

/// Variables a server gets from the daemon because programs do not work without them:
/// who and where it runs, its language and time, where temporary files go, how to reach the
/// network, which certificates to trust, and where runners and version managers keep things.
const PASSED: [&str; 46] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    // Reaching the network.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    // Trusting certificates.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "DENO_CERT",
    // Where language runtimes and their version managers live.
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "MISE_CONFIG_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "DENO_INSTALL",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
];

/// Families of variables that configure locales, base directories and package runners.
const PASSED_FAMILIES: [&str; 7] =
    ["LC_", "XDG_", "npm_config_", "NPM_CONFIG_", "PIP_", "PIPX_", "UV_"];

/// The environment of a server: the allowlisted part of `base` that does not look like a
/// secret, then `configured`, which may override and add anything, then the marker.
pub fn server_environment(
    base: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &BTreeMap<String, String>,
    marker: &str,
) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<OsString, OsString> =
        base.into_iter().filter(|(key, _)| is_passed(key)).collect();
    environment.extend(configured.iter().map(|(key, value)| (key.into(), value.into())));
    environment.insert(MARKER.into(), marker.into());
    environment
}

/// Whether a variable of the daemon's own environment reaches servers.
fn is_passed(key: &OsStr) -> bool {
    let Some(key) = key.to_str() else {
        return false;
    };
    let listed = PASSED.contains(&key)
        || PASSED_FAMILIES.iter().any(|family| key.starts_with(family) && key.len() > family.len());
    listed && !looks_secret_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: &[(&str, &str)], configured: &[(&str, &str)], expected: &[(&str, &str)]) {
        let base = base.iter().map(|(key, value)| (key.into(), value.into()));
        let configured =
            configured.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let mut expected: BTreeMap<OsString, OsString> =
            expected.iter().map(|(key, value)| (key.into(), value.into())).collect();
        expected.insert(MARKER.into(), "owner/server".into());
        assert_eq!(server_environment(base, &configured, "owner/server"), expected);
    }

    #[test]
    fn what_programs_need_is_passed_and_the_rest_is_not() {
        check(
            &[
                ("PATH", "/bin"),
                ("HOME", "/home/a"),
                ("LC_ALL", "C.UTF-8"),
                ("https_proxy", "http://proxy:1"),
                ("npm_config_registry", "http://registry"),
                ("UV_CACHE_DIR", "/cache"),
                ("LC_", "no name"),
                ("OPENAI_BASE_URL", "http://x"),
                ("COFER_DATABASE_URL", "postgres://x"),
                ("LD_PRELOAD", "/evil.so"),
                ("DATABASE_URL", "postgres://x"),
            ],
            &[],
            &[
                ("PATH", "/bin"),
                ("HOME", "/home/a"),
                ("LC_ALL", "C.UTF-8"),
                ("https_proxy", "http://proxy:1"),
                ("npm_config_registry", "http://registry"),
                ("UV_CACHE_DIR", "/cache"),
            ],
        );
    }

    #[test]
    fn secrets_of_the_daemon_are_not_passed_even_in_an_allowed_family() {
        check(
            &[
                ("UV_PUBLISH_TOKEN", "t"),
                ("npm_config__auth", "a"),
                ("npm_config_//registry.npmjs.org/:_authToken", "a"),
                ("PIP_PASSWORD", "p"),
                ("GITHUB_TOKEN", "g"),
                ("ANTHROPIC_API_KEY", "k"),
            ],
            &[],
            &[],
        );
    }

    #[test]
    fn what_is_configured_wins_also_with_names_that_are_not_passed() {
        check(
            &[("PATH", "/bin"), ("API_KEY", "the daemon's")],
            &[("PATH", "/opt/bin"), ("API_KEY", "mine"), ("COFER_PODMAN", "podman")],
            &[("PATH", "/opt/bin"), ("API_KEY", "mine"), ("COFER_PODMAN", "podman")],
        );
    }

    #[test]
    fn the_marker_cannot_be_configured_away() {
        check(&[(MARKER, "outer/one")], &[(MARKER, "somebody/else")], &[]);
    }
}
