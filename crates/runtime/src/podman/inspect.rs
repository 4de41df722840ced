//! What the engine says of a container, from `podman inspect`.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

/// A published port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The port inside the container.
    pub container: u16,
    /// Where it is reached.
    pub host: SocketAddr,
}

/// The engine's word.
#[derive(Debug, Clone)]
pub(crate) struct Inspected(Value);

impl Inspected {
    /// Reads the answer of `podman container inspect` for one container.
    pub(crate) fn parse(answer: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(answer).ok()?;
        let first = value.as_array()?.first()?;
        first.is_object().then(|| Self(first.clone()))
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.0.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
    }

    /// The OCI runtime by name; where it is known by its path, the end of it.
    pub(crate) fn runtime(&self) -> Option<&str> {
        self.text("/OCIRuntime").and_then(|name| name.rsplit('/').next())
    }

    /// The image's digest.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.text("/ImageDigest")
    }

    pub(crate) fn was_killed_for_memory(&self) -> bool {
        self.0.pointer("/State/OOMKilled").and_then(Value::as_bool).unwrap_or(false)
    }

    /// A label of the container.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.0.pointer("/Config/Labels")?.get(key)?.as_str()
    }

    /// Published ports, as they are.
    pub(crate) fn endpoints(&self) -> Vec<Endpoint> {
        let ports = self.0.pointer("/NetworkSettings/Ports").and_then(Value::as_object);
        let mut endpoints: Vec<Endpoint> = ports
            .into_iter()
            .flatten()
            .flat_map(|(port, hosts)| {
                let container = port.split('/').next().and_then(|port| port.parse().ok());
                let hosts = hosts.as_array().into_iter().flatten();
                hosts.filter_map(move |host| endpoint(container?, host))
            })
            .collect();
        endpoints.sort_unstable();
        endpoints
    }
}

fn endpoint(container: u16, host: &Value) -> Option<Endpoint> {
    let port = host["HostPort"].as_str()?.parse().ok()?;
    let address = match host["HostIp"].as_str() {
        Some("") | None => IpAddr::from([0, 0, 0, 0]),
        Some(address) => address.parse().ok()?,
    };
    Some(Endpoint { container, host: SocketAddr::new(address, port) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inspected(value: &Value) -> Inspected {
        Inspected::parse(json!([value]).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn ports_are_where_the_engine_put_them() {
        let inspected = inspected(&json!({"NetworkSettings": {"Ports": {
            "8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "40001"}],
            "80/tcp": [{"HostIp": "", "HostPort": "40002"}],
            "81/tcp": null,
        }}}));
        let endpoint = |container, host: &str| Endpoint { container, host: host.parse().unwrap() };
        assert_eq!(
            inspected.endpoints(),
            [endpoint(80, "0.0.0.0:40002"), endpoint(8080, "127.0.0.1:40001")]
        );
    }

    #[test]
    fn what_the_engine_does_not_say_is_not_made_up() {
        assert!(Inspected::parse(b"[]").is_none() && Inspected::parse(b"no").is_none());
        let nothing = inspected(&json!({}));
        assert_eq!((nothing.runtime(), nothing.digest(), nothing.label("x")), (None, None, None));
        assert!(nothing.endpoints().is_empty() && !nothing.was_killed_for_memory());
    }
}
