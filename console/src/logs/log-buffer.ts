// The lines of a log that the page holds: many, but not without end. Lines come in bursts, so the
// page is told once for many of them.
import type { LogEntry } from "../api/schema";
import { stripAnsi } from "../ui/format";

export const MAX_LINES = 100_000;
/** Cutting off one line at a time would copy the whole list each time. */
const SLACK = 10_000;
const TELL_MS = 50;

export class LogBuffer {
  private lines: LogEntry[] = [];
  private shown: readonly LogEntry[] = [];
  /** Lines that the daemon counted and this page never got: they came faster than it could read. */
  missed = 0;
  private readonly listeners = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | null = null;

  /** Takes a line, unless it is one that came before: a log that is followed anew begins with its end. */
  add(entry: LogEntry): void {
    const last = this.lines.at(-1);
    if (last && entry.seq <= last.seq && entry.at <= last.at) return;
    if (last && entry.seq > last.seq + 1) this.missed += entry.seq - last.seq - 1;
    this.lines.push({ ...entry, line: stripAnsi(entry.line) });
    if (this.lines.length > MAX_LINES + SLACK) this.lines = this.lines.slice(-MAX_LINES);
    this.timer ??= setTimeout(() => this.tell(), TELL_MS);
  }

  private tell(): void {
    this.timer = null;
    this.shown = this.lines.slice(-MAX_LINES);
    for (const listener of this.listeners) listener();
  }

  /** What there is, as a list that does not change any more. */
  readonly read = (): readonly LogEntry[] => this.shown;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

/** Where a line comes from: the part of the daemon that wrote it, or a stream of the server. */
export const SOURCES = ["START", "MCP", "TOOLS", "stderr", "stdout"] as const;
export type Source = (typeof SOURCES)[number];

/** Lifecycle lines of an older daemon have no tag; those were about the server's state. */
export function sourceOf({ stream, tag }: Pick<LogEntry, "stream" | "tag">): Source {
  return stream === "lifecycle" ? (tag ?? "MCP") : stream;
}

/** As it is written before a line. */
export const sourceLabel = (source: Source) =>
  source === "stderr" || source === "stdout" ? source : (`[${source}]` as const);

export type LogFilter = { hidden: ReadonlySet<Source>; search: string };

export function filterLines(lines: readonly LogEntry[], filter: LogFilter): readonly LogEntry[] {
  const wanted = filter.search.toLocaleLowerCase();
  if (!wanted && filter.hidden.size === 0) return lines;
  return lines.filter(
    (entry) => !filter.hidden.has(sourceOf(entry)) && (!wanted || entry.line.toLocaleLowerCase().includes(wanted)),
  );
}

/** The pieces of a line around what was searched for; every second one is a hit. */
export function splitHits(line: string, search: string): string[] {
  if (!search) return [line];
  const pieces: string[] = [];
  const lower = line.toLocaleLowerCase();
  const wanted = search.toLocaleLowerCase();
  // Where lower case has another length, places would not fit: such a line shows no marks.
  if (lower.length !== line.length) return [line];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    pieces.push(line.slice(from, at), line.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  pieces.push(line.slice(from));
  return pieces;
}
