import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LogEntry } from "../api/schema";
import { LogBuffer, MAX_LINES, type Source, filterLines, sourceLabel, sourceOf, splitHits } from "./log-buffer";

const entry = (
  seq: number,
  line = `line ${seq}`,
  stream: LogEntry["stream"] = "stderr",
  at = "2026-01-01T00:00:00Z",
): LogEntry => ({ seq, at, stream, line });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function filled(count: number): LogBuffer {
  const buffer = new LogBuffer();
  for (let seq = 1; seq <= count; seq += 1) buffer.add(entry(seq));
  vi.runAllTimers();
  return buffer;
}

test("many lines are told once", () => {
  const buffer = new LogBuffer();
  const told = vi.fn();
  buffer.subscribe(told);
  for (let seq = 1; seq <= 1000; seq += 1) buffer.add(entry(seq));
  expect(told).not.toHaveBeenCalled();
  vi.runAllTimers();
  expect(told).toHaveBeenCalledTimes(1);
  expect(buffer.read()).toHaveLength(1000);
});

test("the oldest lines go when there are too many", () => {
  const lines = filled(MAX_LINES + 15_000).read();
  expect(lines).toHaveLength(MAX_LINES);
  expect(lines.at(-1)?.seq).toBe(MAX_LINES + 15_000);
});

test("a log that is followed anew does not repeat itself, and a new daemon's log is not lost", () => {
  const buffer = filled(3);
  for (const seq of [2, 3, 4]) buffer.add(entry(seq));
  buffer.add(entry(1, "after the restart", "lifecycle", "2026-01-01T01:00:00Z"));
  vi.runAllTimers();
  expect(buffer.read().map(({ line }) => line)).toEqual(["line 1", "line 2", "line 3", "line 4", "after the restart"]);
});

test("lines that never came are counted", () => {
  const buffer = filled(2);
  buffer.add(entry(10));
  expect(buffer.missed).toBe(7);
});

test("colours of terminals are taken out", () => {
  const buffer = new LogBuffer();
  buffer.add(entry(1, "\u001b[31mred\u001b[0m \u001b]0;title\u0007plain"));
  vi.runAllTimers();
  expect(buffer.read()[0]!.line).toBe("red plain");
});

test("lines are chosen by where they come from and what they say", () => {
  const lines = [
    entry(1, "Ready", "lifecycle"),
    entry(2, "warning: READY?"),
    entry(3, "noise", "stdout"),
    { ...entry(4, "starting", "lifecycle"), tag: "START" as const },
    { ...entry(5, "echo: call started", "lifecycle"), tag: "TOOLS" as const },
  ];
  const shown = (hidden: Source[], search = "") =>
    filterLines(lines, { hidden: new Set(hidden), search }).map(({ seq }) => seq);
  expect(filterLines(lines, { hidden: new Set(), search: "" })).toBe(lines);
  expect(shown([], "ready")).toEqual([1, 2]);
  expect(shown(["MCP", "stdout"])).toEqual([2, 4, 5]);
  expect(shown(["START", "TOOLS"])).toEqual([1, 2, 3]);
  expect(lines.map((line) => sourceLabel(sourceOf(line)))).toEqual(["[MCP]", "stderr", "stdout", "[START]", "[TOOLS]"]);
});

test("every second piece is a hit", () => {
  expect(splitHits("aXbxc", "x")).toEqual(["a", "X", "b", "x", "c"]);
  expect(splitHits("abc", "")).toEqual(["abc"]);
  expect(splitHits("İx", "x")).toEqual(["İx"]);
});
