// Runs a tool, once at a time, and remembers the runs of this session.
import { useEffect, useRef, useState } from "react";
import type { ToolResult } from "../api/mcp";
import { call } from "../api/queries";
import { createStore, useStore } from "../api/store";

export type Run = {
  id: number;
  arguments: unknown;
  startedAt: number;
  ms: number;
  outcome: { result: ToolResult } | { failure: unknown } | "cancelled";
};

const MAX_RUNS = 20;
const runs = createStore<ReadonlyMap<string, readonly Run[]>>(new Map());
let nextId = 0;

export function useRun(serverId: string, tool: string) {
  const key = `${serverId}\n${tool}`;
  const past = useStore(runs).get(key) ?? NONE;
  const [startedAt, setStartedAt] = useState<number | null>(null);
  const [latest, setLatest] = useState<Run | null>(null);
  const stop = useRef<AbortController | null>(null);
  // A dialog that is closed ends its call: nobody waits for it any more.
  useEffect(() => () => stop.current?.abort(), []);

  const run = async (parameters: unknown) => {
    if (stop.current) return;
    const controller = new AbortController();
    stop.current = controller;
    const begun = performance.now();
    setStartedAt(Date.now());
    const outcome = await attempt(serverId, tool, parameters, controller.signal);
    nextId += 1;
    const done: Run = {
      id: nextId,
      arguments: parameters,
      startedAt: Date.now(),
      ms: performance.now() - begun,
      outcome,
    };
    stop.current = null;
    runs.set((all) => new Map(all).set(key, [done, ...(all.get(key) ?? [])].slice(0, MAX_RUNS)));
    setStartedAt(null);
    setLatest(done);
  };
  return { run, running: startedAt !== null, latest, past, cancel: () => stop.current?.abort() };
}

const NONE: readonly Run[] = [];

async function attempt(
  serverId: string,
  tool: string,
  parameters: unknown,
  signal: AbortSignal,
): Promise<Run["outcome"]> {
  try {
    return { result: await call<ToolResult>(serverId, "tools/call", { name: tool, arguments: parameters }, signal) };
  } catch (failure) {
    return signal.aborted ? "cancelled" : { failure };
  }
}
