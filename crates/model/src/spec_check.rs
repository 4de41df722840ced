//! What no single field of a registration can say of itself: whether the fields fit each other,
//! and whether what they hold may be passed on.

use std::collections::BTreeSet;

use crate::image::wrong_image;
use crate::joined::wrong_prefix;
use crate::openings::is_capability;
use crate::spec_check_remote::{check_not_remote, check_remote};
use crate::{FieldError, Kind, Network, PortMapping, Provider, Requirement, ServerSpec};

/// The longest time limit a person may set: one day.
const MAX_MS: u64 = 24 * 60 * 60 * 1000;
/// More requests at once than any stdio server can use.
/// More ports, volumes or mounts than any server needs.
const MAX_LIST: usize = 64;
/// More patterns of tools than anybody writes.
const MAX_PATTERNS: usize = 1000;
/// The longest name of a tool that is worth a pattern.
const MAX_PATTERN: usize = 256;

/// Adds every mistake to `errors`.
pub(crate) fn check(spec: &ServerSpec, errors: &mut Vec<FieldError>) {
    let mut wrong = Wrong(errors);
    check_texts(spec, &mut wrong);
    check_numbers(spec, &mut wrong);
    check_limits(spec, &mut wrong);
    check_tools(spec, &mut wrong);
    // Until one of the three is given nobody knows what the rest is to fit to.
    if spec.command.is_none() && spec.image.is_none() && spec.url.is_none() {
        return;
    }
    match spec.kind() {
        Kind::Process => check_process(spec, &mut wrong),
        Kind::Container => check_container(spec, &mut wrong),
        Kind::Remote => check_remote(spec, &mut wrong),
    }
    if spec.kind() != Kind::Remote {
        check_not_remote(spec, &mut wrong);
    }
}

/// What is wrong, as far as it was looked for.
pub(crate) struct Wrong<'a>(&'a mut Vec<FieldError>);

impl Wrong<'_> {
    pub(crate) fn say(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError::new(field, message));
    }
}

fn check_texts(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    if let Some(reason) = spec.prefix.as_deref().and_then(wrong_prefix) {
        wrong.say("prefix", reason);
    }
    for key in spec.environment.keys() {
        if key.is_empty() || key.contains(['=', '\0']) {
            let message = "a variable's name is not empty and has no `=`";
            wrong.say(format!("environment.{key}"), message);
        }
    }
    let texts = spec.args.iter().map(|arg| ("args", arg));
    let texts = texts.chain(spec.environment.values().map(|value| ("environment", value)));
    let texts =
        texts.chain([&spec.command, &spec.cwd].into_iter().flatten().map(|text| ("command", text)));
    for (field, text) in texts {
        if text.contains('\0') {
            wrong.say(field, "a NUL character cannot be passed to a program");
        }
    }
}

fn check_numbers(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    for (field, value, min) in [
        ("call_timeout_ms", spec.call_timeout_ms.unwrap_or(1), 1),
        ("start_timeout_ms", spec.start_timeout_ms, 1),
        ("heartbeat.interval_ms", spec.heartbeat.interval_ms, 0),
        ("heartbeat.timeout_ms", spec.heartbeat.timeout_ms, 1),
    ] {
        if !(min..=MAX_MS).contains(&value) {
            wrong.say(field, format!("is {value}, not between {min} and {MAX_MS} (one day)"));
        }
    }
}

fn check_limits(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    let limits = &spec.resource_limits;
    if limits.cores().is_none() {
        let message = "is not a number of cores above 0, such as \"0.5\"";
        wrong.say("resource_limits.cpu", message);
    }
    for (field, bytes) in [("memory", limits.memory_bytes()), ("disk", limits.disk_bytes())] {
        if bytes.is_none() {
            let message = "is not a size such as \"512M\" or \"1G\"";
            wrong.say(format!("resource_limits.{field}"), message);
        }
    }
    if limits.pids == 0 {
        wrong.say("resource_limits.pids", "is 0");
    }
}

