//! From what Podman, its OCI runtimes and registries say to an error with a name. Pure.

use super::error::PodmanError;

/// The longest message that is kept.
const MAX_MESSAGE: usize = 600;

/// What Podman said, in one line: its own last word, and before it the runtime's, which says
/// more, where Podman only says that the runtime failed.
pub(crate) fn message(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said: Vec<&str> = lines.iter().copied().filter(|line| !is_log(line)).collect();
    let own = said.iter().rev().find_map(|line| line.strip_prefix("Error: "));
    let other = said.iter().rev().copied().find(|line| !line.starts_with("Error: "));
    let text = match (own, other) {
        // `Error: ".../runsc start ID" failed: exit status 128`
        (Some(own), Some(other)) if own.starts_with('`') => other,
        (Some(own), _) => own,
        (None, Some(other)) => other,
        (None, None) => lines.last().copied().unwrap_or("it gave no reason"),
    };
    cut(text)
}

/// A line of Podman's log, as `time="…" level=error msg="…"`.
fn is_log(line: &str) -> bool {
    line.starts_with("time=\"")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// A failed command of any sort.
pub(crate) fn general(action: &str, stderr: &str) -> PodmanError {
    let message = message(stderr);
    let text = stderr.to_ascii_lowercase();
    if is_denied(&text) {
        return PodmanError::Denied { message };
    }
    if is_storage(&text) {
        return PodmanError::Storage { message };
    }
    PodmanError::Failed { action: action.to_owned(), message }
}

/// A failed `podman run`.
pub(crate) fn of_run(name: &str, image: &str, stderr: &str) -> PodmanError {
    let message = message(stderr);
    let text = stderr.to_ascii_lowercase();
    let image = || image.to_owned();
    if has(&text, &["image not known", "no such image"]) {
        PodmanError::ImageMissing { image: image() }
    } else if text.contains("that name is already in use") || text.contains("name is in use") {
        PodmanError::NameTaken { name: name.to_owned() }
    } else if has(
        &text,
        &["address already in use", "port is already allocated", "proxy already running"],
    ) {
        PodmanError::PortTaken { message }
    } else if has(&text, &["exec format error", "no image found in image index for architecture"]) {
        PodmanError::WrongPlatform { image: image(), message }
    } else if is_of_program(&text) {
        PodmanError::Program { image: image(), message }
    } else if is_of_limits(&text) {
        PodmanError::Limits { message }
    } else if is_storage(&text) {
        PodmanError::Storage { message }
    } else if has(
        &text,
        &["netavark", "cni ", "slirp4netns", "pasta", "setting up network", "network not found"],
    ) {
        PodmanError::Network { message }
    } else if is_denied(&text) {
        PodmanError::Denied { message }
    } else if has(&text, &["oci runtime", "runc:", "crun:", "runsc", "conmon"]) {
        PodmanError::Runtime { message }
    } else {
        PodmanError::Failed { action: "run".to_owned(), message }
    }
}

/// A failed `podman pull`.
pub(crate) fn of_pull(image: &str, stderr: &str) -> PodmanError {
    let message = message(stderr);
    let text = stderr.to_ascii_lowercase();
    let image = image.to_owned();
    if has(
        &text,
        &[
            "unauthorized",
            "authentication required",
            "access to the resource is denied",
            "requested access",
            "403 (forbidden)",
            "403 forbidden",
            "401 (unauthorized)",
            "invalid username/password",
        ],
    ) {
        PodmanError::LoginNeeded { image, message }
    } else if has(
        &text,
        &[
            "manifest unknown",
            "name unknown",
            "not found: manifest",
            "repository not found",
            "404 (not found)",
            "unrecognized image format",
            "no such image",
            "did not resolve to an alias",
            "short-name",
        ],
    ) {
        PodmanError::ImageNotFound { image, message }
    } else if has(
        &text,
        &[
            "server gave http response to https client",
            "x509:",
            "certificate",
            "tls:",
            "tls handshake",
        ],
    ) {
        PodmanError::Insecure { image, message }
    } else if has(
        &text,
        &[
            "no such host",
            "connection refused",
            "i/o timeout",
            "network is unreachable",
            "no route to host",
            "connection reset",
            "deadline exceeded",
            "temporary failure in name resolution",
            "server misbehaving",
            "502 bad gateway",
            "503 (service unavailable)",
            "unexpected eof",
        ],
    ) {
        PodmanError::Unreachable { image, message }
    } else if text.contains("no image found in image index for architecture")
        || text.contains("no matching manifest")
    {
        PodmanError::WrongPlatform { image, message }
    } else {
        general("pull", stderr)
    }
}

fn is_of_program(text: &str) -> bool {
    has(
        text,
        &[
            "attempted to invoke a command that was not found",
            "executable file",
            "executable path is empty",
            "failed to load",
            "no command or entrypoint",
            "unable to find user",
            "unable to find group",
            "workdir",
            "permission denied: oci permission denied",
        ],
    )
}

fn is_of_limits(text: &str) -> bool {
    has(
        text,
        &[
            "memory limit",
            "cgroup config",
            "cpu controller",
            "memory controller",
            "pids controller",
            "minimum memory",
            "cgroup.controllers",
            "requested cpus",
            "cpu-quota",
        ],
    )
}

fn is_storage(text: &str) -> bool {
    has(
        text,
        &[
            "no space left on device",
            "disk quota exceeded",
            "read-only file system: creating container storage",
            "graphdriver",
            "storage option",
            "layer not known",
            "input/output error",
        ],
    )
}

fn is_denied(text: &str) -> bool {
    has(text, &["permission denied", "operation not permitted", "newuidmap", "no subuid ranges"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stderr: &str) -> String {
        kind(&of_run("cofer-x", "img", stderr))
    }

    fn pull(stderr: &str) -> String {
        kind(&of_pull("img", stderr))
    }

    fn kind(error: &PodmanError) -> String {
        let text = format!("{error:?}");
        text.split([' ', '{']).next().unwrap().to_owned()
    }

    #[test]
    fn every_failure_of_a_run_has_its_name() {
        for (stderr, expected) in [
            ("Error: localhost/nosuch:1: image not known", "ImageMissing"),
            (
                "Error: creating container storage: the container name \"h1a\" is already in use by b5. You have to remove that container to be able to reuse that name: that name is already in use",
                "NameTaken",
            ),
            (
                "Error: cannot listen on the TCP port: listen tcp4 127.0.0.1:18999: bind: address already in use",
                "PortTaken",
            ),
            (
                "Error: runc: runc create failed: unable to start container process: exec: \"/nosuch\": stat /nosuch: no such file or directory: OCI runtime attempted to invoke a command that was not found",
                "Program",
            ),
            (
                "starting container: starting root container: starting sandbox: creating process: failed to load /nosuch: no such file or directory\nError: `/usr/bin/runsc start 07` failed: exit status 128",
                "Program",
            ),
            (
                "Error: unable to find user nobodyknows: no matching entries in passwd file",
                "Program",
            ),
            ("Error: workdir \"/nonono\" does not exist on container d3", "Program"),
            (
                "Error: OCI runtime error: runc: runc create failed: unable to start container process: error during container init: error setting cgroup config for procHooks process: unable to set memory limit to 102400 (current usage: 2588672, peak usage: 2736128)",
                "Limits",
            ),
            (
                "time=\"2026\" level=error msg=\"[graphdriver] prior storage driver overlay failed\"\nError: storage option overlay.size and overlay.inodes only supported for backingFS XFS. Found extfs",
                "Storage",
            ),
            ("Error: netavark: iptables not found", "Network"),
            ("Error: OCI runtime error: runsc: unknown platform: systrap", "Runtime"),
            ("Error: something new", "Failed"),
            ("", "Failed"),
        ] {
            assert_eq!(run(stderr), expected, "{stderr}");
        }
    }

    #[test]
    fn every_failure_of_a_pull_has_its_name() {
        for (stderr, expected) in [
            (
                "Error: initializing source docker://localhost:5000/private:latest: reading manifest latest in localhost:5000/private: unauthorized: authentication required",
                "LoginNeeded",
            ),
            (
                "Error: initializing source docker://x: reading manifest latest in docker.io/a/b: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required",
                "LoginNeeded",
            ),
            (
                "Error: initializing source docker://localhost:5000/x:latest: reading manifest latest in localhost:5000/x: manifest unknown: manifest unknown",
                "ImageNotFound",
            ),
            (
                "Error: initializing source docker://localhost:5000/x:latest: reading manifest latest in localhost:5000/x: name unknown: repository name not known to registry",
                "ImageNotFound",
            ),
            (
                "Error: pinging container registry localhost:5999: Get \"https://localhost:5999/v2/\": http: server gave HTTP response to HTTPS client",
                "Insecure",
            ),
            (
                "Error: pinging container registry nosuch.invalid: Get \"https://nosuch.invalid/v2/\": dial tcp: lookup nosuch.invalid on 10.255.255.53:53: no such host",
                "Unreachable",
            ),
            ("Error: writing blob: no space left on device", "Storage"),
            ("Error: something new", "Failed"),
        ] {
            assert_eq!(pull(stderr), expected, "{stderr}");
        }
    }

    #[test]
    fn the_message_is_the_line_that_says_why() {
        let runsc = "starting container: setting up network: cannot run\n\
                     Error: `/usr/bin/runsc start 755a` failed: exit status 128\n";
        assert_eq!(message(runsc), "starting container: setting up network: cannot run");
        let logged = "time=\"2026\" level=error msg=\"x\"\nError: unknown platform: systrap\n";
        assert_eq!(message(logged), "unknown platform: systrap");
        assert_eq!(message(" \n"), "it gave no reason");
        assert_eq!(message(&"ü".repeat(5000)).chars().count(), MAX_MESSAGE + 1);
    }
}
