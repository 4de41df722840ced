//! The flags that describe a container, and the JSON they become.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value, json};

use crate::failure::Failure;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Containers")]
pub(super) struct ContainerFlags {
    /// Run this image in a container, instead of a program of this machine
    #[arg(long, value_name = "IMAGE")]
    pub(super) image: Option<String>,
    /// Publish a port, on loopback unless an address is given; HOST 0 takes any free one
    #[arg(short, long, value_name = "[[ADDRESS:]HOST:]CONTAINER")]
    port: Vec<String>,
    /// The server speaks HTTP on its first port, and not MCP over stdin and stdout
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    http: Option<bool>,
    /// Where on that port it speaks MCP [default: looked for at /mcp and /]
    #[arg(long, value_name = "PATH")]
    http_path: Option<String>,
    /// Keep what is written to this path in the container
    #[arg(long, value_name = "PATH")]
    volume: Vec<String>,
    /// How much memory it may use [default: 512M]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// How many cores it may use [default: 0.5]
    #[arg(long, value_name = "CORES")]
    cpu: Option<String>,
    /// How much storage it may use [default: 1G]
    #[arg(long, value_name = "SIZE")]
    disk: Option<String>,
    /// How many processes and threads it may have [default: 256]
    #[arg(long, value_name = "N")]
    pids: Option<u32>,
    /// What it may reach [default: egress]
    #[arg(long, value_name = "NETWORK", value_parser = PossibleValuesParser::new(["egress", "none", "host"]))]
    network: Option<String>,
    /// Who isolates it [default: gvisor where it works, else podman]
    #[arg(long, value_name = "PROVIDER", value_parser = PossibleValuesParser::new(["gvisor", "podman", "krun", "firecracker", "e2b", "process"]))]
    provider: Option<String>,
    /// Refuse to start it with less isolation than this
    #[arg(long, value_name = "PROVIDER", value_parser = PossibleValuesParser::new(["gvisor"]))]
    require: Option<String>,
    /// Who it is in the container [default: what the image says]
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Open: a capability that is not dropped, such as NET_BIND_SERVICE
    #[arg(long, value_name = "CAPABILITY")]
    cap_add: Vec<String>,
    /// Open: let it write to its root file system
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    writable_root: Option<bool>,
    /// Open: let its processes gain privileges
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    new_privileges: Option<bool>,
    /// Open: take the seccomp profile away
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    all_system_calls: Option<bool>,
    /// Open: a path of this machine that it sees, read-only unless `:rw` stands behind
    #[arg(long, value_name = "HOST:CONTAINER[:rw]")]
    mount: Vec<String>,
}

impl ContainerFlags {
    /// The fields that were given, and only those. Limits and openings are objects of which a
    /// part may be given.
    pub(super) fn fields(&self) -> Result<Map<String, Value>, Failure> {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(key.to_owned(), value);
            }
        };
        put("image", self.image.clone().map(Value::from));
        put("ports", list(&self.port, port)?);
        put("stdio_bridge", self.http.map(|http| Value::from(!http)));
        put("http_path", self.http_path.clone().map(Value::from));
        put("volumes", list(&self.volume, |path| Ok(Value::from(path)))?);
        put("network", self.network.clone().map(Value::from));
        put("provider", self.provider.clone().map(Value::from));
        put("require", self.require.clone().map(Value::from));
        put("user", self.user.clone().map(Value::from));
        put("resource_limits", self.limits());
        put("openings", self.openings()?);
        Ok(fields)
    }

    fn limits(&self) -> Option<Value> {
        object([
            ("memory", self.memory.clone().map(Value::from)),
            ("cpu", self.cpu.clone().map(Value::from)),
            ("disk", self.disk.clone().map(Value::from)),
            ("pids", self.pids.map(Value::from)),
        ])
    }

    fn openings(&self) -> Result<Option<Value>, Failure> {
        Ok(object([
            ("capabilities", list(&self.cap_add, |name| Ok(Value::from(name)))?),
            ("writable_root", self.writable_root.map(Value::from)),
            ("new_privileges", self.new_privileges.map(Value::from)),
            ("all_system_calls", self.all_system_calls.map(Value::from)),
            ("mounts", list(&self.mount, mount)?),
        ]))
    }
}

/// The parts of an object that a person named, on top of those that it has.
pub(super) fn merge(fields: &mut Map<String, Value>, key: &str, current: Value) {
    if let (Some(Value::Object(given)), Value::Object(mut whole)) = (fields.get(key), current) {
        whole.extend(given.clone());
        fields.insert(key.to_owned(), Value::Object(whole));
    }
}

