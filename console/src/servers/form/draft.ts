// What is being typed into the form, and how it becomes the body of a registration. Everything is
// text until it is sent: half a number is not an error while it is typed.
import type { Network, Provider, RemoteAuth, RestartPolicy, ServerView, Sharing } from "../../api/schema";
import type { Template } from "../templates";

export type Kind = "process" | "container" | "remote";

/** `kept`: its value is on the daemon and was not touched; the value here is empty. */
export type EnvRow = { key: number; name: string; value: string; kept: boolean };
/** `address`: where it is published, which the form does not offer but keeps. */
export type PortRow = { key: number; container: string; host: string; address?: string | null | undefined };

export type Draft = {
  kind: Kind;
  name: string;
  command: string;
  args: string;
  image: string;
  url: string;
  /** How requests to a remote server are signed; empty where its headers are all. */
  auth: RemoteAuth | "";
  audience: string;
  cwd: string;
  description: string;
  /** Stands in place of the name in joined tool names. */
  prefix: string;
  env: EnvRow[];
  headers: EnvRow[];
  enabled: boolean;
  includeResources: boolean;
  restart: RestartPolicy;
  sharing: Sharing;
  callTimeout: string;
  startTimeout: string;
  maxInFlight: string;
  heartbeatInterval: string;
  heartbeatTimeout: string;
  cpu: string;
  memory: string;
  disk: string;
  pids: string;
  volumes: string;
  ports: PortRow[];
  network: Network;
  provider: Provider | "";
  requireGvisor: boolean;
  bridge: boolean;
  httpPath: string;
  user: string;
};

/** What the daemon shows in place of a value, and takes to mean "as it was". */
export const MASK = "********";

let rows = 0;
const nextKey = () => (rows += 1);

export const envRow = (name = "", value = "", kept = false): EnvRow => ({ key: nextKey(), name, value, kept });
export const portRow = (container = "", host = "", address?: string | null): PortRow => ({
  key: nextKey(),
  container,
  host,
  address,
});

export function emptyDraft(): Draft {
  return {
    kind: "process",
    name: "",
    command: "",
    args: "",
    image: "",
    url: "",
    auth: "",
    audience: "",
    cwd: "",
    description: "",
    prefix: "",
    env: [],
    headers: [],
    enabled: true,
    includeResources: false,
    restart: "always",
    sharing: "shared",
    callTimeout: "",
    startTimeout: "60000",
    maxInFlight: "",
    heartbeatInterval: "15000",
    heartbeatTimeout: "10000",
    cpu: "",
    memory: "",
    disk: "",
    pids: "",
    volumes: "",
    ports: [],
    network: "egress",
    provider: "",
    requireGvisor: false,
    bridge: true,
    httpPath: "",
    user: "",
  };
}

export function draftOfTemplate(template: Template): Draft {
  const { name, command, args, env = [] } = template;
  return { ...emptyDraft(), name, command, args: args.join("\n"), env: env.map((variable) => envRow(variable)) };
}

export function draftOf(server: ServerView): Draft {
  const limits = server.resource_limits;
  return {
    kind: server.kind,
    name: server.name,
    command: server.command ?? "",
    args: server.args.join("\n"),
    image: server.image ?? "",
    url: server.url ?? "",
    auth: server.auth ?? "",
    audience: server.audience ?? "",
    cwd: server.cwd ?? "",
    description: server.description ?? "",
    prefix: server.prefix ?? "",
    env: Object.keys(server.environment).map((name) => envRow(name, "", true)),
    headers: Object.keys(server.headers ?? {}).map((name) => envRow(name, "", true)),
    enabled: server.enabled,
    includeResources: server.include_resources,
    restart: server.restart_policy,
    sharing: server.sharing,
    callTimeout: String(server.call_timeout_ms ?? ""),
    startTimeout: String(server.start_timeout_ms),
    maxInFlight: String(server.max_in_flight ?? ""),
    heartbeatInterval: String(server.heartbeat.interval_ms ?? ""),
    heartbeatTimeout: String(server.heartbeat.timeout_ms ?? ""),
    cpu: limits.cpu ?? "",
    memory: limits.memory ?? "",
    disk: limits.disk ?? "",
    pids: String(limits.pids ?? ""),
    volumes: server.volumes.join("\n"),
    ports: server.ports.map((port) =>
      portRow(String(port.container), port.host ? String(port.host) : "", port.address),
    ),
    network: server.network,
    provider: server.provider ?? "",
    requireGvisor: server.require === "gvisor",
    bridge: server.stdio_bridge,
    httpPath: server.http_path ?? "",
    user: server.user ?? "",
  };
}

