// Which calls are shown.
import type { ActivityEntry } from "../api/schema";

export type CallFilter = { server: string; result: string; search: string };

export function selectCalls(
  calls: readonly ActivityEntry[],
  { server, result, search }: CallFilter,
): readonly ActivityEntry[] {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  return calls.filter((call) => {
    if (server && call.server !== server) return false;
    if (result === "failures" ? call.outcome === "ok" : result && call.outcome !== result) return false;
    const text = `${call.server} ${call.method} ${call.tool ?? ""} ${call.error ?? ""}`.toLocaleLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** How many calls came since the newest that is on the page. */
export function countFresh(shown: readonly ActivityEntry[], all: readonly ActivityEntry[]): number {
  const newest = shown[0]?.call_id;
  if (newest === undefined) return all.length;
  const at = all.findIndex(({ call_id }) => call_id === newest);
  return at < 0 ? all.length : at;
}
