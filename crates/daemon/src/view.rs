//! The server object: what was asked for, from the store, beside what is true, from the
//! supervisor.

use std::collections::BTreeMap;

use cofer_model::{Health, MASK, ServerSpec, ServerView};
use cofer_store::ServerRecord;
use cofer_supervisor::{ServerHandle, Snapshot};

use crate::validate::warnings_of;

/// How much of a server is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detail {
    /// The values of its environment, in plain text.
    pub(crate) reveal: bool,
    /// What it uses and what isolation is in force: read from the system, hence not for lists.
    pub(crate) measure: bool,
}

/// Puts the object together. Reads `/proc` where `detail.measure` is asked for.
pub(crate) fn server_view(
    record: ServerRecord,
    handle: &ServerHandle,
    detail: Detail,
) -> ServerView {
    let snapshot = handle.snapshot();
    let ServerRecord { id, spec, created_at, updated_at, .. } = record;
    let kind = spec.kind();
    let warnings = warnings(&spec, &snapshot, handle.noise_lines());
    let peer = snapshot.peer.as_deref();
    let health = if snapshot.health_reasons.is_empty() { Health::Ok } else { Health::Warning };
    ServerView {
        id,
        name: spec.name.to_string(),
        kind,
        environment: environment(&spec, detail.reveal),
        description: spec.description,
        command: spec.command,
        args: spec.args,
        cwd: spec.cwd,
        image: spec.image,
        url: spec.url,
        stdio_bridge: spec.stdio_bridge,
        ports: spec.ports,
        volumes: spec.volumes,
        resource_limits: spec.resource_limits,
        restart_policy: spec.restart_policy,
        provider: spec.provider,
        enabled: spec.enabled,
        include_resources: spec.include_resources,
        call_timeout_ms: spec.call_timeout_ms,
        start_timeout_ms: spec.start_timeout_ms,
        max_in_flight: spec.max_in_flight,
        heartbeat: spec.heartbeat,
        sharing: spec.sharing,
        network: spec.network,
        require: spec.require,
        status: snapshot.status,
        process_status: snapshot.process_status(),
        error: snapshot.failure.clone(),
        pid: snapshot.pid,
        container_id: None,
        endpoints: Vec::new(),
        started_at: snapshot.started_at,
        uptime_seconds: snapshot.uptime().map(|uptime| uptime.as_secs_f64()),
        restart_count: snapshot.restart_count,
        last_crash_at: snapshot.last_crash_at,
        next_restart_at: snapshot.next_restart_at,
        health,
        health_reasons: snapshot.health_reasons.clone(),
        usage: detail.measure.then(|| handle.usage()).flatten(),
        isolation: detail.measure.then(|| handle.isolation()).flatten(),
        capabilities: peer.map(|peer| peer.capabilities.clone()),
        server_info: peer.map(|peer| peer.server_info.clone()),
        protocol_version: peer.map(|peer| peer.protocol_version.clone()),
        warnings,
        created_at,
        updated_at,
    }
}

fn environment(spec: &ServerSpec, reveal: bool) -> BTreeMap<String, String> {
    let shown = |value: &String| if reveal { value.clone() } else { MASK.to_owned() };
    spec.environment.iter().map(|(key, value)| (key.clone(), shown(value))).collect()
}

fn warnings(spec: &ServerSpec, snapshot: &Snapshot, noise_lines: u64) -> Vec<String> {
    let mut warnings = warnings_of(spec);
    warnings.extend(snapshot.notice.clone());
    if noise_lines > 0 {
        warnings.push(format!(
            "it wrote {noise_lines} lines to stdout that are not MCP; they stand in its log and were left out"
        ));
    }
    warnings
}
