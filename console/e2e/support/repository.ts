// Git repositories with environments in them, made by the server that the daemon runs, as an agent
// would make them.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Daemon, podmanSettings } from "./daemon";
import { COFER } from "./places";

/** The smallest image of the tests. */
export const IMAGE = "localhost/cofer-test/busybox";

const SERVER = "environments";

export class Repository {
  readonly path: string;

  private constructor(
    private readonly daemon: Daemon,
    name: string,
  ) {
    this.path = join(daemon.home, name);
  }

  /** A repository with one commit, prepared by `cofer init`. */
  static prepare(daemon: Daemon, name: string): Repository {
    const repository = new Repository(daemon, name);
    repository.write("README", "hello\n");
    repository.run("git", "init", "-q", "-b", "main");
    repository.run("git", "add", "-A");
    repository.run("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "one");
    repository.run(COFER, "init");
    return repository;
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.path, name)), { recursive: true });
    writeFileSync(join(this.path, name), text);
  }

  run(program: string, ...args: string[]): string {
    const env = { ...this.environment(), PATH: process.env.PATH, HOME: this.daemon.home };
    return execFileSync(program, args, { cwd: this.path, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  private environment(): NodeJS.ProcessEnv {
    return { ...podmanSettings(), GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  }

  /** Calls a tool of the server, which is registered with the first call. */
  private async tool(tool: string, args: object): Promise<any> {
    const known = (await this.daemon.servers()).some((server) => server.name === SERVER);
    if (!known) {
      const environment = this.environment();
      await this.daemon.register({ name: SERVER, command: COFER, args: ["mcp", "environments"], environment });
    }
    const answer = await this.daemon.call(SERVER, tool, { environment_source: this.path, ...args });
    const { result } = answer.body;
    if (!result || result.isError) throw new Error(`${tool}: ${JSON.stringify(answer.body)}`);
    return result.structuredContent;
  }

  async create(title: string): Promise<string> {
    return (await this.tool("environment_create", { title, image: IMAGE })).id;
  }

  async command(id: string, command: string, more: object = {}): Promise<any> {
    return this.tool("environment_run_cmd", { environment_id: id, command, ...more });
  }

  branches(): string[] {
    return this.run("git", "for-each-ref", "--format=%(refname:lstrip=2)", "refs/remotes/cofer/").split("\n");
  }

  /** Takes everything away, so that its folder can be removed. */
  clear(): void {
    this.run(COFER, "env", "destroy", "--all", "--force");
  }
}
