// Which servers are shown, and in which order.
import type { ServerView, Status } from "../api/schema";
import { needsAttention } from "./attention";
import { argvOf, groupOf } from "./status";

export const FILTERS = ["all", "ready", "stopped", "error", "attention"] as const;
export type Filter = (typeof FILTERS)[number];
export type Sort = "name" | "-name" | "status" | "-status";

/** What needs a person comes first. */
const ORDER: Record<Status, number> = {
  error: 0,
  unresponsive: 1,
  restarting: 2,
  starting: 3,
  stopping: 4,
  ready: 5,
  stopped: 6,
};

/** How many rows a filter shows with this search. */
export function countOf(servers: readonly ServerView[], filter: Filter, search: string): number {
  return selectServers(servers, search, filter, "name").length;
}

function passes(server: ServerView, filter: Filter): boolean {
  if (filter === "all") return true;
  return filter === "attention" ? needsAttention(server) : groupOf(server.status) === filter;
}

export function selectServers(
  servers: readonly ServerView[],
  search: string,
  filter: Filter,
  sort: Sort,
): ServerView[] {
  const words = search.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const found = servers.filter((server) => passes(server, filter) && matches(server, words));
  const compare = sort.endsWith("status") ? byStatus : byName;
  const sorted = found.toSorted(compare);
  return sort.startsWith("-") ? sorted.reverse() : sorted;
}

function matches(server: ServerView, words: readonly string[]): boolean {
  const text = [server.name, server.description ?? "", ...argvOf(server)].join(" ").toLocaleLowerCase();
  return words.every((word) => text.includes(word));
}

const collator = new Intl.Collator(undefined, { numeric: true });
const byName = (a: ServerView, b: ServerView) => collator.compare(a.name, b.name);
const byStatus = (a: ServerView, b: ServerView) => ORDER[a.status] - ORDER[b.status] || byName(a, b);
