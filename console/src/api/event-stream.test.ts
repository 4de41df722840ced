import { afterEach, expect, test, vi } from "vitest";
import { bodyOf } from "../test/stream";
import { type StreamOptions, followStream, pauseBefore } from "./event-stream";

type Answer = () => Response | Promise<Response>;

/** Follows a stream whose connections go as told; after the last one the page is closed. */
async function follow(answers: Answer[], more: Partial<StreamOptions> = {}) {
  const end = new AbortController();
  const told: string[] = [];
  const asked: (string | null)[] = [];
  const pauses: number[] = [];
  vi.stubGlobal("fetch", (_url: string, init: RequestInit) => {
    asked.push(new Headers(init.headers).get("last-event-id"));
    return Promise.resolve(answers.shift()!());
  });
  await followStream({
    url: "/events",
    signal: end.signal,
    onOpen: (resumed) => told.push(resumed ? "resumed" : "open"),
    onMessage: ({ event, data }) => told.push(`${event} ${data}`),
    onAway: () => told.push("away"),
    onRefused: (failure) => told.push(`refused ${failure.status}`),
    pause: (ms) => {
      pauses.push(ms);
      if (answers.length === 0) end.abort();
      return Promise.resolve();
    },
    ...more,
  });
  return { told, asked, pauses };
}

afterEach(() => vi.unstubAllGlobals());

const stream =
  (text: string): Answer =>
  () =>
    new Response(bodyOf([text]));

test("a stream that ends is opened again after its last event", async () => {
  const { told, asked } = await follow([
    stream("id: 4\nevent: a\ndata: 1\n\nid: 5\nevent: a\ndata: 2\n\n"),
    stream("id: 6\nevent: a\ndata: 3\n\n"),
  ]);
  expect(asked).toEqual([null, "5"]);
  expect(told).toEqual(["open", "a 1", "a 2", "away", "resumed", "a 3", "away"]);
});

test("pauses grow while the daemon is away, and start anew once it was there", async () => {
  const gone: Answer = () => Promise.reject(new TypeError("failed to fetch"));
  const { pauses, told } = await follow([gone, gone, gone, stream(""), gone]);
  const near = (value: number, attempt: number) => Math.abs(value / pauseBefore(attempt) - 1) <= 0.2;
  expect(pauses.map((pause, index) => near(pause, [0, 1, 2, 0, 1][index]!))).toEqual([true, true, true, true, true]);
  expect(told.filter((word) => word === "away")).toHaveLength(5);
});

test("a connection that breaks after it was open counts as one that ended", async () => {
  const broken: Answer = () =>
    new Response(
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode("id: 1\ndata: x\n\n")),
        pull: (controller) => controller.error(new Error("gone")),
      }),
    );
  const { pauses } = await follow([broken, broken, broken]);
  expect(pauses.every((pause) => pause <= pauseBefore(0) * 1.2)).toBe(true);
});

test("the pause has a bound", () => {
  expect(pauseBefore(0)).toBe(400);
  expect(pauseBefore(30)).toBe(10_000);
});

test("a refusal ends it: an old token is of no use", async () => {
  const refused: Answer = () =>
    new Response('{"error":{"kind":"unauthorized","message":"no","trace_id":"x"}}', { status: 401 });
  const { told } = await follow([refused]);
  expect(told).toEqual(["refused 401"]);
});

test("a failing daemon is tried again", async () => {
  const { told } = await follow([() => new Response("", { status: 503 }), stream("")]);
  expect(told).toEqual(["away", "open", "away"]);
});

test("a stream that falls silent is opened anew", async () => {
  vi.useFakeTimers();
  const silent: Answer = () => new Response(bodyOf(["data: x\n\n"], true));
  let signal: AbortSignal | undefined;
  vi.stubGlobal("fetch", (_url: string, init: RequestInit) => {
    signal = init.signal!;
    const answer = silent() as Response;
    const body = answer.body!;
    signal.addEventListener("abort", () => void body.cancel().catch(() => {}));
    return Promise.resolve(answer);
  });
  const end = new AbortController();
  const told: string[] = [];
  void followStream({
    url: "/",
    signal: end.signal,
    onOpen: () => told.push("open"),
    onMessage: ({ data }) => told.push(data),
    onAway: () => told.push("away"),
    onRefused: () => {},
    pause: () => new Promise(() => {}),
  });
  await vi.advanceTimersByTimeAsync(44_000);
  expect(told).toEqual(["open", "x"]);
  expect(signal?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(signal?.aborted).toBe(true);
  end.abort();
  vi.useRealTimers();
});
