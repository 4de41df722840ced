// One running daemon, started from the real binary with a data directory of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { COFER, NPM, WAYWARD } from "./places";

/** A registration, as `POST /mcp/servers` takes it. */
export type Registration = { name: string; command?: string; args?: string[]; [field: string]: unknown };
/** What the daemon answered; tests look at it field by field. */
export type Answer = { status: number; body: any };

export class Daemon {
  /** Its home, in which servers start; `npx` finds npm's servers there without a network. */
  readonly home = makeHome();
  url = "";
  private child: ChildProcess | null = null;
  private log = "";

  /** `more` is added to its environment. */
  private constructor(private readonly more: Record<string, string>) {}

  static async start(more: Record<string, string> = {}): Promise<Daemon> {
    const daemon = new Daemon(more);
    await daemon.run("127.0.0.1:0");
    return daemon;
  }

  get token(): string {
    return readFileSync(join(this.home, "data/token"), "utf8").trim();
  }

  /** What it wrote to stderr. */
  get stderr(): string {
    return this.log;
  }

  /** Starts it, again after `kill`: at the same address, with the same data. */
  async run(listen = new URL(this.url).host): Promise<void> {
    const child = spawn(COFER, ["serve", "--listen", listen, "--data-dir", join(this.home, "data")], {
      cwd: this.home,
      env: { ...podmanSettings(), PATH: process.env.PATH, HOME: this.home, LANG: "C.UTF-8", ...this.more },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.log += text));
    for await (const line of createInterface({ input: child.stdout })) {
      const address = /^cofer: listening on (http:\S+)$/.exec(line)?.[1];
      if (!address) throw new Error(`the daemon's first line is not its address: ${line}`);
      this.url = address;
      return;
    }
    throw new Error(`the daemon did not start:\n${this.log}`);
  }

  /** Ends it with SIGKILL, as a crash would. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  /** Ends it in good order and leaves nothing behind. */
  async stop(): Promise<void> {
    const code = await this.end("SIGTERM");
    rmSync(this.home, { recursive: true, force: true });
    if (code !== 0) throw new Error(`the daemon ended with ${code}:\n${this.log}`);
    if (this.log.includes("panicked")) throw new Error(`the daemon panicked:\n${this.log}`);
  }

  private async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.child;
    if (!child) return 0;
    this.child = null;
    if (child.exitCode !== null) return child.exitCode;
    const ended = once(child, "exit");
    child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code;
  }

  async request(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text ? JSON.parse(text) : null };
  }

  /** A request that has to be answered with success. */
  async ask(method: string, path: string, body?: unknown): Promise<Answer["body"]> {
    const answer = await this.request(method, path, body);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Registers a server and waits until it has started or failed. */
  async register(registration: Registration): Promise<Answer["body"]> {
    return this.ask("POST", "/mcp/servers?wait=60", registration);
  }

  /** Registers wayward with these flags. */
  async wayward(name: string, args: string[] = [], more: object = {}): Promise<Answer["body"]> {
    return this.register({ name, command: WAYWARD, args, ...more });
  }

  async server(name: string): Promise<Answer["body"]> {
    return this.ask("GET", `/mcp/servers/${encodeURIComponent(name)}`);
  }

  async servers(): Promise<Answer["body"][]> {
    return (await this.ask("GET", "/mcp/servers")).servers;
  }

  /** Calls a tool, as another client would. */
  async call(name: string, tool: string, args: object = {}, timeout = 60_000): Promise<Answer> {
    const body = { method: "tools/call", params: { name: tool, arguments: args }, timeout_ms: timeout };
    return this.request("POST", `/mcp/servers/${encodeURIComponent(name)}/call`, body);
  }
}

/** Where Podman's settings for the tests are. */
export function podmanSettings(): NodeJS.ProcessEnv {
  const names = ["CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF"];
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), "cofer-console-"));
  mkdirSync(join(home, "data"), { mode: 0o700 });
  writeFileSync(join(home, "package.json"), '{"private": true}\n');
  symlinkSync(join(NPM, "node_modules"), join(home, "node_modules"));
  return home;
}