fn check_tools(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    for (field, patterns) in [("tools_allow", &spec.tools_allow), ("tools_deny", &spec.tools_deny)]
    {
        if patterns.len() > MAX_PATTERNS {
            wrong.say(field, format!("has more than {MAX_PATTERNS}"));
        }
        for (at, pattern) in patterns.iter().enumerate() {
            if pattern.is_empty() || pattern.len() > MAX_PATTERN {
                let message = format!(
                    "is not the name of a tool, of 1 to {MAX_PATTERN} bytes, with or without `*`"
                );
                wrong.say(format!("{field}[{at}]"), message);
            }
        }
    }
}

fn check_process(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    let containers_only = "is for servers given by `image`";
    for (field, given) in [
        ("ports", !spec.ports.is_empty()),
        ("http_path", spec.http_path.is_some()),
        ("volumes", !spec.volumes.is_empty()),
        ("require", spec.require.is_some()),
        ("user", spec.user.is_some()),
        ("openings", !spec.openings.is_closed()),
        ("provider", !matches!(spec.provider, None | Some(Provider::Process))),
    ] {
        if given {
            wrong.say(field, containers_only);
        }
    }
    if spec.network == Network::None {
        wrong.say(
            "network",
            "a process has the network of this machine; `none` is for servers given by `image`",
        );
    }
    if !spec.stdio_bridge {
        wrong.say("stdio_bridge", "a process is always bridged over stdio");
    }
}

fn check_container(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    if let Some(reason) = spec.image.as_deref().and_then(wrong_image) {
        wrong.say("image", reason);
    }
    if spec.provider == Some(Provider::Process) {
        wrong.say("provider", "an image runs in a container: `gvisor`, `podman` or `krun`");
    }
    if spec.require == Some(Requirement::Gvisor)
        && let Some(provider) = spec.provider.filter(|provider| *provider != Provider::Gvisor)
    {
        let message = format!("`gvisor` is required and `{}` is the `provider`", provider.name());
        wrong.say("require", message);
    }
    if spec.cwd.as_deref().is_some_and(|cwd| wrong_path(cwd).is_some()) {
        wrong.say("cwd", "is not an absolute path in the container");
    }
    if spec.user.as_deref().is_some_and(|user| !is_user(user)) {
        wrong.say("user", "is not `user` or `user:group`, each a name or a number");
    }
    check_ports(spec, wrong);
    check_http(spec, wrong);
    check_paths(spec, wrong);
    for (at, name) in spec.openings.capabilities.iter().enumerate() {
        if !is_capability(name) {
            let message = "is no capability of Linux, such as `NET_BIND_SERVICE`";
            wrong.say(format!("openings.capabilities[{at}]"), message);
        }
    }
}

fn check_ports(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    let mut inside = BTreeSet::new();
    let mut outside = BTreeSet::new();
    for (at, port) in spec.ports.iter().enumerate() {
        let PortMapping { container, host, .. } = *port;
        if container == 0 {
            wrong.say(format!("ports[{at}].container"), "is not between 1 and 65535");
        } else if !inside.insert(container) {
            wrong.say(format!("ports[{at}].container"), "is published twice");
        }
        if host != 0 && !outside.insert(host) {
            wrong.say(format!("ports[{at}].host"), "is given to two ports of the container");
        }
        if spec.network == Network::Host && host != 0 && host != container {
            let message =
                "with `network: host` the container's port is the machine's: give the same, or 0";
            wrong.say(format!("ports[{at}].host"), message);
        }
    }
    if spec.network == Network::None && !spec.ports.is_empty() {
        wrong.say("ports", "a server without a network (`network: none`) has no ports to publish");
    }
    if spec.ports.len() > MAX_LIST {
        wrong.say("ports", format!("has more than {MAX_LIST}"));
    }
}

fn check_http(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    if !spec.stdio_bridge && spec.ports.is_empty() && spec.network != Network::None {
        let message = "a server without a stdio bridge is reached over a port: give one, such as [{\"container\": 8080}]";
        wrong.say("ports", message);
    }
    if !spec.stdio_bridge && spec.network == Network::None {
        wrong.say("network", "a server without a stdio bridge needs a network");
    }
    let Some(path) = spec.http_path.as_deref() else {
        return;
    };
    if spec.stdio_bridge {
        wrong.say("http_path", "is for servers with `stdio_bridge: false`");
    }
    let is_clean = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\' | b'"');
    if !path.starts_with('/') || !path.bytes().all(is_clean) {
        wrong.say("http_path", "is not a path such as `/mcp`");
    }
}

