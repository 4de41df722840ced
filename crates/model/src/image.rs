//! Whether a text names a container image: `[registry[:port]/]path[:tag][@digest]`, which is
//! the only thing that may stand where a container engine expects an image. A transport such
//! as `oci-archive:` or an option is none.

/// The longest name, as registries have it.
const MAX_NAME: usize = 255;
/// The longest tag.
const MAX_TAG: usize = 128;

/// The transports of containers/image. Podman reads `TRANSPORT:…` as a path or an address even where
/// it could be a name with a tag or a registry with a port (`oci:layout`, `dir:5000/x`).
const TRANSPORTS: [&str; 11] = [
    "atomic",
    "containers-storage",
    "dir",
    "docker",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
    "ostree",
    "sif",
    "tarball",
];

/// Why `image` is not the name of an image, if it is none.
pub fn wrong_image(image: &str) -> Option<&'static str> {
    let transport = image.split_once(':').map(|(transport, _)| transport);
    if transport.is_some_and(|transport| TRANSPORTS.contains(&transport)) {
        return Some(
            "begins with a transport such as `oci-archive:`; an image of that name is written \
             with its registry, as in `docker.io/library/docker:27`",
        );
    }
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Some("has no digest such as `sha256:…` after its `@`");
    }
    // A colon behind the last slash begins a tag; one before it, a registry's port.
    let slash = rest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match rest[slash..].find(':') {
        Some(colon) => (&rest[..slash + colon], Some(&rest[slash + colon + 1..])),
        None => (rest, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Some("has a tag that is none: letters, digits, `_`, `.` and `-`, at most 128");
    }
    if name.len() > MAX_NAME {
        return Some("has a name of more than 255 characters");
    }
    is_not_name(name).then_some(
        "is not the name of an image, such as `ghcr.io/owner/server:1.2`: lower-case letters, \
         digits, `.`, `_` and `-` between slashes, a registry in front, a tag or digest behind",
    )
}

fn is_not_name(name: &str) -> bool {
    let mut parts = name.split('/');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let is_host = !rest.is_empty() && (first.contains(['.', ':']) || first == "localhost");
    let first_is_wrong = if is_host { !is_registry(first) } else { !is_component(first) };
    first_is_wrong || !rest.iter().all(|part| is_component(part))
}

/// A host name or address, with a port or without.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (host, Some(port))
        }
        _ => (text, None),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split('.').all(is_label),
    };
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// Lower-case letters and digits, joined by one `.`, one or two `_`, or any number of `-`.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut joints =
        text.split(|c: char| c.is_ascii() && is_word(c as u8)).filter(|s| !s.is_empty());
    let bytes = text.as_bytes();
    let ends_in_words = |end: Option<&u8>| end.is_some_and(|byte| is_word(*byte));
    ends_in_words(bytes.first())
        && ends_in_words(bytes.last())
        && joints.all(|joint| {
            matches!(joint, "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-')
        })
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= MAX_TAG
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn images_that_people_use_are_images() {
        let digest = "a".repeat(64);
        for image in [
            "busybox",
            "localhost/bb",
            "mcp/filesystem",
            "ghcr.io/github/github-mcp-server:v0.4.0",
            "localhost:5000/team/server",
            "127.0.0.1:5000/server:latest",
            "[::1]:5000/server",
            "docker.io/library/node:22-bookworm-slim",
            "docker.io/library/docker:27",
            "docker",
            "oci/dir:1",
            "Registry.Example.COM/x/y__z.a-b--c",
            &format!("quay.io/x/y@sha256:{digest}"),
            &format!("quay.io/x/y:1@sha256:{digest}"),
        ] {
            assert_eq!(wrong_image(image), None, "{image}");
        }
    }

    #[test]
    fn what_could_be_read_as_something_else_is_no_image() {
        for image in [
            "",
            "-v",
            "--privileged",
            "a b",
            "a\nb",
            "A/b",
            "UPPER",
            "docker://x/y",
            "oci-archive:/tmp/x.tar",
            "dir:/etc",
            "dir:layout",
            "dir:5000/x",
            "oci:layout",
            "oci:layout:tag",
            "oci-archive:image.tar",
            "docker-archive:image.tar",
            "docker-daemon:busybox",
            "containers-storage:busybox",
            "ostree:x",
            "sif:x.sif",
            "tarball:x.tar",
            "docker:27",
            "/etc/passwd",
            "../x",
            "x/",
            "x//y",
            "x/../y",
            "x/.y",
            "a___b",
            "x:",
            "x:-tag",
            "x@sha256:abc",
            "x@md5:aaaa",
            "$(reboot)",
            "x;y",
            "registry:99999/x",
            "-registry.io/x",
            "x:tag:tag",
        ] {
            assert!(wrong_image(image).is_some(), "{image:?}");
        }
        assert!(wrong_image(&"a".repeat(256)).is_some());
    }

    proptest! {
        #[test]
        fn no_image_begins_with_a_dash_or_has_a_space(text in "\\PC{0,40}") {
            if wrong_image(&text).is_none() {
                prop_assert!(!text.starts_with('-') && !text.contains(char::is_whitespace));
                prop_assert!(text.is_ascii() && !text.is_empty() && !text.contains(".."));
            }
        }
    }
}