/** One argument per line, exactly as it stands; an empty field is no argument. */
export function argumentsOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split(/\r?\n/);
  // The line end after the last argument is not an argument.
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

const linesOf = (text: string) =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter(Boolean);

/** A number where it is one; other text goes to the daemon, which says what is wrong with it. */
const numberOf = (text: string): number | string | null => {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  return /^\d+$/.test(trimmed) ? Number(trimmed) : trimmed;
};

/** The body to send. Every field is named, so that a change also takes back what was emptied. */
export function bodyOf(draft: Draft): Record<string, unknown> {
  const container = draft.kind === "container";
  const process = draft.kind === "process";
  const remote = draft.kind === "remote";
  return {
    name: draft.name.trim(),
    command: process ? draft.command.trim() || null : null,
    image: container ? draft.image.trim() || null : null,
    url: remote ? draft.url.trim() || null : null,
    auth: remote ? draft.auth || null : null,
    audience: remote && draft.auth ? draft.audience.trim() || null : null,
    args: remote ? [] : argumentsOf(draft.args),
    cwd: remote ? null : draft.cwd.trim() || null,
    description: draft.description.trim() || null,
    prefix: draft.prefix.trim() || null,
    environment: remote ? {} : valuesOf(draft.env),
    headers: remote ? valuesOf(draft.headers) : {},
    enabled: draft.enabled,
    include_resources: draft.includeResources,
    restart_policy: draft.restart,
    sharing: draft.sharing,
    call_timeout_ms: numberOf(draft.callTimeout),
    start_timeout_ms: numberOf(draft.startTimeout),
    max_in_flight: numberOf(draft.maxInFlight),
    heartbeat: heartbeatOf(draft),
    resource_limits: limitsOf(draft),
    volumes: container ? linesOf(draft.volumes) : [],
    ports: container ? draft.ports.filter(({ container: port }) => port.trim()).map(portOf) : [],
    network: container ? draft.network : null,
    provider: container ? draft.provider || null : null,
    require: container && draft.requireGvisor ? "gvisor" : null,
    stdio_bridge: container && !draft.bridge ? false : null,
    http_path: container && !draft.bridge ? draft.httpPath.trim() || null : null,
    user: container ? draft.user.trim() || null : null,
    // What of its isolation is given up is not offered here, and ends with the container.
    ...(container ? {} : { openings: null }),
  };
}

function valuesOf(rows: readonly EnvRow[]): Record<string, string> {
  const named = rows.filter(({ name }) => name.trim() !== "");
  return Object.fromEntries(named.map(({ name, value, kept }) => [name.trim(), kept ? MASK : value]));
}

function heartbeatOf(draft: Draft): Record<string, unknown> | null {
  const interval = numberOf(draft.heartbeatInterval);
  const timeout = numberOf(draft.heartbeatTimeout);
  const fields = {
    ...(interval === null ? {} : { interval_ms: interval }),
    ...(timeout === null ? {} : { timeout_ms: timeout }),
  };
  return Object.keys(fields).length > 0 ? fields : null;
}

function limitsOf({ cpu, memory, disk, pids }: Draft): Record<string, unknown> | null {
  const given = Object.entries({ cpu: cpu.trim(), memory: memory.trim(), disk: disk.trim() }).filter(
    ([, value]) => value !== "",
  );
  const count = numberOf(pids);
  const limits = { ...Object.fromEntries(given), ...(count === null ? {} : { pids: count }) };
  return Object.keys(limits).length > 0 ? limits : null;
}

function portOf({ container, host, address }: PortRow): Record<string, unknown> {
  const chosen = numberOf(host);
  return {
    container: numberOf(container),
    ...(chosen === null ? {} : { host: chosen }),
    ...(address ? { address } : {}),
  };
}

/** The words that will be run, for the preview. */
export function argvOfDraft(draft: Draft): string[] {
  const first = { process: draft.command, container: draft.image, remote: draft.url }[draft.kind].trim();
  return first === "" ? [] : [first, ...(draft.kind === "remote" ? [] : argumentsOf(draft.args))];
}

/** The lines of a pasted `.env` block; null where the text is not one. */
export function parseEnvBlock(text: string): { name: string; value: string }[] | null {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const pairs = lines.map((line) => /^(?:export\s+)?([^=\s]+)\s*=\s*(.*)$/.exec(line));
  if (pairs.length === 0 || pairs.some((pair) => pair === null)) return null;
  return pairs.map((pair) => ({ name: pair![1]!, value: unquote(pair![2]!) }));
}

function unquote(value: string): string {
  const quoted = /^(["'])(.*)\1$/.exec(value);
  return quoted ? quoted[2]! : value;
}
