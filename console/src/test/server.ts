// A server object for tests, with what matters given.
import type { ServerView } from "../api/schema";

export function serverView(part: Partial<ServerView> = {}): ServerView {
  return {
    id: part.name ?? "id",
    name: "fs",
    kind: "process",
    command: "npx",
    args: [],
    stdio_bridge: true,
    ports: [],
    environment: {},
    volumes: [],
    resource_limits: { cpu: "0.5", memory: "512M", disk: "1G", pids: 256 },
    restart_policy: "always",
    enabled: true,
    include_resources: false,
    call_timeout_ms: 30_000,
    start_timeout_ms: 60_000,
    max_in_flight: 1,
    heartbeat: { interval_ms: 15_000, timeout_ms: 10_000 },
    sharing: "shared",
    network: "egress",
    status: "ready",
    process_status: "running",
    endpoints: [],
    openings: {},
    restart_count: 0,
    health: "ok",
    health_reasons: [],
    warnings: [],
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
    ...part,
  } as ServerView;
}
