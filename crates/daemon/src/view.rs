//! The server object: what was asked for, from the store, beside what is true, from the
//! supervisor and measured on the system.

use std::collections::BTreeMap;

use cofer_mcp::QueueStatus;
use cofer_model::{
    Budget, Health, MASK, QueueView, ServerSpec, ServerView, Status, Usage, mask_args,
};
use cofer_store::ServerRecord;
use cofer_supervisor::{ServerHandle, Snapshot};
use serde_json::Value;

use crate::validate::warnings_of;

/// What of a server is read from the system, hence not for lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Measured {
    /// What it uses.
    usage: Option<Usage>,
    /// What isolation is in force.
    isolation: Option<Value>,
}

/// Measures a server. Reads `/proc` with blocking calls.
pub(crate) async fn measure(handle: &ServerHandle) -> Measured {
    Measured { usage: handle.usage().await, isolation: handle.isolation().await }
}

/// Puts the object together. `reveal` shows the values of its environment and headers, and the
/// secrets in its arguments.
pub(crate) fn server_view(
    record: ServerRecord,
    handle: &ServerHandle,
    reveal: bool,
    measured: Measured,
) -> ServerView {
    let snapshot = handle.snapshot();
    let ServerRecord { id, spec, created_at, updated_at, owner, epoch, .. } = record;
    let kind = spec.kind();
    let warnings = warnings(&spec, &snapshot, handle.noise_lines());
    let peer = snapshot.peer.as_deref();
    let queue = handle.queue();
    let facts = handle.facts().unwrap_or_default();
    let mut health_reasons = snapshot.health_reasons.clone();
    health_reasons.extend(memory_reason(handle.memory()));
    let health = if health_reasons.is_empty() { Health::Ok } else { Health::Warning };
    ServerView {
        id,
        name: spec.name.to_string(),
        kind,
        environment: masked(&spec.environment, reveal),
        headers: masked(&spec.headers, reveal),
        description: spec.description,
        prefix: spec.prefix,
        command: spec.command,
        args: if reveal { spec.args } else { mask_args(&spec.args) },
        cwd: spec.cwd,
        image: spec.image,
        url: spec.url,
        auth: spec.auth,
        audience: spec.audience,
        stdio_bridge: spec.stdio_bridge,
        ports: spec.ports,
        http_path: spec.http_path,
        volumes: spec.volumes,
        resource_limits: spec.resource_limits,
        restart_policy: spec.restart_policy,
        provider: spec.provider,
        enabled: spec.enabled,
        include_resources: spec.include_resources,
        tools_allow: spec.tools_allow.clone(),
        tools_deny: spec.tools_deny.clone(),
        call_timeout_ms: spec.call_timeout_ms,
        start_timeout_ms: spec.start_timeout_ms,
        max_in_flight: spec.max_in_flight,
        max_in_flight_effective: effective_in_flight(handle, queue.as_ref()),
        queue: queue.map(queue_view),
        heartbeat: spec.heartbeat,
        sharing: spec.sharing,
        network: spec.network,
        require: spec.require,
        user: spec.user,
        openings: spec.openings,
        status: snapshot.status,
        process_status: snapshot.process_status(),
        error: snapshot.failure.clone(),
        pid: snapshot.pid,
        container_id: facts.container_id,
        image_digest: facts.image_digest.or_else(|| snapshot.image_digest.clone()),
        preparing: snapshot.preparing.clone(),
        endpoints: facts.endpoints,
        mcp_endpoint: snapshot.mcp_endpoint.clone(),
        started_at: snapshot.started_at,
        uptime_seconds: snapshot.uptime().map(|uptime| uptime.as_secs_f64()),
        restart_count: snapshot.restart_count,
        last_crash_at: snapshot.last_crash_at,
        next_restart_at: snapshot.next_restart_at,
        health,
        health_reasons,
        usage: measured.usage,
        isolation: measured.isolation,
        capabilities: peer.map(|peer| peer.capabilities.clone()),
        server_info: peer.map(|peer| peer.server_info.clone()),
        protocol_version: peer.map(|peer| peer.protocol_version.clone()),
        warnings,
        owner,
        epoch,
        created_at,
        updated_at,
    }
}

fn queue_view(queue: QueueStatus) -> QueueView {
    QueueView {
        waiting: queue.waiting as u64,
        waited: queue.waited,
        longest_wait_ms: queue.longest_wait.as_millis() as f64,
    }
}

/// The number in force, or the one with which the server would start.
fn effective_in_flight(handle: &ServerHandle, queue: Option<&QueueStatus>) -> u32 {
    let number = queue.map_or_else(|| handle.max_in_flight().initial(), |queue| queue.limit);
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Says that messages of the server were rejected or discarded for lack of memory.
fn memory_reason(memory: &Budget) -> Option<String> {
    let (losses, limit) = (memory.losses(), memory.limit());
    (losses > 0).then(|| {
        format!(
            "its memory limit of {limit} bytes was reached: {losses} messages from or to it were \
             rejected or discarded since it was started; `--max-memory` of `cofer serve` raises the limit"
        )
    })
}

fn masked(values: &BTreeMap<String, String>, reveal: bool) -> BTreeMap<String, String> {
    let shown = |value: &String| if reveal { value.clone() } else { MASK.to_owned() };
    values.iter().map(|(key, value)| (key.clone(), shown(value))).collect()
}

fn warnings(spec: &ServerSpec, snapshot: &Snapshot, noise_lines: u64) -> Vec<String> {
    let mut warnings = warnings_of(spec);
    warnings.extend(snapshot.facts.iter().flat_map(|facts| facts.warnings.clone()));
    warnings.extend(no_mcp(snapshot));
    warnings.extend(snapshot.notice.clone());
    if noise_lines > 0 {
        warnings.push(format!(
            "it wrote {noise_lines} lines to stdout that are not MCP; they stand in its log and were left out"
        ));
    }
    warnings
}

/// A port that is open says nothing of what is spoken there.
fn no_mcp(snapshot: &Snapshot) -> Option<String> {
    let answers = matches!(snapshot.status, Status::Ready | Status::Unresponsive);
    (answers && snapshot.peer.is_none()).then(|| {
        "its port is open, and no MCP over Streamable HTTP was found there at `/mcp` or `/`: it is \
         reached at its endpoints, and not through Cofer; `http_path` says where it speaks MCP"
            .to_owned()
    })
}