fn object<const N: usize>(parts: [(&str, Option<Value>); N]) -> Option<Value> {
    let parts = parts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let parts: Map<String, Value> = parts.collect();
    (!parts.is_empty()).then_some(Value::Object(parts))
}

fn list(
    texts: &[String],
    read: impl Fn(&str) -> Result<Value, Failure>,
) -> Result<Option<Value>, Failure> {
    let items: Vec<Value> = texts.iter().map(|text| read(text)).collect::<Result<_, _>>()?;
    Ok((!items.is_empty()).then_some(Value::Array(items)))
}

/// `8080`, `3000:8080`, `0.0.0.0:3000:8080` or `[::]:3000:8080`.
fn port(text: &str) -> Result<Value, Failure> {
    let wrong = || {
        Failure::mistyped(format!("`{text}` is no port"))
            .hint("give one such as 8080, 3000:8080 or 0.0.0.0:3000:8080.")
    };
    let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
    let (rest, container) = match text.rsplit_once(':') {
        Some((rest, container)) => (Some(rest), number(container)?),
        None => (None, number(text)?),
    };
    let Some(rest) = rest else {
        return Ok(json!({"container": container}));
    };
    let Some((address, host)) = rest.rsplit_once(':') else {
        return Ok(json!({"container": container, "host": number(rest)?}));
    };
    let address = address.trim_start_matches('[').trim_end_matches(']');
    address.parse::<std::net::IpAddr>().map_err(|_| wrong())?;
    Ok(json!({"container": container, "host": number(host)?, "address": address}))
}

/// `/srv/data:/data`, with `:rw` behind where it may be written to.
fn mount(text: &str) -> Result<Value, Failure> {
    let (paths, writable) = match text.strip_suffix(":rw") {
        Some(paths) => (paths, true),
        None => (text.strip_suffix(":ro").unwrap_or(text), false),
    };
    match paths.split_once(':') {
        Some((host, container)) if !host.is_empty() && !container.is_empty() => {
            Ok(json!({"host": host, "container": container, "writable": writable}))
        }
        _ => Err(Failure::mistyped(format!("`{text}` is no mount"))
            .hint("give a path of this machine and one of the container, such as /srv:/srv.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_is_sent() {
        assert_eq!(ContainerFlags::default().fields().unwrap(), Map::new());
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let flags = ContainerFlags {
            image: Some("localhost/x".to_owned()),
            port: words(&["8080", "3000:8081", "0.0.0.0:0:8082", "[::1]:9:8083"]),
            http: Some(true),
            volume: words(&["/data"]),
            memory: Some("1G".to_owned()),
            cap_add: words(&["NET_RAW"]),
            writable_root: Some(true),
            mount: words(&["/srv:/in", "/a:/b:rw"]),
            ..ContainerFlags::default()
        };
        assert_eq!(
            Value::Object(flags.fields().unwrap()),
            json!({
                "image": "localhost/x",
                "ports": [
                    {"container": 8080},
                    {"container": 8081, "host": 3000},
                    {"container": 8082, "host": 0, "address": "0.0.0.0"},
                    {"container": 8083, "host": 9, "address": "::1"},
                ],
                "stdio_bridge": false,
                "volumes": ["/data"],
                "resource_limits": {"memory": "1G"},
                "openings": {
                    "capabilities": ["NET_RAW"],
                    "writable_root": true,
                    "mounts": [
                        {"host": "/srv", "container": "/in", "writable": false},
                        {"host": "/a", "container": "/b", "writable": true},
                    ],
                },
            })
        );
    }

    #[test]
    fn what_is_no_port_and_no_mount_is_mistyped() {
        for text in ["", "http", "80:", ":80", "70000", "a:80:80", "1:2:3:4"] {
            assert!(port(text).is_err(), "{text}");
        }
        for text in ["", "/srv", ":/srv", "/srv:", ":rw"] {
            assert!(mount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_that_are_not_named_stay() {
        let given = json!({"resource_limits": {"memory": "1G"}});
        let Value::Object(mut fields) = given else { panic!() };
        let current = json!({"cpu": "2", "memory": "512M"});
        merge(&mut fields, "resource_limits", current);
        merge(&mut fields, "openings", json!({}));
        assert_eq!(Value::Object(fields), json!({"resource_limits": {"cpu": "2", "memory": "1G"}}));
    }
}
