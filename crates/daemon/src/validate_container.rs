//! What a person should know about a container's registration before it is started: what of
//! its isolation is given up, and what this machine cannot give it.

use std::net::{SocketAddr, TcpListener};

use cofer_model::{FieldError, Limits, Network, PortMapping, ServerSpec};
use cofer_runtime::podman::ProviderReport;
use serde_json::Value;

/// What this machine has.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Machine {
    /// Bytes of memory, where that is known.
    pub memory: Option<u64>,
    /// Cores.
    pub cores: Option<usize>,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> Self {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let cores = std::thread::available_parallelism().ok();
        Self { memory: total_memory(&text), cores: cores.map(std::num::NonZero::get) }
    }
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The provider that a registration insists on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AsksFor {
    /// The field that names it, and its name.
    provider: Option<(&'static str, String)>,
}

impl AsksFor {
    /// Of a body with an image, whatever else is wrong with it.
    pub(crate) fn read(body: &Value) -> Option<Self> {
        body.get("image").and_then(Value::as_str)?;
        let named = |field| Some((field, body.get(field)?.as_str()?.to_owned()));
        Some(Self { provider: ["provider", "require"].into_iter().find_map(named) })
    }

    /// What of it is not to be had now.
    pub(crate) fn unavailable(self, providers: &[ProviderReport]) -> Option<FieldError> {
        let reason = |name: &str| {
            let report = providers.iter().find(|report| report.provider == name)?;
            (!report.available).then(|| report.reason.clone().unwrap_or_default())
        };
        if let Some(reason) = reason("podman") {
            let message = format!("containers cannot be run now: {reason}");
            return Some(FieldError::new("image", message));
        }
        let (field, name) = self.provider?;
        let reason = reason(&name)?;
        let message = format!("`{name}` is not available, and the server will not start: {reason}");
        Some(FieldError::new(field, message))
    }
}

/// What is given up of the isolation, one sentence each: also shown with the server.
pub(crate) fn openings(spec: &ServerSpec) -> Vec<FieldError> {
    let mut warnings = Vec::new();
    let mut warn = |field: &str, message: String| warnings.push(FieldError::new(field, message));
    if spec.network == Network::Host {
        let message =
            "`network: host` gives it this machine's network, with all that listens on loopback";
        warn("network", message.to_owned());
    }
    for port in spec.ports.iter().filter(|port| !port.address().is_loopback()) {
        let PortMapping { container, .. } = port;
        let message = format!(
            "port {container} is published on {}, where other machines may reach it; nothing asks them for a token",
            port.address()
        );
        warn("ports", message);
    }
    let openings = &spec.openings;
    if !openings.capabilities.is_empty() {
        let names = openings.capabilities.join(", ");
        warn("openings.capabilities", format!("it keeps the capabilities {names}"));
    }
    for (field, opened, message) in [
        ("new_privileges", openings.new_privileges, "its processes may gain privileges"),
        (
            "all_system_calls",
            openings.all_system_calls,
            "no seccomp profile limits its system calls",
        ),
    ] {
        if opened {
            warn(&format!("openings.{field}"), message.to_owned());
        }
    }
    for mount in &openings.mounts {
        let may = if mount.writable { "sees and changes" } else { "sees" };
        warn("openings.mounts", format!("it {may} {} of this machine", mount.host));
    }
    warnings
}

/// What this machine cannot give it now.
pub(crate) fn shortages(spec: &ServerSpec, machine: Machine) -> Vec<FieldError> {
    let mut warnings = Vec::new();
    let Limits { cpu, memory, .. } = &spec.resource_limits;
    let asked = (spec.resource_limits.memory_bytes(), machine.memory);
    if let (Some(asked), Some(there)) = asked
        && asked > there
    {
        let there = there / (1 << 20);
        let message = format!("{memory} is more than the {there}M of memory that this machine has");
        warnings.push(FieldError::new("resource_limits.memory", message));
    }
    if let (Some(asked), Some(there)) = (spec.resource_limits.cores(), machine.cores)
        && asked > there as f64
    {
        let message = format!("{cpu} is more than the {there} cores that this machine has");
        warnings.push(FieldError::new("resource_limits.cpu", message));
    }
    for (at, port) in spec.ports.iter().enumerate().filter(|(_, port)| port.host != 0) {
        let address = SocketAddr::new(port.address(), port.host);
        if let Err(error) = TcpListener::bind(address) {
            let message = format!("port {} of this machine cannot be used: {error}", port.host);
            warnings.push(FieldError::new(format!("ports[{at}].host"), message));
        }
    }
    for (at, mount) in spec.openings.mounts.iter().enumerate() {
        if std::fs::metadata(&mount.host).is_err() {
            let message = format!("{} is not there", mount.host);
            warnings.push(FieldError::new(format!("openings.mounts[{at}].host"), message));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofer_model::parse_registration;
    use serde_json::json;

    fn spec(more: Value) -> ServerSpec {
        let mut body = json!({"name": "x", "image": "localhost/x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse_registration(body).unwrap()
    }

    fn fields(warnings: Vec<FieldError>) -> Vec<String> {
        warnings.into_iter().map(|warning| warning.field).collect()
    }

    #[test]
    fn whatever_is_opened_is_told() {
        assert_eq!(fields(openings(&spec(json!({})))), [""; 0]);
        let open = spec(json!({
            "network": "host", "ports": [{"container": 80, "address": "0.0.0.0"}],
            "openings": {"capabilities": ["NET_RAW"], "new_privileges": true,
                "all_system_calls": true, "mounts": [{"host": "/srv", "container": "/srv"}]},
        }));
        let expected = [
            "network",
            "ports",
            "openings.capabilities",
            "openings.new_privileges",
            "openings.all_system_calls",
            "openings.mounts",
        ];
        assert_eq!(fields(openings(&open)), expected);
    }

    #[test]
    fn what_the_machine_does_not_have_is_told() {
        // covers: HST-5.2
        let machine = Machine { memory: Some(1 << 30), cores: Some(2) };
        let short = |more: Value| fields(shortages(&spec(more), machine));
        assert_eq!(short(json!({})), [""; 0]);
        let much = json!({"resource_limits": {"memory": "2G", "cpu": "4"}});
        assert_eq!(short(much), ["resource_limits.memory", "resource_limits.cpu"]);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let ports = json!({"ports": [{"container": 1}, {"container": 80, "host": port}]});
        assert_eq!(short(ports), ["ports[1].host"]);
        let mount = json!({"openings": {"mounts": [{"host": "/no/such", "container": "/x"}]}});
        assert_eq!(short(mount), ["openings.mounts[0].host"]);
    }

    #[test]
    fn what_isolates_containers_and_is_not_there_is_told() {
        // covers: HST-5.3
        let report = |provider, available| ProviderReport {
            provider,
            installed: available,
            available,
            reason: Some("not installed".to_owned()),
            runtime: None,
        };
        let told = |body: Value, gvisor, podman| {
            let reports =
                [report("gvisor", gvisor), report("e2b", false), report("podman", podman)];
            AsksFor::read(&body)?.unavailable(&reports).map(|warning| warning.field)
        };
        let plain = json!({"image": "x"});
        let insists = json!({"image": "x", "require": "gvisor"});
        assert_eq!(told(plain.clone(), false, true), None, "it runs without");
        assert_eq!(told(plain, true, false).as_deref(), Some("image"));
        assert_eq!(told(insists.clone(), false, true).as_deref(), Some("require"));
        assert_eq!(told(insists, true, true), None);
        let named = json!({"image": "x", "provider": "gvisor"});
        assert_eq!(told(named, false, true).as_deref(), Some("provider"));
        let elsewhere = json!({"image": "x", "provider": "e2b"});
        assert_eq!(told(elsewhere, true, true).as_deref(), Some("provider"));
        assert_eq!(told(json!({"command": "x"}), false, false), None);
    }

    #[test]
    fn the_machines_memory_is_read() {
        assert_eq!(total_memory("MemTotal:       2 kB\nMemFree: 1 kB\n"), Some(2048));
        assert_eq!(total_memory(""), None);
        assert!(Machine::this().memory.is_some() && Machine::this().cores.is_some());
    }
}
