// From another client's configuration to a plan: which servers it has, and what to do with each.
// The daemon imports; this only shows beforehand what that will be.
import { type JsonProblem, parseJson, toJson } from "./jsonc";

export type Action = "import" | "skip" | "rename" | "overwrite";

export type PlannedServer = {
  name: string;
  /** As it stands in the configuration. */
  source: Record<string, unknown>;
  /** What it would run, for a person to read. */
  argv: string[];
  /** Why it cannot be imported at all. */
  unfit: "notObject" | "nothing" | null;
};

export type Plan = { servers: PlannedServer[] } | { problem: JsonProblem } | { none: true };

type Obj = Record<string, unknown>;
const isObject = (value: unknown): value is Obj => typeof value === "object" && value !== null && !Array.isArray(value);
const ADDRESSES = ["url", "serverUrl", "httpUrl"];
const isServer = (value: unknown): value is Obj =>
  isObject(value) && ["command", "image", ...ADDRESSES].some((key) => typeof value[key] === "string");

export function planImport(text: string): Plan {
  const parsed = parseJson(toJson(text));
  if ("problem" in parsed) return parsed;
  const root = parsed.value;
  if (!isObject(root)) return { none: true };
  if (isServer(root)) return { servers: [single(root)] };
  const servers = findServers(root);
  return servers ? { servers: Object.entries(servers).map(([name, server]) => planned(name, server)) } : { none: true };
}

function findServers(root: Obj): Obj | null {
  for (const key of ["mcpServers", "servers"]) if (isObject(root[key])) return root[key];
  if (isObject(root.mcp) && isObject(root.mcp.servers)) return root.mcp.servers;
  const values = Object.values(root);
  return values.length > 0 && values.every(isServer) ? root : null;
}

/** One server by itself: its name is beside it, or made of its command. */
function single(server: Obj): PlannedServer {
  const { name, ...rest } = server;
  const program =
    String(server.command ?? server.image ?? "server")
      .split("/")
      .at(-1) || "server";
  return planned(typeof name === "string" ? name : program, rest);
}

function planned(name: string, server: unknown): PlannedServer {
  if (!isObject(server)) return { name, source: {}, argv: [], unfit: "notObject" };
  const first = [server.command, server.image, ...ADDRESSES.map((key) => server[key])].find(
    (value) => typeof value === "string",
  );
  const args = Array.isArray(server.args) ? server.args.map(String) : [];
  return {
    name: name.trim(),
    source: server,
    argv: first ? [String(first), ...args] : [],
    unfit: first ? null : "nothing",
  };
}

/** The name with the first number after it that makes it free. */
export function freeName(name: string, taken: (name: string) => boolean): string {
  let number = 2;
  while (taken(`${name} ${number}`)) number += 1;
  return `${name} ${number}`;
}

/** The registration that the daemon would make of it, for its check. */
export function registrationOf({ name, source }: PlannedServer): Obj {
  const environment = isObject(source.env) ? source.env : isObject(source.environment) ? source.environment : {};
  const url = ADDRESSES.map((key) => source[key]).find((value) => typeof value === "string");
  return {
    name,
    ...(typeof source.command === "string" ? { command: source.command } : {}),
    ...(typeof source.image === "string" ? { image: source.image } : {}),
    ...(url ? { url } : {}),
    ...(isObject(source.headers) ? { headers: source.headers } : {}),
    ...(Array.isArray(source.args) ? { args: source.args } : {}),
    environment: Object.fromEntries(
      Object.entries(environment)
        .filter(([, value]) => value !== null)
        .map(([key, value]) => [key, String(value)]),
    ),
  };
}