/// Volumes and mounts: each place in the container is given once.
fn check_paths(spec: &ServerSpec, wrong: &mut Wrong<'_>) {
    let mut places = BTreeSet::new();
    let volumes = spec.volumes.iter().enumerate();
    let volumes = volumes.map(|(at, path)| (format!("volumes[{at}]"), path));
    let mounts = spec.openings.mounts.iter().enumerate();
    let mounts =
        mounts.map(|(at, mount)| (format!("openings.mounts[{at}].container"), &mount.container));
    for (field, path) in volumes.chain(mounts) {
        match wrong_path(path).or_else(|| wrong_place(path)) {
            Some(reason) => wrong.say(field, reason),
            None if !places.insert(path.trim_end_matches('/')) => {
                wrong.say(field, "is given twice");
            }
            None => {}
        }
    }
    for (at, mount) in spec.openings.mounts.iter().enumerate() {
        if let Some(reason) = wrong_path(&mount.host) {
            wrong.say(format!("openings.mounts[{at}].host"), reason);
        }
    }
    for (field, count) in
        [("volumes", spec.volumes.len()), ("openings.mounts", spec.openings.mounts.len())]
    {
        if count > MAX_LIST {
            wrong.say(field, format!("has more than {MAX_LIST}"));
        }
    }
}

/// What keeps a text from being a path that an engine takes as it stands.
fn wrong_path(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        return Some("is not an absolute path, such as `/data`");
    }
    if path.split('/').any(|part| matches!(part, "." | "..")) || path.contains("//") {
        return Some("has `.`, `..` or an empty name in it");
    }
    let forbidden = |c: char| c.is_control() || matches!(c, ':' | ',' | '"' | '\\');
    path.contains(forbidden)
        .then_some("has a `:`, `,`, quote, backslash or control character in it")
}

/// Places that are the container's own.
fn wrong_place(path: &str) -> Option<&'static str> {
    let path = path.trim_end_matches('/');
    let own = ["/proc", "/sys", "/dev"];
    let is_own = own.iter().any(|own| {
        path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    (path.is_empty() || is_own).then_some("is a directory of the container's own")
}

fn is_user(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= 64
            && !name.starts_with('-')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
    };
    match text.split_once(':') {
        Some((user, group)) => is_name(user) && is_name(group),
        None => is_name(text),
    }
}

#[cfg(test)]
mod tests {
    use crate::parse_registration;
    use serde_json::{Value, json};

