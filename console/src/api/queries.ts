// What the console reads from the daemon, by name. The event stream keeps it current
// (live.ts), so that polling is only for what no event tells.
import { QueryClient, queryOptions } from "@tanstack/react-query";
import { ApiFailure, request } from "./client";
import { overlaid } from "./overlay";
import type { ActivityPage, CallResult, ServerList, ServerView } from "./schema";
import type { Prompt, Resource, ResourceTemplate, Tool } from "./mcp";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      networkMode: "always",
      retry: (count, error) => error instanceof ApiFailure && error.kind === "unreachable" && count < 2,
      retryDelay: 500,
    },
    mutations: { networkMode: "always" },
  },
});

/** The path of a server; the name may hold any character but a slash. */
export const serverPath = (idOrName: string) => `/mcp/servers/${encodeURIComponent(idOrName)}`;

export const serversQuery = queryOptions({
  queryKey: ["servers"],
  queryFn: async ({ signal }): Promise<ServerView[]> => {
    const askedAt = performance.now();
    const { servers } = await request<ServerList>("/mcp/servers", { signal });
    return servers.map((server) => overlaid(server, askedAt));
  },
});

/** One server with what it uses. Measured anew each time it is asked for. */
export const serverQuery = (name: string) =>
  queryOptions({
    queryKey: ["server", name],
    queryFn: async ({ signal }): Promise<ServerView> => {
      const askedAt = performance.now();
      return overlaid(await request<ServerView>(serverPath(name), { signal }), askedAt);
    },
    refetchInterval: 5_000,
  });

export const toolsQuery = (id: string) =>
  queryOptions({
    queryKey: ["tools", id],
    queryFn: async ({ signal }) => (await request<{ tools: Tool[] }>(`${serverPath(id)}/tools`, { signal })).tools,
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const resourcesQuery = (id: string) =>
  queryOptions({
    queryKey: ["resources", id],
    queryFn: async ({ signal }) =>
      (await request<{ resources: Resource[] }>(`${serverPath(id)}/resources`, { signal })).resources,
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const resourceTemplatesQuery = (id: string) =>
  queryOptions({
    queryKey: ["resource-templates", id],
    queryFn: async ({ signal }) => {
      const result = await call<{ resourceTemplates?: ResourceTemplate[] }>(id, "resources/templates/list", {}, signal);
      return result.resourceTemplates ?? [];
    },
    staleTime: 60_000,
    retry: false,
    refetchOnWindowFocus: false,
  });

export const promptsQuery = (id: string) =>
  queryOptions({
    queryKey: ["prompts", id],
    queryFn: async ({ signal }) =>
      (await request<{ prompts: Prompt[] }>(`${serverPath(id)}/prompts`, { signal })).prompts,
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });

export const activityQuery = (limit: number, server?: string) =>
  queryOptions({
    queryKey: ["activity", limit, server ?? null],
    queryFn: async ({ signal }) => {
      const filter = server ? `&server=${encodeURIComponent(server)}` : "";
      return (await request<ActivityPage>(`/activity?limit=${limit}${filter}`, { signal })).calls;
    },
    refetchInterval: 15_000,
  });

export type Health = { status: string; version: string };

/** The daemon's own state; outside the API, because it wants no token. */
export const healthQuery = queryOptions({
  queryKey: ["health"],
  queryFn: async ({ signal }): Promise<Health> => (await fetch("/healthz", { signal })).json(),
  staleTime: 60_000,
});

/** One JSON-RPC call to a server. */
export async function call<T>(id: string, method: string, params: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await request<CallResult>(`${serverPath(id)}/call`, {
    method: "POST",
    body: { method, params },
    ...(signal ? { signal } : {}),
  });
  return answer.result as T;
}
