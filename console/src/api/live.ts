// Joins the event stream to the cache: each event changes what is on the page at once, and what
// an event does not tell is asked for again, a moment later and once for many events.
import type { Query } from "@tanstack/react-query";
import { API } from "./client";
import { connection } from "./connection";
import { followStream } from "./event-stream";
import { noteHeard } from "./overlay";
import { queryClient, serversQuery } from "./queries";
import type { Preparing, ServerNotice, ServerView, StatusChange, ToolCallFinished, ToolCallStarted } from "./schema";
import type { SseMessage } from "./sse";
import { createStore } from "./store";

/** The last change of a status, for those who listen rather than look. */
export const lastChange = createStore<StatusChange | null>(null);
/** Tool calls that are under way. */
export const runningCalls = createStore<ReadonlyMap<string, ToolCallStarted>>(new Map());

/** More running calls than this are not shown one by one anyway. */
const MAX_RUNNING = 200;

/** Follows the daemon until the returned function is called. */
export function goLive(): () => void {
  const end = new AbortController();
  void followStream({
    url: `${API}/events`,
    signal: end.signal,
    onOpen: () => {
      connection.set("live");
      runningCalls.set(new Map());
      void readAnew();
    },
    onMessage: receive,
    onAway: () => connection.set("away"),
    onRefused: (failure) => connection.set(failure.status === 401 ? "unauthorized" : "away"),
  });
  return () => end.abort();
}

/** Between the last answer and the opening of the stream anything may have happened. How the
 *  servers are comes first: it decides what they can be asked for. */
async function readAnew(): Promise<void> {
  const isServers = ({ queryKey }: Query) => queryKey[0] === "servers" || queryKey[0] === "server";
  await queryClient.invalidateQueries({ predicate: isServers });
  setTimeout(() => void queryClient.invalidateQueries({ predicate: (query) => !isServers(query) }), 50);
}

function receive({ event, data }: SseMessage): void {
  if (event === "reset") return void readAnew();
  const payload: unknown = parse(data);
  if (!payload) return;
  if (event === "mcpServerStatusChanged") statusChanged(payload as StatusChange);
  else if (event === "mcpServerRemoved") serverRemoved(payload as ServerNotice);
  else if (event === "mcpServerAdded" || event === "mcpServerChanged") refreshServersSoon();
  else if (event === "mcpServerPreparing") preparing(payload as Preparing);
  else if (event === "toolCallStarted") callStarted(payload as ToolCallStarted);
  else if (event === "toolCallFinished") callFinished(payload as ToolCallFinished);
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}

export function statusChanged(change: StatusChange): void {
  const error = change.error ?? null;
  noteHeard(change.id, change.status, error);
  const patch = <T extends ServerView>(server: T): T =>
    server.id === change.id
      ? {
          ...server,
          status: change.status,
          error,
          ...(change.status === "ready" ? { preparing: null } : { usage: null }),
        }
      : server;
  queryClient.setQueryData(serversQuery.queryKey, (servers) => servers?.map(patch));
  queryClient.setQueriesData<ServerView>({ queryKey: ["server"] }, (server) => server && patch(server));
  lastChange.set(change);
  if (change.status === "ready") forgetOffers(change.id);
  refreshServersSoon();
}

/** Somebody removed it, perhaps elsewhere: it is off the list at once. */
export function serverRemoved({ id }: ServerNotice): void {
  queryClient.setQueryData(serversQuery.queryKey, (servers) => servers?.filter((server) => server.id !== id));
  refreshServersSoon();
}

export function refreshServersSoon(): void {
  refreshSoon("servers", () => {
    void queryClient.invalidateQueries({ queryKey: ["servers"] });
    void queryClient.invalidateQueries({ queryKey: ["server"] });
  });
}

/** How far the fetching of an image is. */
function preparing({ id, message }: Preparing): void {
  const patch = (server: ServerView) => (server.id === id ? { ...server, preparing: message } : server);
  queryClient.setQueryData(serversQuery.queryKey, (servers) => servers?.map(patch));
  queryClient.setQueriesData<ServerView>({ queryKey: ["server"] }, (server) => server && patch(server));
}

/** A server that started anew may offer other things than before. */
function forgetOffers(id: string): void {
  for (const key of ["tools", "resources", "resource-templates", "prompts"]) {
    void queryClient.invalidateQueries({ queryKey: [key, id] });
  }
}

function callStarted(started: ToolCallStarted): void {
  runningCalls.set((running) => {
    if (running.size >= MAX_RUNNING) return running;
    return new Map(running).set(started.call_id, started);
  });
}

function callFinished(finished: ToolCallFinished): void {
  runningCalls.set((running) => {
    if (!running.has(finished.call_id)) return running;
    const rest = new Map(running);
    rest.delete(finished.call_id);
    return rest;
  });
  refreshSoon("activity", () => void queryClient.invalidateQueries({ queryKey: ["activity"] }));
}

const planned = new Map<string, ReturnType<typeof setTimeout>>();

/** Does it once, shortly after the first of many reasons to. */
function refreshSoon(what: string, refresh: () => void): void {
  if (planned.has(what)) return;
  const timer = setTimeout(() => {
    planned.delete(what);
    refresh();
  }, 120);
  planned.set(what, timer);
}
