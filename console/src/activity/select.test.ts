import { expect, test } from "vitest";
import type { ActivityEntry } from "../api/schema";
import { durationsByServer } from "../servers/latency";
import { countFresh, selectCalls } from "./select";

const call = (part: Partial<ActivityEntry>): ActivityEntry => ({
  call_id: "1",
  server_id: "s",
  server: "fs",
  method: "tools/call",
  started_at: "",
  duration_ms: 1,
  stages: { queue_ms: 0, write_ms: 0, server_ms: 1, read_ms: 0 },
  source: "api",
  recorded: true,
  outcome: "ok",
  request_bytes: 0,
  response_bytes: 0,
  ...part,
});

const calls = [
  call({ call_id: "3", tool: "read" }),
  call({ call_id: "2", server: "git", outcome: "timeout", error: "too slow" }),
  call({ call_id: "1", outcome: "cancelled" }),
];
const ids = (filter: Partial<{ server: string; result: string; search: string }>) =>
  selectCalls(calls, { server: "", result: "", search: "", ...filter }).map(({ call_id }) => call_id);

test("calls are chosen by server, result and words", () => {
  expect(ids({})).toEqual(["3", "2", "1"]);
  expect(ids({ server: "git" })).toEqual(["2"]);
  expect(ids({ result: "failures" })).toEqual(["2", "1"]);
  expect(ids({ result: "ok" })).toEqual(["3"]);
  expect(ids({ search: "SLOW" })).toEqual(["2"]);
});

test("who reads further down is told how many came", () => {
  expect(countFresh(calls.slice(1), calls)).toBe(1);
  expect(countFresh(calls, calls)).toBe(0);
  expect(countFresh([call({ call_id: "gone" })], calls)).toBe(3);
});

test("a server's line shows its last calls, oldest first", () => {
  const many = Array.from({ length: 60 }, (_, index) => call({ duration_ms: index }));
  const line = durationsByServer(many).get("s")!;
  expect(line).toHaveLength(50);
  expect([line[0], line.at(-1)]).toEqual([49, 0]);
});
