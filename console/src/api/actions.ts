// What a person can do to a server. Each shows at once what was asked for, and the daemon's
// answer or event has the last word.
import { useMutation } from "@tanstack/react-query";
import { request } from "./client";
import { noteWanted } from "./overlay";
import { queryClient, serverPath, serversQuery } from "./queries";
import type { ServerView, Status } from "./schema";

type Target = Pick<ServerView, "id" | "name">;

function show(id: string, change: Partial<ServerView>): void {
  const patch = (server: ServerView) => (server.id === id ? { ...server, ...change } : server);
  queryClient.setQueryData(serversQuery.queryKey, (servers) => servers?.map(patch));
  queryClient.setQueriesData<ServerView>({ queryKey: ["server"] }, (server) => server && patch(server));
}

export async function refreshServers(): Promise<void> {
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: ["servers"] }),
    queryClient.invalidateQueries({ queryKey: ["server"] }),
  ]);
}

/** The switch. While it is under way the row shows where it is heading. */
export function useSwitch() {
  return useMutation({
    mutationFn: ({ server, on }: { server: Target; on: boolean }) =>
      request<ServerView>(`${serverPath(server.id)}/${on ? "enable" : "disable"}`, { method: "POST" }),
    onMutate: ({ server, on }) => {
      // What was asked for before is out of date; what is shown from it stays until the answer.
      void queryClient.cancelQueries({ queryKey: ["servers"] }, { revert: false });
      const before = queryClient.getQueryData(serversQuery.queryKey)?.find(({ id }) => id === server.id);
      const status: Status = on ? "starting" : "stopping";
      noteWanted(server.id, { status, enabled: on });
      show(server.id, { status, enabled: on, ...(on ? { error: null } : {}) });
      return before;
    },
    onError: (_error, { server }, before) => {
      if (before) show(server.id, { status: before.status, enabled: before.enabled, error: before.error ?? null });
    },
    onSettled: async (_answer, _error, { server }) => {
      noteWanted(server.id, null);
      await refreshServers();
    },
  });
}

export function useRestart() {
  return useMutation({
    mutationFn: (server: Target) => request<ServerView>(`${serverPath(server.id)}/restart`, { method: "POST" }),
    onSettled: refreshServers,
  });
}

export function useDelete() {
  return useMutation({
    mutationFn: ({ server, purge }: { server: Target; purge: boolean }) =>
      request<void>(`${serverPath(server.id)}${purge ? "?purge=true" : ""}`, { method: "DELETE" }),
    onSuccess: (_answer, { server }) => {
      queryClient.setQueryData(serversQuery.queryKey, (servers) => servers?.filter(({ id }) => id !== server.id));
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["servers"] }),
  });
}

/** Adds a server, or changes the one with this id. */
export function useSave() {
  return useMutation({
    mutationFn: ({ id, body }: { id: string | null; body: Record<string, unknown> }) =>
      id === null
        ? request<ServerView>("/mcp/servers", { method: "POST", body })
        : request<ServerView>(serverPath(id), { method: "PATCH", body }),
    onSuccess: refreshServers,
  });
}
