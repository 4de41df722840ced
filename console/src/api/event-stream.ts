// Follows a stream of the daemon for as long as the page lives: connects, resumes after the last
// event, notices silence, and comes back with growing pauses when the daemon is away.
import { type ApiFailure, authorized, failureOf } from "./client";
import { type SseMessage, chunksOf, readSse } from "./sse";

/** The daemon sends a comment every 15 s; a stream this silent is dead. */
const SILENCE_MS = 45_000;
const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 10_000;

export type StreamHandlers = {
  /** The stream is open; `resumed` tells whether it goes on after an earlier event. */
  onOpen: (resumed: boolean) => void;
  onMessage: (message: SseMessage) => void;
  /** The stream is gone; it is tried again. */
  onAway: () => void;
  /** The daemon refused it: trying again is of no use. */
  onRefused: (failure: ApiFailure) => void;
};

export type StreamOptions = StreamHandlers & {
  url: string;
  signal: AbortSignal;
  /** The event after which it begins, where something is known already. */
  after?: string;
  /** Resolves after the pause, or sooner when there is reason to hope. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
};

/** How long to wait before the n-th attempt after a failure (n from 0), without the jitter. */
export function pauseBefore(attempt: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS);
}

/** Runs until the signal is aborted or the daemon refuses. */
export async function followStream(options: StreamOptions): Promise<void> {
  const { signal, pause = hopefulPause } = options;
  let lastId: string | null = options.after ?? null;
  let attempt = 0;
  while (!signal.aborted) {
    const outcome = await readOnce(options, lastId, (id) => {
      lastId = id;
    }).catch(() => "failed" as const);
    if (signal.aborted || outcome === "refused") return;
    if (outcome === "ended") attempt = 0;
    options.onAway();
    const jitter = 0.8 + Math.random() * 0.4;
    await pause(pauseBefore(attempt) * jitter, signal);
    attempt += 1;
  }
}

/** One connection, from its opening to its end. */
async function readOnce(
  options: StreamOptions,
  lastId: string | null,
  seen: (id: string) => void,
): Promise<"ended" | "refused" | "failed"> {
  const connection = new AbortController();
  const giveUp = () => connection.abort();
  options.signal.addEventListener("abort", giveUp, { once: true });
  let opened = false;
  let watchdog = setTimeout(giveUp, SILENCE_MS);
  try {
    const headers = authorized({ Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) });
    const answer = await fetch(options.url, {
      headers,
      signal: connection.signal,
      cache: "no-store",
      credentials: "omit",
    });
    if (answer.status >= 400 && answer.status < 500) {
      options.onRefused(await failureOf(answer));
      return "refused";
    }
    if (!answer.ok || !answer.body) return "failed";
    opened = true;
    options.onOpen(lastId !== null);
    const alive = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        clearTimeout(watchdog);
        watchdog = setTimeout(giveUp, SILENCE_MS);
        yield chunk;
      }
    };
    for await (const message of readSse(alive(chunksOf(answer.body)))) {
      if (message.id) seen(message.id);
      options.onMessage(message);
    }
    return "ended";
  } catch {
    // An aborted or broken connection that had been open is an end like any other.
    return opened ? "ended" : "failed";
  } finally {
    clearTimeout(watchdog);
    options.signal.removeEventListener("abort", giveUp);
    connection.abort();
  }
}

/** Waits, but not longer than until the machine is online again or somebody looks at the page. */
function hopefulPause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      document.removeEventListener("visibilitychange", seen);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const seen = () => {
      if (document.visibilityState === "visible") done();
    };
    const timer = setTimeout(done, ms);
    window.addEventListener("online", done);
    document.addEventListener("visibilitychange", seen);
    signal.addEventListener("abort", done);
  });
}