    /// A container's registration with `more` in it: the fields that are wrong.
    fn wrong_in(more: Value) -> Vec<String> {
        let mut body = json!({"name": "x", "image": "localhost/x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let errors = parse_registration(body).err().unwrap_or_default();
        errors.into_iter().map(|error| error.field).collect()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_container_is_given_by_its_image_alone() {
        // covers: HST-1.1
        assert_eq!(wrong_in(json!({})), NOTHING);
        let whole = json!({
            "args": ["--stdio"], "ports": [{"container": 8080, "host": 0}], "volumes": ["/data"],
            "resource_limits": {"cpu": "0.5", "memory": "512M", "disk": "1G", "pids": 256},
            "network": "egress", "provider": "gvisor", "require": "gvisor", "cwd": "/srv",
            "environment": {"A": "1"}, "user": "1000:1000",
            "openings": {"capabilities": ["NET_BIND_SERVICE"], "writable_root": true,
                "mounts": [{"host": "/srv/x", "container": "/srv/x"}]},
        });
        assert_eq!(wrong_in(whole), NOTHING);
        assert_eq!(wrong_in(json!({"command": "sh"})), ["image"]);
        assert_eq!(wrong_in(json!({"image": "--privileged"})), ["image"]);
        assert_eq!(wrong_in(json!({"image": "oci-archive:/x"})), ["image"]);
    }

    #[test]
    fn an_http_server_has_a_port() {
        // covers: HST-1.2
        let port = json!([{"container": 8080}]);
        assert_eq!(wrong_in(json!({"stdio_bridge": false})), ["ports"]);
        assert_eq!(wrong_in(json!({"stdio_bridge": false, "ports": port})), NOTHING);
        let none = json!({"stdio_bridge": false, "ports": port, "network": "none"});
        assert_eq!(wrong_in(none), ["ports", "network"]);
        assert_eq!(wrong_in(json!({"http_path": "/mcp"})), ["http_path"]);
        for path in ["mcp", "/a b", "/a#b"] {
            let body = json!({"stdio_bridge": false, "ports": port, "http_path": path});
            assert_eq!(wrong_in(body), ["http_path"], "{path}");
        }
    }

    #[test]
    fn ports_are_ports_and_given_once() {
        let ports = |ports: Value| wrong_in(json!({"ports": ports}));
        assert_eq!(ports(json!([{"container": 0}])), ["ports[0].container"]);
        assert_eq!(ports(json!([{"container": 1}, {"container": 1}])), ["ports[1].container"]);
        let both = json!([{"container": 1, "host": 9}, {"container": 2, "host": 9}]);
        assert_eq!(ports(both), ["ports[1].host"]);
        assert_eq!(ports(json!([{"container": 70000}])), ["ports"]);
        assert_eq!(ports(json!([{"container": 80, "address": "0.0.0.0"}])), NOTHING);
        assert_eq!(ports(json!([{"container": 80, "address": "everywhere"}])), ["ports"]);
        let host = json!({"network": "host", "ports": [{"container": 80, "host": 81}]});
        assert_eq!(wrong_in(host), ["ports[0].host"]);
    }

    #[test]
    fn volumes_are_places_in_the_container() {
        // covers: HST-6.1
        for path in ["data", "/", "/data/../etc", "/a:/b", "/a,b", "/proc", "/dev/shm", "/a//b"] {
            assert_eq!(wrong_in(json!({"volumes": [path]})), ["volumes[0]"], "{path}");
        }
        assert_eq!(wrong_in(json!({"volumes": ["/data", "/data/"]})), ["volumes[1]"]);
        assert_eq!(wrong_in(json!({"volumes": ["/data", "/data/x", "/device"]})), NOTHING);
    }

    #[test]
    fn openings_are_named_and_checked() {
        let opened = |openings: Value| wrong_in(json!({"openings": openings}));
        assert_eq!(opened(json!({"capabilities": ["ALL"]})), ["openings.capabilities[0]"]);
        assert_eq!(opened(json!({"everything": true})), ["openings"]);
        let mount = |host, inside| json!({"mounts": [{"host": host, "container": inside}]});
        assert_eq!(opened(mount("srv", "/srv")), ["openings.mounts[0].host"]);
        assert_eq!(opened(mount("/srv", "/sys")), ["openings.mounts[0].container"]);
        let twice = json!({"volumes": ["/srv"], "openings": mount("/srv", "/srv")});
        assert_eq!(wrong_in(twice), ["openings.mounts[0].container"]);
        for user in ["-u", "a b", "a:", "a:b:c"] {
            assert_eq!(wrong_in(json!({"user": user})), ["user"], "{user}");
        }
    }

    #[test]
    fn providers_and_requirements_do_not_contradict_each_other() {
        // covers: HST-5.3
        assert_eq!(wrong_in(json!({"provider": "process"})), ["provider"]);
        for other in ["podman", "firecracker", "e2b", "krun"] {
            let both = json!({"provider": other, "require": "gvisor"});
            assert_eq!(wrong_in(both), ["require"], "{other}");
            // Whether a provider is available is answered when the server starts.
            assert_eq!(wrong_in(json!({"provider": other})), Vec::<String>::new(), "{other}");
        }
        assert_eq!(wrong_in(json!({"provider": "kata"})), ["provider"]);
    }

    #[test]
    fn what_only_containers_have_is_refused_for_processes() {
        let body = json!({
            "name": "x", "command": "y", "ports": [{"container": 1}], "volumes": ["/data"],
            "require": "gvisor", "user": "me", "provider": "gvisor", "network": "none",
            "openings": {"writable_root": true}, "stdio_bridge": false, "http_path": "/mcp",
        });
        let errors = parse_registration(body).unwrap_err();
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "ports",
                "http_path",
                "volumes",
                "require",
                "user",
                "openings",
                "provider",
                "network",
                "stdio_bridge"
            ]
        );
    }
}
