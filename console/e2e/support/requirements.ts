// Before anything runs: what is missing is named, once, instead of by a hundred failures.
import { existsSync, rmSync } from "node:fs";
import { CHROMIUM, COFER, CONTAINERS, EVERYTHING, FAILURES, WAYWARD } from "./places";

export default function setup(): void {
  const needed = {
    [COFER]: "cargo build -p cofer",
    [WAYWARD]: "cargo build -p cofer-e2e --bins",
    [CHROMIUM]: "scripts/setup-tests",
    [EVERYTHING]: "scripts/setup-tests",
    [CONTAINERS]: "scripts/setup-containers, then this suite by scripts/test-console",
  };
  const missing = Object.entries(needed).filter(([path]) => !existsSync(path));
  const words = missing.map(([path, command]) => `${path} is missing: run ${command}`);
  if (words.length > 0) throw new Error(words.join("\n"));
  rmSync(FAILURES, { recursive: true, force: true });
}
