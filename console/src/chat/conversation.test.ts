import { expect, test } from "vitest";
import { conversation, event } from "../test/chat";
import { type LiveConversation, apply, applyAll, begin, isAfter } from "./conversation";
import type { ChatEvent } from "./types";

const at = "2026-01-01T00:00:01Z";
const fresh = () => begin(conversation());

const started = event(101, "turnStarted", {
  action: "message",
  message: { id: "u", turn_id: "t", at, text: "list my files" },
  title: "list my files",
  provider: "openai",
  model: "m",
  at,
});
const call = { message_id: "a", call_id: "x", n: 1, server: "fs", tool: "list" };
const callStarted = event(104, "toolCallStarted", { ...call, arguments: { path: "/" }, at });
const callFinished = event(105, "toolCallFinished", {
  ...call,
  status: "error",
  outcome: "tool_error",
  result: { content: [{ type: "text", text: "no" }], isError: true },
  result_bytes: 20,
  truncated: false,
  error: { message: "no", stack: "at list" },
  duration_ms: 3,
  recorded: true,
  at,
});
const turn: ChatEvent[] = [
  started,
  event(102, "messageStarted", { message_id: "a", step: 1, at }),
  event(103, "textDelta", { message_id: "a", delta: "Let me " }),
  callStarted,
  callFinished,
  event(106, "messageFinished", { message_id: "a", state: "complete", text: "Let me look.", at }),
];

const answerOf = (state: LiveConversation) => {
  const message = state.messages.findLast(({ role }) => role === "assistant");
  if (message?.role !== "assistant") throw new Error("no answer");
  return message;
};

test("a turn is drawn as it happens", () => {
  const asked = apply(fresh(), started);
  expect(asked).toMatchObject({ running: true, turn_id: "t", title: "list my files", last_event_id: "101" });
  expect(asked.messages).toMatchObject([{ id: "u", role: "user", turn_id: "t", text: "list my files" }]);
  const calling = applyAll(fresh(), turn.slice(0, 4));
  expect(answerOf(calling)).toMatchObject({ state: "streaming", text: "Let me " });
  expect(answerOf(calling).tool_calls).toMatchObject([{ call_id: "x", n: 1, status: "running", started_at: at }]);
  const done = applyAll(fresh(), turn);
  expect(answerOf(done)).toMatchObject({ state: "complete", text: "Let me look." });
  expect(answerOf(done).tool_calls).toMatchObject([
    { status: "error", outcome: "tool_error", error: { stack: "at list" }, duration_ms: 3, arguments: { path: "/" } },
  ]);
});

test("an event that is known already changes nothing, so that a stream may begin anywhere", () => {
  const done = applyAll(fresh(), turn);
  expect(applyAll(done, turn)).toBe(done);
  expect(turn.reduce(apply, done)).toBe(done);
});

test("pieces of text are joined, and other messages stay the same objects", () => {
  const before = applyAll(fresh(), turn.slice(0, 2));
  const pieces = Array.from({ length: 50 }, (_, n) => event(200 + n, "textDelta", { message_id: "a", delta: `${n} ` }));
  const after = applyAll(before, pieces);
  expect(answerOf(after).text).toBe(pieces.map((_, n) => `${n} `).join(""));
  expect(after.messages[0]).toBe(before.messages[0]);
  expect(after.last_event_id).toBe("249");
});

test("a limit, an error and a stop leave a notice and a way to go on", () => {
  const limit = applyAll(fresh(), [
    ...turn,
    event(110, "limitReached", { steps: 10, limit: 10 }),
    event(111, "turnFinished", { reason: "limit", steps: 10, at }),
  ]);
  expect(limit.messages.at(-1)).toMatchObject({ role: "notice", notice: "limit", steps: 10 });
  expect(limit).toMatchObject({ running: false, can_continue: true, turn_id: null });

  const problem = { kind: "wrong_key" as const, message: "401", hint: "check it" };
  const failed = applyAll(fresh(), [
    started,
    event(110, "turnError", problem),
    event(111, "turnFinished", { reason: "error", steps: 0, at }),
  ]);
  expect(failed.messages.at(-1)).toMatchObject({ notice: "error", error: { kind: "wrong_key", hint: "check it" } });

  const stopped = applyAll(fresh(), [
    ...turn.slice(0, 4),
    event(111, "turnFinished", { reason: "stopped", steps: 1, at }),
  ]);
  expect(stopped.messages.at(-1)).toMatchObject({ notice: "stopped" });
  expect(answerOf(stopped)).toMatchObject({ state: "stopped", tool_calls: [{ status: "cancelled" }] });

  const done = applyAll(fresh(), [...turn, event(111, "turnFinished", { reason: "done", steps: 1, at })]);
  expect(done).toMatchObject({ running: false, can_continue: false });
});

test("going on takes the way to go on away", () => {
  const limit = begin(conversation({ can_continue: true }));
  const again = apply(limit, event(101, "turnStarted", { action: "continue", message: null, title: "a chat", at }));
  expect(again).toMatchObject({ running: true, can_continue: false, messages: [] });
});

test("a retry is told until the model answers", () => {
  const retry = { attempt: 1, of: 3, after_ms: 2000, kind: "rate_limited", message: "slow down" };
  const waiting = applyAll(fresh(), [started, event(102, "retrying", retry)]);
  expect(waiting.retrying).toMatchObject({ attempt: 1 });
  expect(apply(waiting, event(103, "messageStarted", { message_id: "a", step: 1, at })).retrying).toBeNull();
});

test("another tab's title is taken over, and an event of a newer daemon is passed over", () => {
  expect(apply(fresh(), event(101, "conversationChanged", { title: "new" })).title).toBe("new");
  const unknown = { id: "102", event: "somethingNew", data: {} } as unknown as ChatEvent;
  expect(apply(fresh(), unknown)).toMatchObject({ title: "a chat", last_event_id: "102" });
});

test("ids are compared as numbers of any length", () => {
  expect(isAfter("1763268000000002", "1763268000000001")).toBe(true);
  expect(isAfter("1763268000000001", "1763268000000001")).toBe(false);
  expect(isAfter("99", "100")).toBe(false);
  expect(isAfter("99999999999999999999", "99999999999999999998")).toBe(true);
});

test("a question is open until it is closed, or until the turn ends", () => {
  const asked = {
    id: "q",
    call_id: "call-1",
    server: "fs",
    wish: "url" as const,
    message: "",
    url: "https://a.example/",
  };
  const open = applyAll(begin(conversation({ running: true })), [event(101, "questionAsked", asked)]);
  expect(open.questions.map(({ id }) => id)).toEqual(["q"]);
  expect(applyAll(open, [event(102, "questionAsked", asked)]).questions).toHaveLength(1);
  const closed = event(103, "questionClosed", { question_id: "q", call_id: "call-1" });
  expect(applyAll(open, [closed]).questions).toEqual([]);
  const over = event(104, "turnFinished", { reason: "stopped", steps: 1, at: "" });
  expect(applyAll(open, [over]).questions).toEqual([]);
});

test("a notice that was stored before its event came is not shown twice", () => {
  const error = { kind: "no_such_model" as const, message: "no", hint: null, retry_after: null };
  const stored = { id: "n", turn_id: "t", role: "notice" as const, at, notice: "error" as const, error };
  const read = begin(conversation({ running: true, messages: [stored] }));
  expect(applyAll(read, [event(101, "turnError", error)]).messages).toEqual([stored]);
  const other = { ...stored, turn_id: "before" };
  expect(applyAll(begin(conversation({ messages: [other] })), [event(101, "turnError", error)]).messages).toHaveLength(
    2,
  );
});
