// Keeps what was just heard from being overwritten by what was asked for earlier. A list that was
// requested before an event and arrives after it would show the older status for a moment.
import type { Failure, ServerView, Status } from "./schema";

type Heard = { status: Status; error: Failure | null; at: number };
type Wanted = { status: Status; enabled: boolean };

const heard = new Map<string, Heard>();
const wanted = new Map<string, Wanted>();

/** An event told the status of a server. */
export function noteHeard(id: string, status: Status, error: Failure | null): void {
  heard.set(id, { status, error, at: performance.now() });
}

/** A switch was used and the daemon has not answered yet; null when it has. */
export function noteWanted(id: string, change: Wanted | null): void {
  if (change) wanted.set(id, change);
  else wanted.delete(id);
}

/** The server as it should be shown, where the answer was asked for at `askedAt`. */
export function overlaid<T extends ServerView>(server: T, askedAt: number): T {
  const event = heard.get(server.id);
  const shown = event && event.at > askedAt ? { ...server, status: event.status, error: event.error } : server;
  const change = wanted.get(server.id);
  return change ? { ...shown, ...change } : shown;
}
